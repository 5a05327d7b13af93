"""A busy day at the portal, served from this process at the story's own time, and people signed in at their desks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.db.models import Model
from django.test import Client
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from accessportal.access_requests import store
from accessportal.access_requests.states import AccessRequest
from accessportal.catalog.operations import sync_catalog
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole
from accessportal.kernel.actors import person, system
from accessportal.twin.identity_center import AssignmentKey
from tests.browser.running import portal_in
from tests.fixtures_browser import Desk
from tests.fixtures_story import Story
from tests.fixtures_twin import create_account, create_user
from tests.moto_snapshots import Snapshot


class OpenAs(Protocol):
    """``open_as("bob")`` is an empty page of a browser in which Bob is signed in; ``open_as("")`` of one in which nobody is."""

    def __call__(self, name: str, *, javascript: bool = True) -> Page: ...


_SETUP = system("setup")
_MAXIMILIANA = "maximiliana.featherstonehaugh-cholmondeley@platform-engineering.example.com"
_DANA = "dana@example.com"
_LONG_ACCOUNT = "a-very-long-account-name-that-somebody-thought-was"
_LONG_PATH = "/Workloads/Prod/Payments/Europe/Central/Legacy/Systems"
_LONG_REASON = "Averyveryverylongreasonwithoutanyblankswhatsoever" * 5 + " and then words that explain why. " * 6
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class BusyDay:
    """One request of Alice's in every state that a page shows differently."""

    story: Story
    lapsed: AccessRequest
    ended: AccessRequest
    denied: AccessRequest
    cancelled: AccessRequest
    active: AccessRequest
    shared: AccessRequest
    granting: AccessRequest
    stuck: AccessRequest
    waiting: AccessRequest
    half_approved: AccessRequest


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was built once in this process: moto's part of it, the twin's, the catalog's rows, and when it was over."""

    day: BusyDay
    snapshot: Snapshot
    assignments: frozenset[AssignmentKey]
    rows: dict[type[Model], list[Model]]
    at: datetime


_kept: list[_Kept] = []


@pytest.fixture(scope="session")
def past(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``.portal`` of a first start: it takes a minute to make up the past of the demo, and seconds to go on from it."""
    home = tmp_path_factory.mktemp("past")
    with portal_in(home):
        pass
    return home / ".portal"


@pytest.fixture
def busy_day(story: Story) -> BusyDay:
    """Long names, long words and more rows than a page holds among them. Built once in this process, and put back after that."""
    models = list(apps.get_app_config("catalog").get_models())
    if not _kept:
        day = _live_through(story)
        rows = {model: list(model._default_manager.all()) for model in models}
        _kept.append(_Kept(day, Snapshot.take(), frozenset(story.twin.front.assignments()), rows, story.clock.now()))
    kept = _kept[0]
    kept.snapshot.put_back()
    story.twin.front._assignments = set(kept.assignments)
    for model in reversed(models):
        model._default_manager.all().delete()
    for model in models:
        model._default_manager.bulk_create(kept.rows[model])
    story.clock.advance((kept.at - story.clock.now()).total_seconds())
    story._submissions = kept.day.story._submissions
    return replace(kept.day, story=story)


def _live_through(story: Story) -> BusyDay:
    _newcomers(story)
    lapsed = story.ask_for_prod()
    story.clock.advance(25 * _HOUR)
    ended = story.approve(story.ask_for_prod(seconds=600))
    story.carry_out(ended)
    story.clock.advance(900)
    story.tick()
    story.tick()
    denied, cancelled = story.deny(story.ask_for_prod()), story.cancel(story.ask_for_prod())
    active = story.approve(story.ask_for_prod(seconds=8 * _HOUR))
    first = story.ask(seconds=4 * _HOUR)
    for request in (active, first):
        story.carry_out(request)
    long_ones: Any = {"account": _LONG_ACCOUNT, "reason": _LONG_REASON, "ticket": "CHG-99887766554433221100", "actor": person(_MAXIMILIANA)}
    for permission_set in ("ReadOnlyAccess", "PowerUserAccess"):
        story.ask(permission_set=permission_set, **long_ones)
    story.clock.advance(2 * _HOUR)
    shared = story.ask(seconds=600)
    story.carry_out(shared)
    for _ in range(26):
        story.ask_for_prod(actor=person(_DANA))
    waiting = story.ask_for_prod(seconds=2 * _HOUR)
    half_approved = story.approve(
        story.ask(account="payments-prod", seconds=4 * _HOUR, reason="Reconcile the failed payouts"), actor=story.sam
    )
    stuck, granting = story.ask(reason="Stuck for a while"), story.ask(permission_set="ReadOnlyAccess", reason="Read the logs")
    story.clock.advance(60)
    _delay(story, stuck)
    return BusyDay(story, lapsed, ended, denied, cancelled, active, shared, granting, stuck, waiting, half_approved)


def _newcomers(story: Story) -> None:
    now = story.clock.now()
    twin = story.twin
    for email, name in ((_DANA, "Dana Osei"), (_MAXIMILIANA, "Maximiliana Featherstonehaugh-Cholmondeley von und zu Wolfenstein")):
        directory.create_person(email=email, name=name, actor=_SETUP, now=now)
        directory.grant_membership(email=email, group_id="/engineering/payments", role=GroupRole.CONTRIBUTOR, actor=_SETUP, now=now)
        create_user(twin.identity_store, twin.identity_store_id, email, name)
    tags = {"env": "prod", "owner": "payments-platform-team", "cost-centre": "4711-0815-EMEA"}
    create_account(twin.organizations, twin.organizational_units, _LONG_ACCOUNT, _LONG_PATH, tags)
    sync_catalog(now=now, clock=story.clock)


def _delay(story: Story, request: AccessRequest) -> None:
    """As after some attempts that met a busy Identity Center."""
    error = "ConflictException: another operation on this account and permission set is under way; IAM Identity Center asks to try later"
    asked = story.now_of(request)
    delayed = replace(asked, work_due_at=story.clock.now() + timedelta(seconds=90), work_attempts=4, work_error=error)
    data = {"work": "GRANT", "error": "conflict"}
    store.change(asked, delayed, "request.work_delayed", data, actor=system("tick"), now=story.clock.now())


@pytest.fixture
def open_as(story: Story, desk: Desk, live_server: LiveServer) -> OpenAs:
    # The story is named first, so that it ends last: until the desk has been left, pages go on asking at its time.
    def open_page(name: str, *, javascript: bool = True) -> Page:
        context = desk.sit_down(base_url=live_server.url, java_script_enabled=javascript)
        context.clock.set_fixed_time(story.clock.now())
        if name:
            email = f"{name}@example.com"
            user, _ = get_user_model().objects.get_or_create(username=email, defaults={"email": email})
            client = Client()
            client.force_login(user)
            # Without an end of its own: the browser lives in the real time, the story does not.
            context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}])
        return context.new_page()

    return open_page
