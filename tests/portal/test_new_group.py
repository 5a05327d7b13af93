"""Asking to join a group, through HTTP: the form, what it foretells, and the request's way through every page."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.test import Client

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.directory.states import GroupRole
from tests.fixtures_story import Story
from tests.portal.conftest import SignedIn
from tests.portal.test_journey import HTMX, text_of

JOIN = {"group": "/engineering", "role": "contributor", "duration": "1d", "ticket_id": "", "reason": "On call this week"}


def send(client: Client, **given: str) -> Any:
    return client.post("/requests/new/group/", {"submission_id": str(uuid.uuid4()), **JOIN, **given})


def only(story: Story) -> AccessRequest:
    (found,) = queries.list_mine(actor=story.alice).items
    return found


def test_both_kinds_are_offered(story: Story, signed_in: SignedIn) -> None:
    page = signed_in("alice").get("/requests/new/").content.decode()

    assert 'href="/requests/new/aws_account/"' in page
    assert 'href="/requests/new/group/"' in page


def test_alice_asks_gina_admits_her_and_every_page_tells_it(story: Story, signed_in: SignedIn) -> None:
    alice, gina = signed_in("alice"), signed_in("gina")
    sent = send(alice)
    asked = only(story)
    assert sent.headers["Location"] == f"/requests/{asked.request_id}/"
    waiting = text_of(alice.get("/"))
    assert "Engineering · contributor" in waiting
    assert "decides: Gina Falk and Olga Berg" in waiting
    page = text_of(alice.get(f"/requests/{asked.request_id}/"))
    assert "Group Engineering /engineering Role Contributor" in page
    assert "Account" not in page
    queue = text_of(gina.get("/admin/requests/"))
    assert "Engineering · contributor" in queue
    detail = text_of(gina.get(f"/admin/requests/{asked.request_id}/", follow=True))
    assert "Group Engineering" in detail

    gina.post(f"/requests/{asked.request_id}/approve/", {"reason": "welcome"})
    story.carry_out(asked)

    assert story.role_of("alice@example.com", "/engineering") is GroupRole.CONTRIBUTOR
    page = text_of(alice.get(f"/requests/{asked.request_id}/"))
    assert "proved present in the directory" in page
    assert "Identity Center" not in page
    assert "Open in AWS" not in text_of(alice.get("/"))
    members = text_of(gina.get("/groups/at/engineering/"))
    assert re.search(r"Alice Park alice@example.com Contributor until", members)
    assert "Make permanent of Alice Park" in members
    assert "Remove Alice Park" not in members
    why = text_of(alice.get("/people/alice@example.com/"))
    assert f"Contributor through request {asked.request_id[:8]}" in why

    story.clock.advance(86_400)
    assert story.role_of("alice@example.com", "/engineering") is None
    story.tick()
    story.tick()

    page = text_of(signed_in("alice").get(f"/requests/{asked.request_id}/"))
    assert "proved gone from the directory" in page
    assert "Alice Park" not in text_of(signed_in("gina").get("/groups/at/engineering/"))


def test_a_permanent_membership_stays_and_the_receipt_says_why(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    send(alice, group="/engineering/payments", role="admin", duration="1h")
    asked = only(story)
    signed_in("gina").post(f"/requests/{asked.request_id}/approve/", {"reason": ""})
    story.carry_out(asked)
    assert story.role_of("alice@example.com", "/engineering/payments") is GroupRole.ADMIN

    story.clock.advance(3600)
    story.tick()
    story.tick()

    assert story.role_of("alice@example.com", "/engineering/payments") is GroupRole.CONTRIBUTOR
    for client, path in ((alice, "/requests/"), (signed_in("olga"), "/admin/requests/")):
        assert client.get(f"{path}{asked.request_id}/", follow=True).status_code == 200
    assert story.now_of(asked).status is Status.REVOKED


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"group": ""}, "Choose a group, or type its id."),
        ({"group": "/nowhere"}, "There is no group “/nowhere”."),
        ({"group": "/a\0b"}, "U+0000"),
        ({"group": "x" * 300}, "Group has 300 characters; 256 is the most."),
        ({"role": ""}, "Choose a role."),
        ({"role": "root"}, "Choose one of the roles reader, contributor and admin."),
        ({"duration": ""}, "Say for how long"),
        ({"duration": "9d"}, "7 d"),
        ({"reason": ""}, "Say why you need it."),
        ({"group": "/engineering/payments", "role": "reader"}, "already, as contributor"),
    ],
)
def test_the_form_comes_back_with_the_message_and_all_that_was_typed(
    story: Story, signed_in: SignedIn, wrong: dict[str, str], told: str
) -> None:
    given = {**JOIN, **wrong}

    answer = send(signed_in("alice"), **given)

    assert answer.status_code == 422
    assert told in text_of(answer)
    assert {name: answer.context["form"][name].value() for name in given} == given
    assert queries.list_mine(actor=story.alice).items == ()


def test_whom_no_rule_serves_is_refused_with_the_reason(story: Story, signed_in: SignedIn) -> None:
    answer = send(signed_in("mallory"))

    assert answer.status_code == 403
    assert answer.context["form"]["reason"].value() == JOIN["reason"]


def test_the_preview_says_who_decides(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    def told(**given: str) -> str:
        return text_of(alice.get("/requests/new/group/preview/", given, headers=HTMX))

    assert "Choose a group and a role" in told(group="", role="reader")
    assert "Approved at once Rule look-around" in told(group="/engineering", role="reader", duration="1h")
    waits = told(group="/engineering", role="contributor", duration="1d")
    assert "Needs one approval" in waits
    assert "Gina Falk and Olga Berg" in waits
    assert "/engineering · Engineering" in waits
    assert "Not possible like this" in told(group="/security", role="admin", duration="1h")
    assert "Not possible like this" in told(group="%00", role="x", duration="x" * 400)
    assert "Choose a group and a role" in told(group="\0", role="\0")


def test_ask_to_join_fills_the_form_in(story: Story, signed_in: SignedIn) -> None:
    form = signed_in("alice").get("/requests/new/group/", {"group": "/engineering"})

    assert form.context["form"]["group"].value() == "/engineering"
    assert "Approved at once" in text_of(form)


def test_it_is_extended_and_asked_for_again(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    send(alice, role="reader", duration="10m")
    held = only(story)
    story.carry_out(held)
    story.clock.advance(60)
    form = alice.get(f"/requests/{held.request_id}/extend/")
    assert "You already hold this until" in text_of(form)
    assert 'hx-get="/requests/new/group/preview/"' in form.content.decode()

    alice.post(f"/requests/{held.request_id}/extend/", {"submission_id": str(uuid.uuid4()), "duration": "2h", "reason": "more"})
    further = max(queries.list_mine(actor=story.alice).items, key=lambda one: one.expires_at)
    assert further.extends == held.request_id
    assert further.target["group_id"] == "/engineering"

    story.carry_out(further)
    story.clock.advance(600)
    story.tick()
    story.tick()
    (again,) = re.findall(r'href="(/requests/new/group/\?[^"]+)"', alice.get("/").content.decode())
    filled = alice.get(again.replace("&amp;", "&"))
    assert filled.context["form"]["group"].value() == "/engineering"
    assert filled.context["form"]["role"].value() == "reader"
