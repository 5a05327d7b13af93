"""Accounts by request: asked, waited for, held, extended, frozen, given back and taken back; what a full pool and the limits do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pynamodb.expressions.update import Action

from accessportal.access_requests import operations
from accessportal.access_requests import queries as requests
from accessportal.access_requests.models import RequestItem
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.assignments import operations as assigning
from accessportal.assignments import queries as assignments
from accessportal.assignments.states import AssignmentState, Remedy
from accessportal.audit import queries as audit
from accessportal.catalog import operations as catalog
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.leases import operations as leases
from accessportal.leases import queries as pool
from accessportal.leases.models import AccountItem, account_key
from accessportal.leases.states import AccountState, LeaseState
from accessportal.rules import operations as rules
from accessportal.store.reading import get_item
from accessportal.store.restores import HELD
from accessportal.waiting import operations as waiting
from accessportal.waiting import queries as line
from accessportal.waiting.models import WaitingItem, claim_key, place_key
from accessportal.waiting.states import ACCOUNTS
from tests.fixtures_accounts import DAY, LEASE_RULES, SETUP, Borrowed
from tests.fixtures_story import RULES
from tests.leases.reading import check_whole, table
from tests.portal.conftest import SignedIn, signed_in
from tests.portal.test_journey import HTMX, text_of

__all__ = ["signed_in"]
FORM = "/requests/new/account_lease/"


def freeze(borrowed: Borrowed, request: AccessRequest) -> None:
    leases.freeze(lease_id=request.request_id, reason="Too dear", actor=borrowed.story.olga, now=borrowed.story.clock.now())
    report = operations.freeze_leases(clock=borrowed.story.clock, workers=1)
    assert (report.frozen, report.is_ok) == ((request.request_id,), True)


def set_of(request: AccessRequest, action: Action) -> None:
    RequestItem(request.request_id).update(actions=[action])


def unfreeze(borrowed: Borrowed, request: AccessRequest) -> None:
    leases.unfreeze(lease_id=request.request_id, actor=borrowed.story.olga, now=borrowed.story.clock.now())
    assert operations.freeze_leases(clock=borrowed.story.clock, workers=1).unfrozen == (request.request_id,)


@pytest.mark.django_db
def test_from_the_form_to_the_proved_revocation(borrowed: Borrowed, signed_in: SignedIn) -> None:
    alice, bob = signed_in("alice"), signed_in("bob")
    (account_id,) = borrowed.fill(1, size="")
    given = {"pool": "labs", "size": "", "tags": "env=lab", "permission_set": "PowerUserAccess", "duration": "2d", "ticket_id": ""}
    assert f'href="{FORM}"' in alice.get("/requests/new/").content.decode()
    assert "Borrow an AWS account" in text_of(alice.get(FORM))
    seen = alice.get(f"{FORM}preview/?pool=labs&size=&permission_set=PowerUserAccess&duration=2d", headers=HTMX)
    assert "Needs one approval" in text_of(seen)

    sent = alice.post(FORM, {**given, "reason": "Try it", "submission_id": "00000000-0000-4000-8000-000000000001"})
    (asked,) = requests.list_mine(actor=borrowed.story.alice).items
    address = f"/requests/{asked.request_id}/"
    assert sent.headers["Location"] == address
    bob.post(f"{address}approve/", {})
    borrowed.story.clock.advance(600)
    held = borrowed.story.carry_out(asked)

    assert held.is_granted
    assert held.granted_at is not None
    assert (held.account_id, held.expires_at - held.granted_at) == (account_id, timedelta(days=2))
    assert borrowed.has_access(held)
    lease = borrowed.lease_of(held)
    assert (lease.state, lease.user, lease.ends_at) == (LeaseState.ACTIVE, "alice@example.com", held.expires_at)
    page = text_of(alice.get(address))
    assert account_id in page
    assert "proved present in IAM Identity Center" in page
    assert "Give this account back now?" in text_of(alice.get(f"{address}end/"))

    alice.post(f"{address}end/", {})
    ended = borrowed.story.carry_out(asked)
    assert ended.status is Status.REVOKED
    assert not borrowed.has_access(held)
    assert pool.find_lease(lease_id=asked.request_id) is None
    assert pool.get_account(account_id=account_id).state is AccountState.DIRTY
    assert "proved gone from IAM Identity Center" in text_of(alice.get(address))
    check_whole()


def test_the_time_of_a_lease_runs_from_its_proof_and_it_expires_by_itself(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    asked = borrowed.ask(seconds=3600)
    assert asked.expires_at - borrowed.story.clock.now() == timedelta(hours=72)
    borrowed.story.clock.advance(1800)
    held = borrowed.story.carry_out(asked)
    assert held.granted_at is not None
    assert held.expires_at == held.granted_at + timedelta(hours=1) == borrowed.lease_of(held).ends_at

    borrowed.story.clock.advance((held.expires_at - borrowed.story.clock.now()).total_seconds() - 1)
    assert borrowed.story.tick().expired == 0
    borrowed.story.clock.advance(1)
    assert borrowed.story.tick().expired == 1
    assert borrowed.story.now_of(held).status is Status.REVOKED
    assert not borrowed.has_access(held)


def test_who_finds_the_pool_empty_waits_in_the_line_and_is_served_at_once(borrowed: Borrowed) -> None:
    (account_id,) = borrowed.fill(1)
    first = borrowed.held()
    second, third = borrowed.ask(actor=borrowed.story.bob), borrowed.ask(actor=borrowed.story.mallory)
    for one in (second, third):
        assert borrowed.story.carry_out(one).work_error.startswith("No account that fits is free")
    place = requests.place_in_line(request=third, now=borrowed.story.clock.now())
    assert place is not None
    assert (place.place, place.before, place.lapses_at) == (2, 1, third.expires_at)

    borrowed.story.clock.advance(5)
    borrowed.give_back(first)
    borrowed.story.asked.clear()
    borrowed.pool.clean(account_id)
    assert borrowed.story.asked == [("carry_out_served", {"request_id": second.request_id})]
    served = operations.carry_out_served(request_id=second.request_id, clock=borrowed.story.clock)
    assert (served.is_granted, served.account_id) == (True, account_id)
    assert borrowed.has_access(served, email="bob@example.com")
    place = requests.place_in_line(request=third, now=borrowed.story.clock.now())
    assert place is not None
    assert place.before == 0


@pytest.mark.parametrize(
    ("happens", "is_stuck"),
    [
        (lambda _request: None, False),
        (lambda request: WaitingItem.get(*claim_key(ACCOUNTS, request.request_id)).delete(), True),
        (lambda request: set_of(request, RequestItem.work_attempts.set(2)), True),
        (lambda request: set_of(request, RequestItem.work_error.set(HELD)), True),
        (lambda request: set_of(request, RequestItem.work_due_at.set(request.work_due_at.timestamp() - 200)), True),
    ],
    ids=["its turn comes", "no place in the line", "it fails", "nothing is granted since a restore", "nobody looks after it"],
)
def test_who_waits_for_their_turn_is_not_stuck(borrowed: Borrowed, happens: Callable[[AccessRequest], object], is_stuck: bool) -> None:
    borrowed.fill(1)
    borrowed.held()
    second = borrowed.ask(actor=borrowed.story.bob)
    for _ in range(3):
        borrowed.story.clock.advance(61)
        borrowed.story.tick()
    waiting_now = borrowed.story.now_of(second)
    assert waiting_now.work_error.startswith("No account that fits is free")

    happens(waiting_now)

    stuck = requests.list_stuck(actor=borrowed.story.olga, now=borrowed.story.clock.now()).items
    assert [one.request_id for one in stuck] == [second.request_id] * is_stuck


@pytest.mark.parametrize(
    "spoilt",
    [{}, {"tags": "env=lab"}, {"tags": None}, {"size": 3}, {"most_held": "many"}, {"pool": ["labs"]}, {"beside": 1}],
)
def test_of_a_place_that_can_not_be_read_no_turn_is_told_and_of_others_it_is(borrowed: Borrowed, spoilt: dict[str, Any]) -> None:
    borrowed.fill(1)
    story, held = borrowed.story, borrowed.held()
    second, third = (story.carry_out(borrowed.ask(actor=actor)) for actor in (story.bob, story.mallory))
    for key in (claim_key(ACCOUNTS, second.request_id), place_key(ACCOUNTS, 1)):
        item = WaitingItem.get(*key)
        wants = {**item.wants.as_dict(), **spoilt} if spoilt else {}
        item.update(actions=[WaitingItem.wants.set(wants)])

    places = requests.places_in_line(requests=[second, third], now=story.clock.now())

    assert {one: place.before for one, place in places.items()} == {third.request_id: 0}
    with pytest.raises(NotAllowed, match="Others wait for an account like this one"):
        story.extend(held, 2 * DAY)


@pytest.mark.parametrize(
    ("others", "before"),
    [({}, 1), ({"size": ""}, 1), ({"tags": {"env": "lab"}}, 1), ({"size": "large"}, 0), ({"pool": "other"}, 0)],
)
def test_a_place_tells_of_those_who_wait_for_the_same(borrowed: Borrowed, others: dict[str, Any], before: int) -> None:
    """Neither those who wait for other accounts nor the ends of these say when the turn comes."""
    borrowed.fill(1)
    borrowed.fill(1, size="large")
    story, held = borrowed.story, borrowed.held()
    borrowed.pool.started("carl@example.com", pool="labs", size="large", seconds=3600)
    wants = {
        "pool": "labs",
        "size": "small",
        "tags": {},
        "user": "carl@example.com",
        "lease_id": "l",
        "permission_set": "P",
        "most_held": 1,
    }
    now = story.clock.now()
    queue: dict[str, Any] = {"line": ACCOUNTS, "claim": "carls", "duration_seconds": 60, "lapses_at": now + timedelta(days=3)}
    waiting.join(**queue, wants={**wants, **others}, actor=SETUP, now=now)
    waiting.note_cleanings(line=ACCOUNTS, seconds=[60])

    place = requests.place_in_line(request=story.carry_out(borrowed.ask(actor=story.bob)), now=story.clock.now())

    assert place is not None
    assert place.expected is not None
    assert (place.before, place.expected[0] > held.expires_at) == (before, True)
    # Each round at the latest: the moment for taking back, two jobs that were just missed, a cleaning of twice the time.
    assert place.expected[1] - held.expires_at == timedelta(seconds=before * 60 + (before + 1) * (120 + 120 + 120))


def test_who_stops_waiting_leaves_the_line_also_right_after_the_hand_over(borrowed: Borrowed) -> None:
    (account_id,) = borrowed.fill(1)
    first = borrowed.held()
    second, third = borrowed.ask(actor=borrowed.story.bob), borrowed.ask(actor=borrowed.story.mallory)
    for one in (second, third):
        borrowed.story.carry_out(one)
    borrowed.story.carry_out(borrowed.story.end(second, actor=borrowed.story.bob))
    assert line.get_line("account").waiting == 1

    borrowed.give_back(first)
    ending = borrowed.story.end(third, actor=borrowed.story.mallory)
    borrowed.pool.clean(account_id)
    assert borrowed.lease_of(third).state is LeaseState.STARTING
    assert borrowed.story.carry_out(ending).status is Status.REVOKED
    assert pool.get_account(account_id=account_id).state is AccountState.DIRTY
    assert borrowed.story.twin.assignments() == set()
    check_whole()


def test_a_place_lapses_with_its_request(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    borrowed.held(seconds=3 * DAY)
    asked = borrowed.ask(actor=borrowed.story.bob)
    borrowed.story.carry_out(asked)
    borrowed.story.clock.advance(72 * 3600)
    borrowed.story.tick()
    assert borrowed.story.now_of(asked).status is Status.REVOKED
    assert line.get_line("account").waiting == 0


def test_an_extension_is_a_second_claim_on_lease_and_assignment(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.held(seconds=3600)
    borrowed.story.clock.advance(1800)
    further = borrowed.story.carry_out(borrowed.story.extend(held, 2 * 3600))

    assert (further.is_granted, further.account_id, further.target["continues"]) == (True, held.account_id, held.request_id)
    lease = borrowed.lease_of(further)
    assert (lease.ends_at, set(lease.claims)) == (further.expires_at, {held.request_id, further.request_id})
    borrowed.story.clock.advance(1801)
    borrowed.story.tick()
    first = borrowed.story.now_of(held)
    assert (first.status, first.receipts[-1].kept_by) == (Status.REVOKED, (further.request_id,))
    assert borrowed.has_access(held)
    assert requests.list_open(subject_id="alice@example.com") == (borrowed.story.now_of(further),)

    borrowed.give_back(further)
    assert not borrowed.has_access(held)
    assert pool.get_account(account_id=held.account_id).state is AccountState.DIRTY


def test_giving_back_ends_every_request_on_the_account(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.held(seconds=3600)
    borrowed.story.clock.advance(60)
    further = borrowed.story.carry_out(borrowed.story.extend(held, 7200))
    borrowed.story.end(held)
    borrowed.story.tick()
    assert {borrowed.story.now_of(one).status for one in (held, further)} == {Status.REVOKED}
    assert borrowed.story.twin.assignments() == set()


def test_nothing_is_extended_while_others_wait_unless_its_rule_says_so(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.held(seconds=3600)
    borrowed.story.carry_out(borrowed.ask(actor=borrowed.story.bob))
    with pytest.raises(NotAllowed, match="Others wait for an account"):
        borrowed.story.extend(held, 7200)
    text = RULES + LEASE_RULES.replace("most_per_person: 2", "most_per_person: 2\n    extend: always")
    rules.apply_rules(text=text, actor=SETUP, now=borrowed.story.clock.now())
    assert borrowed.story.extend(held, 7200).status is Status.ACTIVE
    text = RULES + LEASE_RULES.replace("most_per_person: 2", "most_per_person: 2\n    extend: never")
    rules.apply_rules(text=text, actor=SETUP, now=borrowed.story.clock.now())
    with pytest.raises(NotAllowed, match="By rule small-accounts an account is not extended"):
        borrowed.story.extend(held, 10800)


def test_nobody_has_more_than_their_rule_lets_them(borrowed: Borrowed) -> None:
    borrowed.fill(3)
    borrowed.held()
    borrowed.held()
    with pytest.raises(NotAllowed, match=r"at most 2 accounts at a time \(rule small-accounts\)"):
        borrowed.ask()


def test_a_frozen_lease_has_no_access_and_keeps_its_account(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.held()
    freeze(borrowed, held)
    lease = borrowed.lease_of(held)
    assert (lease.state, lease.freeze_reason, lease.ends_at) == (LeaseState.FROZEN, "Too dear", held.expires_at)
    assert not borrowed.has_access(held)
    assert borrowed.story.now_of(held).is_granted
    with pytest.raises(NotAllowed, match="This account is frozen"):
        borrowed.story.extend(held, 2 * DAY)
    (absent,) = assignments.list_by_state(state=AssignmentState.ABSENT).items
    assert absent.claims == frozenset()

    unfreeze(borrowed, held)
    assert borrowed.lease_of(held).state is LeaseState.ACTIVE
    assert borrowed.has_access(held)
    assert borrowed.give_back(held).status is Status.REVOKED


def test_ending_while_it_is_frozen_works(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.held(seconds=3600)
    freeze(borrowed, held)
    leases.unfreeze(lease_id=held.request_id, actor=borrowed.story.olga, now=borrowed.story.clock.now())
    borrowed.story.clock.advance(3600)
    operations.expire(request_id=held.request_id, actor=SETUP, now=borrowed.story.clock.now())
    assert operations.freeze_leases(clock=borrowed.story.clock, workers=1).is_ok
    assert not borrowed.has_access(held)
    assert borrowed.story.carry_out(held).status is Status.REVOKED
    assert pool.find_lease(lease_id=held.request_id) is None
    check_whole()


def test_a_freeze_waits_for_access_that_is_held_beside_the_lease(borrowed: Borrowed) -> None:
    (account_id,) = borrowed.fill(1)
    held = borrowed.held()
    key = assignments.list_by_state(state=AssignmentState.PRESENT).items[0].key
    assigning.hold(key=key, claim="outside", guards=[], subject="alice@example.com", actor=SETUP, clock=borrowed.story.clock)
    leases.freeze(lease_id=held.request_id, reason="Too dear", actor=borrowed.story.olga, now=borrowed.story.clock.now())
    assert operations.freeze_leases(clock=borrowed.story.clock, workers=1).waiting == 1
    lease = borrowed.lease_of(held)
    assert (lease.state, lease.wanted) == (LeaseState.ACTIVE, LeaseState.FROZEN)
    assert "held beside the lease, by outside" in lease.error
    assert account_id == held.account_id


def test_who_waits_for_a_second_account_is_no_other_who_waits(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.held()
    assert borrowed.held().work_error
    further = borrowed.story.carry_out(borrowed.story.extend(held, 2 * DAY))
    assert further.is_granted
    assert borrowed.held(actor=borrowed.story.bob).work_error
    with pytest.raises(NotAllowed, match="Others wait for an account like this one"):
        borrowed.story.extend(further, 3 * DAY)


def test_an_account_to_which_its_holder_keeps_access_is_handed_to_nobody(borrowed: Borrowed) -> None:
    (account_id,) = borrowed.fill(1)
    held = borrowed.held()
    key = assignments.list_by_state(state=AssignmentState.PRESENT).items[0].key
    assigning.hold(key=key, claim="outside", guards=[], subject="alice@example.com", actor=SETUP, clock=borrowed.story.clock)
    assert borrowed.give_back(held).receipts[-1].kept_by == ("outside",)
    account = pool.get_account(account_id=account_id)
    assert (account.state, account.due_at, account.lease_id) == (AccountState.FAILED, None, "")
    assert account.reason == "Access to it is held beside the lease, by outside. End that, and then restore the account."
    assert borrowed.has_access(held)
    check_whole()


def test_a_lease_whose_account_somebody_deleted_ends_though_its_holder_keeps_access(borrowed: Borrowed) -> None:
    (account_id,) = borrowed.fill(1)
    held = borrowed.held()
    key = assignments.list_by_state(state=AssignmentState.PRESENT).items[0].key
    assigning.hold(key=key, claim="outside", guards=[], subject="alice@example.com", actor=SETUP, clock=borrowed.story.clock)
    AccountItem(account_key(account_id)).delete()

    ended = borrowed.give_back(held)

    assert (ended.status, ended.receipts[-1].kept_by) == (Status.REVOKED, ("outside",))
    assert pool.find_lease(lease_id=held.request_id) is None


def test_an_extension_is_no_access_beside_the_lease(borrowed: Borrowed) -> None:
    (account_id,) = borrowed.fill(1)
    held = borrowed.held()
    further = borrowed.story.carry_out(borrowed.story.extend(held, 2 * DAY))
    borrowed.story.clock.advance(DAY)
    borrowed.story.tick()
    assert borrowed.story.now_of(held).receipts[-1].kept_by == (further.request_id,)
    assert pool.get_account(account_id=account_id).reason == ""
    borrowed.give_back(further)
    assert pool.get_account(account_id=account_id).state is AccountState.DIRTY


def test_an_extension_that_ends_at_the_same_time_is_no_access_beside_the_lease(borrowed: Borrowed, monkeypatch: pytest.MonkeyPatch) -> None:
    (account_id,) = borrowed.fill(1)
    held = borrowed.held()
    further = borrowed.story.carry_out(borrowed.story.extend(held, 2 * DAY))
    ended, release = borrowed.story.end(held), assigning.release

    def release_while_another_worker_ends_the_other(**given: Any) -> Any:
        outcome = release(**given)
        if given["claim"] == held.request_id:
            borrowed.story.carry_out(further)
        return outcome

    monkeypatch.setattr(assigning, "release", release_while_another_worker_ends_the_other)
    assert borrowed.story.carry_out(ended).receipts[-1].kept_by == (further.request_id,)
    assert borrowed.story.now_of(further).status is Status.REVOKED
    assert pool.get_account(account_id=account_id).state is AccountState.DIRTY
    assert not borrowed.has_access(held)
    check_whole()


def test_what_a_lost_request_may_still_give_is_not_told_to_be_frozen(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.held()
    RequestItem(held.request_id).delete()
    leases.freeze(lease_id=held.request_id, reason="Too dear", actor=borrowed.story.olga, now=borrowed.story.clock.now())
    assert operations.freeze_leases(clock=borrowed.story.clock, workers=1).frozen == ()
    lease = borrowed.lease_of(held)
    assert (lease.state, "is lost" in lease.error) == (LeaseState.ACTIVE, True)


def test_a_lost_request_keeps_no_other_access_on_when_a_lease_is_frozen(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.held()
    further = borrowed.story.carry_out(borrowed.story.extend(held, 2 * DAY))
    lost, other = sorted([held, further], key=lambda one: one.request_id)
    RequestItem(lost.request_id).delete()
    leases.freeze(lease_id=held.request_id, reason="Too dear", actor=borrowed.story.olga, now=borrowed.story.clock.now())

    assert operations.freeze_leases(clock=borrowed.story.clock, workers=1).waiting == 1

    (assignment,) = assignments.list_by_state(state=AssignmentState.PRESENT).items
    assert assignment.claims == frozenset({lost.request_id})
    assert f"The request {lost.request_id} is lost" in borrowed.lease_of(other).error


def test_a_worker_that_freezes_late_puts_nothing_off_that_was_unfrozen_meanwhile(
    borrowed: Borrowed, monkeypatch: pytest.MonkeyPatch
) -> None:
    borrowed.fill(1)
    held = borrowed.held()
    leases.freeze(lease_id=held.request_id, reason="Too dear", actor=borrowed.story.olga, now=borrowed.story.clock.now())
    release = assigning.release

    def late(**asked: Any) -> Any:
        monkeypatch.setattr(assigning, "release", release)
        unfreeze(borrowed, held)
        return release(**asked)

    monkeypatch.setattr(assigning, "release", late)
    assert operations.freeze_leases(clock=borrowed.story.clock, workers=1).frozen == ()
    assert (borrowed.lease_of(held).state, borrowed.has_access(held)) == (LeaseState.ACTIVE, True)


def test_what_was_given_back_is_taken_back_before_it_is_cleaned(borrowed: Borrowed) -> None:
    (account_id,) = borrowed.fill(1)
    held = borrowed.held(seconds=3600)
    borrowed.story.clock.advance(600)
    borrowed.give_back(held)
    borrowed.story.clock.advance(60)
    again = operations.take_back(request_id=held.request_id, actor=borrowed.story.alice, now=borrowed.story.clock.now())
    again = borrowed.story.carry_out(again)

    assert (again.is_granted, again.account_id) == (True, account_id)
    assert abs(again.expires_at - held.expires_at) < timedelta(seconds=30)
    account = pool.get_account(account_id=account_id)
    assert (account.state, account.fence, account.lease_id) == (AccountState.LEASED, 1, again.request_id)
    assert borrowed.has_access(again)
    further = borrowed.story.carry_out(borrowed.story.extend(again, 7200))
    assert further.target["continues"] == again.request_id
    borrowed.give_back(further)
    check_whole()


def test_what_is_being_cleaned_is_not_taken_back(borrowed: Borrowed) -> None:
    (account_id,) = borrowed.fill(1)
    held = borrowed.held(seconds=3600)
    borrowed.give_back(held)
    ended = borrowed.story.now_of(held)
    assert requests.can(verb="take_back", request=ended, actor=borrowed.story.alice, now=borrowed.story.clock.now()).allowed
    asked = operations.take_back(request_id=held.request_id, actor=borrowed.story.alice, now=borrowed.story.clock.now())
    # Cleaned between asking and the grant.
    borrowed.pool.clean(account_id)
    over = borrowed.story.carry_out(borrowed.story.carry_out(asked))
    assert (over.status, over.granted_at) == (Status.REVOKED, None)

    held = borrowed.held(seconds=3600)
    borrowed.give_back(held)
    borrowed.pool.clean(account_id)
    with pytest.raises((Conflict, NotAllowed), match="can't be taken back any more"):
        operations.take_back(request_id=held.request_id, actor=borrowed.story.alice, now=borrowed.story.clock.now())


def test_an_account_that_was_taken_away_ends_its_request(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.held()
    assert operations.compare_subjects(actor=SETUP, clock=borrowed.story.clock).ended == 0
    leases.let_go(lease_id=held.request_id, claim=held.request_id, actor=SETUP, now=borrowed.story.clock.now())
    assert operations.compare_subjects(actor=SETUP, clock=borrowed.story.clock).ended == 1
    assert borrowed.story.carry_out(held).status is Status.REVOKED


def test_ending_takes_off_the_access_of_a_lease_that_somebody_deleted(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    story = borrowed.story
    held = borrowed.held()
    further = story.carry_out(story.extend(held, 2 * DAY))
    table().delete_item(Key={"pk": f"lease_id#{held.request_id}"})

    # Nobody is taken for one who has given back.
    assert operations.compare_subjects(actor=SETUP, clock=story.clock).ended == 2
    assert story.carry_out(held).receipts[-1].kept_by == (further.request_id,)
    assert pool.get_account(account_id=held.account_id).state is AccountState.LEASED
    assert borrowed.has_access(held)
    ended = story.carry_out(further)

    assert (ended.status, ended.receipts[-1].kept_by) == (Status.REVOKED, ())
    assert story.twin.assignments() == set()
    account = pool.get_account(account_id=held.account_id)
    assert (account.state, account.due_at, account.user) == (AccountState.DIRTY, story.clock.now(), "")
    told = [(event.action, event.data.get("claim")) for event in audit.chain_of(f"lease#{held.request_id}")][-2:]
    assert told == [("lease.shortened", held.request_id), ("lease.ended", further.request_id)]
    check_whole()
    # Said again, it changes nothing.
    answer = leases.let_go(lease_id=held.request_id, claim=further.request_id, actor=SETUP, now=story.clock.now())
    assert answer.claims == frozenset()


def test_input_that_makes_no_sense_is_refused_with_its_field(borrowed: Borrowed) -> None:
    def refused(field: str, **changed: str) -> str:
        target = {"pool": "labs", "size": "", "tags": "", "permission_set": "PowerUserAccess", **changed}
        with pytest.raises(InvalidRequest) as error:
            operations.submit(
                kind="account_lease",
                subject_id=None,
                target=target,
                duration_seconds=DAY,
                reason="x",
                ticket_id="",
                submission_id="once",
                actor=borrowed.story.alice,
                now=borrowed.story.clock.now(),
            )
        assert error.value.field == field
        return error.value.code

    assert refused("pool", pool="") == "pool_missing"
    assert refused("pool", pool="Labs!") == "pool_invalid"
    assert refused("size", size="x" * 41) == "size_invalid"
    assert refused("tags", tags="env") == "tags_unusable"
    assert refused("tags", tags="env=a, env=b") == "tags_unusable"
    assert refused("tags", tags="x" * 501) == "tags_unusable"
    assert refused("permission_set", permission_set="Nothing") == "permission_set_unknown"
    assert refused("continues", continues="00000000-0000-4000-8000-000000000000") == "lease_over"


@pytest.mark.parametrize(
    "changed", [{"pool": "other", "permission_set": "AdministratorAccess"}, {"size": "large"}, {"tags": "env=prod"}], ids=str
)
def test_nobody_goes_on_with_an_account_by_a_rule_about_others(borrowed: Borrowed, changed: dict[str, str]) -> None:
    """The form takes ``continues``: whoever writes it by hand must not get by a rule what it does not give."""
    text = LEASE_RULES.replace("pools: [labs]}", "pools: [labs, other]}").replace(
        "required: true, approvers: {groups: [/security]}", "required: false"
    )
    rules.apply_rules(text=RULES + text, actor=SETUP, now=borrowed.story.clock.now())
    borrowed.fill(1)
    held = borrowed.held()
    target = {"pool": "labs", "size": "small", "tags": "env=lab", "permission_set": "PowerUserAccess", "continues": held.request_id}

    def go_on(wanted: dict[str, str]) -> AccessRequest:
        return operations.submit(
            kind="account_lease",
            subject_id=None,
            target={**target, **wanted},
            duration_seconds=2 * DAY,
            reason="A little more",
            ticket_id="",
            submission_id=f"by hand {sorted(wanted)}",
            actor=borrowed.story.alice,
            now=borrowed.story.clock.now(),
        )

    with pytest.raises(InvalidRequest) as refused:
        go_on(changed)
    assert (refused.value.code, refused.value.field) == ("lease_of_another", "pool")
    assert go_on({}).account_id == held.account_id


def test_an_account_that_is_closed_ends_its_request(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.held()
    borrowed.story.clock.advance(2 * 3600)
    catalog.sync_catalog(now=borrowed.story.clock.now(), clock=borrowed.story.clock)
    assert operations.compare_subjects(actor=SETUP, clock=borrowed.story.clock).ended == 0
    borrowed.story.twin.organizations.close_account(AccountId=held.account_id)
    catalog.sync_catalog(now=borrowed.story.clock.now(), clock=borrowed.story.clock)
    assert operations.compare_subjects(actor=SETUP, clock=borrowed.story.clock).ended == 1
    (ended,) = [event for event in audit.chain_of(held.entity) if event.action == "request.end_asked"]
    assert ended.data["reason"] == "The account is gone from the organization, or closed."
    # AWS changes nothing in a closed account: it is tried again until the proof is there.
    assert borrowed.story.carry_out(held).work is Work.REVOKE


def test_a_claim_of_a_request_that_is_over_is_found_and_let_go(borrowed: Borrowed) -> None:
    borrowed.fill(2)
    held, other = borrowed.held(), borrowed.held(actor=borrowed.story.bob)
    borrowed.story.clock.advance(600)
    # As after a restore of the table of requests alone: one is unknown there, the other was over.
    RequestItem(held.request_id).delete()
    item = get_item(RequestItem, other.request_id)
    assert item is not None
    item.update(actions=[RequestItem.status.set("REVOKED")])

    report = operations.reconcile_assignments(actor=borrowed.story.olga, clock=borrowed.story.clock)
    assert sorted(one.request_id for one in report.dead_claims if one.lease_id) == sorted([held.request_id, other.request_id])
    operations.reconcile_assignments(remedies=[Remedy.REPAIR], most_share=1, actor=borrowed.story.olga, clock=borrowed.story.clock)
    assert pool.list_leases().items == ()
    assert borrowed.story.twin.assignments() == set()
    check_whole()


def test_a_request_that_can_not_be_read_is_not_over(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.held()
    borrowed.story.clock.advance(600)
    item = get_item(RequestItem, held.request_id)
    assert item is not None
    item.update(actions=[RequestItem.status.set("ODD")])

    report = operations.reconcile_assignments(remedies=[Remedy.REPAIR], most_share=1, actor=borrowed.story.olga, clock=borrowed.story.clock)

    assert report.dead_claims == ()
    assert any(held.request_id in one for one in report.unreadable)
    assert pool.get_lease(lease_id=held.request_id).account_id == held.account_id
    assert borrowed.has_access(held)


def test_an_account_is_not_let_go_while_another_access_of_a_lost_request_is_there(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.story.carry_out(borrowed.story.approve(borrowed.ask(size="")))
    target = {"pool": "labs", "size": "", "tags": "", "permission_set": "AdministratorAccess", "continues": held.request_id}
    further = operations.submit(
        kind="account_lease",
        subject_id=None,
        target=target,
        duration_seconds=2 * DAY,
        reason="More to do",
        ticket_id="",
        submission_id="further",
        actor=borrowed.story.alice,
        now=borrowed.story.clock.now(),
    )
    borrowed.story.carry_out(borrowed.story.approve(further))
    assert len(borrowed.story.twin.assignments()) == 2
    borrowed.story.clock.advance(600)
    for one in (held, further):
        RequestItem(one.request_id).delete()
    found = operations.reconcile_assignments(actor=borrowed.story.olga, clock=borrowed.story.clock).dead_claims
    leased = [one.finding_id for one in found if one.lease_id]

    # Only the claims on the lease are chosen; what they are known to give is one of the two accesses.
    report = operations.reconcile_assignments(
        remedies=[Remedy.REPAIR], chosen=leased, most_share=1, actor=borrowed.story.olga, clock=borrowed.story.clock
    )
    assert pool.get_lease(lease_id=held.request_id).claims.keys() == {further.request_id}
    assert [further.request_id in reason for reason in report.waiting] == [True]
    assert len(borrowed.story.twin.assignments()) == 1

    operations.reconcile_assignments(remedies=[Remedy.REPAIR], most_share=1, actor=borrowed.story.olga, clock=borrowed.story.clock)
    assert borrowed.story.twin.assignments() == set()
    assert pool.list_leases().items == ()
    check_whole()
