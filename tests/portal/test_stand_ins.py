"""Journeys through the pages: Bob goes on holiday, and Carol decides in his place."""

from __future__ import annotations

import re
from datetime import timedelta

from django.test import Client

from accessportal.access_requests import operations, queries
from accessportal.access_requests.stand_in import StandIn
from accessportal.access_requests.states import Status
from accessportal.audit import queries as audit
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole, State
from accessportal.kernel.actors import system
from tests.access_requests.test_costs import cost_of
from tests.commands.conftest import run
from tests.fixtures_story import Story
from tests.portal.conftest import SignedIn


def text_of(client: Client, path: str) -> str:
    answer = client.get(path, follow=True)
    assert answer.status_code == 200, (path, answer.status_code)
    return " ".join(answer.content.decode().split())


def add_carol(story: Story) -> None:
    directory.create_person(email="carol@example.com", name="Carol Diaz", actor=system("setup"), now=story.clock.now())
    story.clock.advance(5)


def name_carol(story: Story, bob: Client, *, days: int = 3, **given: str) -> None:
    today = story.clock.now().date()
    data = {"email": "carol@example.com", "first_day": str(today), "last_day": str(today + timedelta(days=days)), "submission_id": "f"}
    answer = bob.post("/stand-ins/", data | given, follow=True)
    assert (answer.redirect_chain, answer.status_code) == ([("/stand-ins/", 302)], 200)


def named_by_bob(story: Story) -> StandIn:
    """The one that nobody has taken back."""
    [one] = [one for one in queries.list_named(actor=story.bob).items if one.ended_at is None]
    return one


def test_a_holiday(story: Story, signed_in: SignedIn) -> None:
    add_carol(story)
    bob, carol, alice = signed_in("bob"), signed_in("carol"), signed_in("alice")
    asked = story.ask_for_prod()
    page = f"/requests/{asked.request_id}/"
    assert carol.get(page).status_code == 404
    assert carol.get("/admin/requests/").status_code == 403
    assert "Name a stand-in" in text_of(bob, "/admin/requests/?pattern=waiting")

    name_carol(story, bob, note="On holiday")

    shown = text_of(bob, "/stand-ins/")
    assert "Carol Diaz" in shown
    assert "On holiday" in shown
    assert "You decide in place of <b>Bob Ito</b>" in text_of(carol, "/fragments/for-me/")
    assert "You decide in place of <b>Bob Ito</b>" in text_of(carol, "/admin/requests/?pattern=waiting")
    assert 'class="small-2">in place of <b>Bob Ito</b>' in text_of(carol, "/admin/requests/?pattern=waiting")
    assert 'class="small-2">in place of' not in text_of(bob, "/admin/requests/?pattern=waiting")
    assert "In whose place you decide" in text_of(carol, "/stand-ins/")
    assert ">1</span>" in text_of(carol, "/fragments/approvals/")

    told_carol = carol.post(f"{page}approve/", {"reason": "Looks fine"}, follow=True).content.decode()
    assert "Approved in place of bob@example.com: " in told_carol
    # Ending early is not decided in somebody's place.
    assert f"{page}end/" not in told_carol

    assert story.now_of(asked).status is Status.ACTIVE
    for reader in (alice, carol):
        assert "Carol Diaz in place of Bob Ito" in text_of(reader, page)
    assert "Approved by Carol Diaz in place of Bob Ito" in text_of(alice, "/")
    [told] = [event for event in audit.chain_of(asked.entity) if event.action == "request.approved"]
    assert told.data["in_place_of"] == "bob@example.com"
    assert run("verify_audit", "--json").json["breaks"] == []

    # The day after the last day it is over.
    story.clock.advance(4 * 86_400)
    later = story.ask_for_prod()
    carol = signed_in("carol")
    assert carol.get(f"/requests/{later.request_id}/").status_code == 404
    assert "You decide in place of" not in text_of(carol, "/fragments/for-me/")
    assert "Over" in text_of(signed_in("bob"), "/stand-ins/")


def test_lists_of_what_was_asked_for_read_the_names_of_both_together(story: Story, signed_in: SignedIn) -> None:
    add_carol(story)
    bob, carol, alice = signed_in("bob"), signed_in("carol"), signed_in("alice")
    name_carol(story, bob)
    alice.get("/requests/")
    denied = {}
    for client in (carol, bob):
        asked = story.ask_for_prod()
        client.post(f"/requests/{asked.request_id}/deny/", {"reason": "Not today"})
        denied[client] = cost_of(lambda: alice.get("/requests/"))

    assert "denied by Carol Diaz in place of Bob Ito" in text_of(alice, "/requests/")
    assert len(denied[carol]) == len(denied[bob])


