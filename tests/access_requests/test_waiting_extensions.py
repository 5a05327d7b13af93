"""An extension that waits for approval when what it extends is over: closed where it must not come back, whoever ends it and whenever."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from accessportal.access_requests import operations, queries, store
from accessportal.access_requests.models import RequestItem
from accessportal.access_requests.operations import deciding, ending
from accessportal.access_requests.queries import details
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.access_requests.thread import CommentKind
from accessportal.audit import queries as audit
from accessportal.authz.operations import revoke
from accessportal.authz.queries import APPROVALS, caller_of, read_scope
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole, State
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.errors import Conflict
from accessportal.rules import operations as rules
from accessportal.sandboxes import operations as sandboxes
from tests.access_requests.test_budgets import cost
from tests.access_requests.test_crashes import _READS, survive, tick_until
from tests.crashing import MOMENTS, Process, living
from tests.fixtures_accounts import LEASE_RULES, Borrowed
from tests.fixtures_pool import POOL_RULES, Labs
from tests.fixtures_records import APPROVAL, RECORD_RULES, RELATIONSHIP, ask
from tests.fixtures_story import RULES, Story
from tests.leases.conftest import AccountsPool

SETUP = system("setup")
HOUR = 3600
TEAM = "/engineering/payments"
ENDED_EARLY = "What this would extend was ended early."


@dataclass
class World:
    """The story with rules and room for every kind. Alice holds one for an hour, and asks for more, which somebody must approve."""

    story: Story
    labs: Labs
    borrowed: Borrowed

    def hold(self, kind: str) -> AccessRequest:
        asked = _ASK[kind](self)
        if asked.status is Status.PENDING:
            self.story.approve(asked, actor=self.approver(kind))
        held = self.story.carry_out(asked)
        assert held.is_granted, held.work_error
        return held

    def approver(self, kind: str) -> Actor:
        return self.story.gina if kind == "group" else self.story.bob

    def more(self, held: AccessRequest) -> AccessRequest:
        """Longer than any rule gives without an approval."""
        asked = self.story.extend(held, 5 * 86_400 if held.kind == "account_lease" else 3 * HOUR)
        assert asked.status is Status.PENDING
        return asked

    def approve(self, asked: AccessRequest) -> AccessRequest:
        return self.story.approve(asked, actor=self.approver(asked.kind))

    def pass_time(self, held: AccessRequest) -> None:
        self.story.clock.advance((held.expires_at - self.story.clock.now()).total_seconds())


def _fill(world: World) -> AccessRequest:
    world.borrowed.fill(1)
    return world.borrowed.ask(seconds=HOUR)


def _ask_sandbox(world: World) -> AccessRequest:
    world.labs.fill("lab-1")
    return world.labs.ask()


_ASK: dict[str, Callable[[World], AccessRequest]] = {
    "aws_account": lambda world: world.story.ask_for_prod(),
    "team": lambda world: world.story.ask(
        account="payments-prod", permission_set="ReadOnlyAccess", ticket="CHG-1", subject_id=TEAM, actor=world.story.alice
    ),
    "group": lambda world: world.story.ask_to_join(role="contributor"),
    "sandbox": _ask_sandbox,
    "account_lease": _fill,
    "approval": lambda world: ask(world.story, APPROVAL, action="POST"),
    "relationship": lambda world: ask(world.story, RELATIONSHIP, relation_type="trust"),
}
KINDS = pytest.mark.parametrize("kind", list(_ASK))
LENT = ["sandbox", "account_lease"]


@pytest.fixture
def world(labs: Labs) -> World:
    text = RULES + POOL_RULES + LEASE_RULES.replace("at_limit: freeze", "at_limit: end") + RECORD_RULES
    rules.apply_rules(text=text, actor=SETUP, now=labs.story.clock.now())
    return World(labs.story, labs, Borrowed(labs.story, AccountsPool(labs.story.clock)))


def check_closed(world: World, asked: AccessRequest, *, by: str, reason: str) -> None:
    """Told in its history, for good, with a whole chain; and nobody can approve it."""
    after = world.story.now_of(asked)
    assert (after.status, after.decided_by, after.decision_reason) == (Status.CANCELLED, by, reason)
    assert after.purge_at is not None
    last = queries.history(request=after)[-1]
    assert (last.action, last.actor, last.data["reason"]) == ("request.cancelled", by, reason)
    assert audit.check_head(after.entity, version=after.version, audit_head=after.audit_head) == []
    # Whoever comes too late reads who cancelled it, and no inner name.
    who = "the portal" if by.startswith("system:") else by
    with pytest.raises(Conflict, match=rf"was cancelled by {re.escape(who)}\."):
        world.approve(asked)


def check_gone(world: World, *requests: AccessRequest) -> None:
    """Nothing of it is there, or comes back."""
    for _ in range(2):
        world.story.tick()
        world.story.clock.advance(61)
    assert {world.story.now_of(one).status for one in requests} == {Status.REVOKED}
    assert world.story.twin.assignments() == set()
    assert [one for one in queries.list_open(subject_id=requests[0].subject_id) if one.status is Status.ACTIVE] == []


# Every way in which access ends early


def by_holder(world: World, held: AccessRequest) -> tuple[str, str]:
    operations.end(request_id=held.request_id, reason="Done", actor=world.story.alice, now=world.story.clock.now())
    return "alice@example.com", f"{ENDED_EARLY} Done"


def by_operator(world: World, held: AccessRequest) -> tuple[str, str]:
    operations.end(request_id=held.request_id, reason="Leaked key", actor=world.story.olga, now=world.story.clock.now())
    return "olga@example.com", f"{ENDED_EARLY} Leaked key"


def by_approver(world: World, held: AccessRequest) -> tuple[str, str]:
    # Of the sandbox's and the lease's own rule nobody is.
    actor = world.approver(held.kind) if held.approval.required else world.story.olga
    operations.end(request_id=held.request_id, actor=actor, now=world.story.clock.now())
    return actor.name, ENDED_EARLY


WAYS = pytest.mark.parametrize("way", [by_holder, by_operator, by_approver], ids=["holder", "operator", "approver"])


@KINDS
@WAYS
def test_what_waits_to_extend_it_is_cancelled_in_the_moment_of_the_end(
    world: World, kind: str, way: Callable[[World, AccessRequest], tuple[str, str]]
) -> None:
    held = world.hold(kind)
    asked, again = world.more(held), world.more(held)

    by, reason = way(world, held)

    check_closed(world, asked, by=by, reason=reason)
    check_closed(world, again, by=by, reason=reason)
    check_gone(world, held)


@KINDS
def test_it_is_cancelled_with_its_person_or_group(world: World, kind: str) -> None:
    held = world.hold(kind)
    asked, now = world.more(held), world.story.clock.now()
    if kind == "team":
        directory.set_group_state(group_id=TEAM, state=State.DISABLED, actor=SETUP, now=now)
    else:
        directory.set_person_state(email="alice@example.com", state=State.DISABLED, actor=SETUP, now=now)

    assert world.story.tick().failures == ()

    assert world.story.now_of(asked).status is Status.CANCELLED
    check_gone(world, held)


def _take_record(world: World) -> str:
    now, names = world.story.clock.now(), (*APPROVAL.names[:2], "POST")
    revoke(APPROVALS, read_scope(APPROVAL.scope), names, caller=caller_of(world.story.olga), now=now)
    return "The approval was taken away: somebody revoked it, or deleted its scope."


def test_what_somebody_took_away_does_not_come_back_before_its_request_is_ended(world: World) -> None:
    held = world.hold("approval")
    asked = world.more(held)
    reason = _take_record(world)
    assert world.story.now_of(held).is_granted

    with pytest.raises(Conflict) as refused:
        world.approve(asked)
    assert refused.value.code == "base_ended"
    assert refused.value.message == f"{reason} Deny this request. Whoever needs the access again asks for it anew."
    operations.compare_subjects(most_share=1, actor=world.story.olga, clock=world.story.clock)

    check_closed(world, asked, by="olga@example.com", reason=f"{ENDED_EARLY} {reason}")
    check_gone(world, held)


def test_a_sandbox_that_an_operator_took_away_is_not_extended_and_what_waits_for_it_goes_with_its_request(world: World) -> None:
    held = world.hold("sandbox")
    asked, now = world.more(held), world.story.clock.now()
    sandboxes.release_by_operator(sandbox_id=world.labs.of(held).sandbox_id, reason="Broken", actor=world.story.olga, now=now)

    with pytest.raises(Conflict, match="The sandbox that this goes on with is not held, or no longer"):
        world.approve(asked)
    world.pass_time(held)
    world.story.tick()

    assert world.story.now_of(asked).status is Status.CANCELLED
    check_gone(world, held)


def test_it_is_cancelled_at_the_limit_of_a_budget(world: World) -> None:
    world.borrowed.fill(1)
    held = world.story.carry_out(world.approve(world.borrowed.ask(seconds=4 * 86_400)))
    asked = world.more(held)

    assert cost(world.borrowed, held, 5000).ended == (held.request_id,)

    reason = f"{ENDED_EARLY} The account has cost 50.00 USD, and the budget of rule any-account is 50 USD."
    check_closed(world, asked, by="system:mind_budgets", reason=reason)
    check_gone(world, held)


def test_it_is_cancelled_when_what_it_extends_can_never_be_granted(world: World) -> None:
    """Alice was made anew in the Identity Store, and nobody else is given what was approved for her."""
    story = world.story
    held = story.approve(story.ask_for_prod())
    asked = world.more(held)
    directory.delete_person(email="alice@example.com", actor=SETUP, now=story.clock.now())
    story.clock.advance(1)
    directory.create_person(
        email="alice@example.com", name="Alice", group_id=TEAM, role=GroupRole.READER, actor=SETUP, now=story.clock.now()
    )

    story.carry_out(held)

    after = story.now_of(asked)
    assert (after.status, after.decided_by) == (Status.CANCELLED, "system:worker")
    assert after.decision_reason.startswith(f"{ENDED_EARLY} It can't be granted any more: ")
    assert story.twin.assignments() == set()


# What else holds the same, and what is over by its time


def test_what_extends_another_holding_of_the_same_goes_on_waiting(world: World) -> None:
    held, other = world.hold("aws_account"), world.hold("aws_account")
    asked = world.more(other)

    world.story.end(held)

    assert world.story.now_of(asked).status is Status.PENDING
    assert world.story.carry_out(world.approve(asked)).is_granted


def test_what_extends_the_first_is_cancelled_when_its_last_extension_is_ended(world: World) -> None:
    """The first was over by its time; what goes on with the same is ended early, and nothing holds it any more."""
    held = world.hold("aws_account")
    asked, further = world.more(held), world.story.carry_out(world.approve(world.more(held)))
    world.pass_time(held)
    world.story.tick()
    assert [world.story.now_of(one).status for one in (held, asked)] == [Status.REVOKED, Status.PENDING]

    by, reason = by_operator(world, further)

    check_closed(world, asked, by=by, reason=reason)
    check_gone(world, held, further)


def test_a_chain_ends_with_all_that_waits_for_any_of_it(world: World) -> None:
    held = world.hold("aws_account")
    further = world.story.carry_out(world.approve(world.more(held)))
    waiting = [world.more(held), world.story.extend(further, 4 * HOUR), world.story.extend(further, 5 * HOUR)]

    by, reason = by_holder(world, held)

    for asked in waiting:
        check_closed(world, asked, by=by, reason=reason)
    check_gone(world, held, further)


@KINDS
def test_after_its_time_is_up_it_gives_the_same_again_or_is_cancelled_where_that_is_gone(world: World, kind: str) -> None:
    held = world.hold(kind)
    asked = world.more(held)
    world.pass_time(held)

    world.story.tick()

    assert world.story.now_of(held).status is Status.REVOKED
    if kind in LENT:
        check_closed(world, asked, by="system:tick", reason="What this would extend was over before somebody decided. Ask for a new one.")
        check_gone(world, held)
    else:
        assert world.story.carry_out(world.approve(asked)).is_granted


@pytest.mark.parametrize("kind", LENT)
def test_what_is_lent_is_waited_for_as_long_as_some_extension_holds_it(world: World, kind: str) -> None:
    held = world.hold(kind)
    asked, further = world.more(held), world.story.carry_out(world.story.extend(held, 2 * HOUR))
    assert further.is_granted
    world.pass_time(held)
    world.story.tick()
    assert [world.story.now_of(one).status for one in (held, asked)] == [Status.REVOKED, Status.PENDING]
    world.pass_time(further)

    world.story.tick()

    check_closed(world, asked, by="system:tick", reason="What this would extend was over before somebody decided. Ask for a new one.")
    check_gone(world, held, further)


# Two at once, and dying between


@contextmanager
def just_before(monkeypatch: pytest.MonkeyPatch, action: str, meanwhile: Callable[[], object]) -> Iterator[list[str]]:
    """``meanwhile`` happens between the decision and the write of the first change that tells ``action``."""
    change, met = store.change, list[str]()

    def late(before: AccessRequest, after: AccessRequest, told: str, *args: Any, **given: Any) -> AccessRequest:
        if told == action and not met:
            met.append(told)
            meanwhile()
        return change(before, after, told, *args, **given)

    with monkeypatch.context() as patch:
        patch.setattr(store, "change", late)
        yield met
    assert met == [action]


RACED = pytest.mark.parametrize("kind", ["aws_account", "group", "account_lease"])


@RACED
def test_approved_while_it_is_being_ended_it_ends_as_well(world: World, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = world.hold(kind)
    asked = world.more(held)

    with just_before(monkeypatch, "request.end_asked", lambda: world.approve(asked)):
        by_operator(world, held)

    assert world.story.now_of(asked).ended_by == "olga@example.com"
    check_gone(world, held, asked)


@RACED
def test_ended_while_it_is_being_approved_it_is_cancelled(world: World, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = world.hold(kind)
    asked = world.more(held)

    with just_before(monkeypatch, "request.approved", lambda: by_operator(world, held)), pytest.raises(Conflict, match="was cancelled"):
        world.approve(asked)

    check_closed(world, asked, by="olga@example.com", reason=f"{ENDED_EARLY} Leaked key")
    check_gone(world, held)


def test_an_approver_who_is_too_late_is_told_who_cancelled_it_and_not_to_deny_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    held = world.hold("aws_account")
    asked = world.more(held)
    is_still_allowed = deciding._require_still_allowed

    def late(request: AccessRequest, book: queries.ApproverBook) -> int:
        if world.story.now_of(held).is_granted and not world.story.now_of(held).ended_by:
            by_holder(world, held)
        return is_still_allowed(request, book)

    monkeypatch.setattr(deciding, "_require_still_allowed", late)
    with pytest.raises(Conflict, match="was cancelled") as refused:
        world.approve(asked)

    assert isinstance(refused.value.present, AccessRequest)
    assert refused.value.present.status is Status.CANCELLED


def unseen(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """An index that does not show it yet."""
    with monkeypatch.context() as patch:
        patch.setattr(details, "list_open", lambda **given: ())
        act()


@KINDS
def test_what_the_end_did_not_see_can_not_be_approved_and_the_next_tick_cancels_it(
    world: World, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = world.hold(kind)
    asked = world.more(held)

    with (
        just_before(monkeypatch, "request.approved", lambda: unseen(monkeypatch, lambda: by_operator(world, held))),
        pytest.raises(Conflict, match=r"was ended early\. Deny this request\. Whoever needs the access again asks for it anew\."),
    ):
        world.approve(asked)
    assert world.story.now_of(asked).status is Status.PENDING
    world.story.tick()

    check_closed(world, asked, by="system:worker", reason=ENDED_EARLY)
    check_gone(world, held)


def test_what_is_too_much_for_one_transaction_is_cancelled_by_the_next_tick(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "_MOST_STEPS", 4)
    held = world.hold("aws_account")
    waiting = [world.more(held) for _ in range(3)]

    by_operator(world, held)

    assert sorted(world.story.now_of(one).status for one in waiting) == [Status.CANCELLED, Status.CANCELLED, Status.PENDING]
    world.story.tick()
    assert {world.story.now_of(one).status for one in waiting} == {Status.CANCELLED}
    check_gone(world, held)


def test_one_whose_events_are_not_as_it_says_keeps_no_access(world: World) -> None:
    """The tables were restored to different moments: its next event is there already."""
    held = world.hold("aws_account")
    asked, sound = world.more(held), world.more(held)
    now = world.story.clock.now()
    operations.comment(
        request_id=asked.request_id, kind=CommentKind.COMMENT, text="Hello", submission_id="1", actor=world.story.alice, now=now
    )
    item = RequestItem(asked.request_id)
    item.update(actions=[RequestItem.version.set(asked.version), RequestItem.audit_head.set(asked.audit_head)])

    by_operator(world, held)
    world.story.tick()

    assert [world.story.now_of(one).status for one in (held, sound)] == [Status.REVOKED, Status.CANCELLED]
    with pytest.raises(Conflict, match="was ended early"):
        world.approve(asked)


def test_an_extension_that_is_sent_while_it_is_being_ended_is_refused_and_nothing_is_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = world.hold("aws_account")
    insert = store.insert

    def late(*args: Any, **given: Any) -> AccessRequest:
        by_operator(world, held)
        return insert(*args, **given)

    monkeypatch.setattr(store, "insert", late)
    with pytest.raises(Conflict, match="Only access that is active can be extended") as refused:
        world.more(held)

    assert refused.value.code == "not_active"
    check_gone(world, held)
    assert [one.request_id for one in queries.list_mine(actor=world.story.alice).items] == [held.request_id]


@pytest.mark.parametrize("after", MOMENTS)
@pytest.mark.parametrize("fatal", range(4))
def test_whoever_dies_while_ending_it_leaves_nothing_to_be_approved(
    world: World, monkeypatch: pytest.MonkeyPatch, fatal: int, after: bool
) -> None:
    held = world.hold("aws_account")
    further = world.story.carry_out(world.approve(world.more(held)))
    waiting = [world.more(held), world.story.extend(further, 5 * HOUR)]
    process = Process(fatal=fatal, after=after)

    with living(process, monkeypatch, reads=_READS):
        survive(process, lambda: world.story.end(held))
        tick_until(world.story, process, held.request_id, lambda request: request.status is Status.REVOKED)

    assert process.died
    for asked in waiting:
        with pytest.raises(Conflict):
            world.approve(asked)
        assert world.story.now_of(asked).status is Status.CANCELLED
    check_gone(world, held, further)
