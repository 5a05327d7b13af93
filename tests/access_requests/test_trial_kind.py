"""A further kind of access costs its folder and one line: asked by form, judged by its own rules, granted, proved, ended, told."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from accessportal.access_requests import operations, queries
from accessportal.access_requests.kind import KINDS, register
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.audit import queries as audit
from accessportal.commands.flags import parameters_of
from accessportal.commands.requests import request_access
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.rules import operations as rules_operations
from accessportal.rules import queries as rules
from accessportal.rules import store as rules_store
from accessportal.rules import terms
from accessportal.rules.models import RuleItem
from accessportal.rules.states import InvalidRules
from accessportal.store.reading import get_item
from tests.access_requests.trial_kind import DOOR
from tests.access_requests.trial_kind.grant import BADGES, LONGEST_WAIT_SECONDS, LentDoorGrant
from tests.access_requests.trial_kind.terms import DoorTerms
from tests.fixtures_story import RULES, Story
from tests.portal.conftest import SignedIn, signed_in
from tests.portal.test_journey import HTMX, text_of

__all__ = ["signed_in"]

DOOR_RULES = """
  - name: cellar-closed
    kind: door
    effect: deny
    subjects: {groups: [/engineering]}
    targets: {floors: [cellar]}
  - name: labs-by-day
    kind: door
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {floors: [ground]}
    hours: [day]
    duration: {max: 2h}
    approval: {required: true, approvers: {groups: [/security]}}
    escort: true