def test_it_is_taken_back_at_once_by_whom_it_concerns(story: Story, signed_in: SignedIn) -> None:
    add_carol(story)
    bob, carol, olga = signed_in("bob"), signed_in("carol"), signed_in("olga")
    asked = story.ask_for_prod()
    for number, client in enumerate((bob, carol)):
        name_carol(story, bob, submission_id=f"0000000{number}-0000-4000-8000-000000000000")
        one = named_by_bob(story)
        path = f"/stand-ins/{one.stand_in}/{one.stand_in_id}/end/"
        assert "counts while bob@example.com may decide" in text_of(client, path)
        assert client.post(path, {"reason": "Back again"}).status_code == 302
        assert client.post(path, {"reason": "Once more"}).status_code == 409
        assert carol.get(f"/requests/{asked.request_id}/").status_code == 404
    name_carol(story, bob, submission_id="00000009-0000-4000-8000-000000000000")
    one = named_by_bob(story)
    listed = text_of(olga, "/admin/stand-ins/")
    assert "Carol Diaz" in listed
    done = olga.post(f"/admin/stand-ins/{one.stand_in_id}~2F{one.stand_in}/do/end/", {"confirmed": "yes", "reason": "Phone was stolen"})
    assert done.status_code == 302
    assert carol.get(f"/requests/{asked.request_id}/").status_code == 404
    assert "Taken back" in text_of(olga, "/admin/stand-ins/?pattern=all")


def test_what_was_typed_stays_with_the_error_beside_its_field(story: Story, signed_in: SignedIn) -> None:
    bob = signed_in("bob")
    today = story.clock.now().date()
    fine = {"email": "sam@example.com", "first_day": str(today), "last_day": str(today), "note": "Back soon", "submission_id": "f"}

    def refused(**given: str) -> str:
        answer = bob.post("/stand-ins/", fine | given)
        assert answer.status_code == 422
        assert "Back soon" in answer.content.decode()
        return " ".join(answer.content.decode().split())

    assert "Nobody in the directory has this address" in refused(email="nobody@example.com")
    assert "That is you" in refused(email="Bob@example.com")
    assert "Give a day like 2026-12-24" in refused(last_day="soon")
    assert "at most 90 days" in refused(last_day=str(today + timedelta(days=90)))
    assert "over before it begins" in refused(last_day=str(today - timedelta(days=1)))
    for unusual in ("0001-01-01", "9999-12-31"):
        assert "Give a day of these years" in refused(first_day=unusual, zone="Pacific/Kiritimati")
    # The last day is included, by the clock of their browser.
    bob.post("/stand-ins/", fine | {"zone": "America/New_York"})
    [one] = queries.list_named(actor=story.bob).items
    assert (one.ends_at.isoformat(), one.stand_in) == (f"{today + timedelta(days=1)}T05:00:00+00:00", "sam@example.com")


def test_commands(story: Story) -> None:
    add_carol(story)
    assert run("list_stand_ins", "--as", "olga@example.com").lines == ["None."]
    now = story.clock.now()
    one = operations.name_stand_in(
        email="carol@example.com", starts_at=now, ends_at=now + timedelta(days=1), submission_id="f", actor=story.bob, now=now
    )
    [listed] = run("list_stand_ins", "--as", "ana@example.com", "--json").json["stand_ins"]
    assert (listed["stand_in"], listed["approver"], listed["state"]) == ("carol@example.com", "bob@example.com", "now")
    assert run("list_stand_ins", "--as", "bob@example.com").code != 0
    assert run("end_stand_in", one.stand_in, one.stand_in_id, "--as", "ana@example.com").code != 0
    ended = run("end_stand_in", one.stand_in, one.stand_in_id, "--reason", "At night", "--as", "olga@example.com", "--json").json
    assert (ended["state"], ended["ended_by"]) == ("taken back", "olga@example.com")
    assert run("list_stand_ins", "--as", "olga@example.com").lines == ["None."]
    [past] = run("list_stand_ins", "--all", "--as", "olga@example.com", "--json").json["stand_ins"]
    assert past["stand_in_id"] == one.stand_in_id


def test_an_approver_finds_who_decides_by_the_same_rules_and_nobody_else(story: Story, signed_in: SignedIn) -> None:
    add_carol(story)
    setup, now = system("setup"), story.clock.now
    directory.create_group(group_id="/security/night", name="Night", description="", actor=setup, now=now())
    for email, role in (("carol@example.com", GroupRole.CONTRIBUTOR), ("gina@example.com", GroupRole.READER)):
        directory.grant_membership(email=email, group_id="/security/night", role=role, actor=setup, now=now())
    story.clock.advance(5)

    def found(name: str, text: str = "") -> set[str]:
        page = signed_in(name).get("/people/search/", {"text": text, "list": "id_email_list", "for": "stand_in"}).content.decode()
        return {address.partition("@")[0] for address in re.findall(r'data-value="([^"]*)"', page)}

    # Sam is no admin and sees only who is with him in the group that decides; Carol decides by a group below it.
    assert found("sam") == {"bob"}
    assert found("sam", "ito") == found("bob", "b") | {"bob"} == {"bob"}
    assert found("carol") == {"gina"}
    assert found("sam", "alice") == found("carol", "bob") == set()
    for stranger in ("alice", "mallory", "ana"):
        assert found(stranger) == set()
        assert "approver" in text_of(signed_in(stranger), "/people/search/?text=b&list=who&for=stand_in")
    # Where a stand-in is not meant, nothing has changed.
    assert "Type the whole address." in text_of(signed_in("sam"), "/people/search/?text=b&list=who")
    assert "/people/search/?for=stand_in&amp;list=id_email_list" in text_of(signed_in("sam"), "/stand-ins/")
    # Nobody names who can't sign in.
    directory.set_person_state(email="bob@example.com", state=State.DISABLED, actor=setup, now=now())
    assert found("sam") == set()
    sam = signed_in("sam")
    assert len(cost_of(lambda: sam.get("/people/search/?text=&list=who&for=stand_in"))) <= 12
