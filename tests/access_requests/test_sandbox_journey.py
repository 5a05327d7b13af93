"""Sandboxes by request: asked, held, extended, given back; what a full pool and the limits do."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from accessportal.access_requests import operations
from accessportal.access_requests import queries as requests
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.kernel.actors import system
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.rules import operations as rules
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes import queries as pool
from accessportal.sandboxes.states import Status as Lent
from accessportal.sandboxes.store import rows
from accessportal.waiting.models import WaitingItem, claim_key, place_key
from accessportal.waiting.operations import note_cleanings
from accessportal.waiting.states import SANDBOXES
from tests.fixtures_pool import POOL_RULES, Labs
from tests.fixtures_story import RULES

SETUP = system("setup")


def give_back(labs: Labs, request: AccessRequest) -> AccessRequest:
    return labs.story.carry_out(labs.story.end(request))


def test_alice_asks_holds_a_lab_and_gives_it_back(labs: Labs) -> None:
    labs.fill("lab-1")
    held = labs.held(seconds=3600)

    assert held.is_granted
    (receipt,) = held.receipts
    sandbox = labs.of(held)
    assert (receipt.job_id, receipt.job_status) == (sandbox.sandbox_id, "fence 1")
    assert (sandbox.track, sandbox.expires_at) == ("person:alice@example.com", held.expires_at)
    assert list(sandbox.claims) == [held.request_id]

    ended = give_back(labs, held)
    assert ended.status is Status.REVOKED
    after = pool.get(sandbox_id=sandbox.sandbox_id)
    assert (after.status, after.last_released_by, after.claims) == (Lent.PENDING_DELETION, "person:alice@example.com", {})
    assert pool.find_by_key(key=f"request:{held.request_id}") is None


def test_an_extension_is_a_second_claim_and_keeps_the_sandbox_when_the_first_is_over(labs: Labs) -> None:
    labs.fill("lab-1")
    held = labs.held(seconds=3600)
    sandbox = labs.of(held)
    labs.story.clock.advance(3000)
    further = labs.story.carry_out(labs.story.extend(held, 7200))

    assert dict(further.target) == {"name_prefix": "lab-", "continues": held.request_id}
    assert further.is_granted
    assert labs.of(further).expires_at == further.expires_at

    labs.story.clock.advance(700)
    labs.story.tick()
    first = labs.story.now_of(held)
    assert first.status is Status.REVOKED
    assert first.receipts[-1].kept_by == (further.request_id,)
    now_lent = labs.of(further)
    assert (now_lent.sandbox_id, now_lent.fence, now_lent.expires_at) == (sandbox.sandbox_id, 1, further.expires_at)

    assert give_back(labs, further).status is Status.REVOKED
    assert pool.get(sandbox_id=sandbox.sandbox_id).status is Lent.PENDING_DELETION
    actions = [event.action for event in pool.history(sandbox_id=sandbox.sandbox_id)]
    assert actions == ["sandbox.added", "sandbox.taken", "sandbox.prolonged", "sandbox.shortened", "sandbox.released"]


@pytest.mark.parametrize("which", [0, 1])
def test_giving_back_ends_every_request_on_the_sandbox_whichever_is_named(labs: Labs, which: int) -> None:
    labs.fill("lab-1", "lab-2")
    held = labs.held(seconds=3600)
    sandbox = labs.of(held)
    labs.story.clock.advance(60)
    further = labs.story.carry_out(labs.story.extend(held, 7200))

    labs.story.end((held, further)[which])
    labs.story.tick()

    assert {labs.story.now_of(one).status for one in (held, further)} == {Status.REVOKED}
    assert pool.get(sandbox_id=sandbox.sandbox_id).status is Lent.PENDING_DELETION


def test_who_stops_waiting_ends_no_other_request(labs: Labs) -> None:
    labs.fill("lab-1")
    held = labs.held(seconds=3600)
    further = labs.story.extend(held, 7200)

    labs.story.end(further)
    labs.story.tick()

    assert labs.story.now_of(further).status is Status.REVOKED
    assert (labs.story.now_of(held).is_granted, labs.of(held).expires_at) == (True, held.expires_at)


def test_an_extension_of_an_extension_goes_on_with_the_same_sandbox(labs: Labs) -> None:
    labs.fill("lab-1")
    held = labs.held(seconds=600)
    labs.story.clock.advance(60)
    second = labs.story.carry_out(labs.story.extend(held, 1200))
    labs.story.clock.advance(60)
    third = labs.story.carry_out(labs.story.extend(second, 1800))

    assert third.target["continues"] == held.request_id
    assert len(labs.of(third).claims) == 3


def test_who_finds_the_pool_empty_waits_and_gets_the_next_one(labs: Labs) -> None:
    (sandbox,) = labs.fill("lab-1")
    labs.take_elsewhere()
    waiting = labs.held()

    assert (waiting.status, waiting.work, waiting.work_attempts) == (Status.ACTIVE, Work.GRANT, 0)
    assert "No sandbox" in waiting.work_error
    assert waiting.work_due_at is not None
    assert waiting.work_due_at - labs.story.clock.now() <= timedelta(minutes=1)

    labs.fill("lab-2")
    labs.story.clock.advance(61)
    got = labs.story.carry_out(waiting)
    assert got.is_granted
    assert labs.of(got).sandbox_id != sandbox.sandbox_id


def test_a_place_lapses_after_three_days_and_nothing_is_handed_over_any_more(labs: Labs) -> None:
    waiting = labs.held(seconds=600)
    assert waiting.expires_at == waiting.requested_at + timedelta(hours=72)
    labs.story.clock.advance(72 * 3600 + 1)

    labs.fill("lab-1")
    ended = labs.story.carry_out(waiting)

    assert ended.status is Status.REVOKED
    assert ended.granted_at is None
    assert pool.find_in_line(claim=waiting.request_id) is None


def test_the_time_runs_from_the_hand_over(labs: Labs) -> None:
    waiting = labs.held(seconds=600)
    labs.story.clock.advance(7_200)
    labs.story.tick()
    # Its turn comes: it is not stuck.
    assert requests.list_stuck(actor=labs.story.olga, now=labs.story.clock.now()).items == ()
    labs.fill("lab-1")
    handed_over_at = labs.story.clock.now()
    labs.story.clock.advance(61)

    got = labs.story.carry_out(waiting)

    assert got.is_granted
    assert got.expires_at == labs.of(got).expires_at == handed_over_at + timedelta(seconds=600)


def test_of_a_place_that_can_not_be_read_no_turn_is_told_and_of_others_it_is(labs: Labs) -> None:
    first, second = labs.held(), labs.held()
    note_cleanings(line=SANDBOXES, seconds=[60])
    for key in (claim_key(SANDBOXES, first.request_id), place_key(SANDBOXES, 1)):
        WaitingItem(*key).update(actions=[WaitingItem.wants.set({"name_prefix": ""})])

    places = requests.places_in_line(requests=[first, second], now=labs.story.clock.now())

    assert {one: place.before for one, place in places.items()} == {second.request_id: 0}


def test_the_page_tells_place_and_expected_time(labs: Labs) -> None:
    labs.fill("lab-1")
    labs.take_elsewhere()
    first, second = labs.held(), labs.held()
    now = labs.story.clock.now()
    place = requests.place_in_line(request=labs.story.now_of(second), now=now)
    assert place is not None
    assert (place.place, place.expected, place.lapses_at) == (2, None, second.expires_at)

    note_cleanings(line=SANDBOXES, seconds=[60])
    place = requests.place_in_line(request=labs.story.now_of(first), now=now)
    assert place is not None
    assert place.expected is not None
    earliest, latest = place.expected
    assert earliest == now + timedelta(hours=12, seconds=60) < latest


def test_what_was_given_back_is_taken_back_until_its_cleaning_begins(labs: Labs) -> None:
    (sandbox,) = labs.fill("lab-1")
    held = labs.held(seconds=3600)
    until, story = held.expires_at, labs.story
    story.clock.advance(600)
    story.carry_out(story.end(held))
    assert pool.get(sandbox_id=sandbox.sandbox_id).status is Lent.PENDING_DELETION
    story.clock.advance(60)

    again = story.carry_out(operations.take_back(request_id=held.request_id, actor=story.alice, now=story.clock.now()))

    lent = labs.of(again)
    assert again.is_granted
    assert (lent.sandbox_id, lent.fence, lent.expires_at, again.expires_at) == (sandbox.sandbox_id, 1, until, until)
    assert pool.verify(receipts=[], slack_seconds=0).problems == ()
    story.carry_out(story.end(again))
    assert pool.get(sandbox_id=sandbox.sandbox_id).status is Lent.PENDING_DELETION


def test_what_is_being_cleaned_is_not_taken_back(labs: Labs) -> None:
    (sandbox,) = labs.fill("lab-1")
    story, held = labs.story, labs.held(seconds=3600)
    story.carry_out(story.end(held))
    ended = pool.get(sandbox_id=sandbox.sandbox_id)
    rows.note(ended, dataclasses.replace(ended, held_by="cleaner"))
    with pytest.raises(NotAllowed) as caught:
        operations.take_back(request_id=held.request_id, actor=story.alice, now=story.clock.now())
    assert caught.value.code == "cleaning_begun"


def test_the_limit_refuses_at_submission_and_in_the_preview_but_not_a_repeated_form(labs: Labs) -> None:
    labs.fill("lab-1", "lab-2", "lab-3")
    labs.held()
    second = labs.ask(submission_id="second")
    with pytest.raises(NotAllowed, match="at most 2 sandboxes") as caught:
        labs.ask()
    assert caught.value.code == "too_many_held"
    assert labs.ask(submission_id="second").request_id == second.request_id

    story = labs.story
    foreseen = requests.preview(
        kind="sandbox",
        subject_id=None,
        target={"name_prefix": "lab-"},
        duration_seconds=3600,
        ticket_id=None,
        actor=story.alice,
        book=requests.ApproverBook(now=story.clock.now()),
    )
    assert foreseen.outcome == "impossible"
    assert "at most 2 sandboxes" in foreseen.reason


def test_the_limit_counts_a_sandbox_that_only_its_extension_holds(labs: Labs) -> None:
    rules.apply_rules(
        text=(RULES + POOL_RULES).replace("most_per_person: 2", "most_per_person: 1"), actor=SETUP, now=labs.story.clock.now()
    )
    labs.fill("lab-1", "lab-2")
    held = labs.held(seconds=600)
    labs.story.clock.advance(300)
    labs.story.carry_out(labs.story.extend(held, 3600))
    give_back(labs, held)

    with pytest.raises(NotAllowed, match="at most one sandbox"):
        labs.ask()


def test_others_who_wait_stop_an_extension(labs: Labs) -> None:
    labs.fill("lab-1")
    held = labs.held(seconds=600)
    story = labs.story
    waits = story.carry_out(labs.ask(actor=story.gina))
    assert waits.work_error

    story.clock.advance(60)
    with pytest.raises(NotAllowed, match="Others wait") as caught:
        labs.story.extend(held, 1200)
    assert caught.value.code == "others_wait"

    story.carry_out(story.end(waits, actor=story.gina))
    assert labs.story.extend(held, 1200).status is Status.ACTIVE


def test_a_client_that_found_none_stops_an_extension_for_five_minutes(labs: Labs) -> None:
    labs.fill("lab-1")
    held = labs.held(seconds=3600)
    with pytest.raises(Conflict):
        labs.take_elsewhere()

    labs.story.clock.advance(299)
    with pytest.raises(NotAllowed, match="Others wait"):
        labs.story.extend(held, 7200)
    labs.story.clock.advance(2)
    assert labs.story.extend(held, 7200).status is Status.ACTIVE


def test_who_waits_for_another_name_stops_no_extension(labs: Labs) -> None:
    labs.fill("lab-1")
    held = labs.held(seconds=600)
    story = labs.story
    waits = story.carry_out(labs.ask(actor=story.gina, prefix="lab-python-"))
    assert waits.work_error
    with pytest.raises(Conflict):
        labs.take_elsewhere(name_prefix="lab-pyhton")

    assert labs.story.extend(held, 1200).status is Status.ACTIVE


def test_a_rule_may_refuse_extensions(labs: Labs) -> None:
    labs.fill("lab-1")
    held = labs.held(seconds=600)
    text = RULES + POOL_RULES.replace("    most_per_person: 2\n", "    most_per_person: 2\n    extend: false\n")
    rules.apply_rules(text=text, actor=SETUP, now=labs.story.clock.now())

    with pytest.raises(NotAllowed, match="not extended") as caught:
        labs.story.extend(held, 1200)
    assert caught.value.code == "not_extendable"


def test_nobody_extends_beyond_the_time_of_the_lab(labs: Labs) -> None:
    labs.fill("lab-1", hours=1)
    held = labs.held(seconds=3000)
    labs.story.clock.advance(1200)

    with pytest.raises(InvalidRequest, match="40 m") as caught:
        labs.story.extend(held, 2460)
    assert (caught.value.field, caught.value.code) == ("duration", "duration_over_lab")
    further = labs.story.carry_out(labs.story.extend(held, 2400))
    assert labs.of(further).expires_at == further.expires_at


def test_nobody_goes_on_with_a_sandbox_of_somebody_else(labs: Labs) -> None:
    labs.fill("lab-1")
    held = labs.held()
    story = labs.story
    with pytest.raises(InvalidRequest, match="not held") as caught:
        operations.submit(
            kind="sandbox",
            subject_id=None,
            target={"name_prefix": "lab-", "continues": held.request_id},
            duration_seconds=1200,
            reason="It is hers",
            ticket_id="",
            submission_id="gina-1",
            actor=story.gina,
            now=story.clock.now(),
        )
    assert caught.value.code == "allocation_over"


def test_nobody_goes_on_with_a_sandbox_by_a_rule_about_other_names(labs: Labs) -> None:
    labs.fill("lab-1")
    held, story = labs.held(), labs.story
    with pytest.raises(InvalidRequest) as caught:
        operations.submit(
            kind="sandbox",
            subject_id=None,
            target={"name_prefix": "lab-2", "continues": held.request_id},
            duration_seconds=5400,
            reason="A little more",
            ticket_id="",
            submission_id="by hand",
            actor=story.alice,
            now=story.clock.now(),
        )
    assert (caught.value.code, caught.value.field) == ("allocation_of_another", "name_prefix")


def test_a_sandbox_given_back_elsewhere_is_not_lent_a_second_time_to_the_request(labs: Labs) -> None:
    labs.fill("lab-1", "lab-2")
    held = labs.held()
    lent = labs.of(held)
    story = labs.story
    sandboxes.release_by_operator(sandbox_id=lent.sandbox_id, reason="Needed.", actor=story.olga, now=story.clock.now())

    with pytest.raises(InvalidRequest, match="not held"):
        labs.story.extend(held, 7200)
    ended = give_back(labs, held)
    assert ended.status is Status.REVOKED
    assert pool.get(sandbox_id=lent.sandbox_id).fence == 1


def test_an_operator_decides_where_the_rule_names_nobody(labs: Labs) -> None:
    labs.fill("gpu-1")
    story = labs.story
    nobody = POOL_RULES.replace("approval: {required: true, quorum: 1, approvers: {groups: [/security]}}", "approval: {required: true}")
    rules.apply_rules(text=RULES + nobody, actor=SETUP, now=story.clock.now())
    asked = labs.ask(prefix="", seconds=4 * 3600)
    assert asked.status is Status.PENDING

    approved = story.approve(asked, actor=story.olga)

    got = story.carry_out(approved)
    assert labs.of(got).name == "gpu-1"