"""
FORM = "/requests/new/door/"


@pytest.fixture(autouse=True)
def doors(story: Story) -> Iterator[None]:
    """The kind is there, and so are its rules."""
    register(DOOR)
    rules_operations.apply_rules(text=RULES + DOOR_RULES, actor=story.olga, now=story.clock.now())
    yield
    del KINDS[DOOR.name]
    del terms._REGISTERED[DOOR.name]
    rules_store._cached = None
    BADGES.clear()


def given(**changed: str) -> dict[str, str]:
    typed = {"door": "lab-1", "hours": "day", "duration": "1h", "ticket_id": "", "reason": "Feed the fish"}
    return {**typed, "submission_id": str(uuid.uuid4()), **changed}


def ask(story: Story, *, actor: Actor | None = None, duration_seconds: int | None = None, **target: str) -> AccessRequest:
    return operations.submit(
        kind="door",
        subject_id=None,
        target={"door": "lab-1", "hours": "day", **target},
        duration_seconds=duration_seconds,
        reason="Feed the fish",
        ticket_id="",
        submission_id=str(uuid.uuid4()),
        actor=actor or story.alice,
        now=story.clock.now(),
    )


@pytest.mark.django_db
def test_alice_asks_by_the_form_bob_approves_and_every_page_tells_it(story: Story, signed_in: SignedIn) -> None:
    alice, bob = signed_in("alice"), signed_in("bob")
    assert f'href="{FORM}"' in alice.get("/requests/new/").content.decode()
    form = text_of(alice.get(FORM))
    assert "Ask for a door" in form
    assert "Name a door to see who decides." in form
    seen = text_of(alice.get(f"{FORM}preview/?door=lab-1&hours=day&duration=1h", headers=HTMX))
    assert "Needs one approval" in seen
    assert "lab-1 · ground" in seen

    refused = alice.post(FORM, given(door="vault"))
    assert refused.status_code == 422
    assert "Rule cellar-closed refuses all hours through doors of cellar to /engineering." in text_of(refused)

    sent = alice.post(FORM, given())
    (asked,) = queries.list_mine(actor=story.alice).items
    address = f"/requests/{asked.request_id}/"
    assert sent.headers["Location"] == address
    assert "Door lab-1 Floor ground Hours day" in text_of(alice.get(address))
    bob.post(f"{address}approve/", {})
    held = story.carry_out(asked)

    assert held.is_granted
    assert {("lab-1", asked.request_id)} == BADGES
    assert held.evidence["escort"] is True
    page = text_of(alice.get(address))
    assert "proved present in the door’s list" in page
    assert "Badge badge-lab-1 LISTED" in page
    assert "Door lab-1 · day" in text_of(alice.get("/"))
    assert "Keep the door open longer" in text_of(alice.get(f"{address}extend/"))
    assert "End this access now?" in text_of(alice.get(f"{address}end/"))

    alice.post(f"{address}end/", {})
    ended = story.carry_out(asked)
    assert ended.status is Status.REVOKED
    assert set() == BADGES
    assert "proved gone from the door’s list" in text_of(alice.get(address))
    again = alice.get("/").content.decode()
    assert f"{FORM}?door=lab-1&amp;hours=day" in again


@pytest.mark.django_db
def test_its_rules_are_told_in_its_words(story: Story, signed_in: SignedIn) -> None:
    page = text_of(signed_in("ana").get("/admin/rules/labs-by-day/"))
    assert "Where ground" in page
    assert "Escort needed" in page
    text = RULES + DOOR_RULES.replace("[ground]", "[ground, cellar]").replace("[day]", "[day, night]")
    (impact,) = rules_operations.plan_rules(text=text, now=story.clock.now()).impacts
    assert " gains night through doors of ground and cellar (3 doors)" in impact.gains[0]
    assert " gains day and night through doors of vault (1 door)" in impact.gains[1]
    with pytest.raises(InvalidRules, match="“noon” is neither day nor night"):
        rules_operations.plan_rules(text=RULES + DOOR_RULES.replace("[day]", "[noon]"), now=story.clock.now())


def test_its_rules_come_back_as_they_were_loaded(story: Story) -> None:
    loaded = rules.find_rule(name="labs-by-day")
    rules_store._cached = None
    assert rules.find_rule(name="labs-by-day") == loaded
    assert loaded is not None
    assert isinstance(loaded.terms, DoorTerms)
    item = get_item(RuleItem, "labs-by-day", 1)
    assert item is not None
    assert item.terms.as_dict() == {"hours": ["day"], "escort": True}


def test_its_own_limits_hold(story: Story) -> None:
    with pytest.raises(InvalidRequest, match="There is no door “attic”"):
        ask(story, door="attic")
    with pytest.raises(InvalidRequest, match="lab-1 by night"):
        ask(story, hours="night")
    with pytest.raises(NotAllowed) as refused:
        ask(story, actor=story.mallory)
    assert refused.value.code == "subject_not_covered"


def test_what_is_over_is_taken_back(story: Story) -> None:
    held = story.carry_out(story.approve(ask(story)))
    story.clock.advance(3600)
    story.tick()
    story.tick()
    assert story.now_of(held).status is Status.REVOKED
    assert set() == BADGES


@pytest.fixture
def lent_doors() -> None:
    """Each door's badge is lent to one person at a time; the fixture of the kind takes it away again."""
    register(replace(DOOR, grant=LentDoorGrant()))


@pytest.mark.usefixtures("lent_doors")
def test_the_time_of_what_is_lent_runs_from_the_hand_over(story: Story) -> None:
    first = story.carry_out(story.approve(ask(story)))
    assert (first.expires_at - story.clock.now()).total_seconds() == 3600
    second = story.approve(ask(story))
    assert (second.expires_at - story.clock.now()).total_seconds() == LONGEST_WAIT_SECONDS
    waiting = story.carry_out(second)
    assert not waiting.is_granted
    place = queries.place_in_line(request=waiting, now=story.clock.now())
    assert place is not None
    assert (place.place, place.lapses_at) == (1, second.expires_at)
    assert queries.place_in_line(request=first, now=story.clock.now()) is None

    story.clock.advance(1800)
    story.end(first)
    story.carry_out(first)
    story.clock.advance(60)
    held = story.carry_out(second)
    assert held.granted_at is not None
    assert (held.expires_at - held.granted_at).total_seconds() == 3600
    assert held.held_since == held.granted_at
    (granted,) = [event for event in audit.chain_of(held.entity) if event.action == "request.granted"]
    assert granted.data["expires_at"] == to_epoch(held.expires_at)

    story.clock.advance(3599)
    assert story.tick().expired == 0
    story.clock.advance(1)
    assert story.tick().expired == 1
    assert story.now_of(held).status is Status.REVOKED


