"""Who gets in at all."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import admin
from django.test import Client

from accessportal.console.resources import RESOURCES
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

    assert [(room.name, [place.label for place in room.places]) for room in index.context["rooms"]] == [
        ("Access", ["Requests", "Why / who can"])
    ]


def test_every_place_lies_in_one_room_which_names_it(as_person: SignIn) -> None:
    olga = as_person("olga")
    rooms = olga.get("/admin/").context["rooms"]
    assert [room.name for room in rooms] == ["Access", "Directory", "Catalog", "Lending", "Audit", "Machinery"]
    urls = [place.url for room in rooms for place in room.places]
    assert len(set(urls)) == len(urls)
    assert {f"/admin/{name}/" for name in RESOURCES} <= set(urls)

    for room in rooms:
        shown = olga.get(room.places[-1].url).context
        assert shown["room"].name == room.name
        assert [place.label for place in shown["room"].places if place.is_current] == [room.places[-1].label]


def test_an_operator_begins_with_a_list_that_has_something(story: Story, as_person: SignIn) -> None:
    olga, bob = as_person("olga"), as_person("bob")

    def begins_with(client: Client) -> str:
        return str(client.get("/admin/requests/").context["pattern"].name)

    assert (begins_with(olga), begins_with(bob)) == ("all", "waiting")
    waiting = story.ask_for_prod()
    assert (begins_with(olga), begins_with(bob)) == ("pending", "waiting")
    story.approve(waiting)
    assert begins_with(olga) == "active"


def test_the_site_is_djangos_default_site() -> None:
    assert isinstance(admin.site, PortalAdminSite)
