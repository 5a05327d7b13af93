"""Who gets in at all."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import admin
from django.test import Client

from accessportal.console.site import PortalAdminSite
from tests.fixtures_story import Story

SignIn = Callable[[str], Client]


def test_anonymous_people_are_sent_to_the_portals_own_sign_in(story: Story) -> None:
    for url in ("/admin/", "/admin/requests/", "/admin/auth/user/"):
        response = Client().get(url, follow=True)
        assert response.redirect_chain[-1][0].startswith("/sign-in/?next=/admin/")
    assert Client().get("/admin/login/?next=/admin/rules/")["Location"] == "/sign-in/?next=/admin/rules/"


def test_a_stranger_and_a_requester_are_told_who_may(as_person: SignIn) -> None:
    for name in ("mallory", "alice"):
        response = as_person(name).get("/admin/")
        assert response.status_code == 403
        assert "operators, auditors and approvers" in response.content.decode()


def test_an_approver_gets_only_their_places(as_person: SignIn) -> None:
    index = as_person("bob").get("/admin/")

    assert [place["label"] for place in index.context["console_places"]] == ["Requests", "Why / who can"]
    assert [app["name"] for app in index.context["app_list"]] == ["Access"]


def test_the_site_is_djangos_default_site() -> None:
    assert isinstance(admin.site, PortalAdminSite)