@pytest.mark.usefixtures("lent_doors")
def test_a_place_in_the_line_lapses(story: Story) -> None:
    story.carry_out(story.approve(ask(story)))
    second = story.carry_out(story.approve(ask(story)))
    story.clock.advance(3600)
    BADGES.add(("lab-1", "somebody else's"))
    story.tick()
    story.clock.advance(LONGEST_WAIT_SECONDS - 3601)
    assert story.tick().expired == 0
    story.clock.advance(1)
    assert story.tick().expired == 1
    assert story.now_of(second).status is Status.REVOKED


@pytest.mark.usefixtures("lent_doors")
def test_an_end_soon_after_the_hand_over_is_watched(story: Story) -> None:
    asked = story.approve(ask(story, duration_seconds=60))
    story.asked.clear()
    held = story.carry_out(asked)
    assert story.asked == [("watch_ends", {"until": held.expires_at.isoformat()})]


@pytest.mark.django_db
@pytest.mark.usefixtures("lent_doors")
def test_what_was_given_back_is_taken_back(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    held = story.carry_out(story.approve(ask(story)))
    story.clock.advance(600)
    story.end(held)
    address = f"/requests/{held.request_id}/take_back/"
    assert alice.post(address, {}).status_code == 409
    story.carry_out(held)

    story.clock.advance(60)
    assert "Take it back" in text_of(alice.get(f"/requests/{held.request_id}/"))
    assert "Take this door back?" in text_of(alice.get(address))
    sent = alice.post(address, {})
    (again,) = queries.list_open(subject_id="alice@example.com")
    assert sent.headers["Location"] == f"/requests/{again.request_id}/"
    assert alice.post(address, {}).headers["Location"] == sent.headers["Location"]
    assert (again.extends, again.rule_name, again.duration_seconds) == (held.request_id, held.rule_name, 3600 - 660)
    assert "Taken back after it was given back" in text_of(alice.get(sent.headers["Location"]))
    assert story.carry_out(again).expires_at == held.expires_at
    assert {("lab-1", again.request_id)} == BADGES


@pytest.mark.usefixtures("lent_doors")
def test_what_is_not_taken_back(story: Story) -> None:
    def refused(actor: Actor, code: str) -> None:
        with pytest.raises((Conflict, NotAllowed)) as error:
            operations.take_back(request_id=held.request_id, actor=actor, now=story.clock.now())
        assert error.value.code == code

    held = story.carry_out(story.approve(ask(story)))
    refused(story.alice, "not_given_back")
    story.end(held)
    story.carry_out(held)
    refused(story.bob, "not_the_giver_back")
    BADGES.add(("lab-1", "the next one's"))
    refused(story.alice, "undo_over")
    BADGES.clear()
    story.clock.advance(120)
    refused(story.alice, "undo_over")
    ended = story.carry_out(story.approve(ask(story)))
    story.end(ended, actor=story.olga)
    story.carry_out(ended)
    held = ended
    refused(story.alice, "not_the_giver_back")
    lapsed = story.carry_out(story.approve(ask(story)))
    story.clock.advance(3600)
    story.tick()
    held = lapsed
    refused(story.alice, "not_given_back")


def test_what_is_not_lent_is_not_taken_back(story: Story) -> None:
    held = story.carry_out(story.approve(ask(story)))
    story.end(held)
    story.carry_out(held)
    decision = queries.can(verb="take_back", request=story.now_of(held), actor=story.alice, now=story.clock.now())
    assert (decision.allowed, decision.code) == (False, "not_taken_back")


def test_commands_have_its_flags() -> None:
    declared: Any = request_access
    assert {"door", "hours", "account", "name_prefix"} <= {one.name for one in parameters_of(declared.run)}
