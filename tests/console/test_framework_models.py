"""The framework's own models in the admin: whoever may look at a list learns nothing that it does not show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.options import ModelAdmin
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db.models import Model
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest
from django.test import Client
from django.urls import reverse

from accessportal.console.framework import ReadOnly
from accessportal.console.site import PortalAdminSite
from tests.fixtures_story import Story

SignIn = Callable[[str], Client]
REGISTERED = [pytest.param(at, id=at.opts.label) for at in admin.site._registry.values()]
# What may be behind the name of a field that a list's own filter is about.
OF_FILTERS = {"", "exact", "isnull", "gte", "lt"}


def _fields(model: type[Model], *, depth: int) -> Iterator[tuple[str, Any]]:
    """Every field of the model, and by its relations in both directions of its neighbours, with the words that lead there."""
    for field in model._meta.get_fields():
        yield field.name, field
        if field.is_relation and field.related_model is not None and depth:
            for path, found in _fields(field.related_model, depth=depth - 1):
                yield f"{field.name}{LOOKUP_SEP}{path}", found


def _lookups(model: type[Model]) -> Iterator[tuple[str, str]]:
    """Each field's path with each lookup that Django knows for it, chained ones of dates and of text among them."""
    for path, field in _fields(model, depth=2):
        yield path, ""
        for name in (*getattr(field, "get_lookups", dict)(), "regex", "startswith", "pk__regex", "iso_year__gte", "length__gt"):
            yield path, name
    for made_up in ("pk", "id__in", "task_name", "task_id", "nonsense"):
        yield made_up, "regex"


def _names_of_filters(at: ModelAdmin[Any]) -> set[str]:
    return {str(one) for one in at.list_filter}


@pytest.mark.parametrize("at", REGISTERED)
def test_no_list_is_narrowed_but_by_its_own_filters(at: ModelAdmin[Any]) -> None:
    tried = list(_lookups(at.model))
    open_ = {(path, name) for path, name in tried if at.lookup_allowed(LOOKUP_SEP.join(filter(None, (path, name))), "x", HttpRequest())}

    assert len(tried) > 50
    assert {path for path, _ in open_} <= _names_of_filters(at)
    assert {name for _, name in open_} <= OF_FILTERS


@pytest.mark.parametrize("at", REGISTERED)
def test_what_is_filtered_sorted_or_searched_is_what_the_list_shows(at: ModelAdmin[Any]) -> None:
    request = HttpRequest()
    shown = {str(one) for one in at.get_list_display(request)} | {str(one) for one in at.fields or ()}
    sorted_by = {order for one in shown if (order := getattr(getattr(at, one, None), "admin_order_field", None))}

    assert _names_of_filters(at) <= shown
    assert {name.lstrip("=^@") for name in at.get_search_fields(request)} <= shown
    assert {str(name).lstrip("-") for name in at.get_ordering(request)} <= shown
    assert sorted_by <= shown
    assert at.date_hierarchy is None


@pytest.mark.parametrize("at", REGISTERED)
def test_addresses_that_ask_for_more_are_refused(story: Story, as_person: SignIn, at: ModelAdmin[Any]) -> None:
    """400 and nothing else, whether or not it would have found something, also as a popup and with the mark of an error."""
    ana = as_person("ana")
    address = reverse(f"admin:{at.opts.app_label}_{at.opts.model_name}_changelist")
    hidden = [field.name for field in at.opts.concrete_fields if field.name not in _names_of_filters(at)]

    assert ana.get(address).status_code == 200
    for name in hidden:
        for question in (f"{name}__regex=^a", f"{name}__startswith=a", f"{name}__isnull=", f"{name}=a", f"_popup=1&{name}__gt=a"):
            assert ana.get(f"{address}?{question}").status_code == 400, question
        assert ana.get(f"{address}?_to_field={name}").status_code in ({200} if name == at.opts.pk.name else {400}), name


def test_the_bits_of_a_key_or_a_password_are_not_answered(story: Story, as_person: SignIn) -> None:
    """As it was done: an auditor asked 170 times and had the cookie of somebody else."""
    ana = as_person("ana")
    bob = as_person("bob").cookies["sessionid"].value
    get_user_model().objects.filter(username="bob@example.com").update(password="md5$salt$abc")

    for question in (
        f"/admin/sessions/session/?session_key__regex=^[{bob[0]}]",
        f"/admin/sessions/session/?session_key__startswith={bob[:3]}",
        "/admin/sessions/session/?session_data__contains=a",
        "/admin/auth/user/?password__regex=^md5",
        "/admin/auth/user/?logentry__user__password__startswith=md5",
        "/admin/auth/user/?last_login__gt=2020-01-01",
        "/admin/django_q/schedule/?kwargs__regex=a",
        "/admin/django_q/schedule/?task_name__regex=a",
        "/admin/django_q/ormq/?payload__startswith=a",
    ):
        assert ana.get(question).status_code == 400, question
    assert ana.get(f"/admin/sessions/session/?q={bob[:3]}&o=1.2.-1&all=").status_code == 200


def test_a_list_s_own_filters_go_on_working(story: Story, as_person: SignIn) -> None:
    ana = as_person("ana")

    for question in (
        "auth/user/?is_active__exact=1&q=ana&o=1",
        "django_q/success/?group=tick",
        "django_q/success/?group__isnull=True",
        "django_q/schedule/?schedule_type__exact=I",
        "django_q/schedule/?next_run__gte=2026-01-01+00%3A00%3A00%2B00%3A00&next_run__lt=2027-01-01+00%3A00%3A00%2B00%3A00",
        "django_q/ormq/?key=accessportal",
    ):
        assert ana.get(f"/admin/{question}").status_code == 200, question


def test_a_model_that_anybody_registers_is_for_looking_and_closed() -> None:
    """Not by a list of the apps that are known today."""
    site = PortalAdminSite()
    site.register(ContentType)
    site.register([Session], type("Open", (ModelAdmin,), {"list_filter": ("expire_date",)}))

    for at in site._registry.values():
        assert isinstance(at, ReadOnly)
        assert not at.has_add_permission(HttpRequest())
        assert not at.has_delete_permission(HttpRequest())
    assert not site._registry[ContentType].lookup_allowed("app_label__regex", "x", HttpRequest())
    assert not site._registry[Session].lookup_allowed("session_key__gt", "x", HttpRequest())
    assert site._registry[Session].lookup_allowed("expire_date__gte", "x", HttpRequest())


def test_a_search_of_a_thousand_words_is_one_of_a_few(story: Story, as_person: SignIn) -> None:
    """Each word is a condition more: the database refused the question, and the answer was a 500."""
    words = "+".join(["ana"] * 1_300)

    assert as_person("ana").get(f"/admin/auth/user/?q={words}").status_code == 200
