"""The crash table: for every write and every outside call from submit to revoked, the process dies right before it and right
after it, and the next ticks still end in the right state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import botocore.endpoint
import pytest

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.assignments import queries as assignments
from accessportal.assignments.states import AssignmentState
from accessportal.audit import queries as audit
from accessportal.authz.queries import read_scope
from accessportal.authz.states import entity_of
from accessportal.aws import cognito
from accessportal.directory import queries as directory
from accessportal.kernel.actors import system
from accessportal.kernel.errors import Conflict
from accessportal.mirror import operations as mirror
from accessportal.rules import operations as rules
from accessportal.sandboxes import ledger
from accessportal.sandboxes import queries as pool
from accessportal.sandboxes.states import Sandbox
from accessportal.sandboxes.states import Status as Lent
from tests.crashing import MOMENTS, Killed, Process, living
from tests.depth import IS_DEEP
from tests.fixtures_pool import POOL_RULES, Labs
from tests.fixtures_records import APPROVAL, RECORD_RULES, RELATIONSHIP, Case, ask, record_of
from tests.fixtures_story import RULES, Story

_READS = frozenset({"GetItem", "Query", "BatchGetItem", "TransactGetItems", "DescribeTable"})
_SHARES = 6
_DECISIONS = {"request.approved", "request.denied", "request.auto_approved", "request.lapsed", "request.cancelled"}


def survive(process: Process, action: Callable[[], Any]) -> Any:
    """What a person does whose page broke: the same again."""
    for _ in range(3):
        try:
            return action()
        except Killed:
            process.reboot()
        except Conflict as decided:
            return decided.present
    raise AssertionError("the process dies only once")


def tick_until(story: Story, process: Process, request_id: str, reached: Callable[[AccessRequest], bool]) -> AccessRequest:
    for _ in range(8):
        try:
            story.tick()
        except Killed:
            process.reboot()
        request = queries.get(request_id=request_id, actor=story.olga, now=story.clock.now())
        if reached(request):
            return request
        story.clock.advance(61)
    raise AssertionError(f"still waiting: {request.work} {request.work_error}")


@dataclass(frozen=True)
class Life:
    """How a request of one kind begins, and what is left of it when it is over (nothing, with whole chains)."""

    ask: Callable[[Story], AccessRequest]
    approve: Callable[[Story, AccessRequest], AccessRequest]
    check: Callable[[Story, str], None]
    steps: int
    prepare: Callable[[Story], None] = lambda _: None


def live_through(story: Story, process: Process, life: Life) -> tuple[AccessRequest, AccessRequest]:
    """Alice asks, somebody approves, she gets it, its end comes. Returns the request as granted and as it is at last."""
    asked = survive(process, lambda: life.ask(story))
    survive(process, lambda: life.approve(story, asked))
    granted = tick_until(story, process, asked.request_id, lambda request: request.is_granted)
    story.clock.advance(max(0.0, (granted.expires_at - story.clock.now()).total_seconds()))
    return granted, tick_until(story, process, asked.request_id, lambda request: request.status is Status.REVOKED)


def check_account(story: Story, where: str) -> None:
    assert story.twin.assignments() == set(), where
    for state in AssignmentState:
        for assignment in assignments.list_by_state(state=state).items:
            assert (assignment.state, assignment.claims) == (AssignmentState.ABSENT, frozenset()), where
            entity = f"assignment#{assignment.assignment_id}"
            assert audit.check_head(entity, version=assignment.version, audit_head=assignment.audit_head) == [], where


def check_group(story: Story, where: str) -> None:
    assert directory.find_membership(email="alice@example.com", group_id="/engineering") is None, where
    alice = directory.find_person(email="alice@example.com")
    assert alice is not None, where
    assert audit.check_head(alice.entity, version=alice.version, audit_head=alice.audit_head) == [], where
    told = [event.action for event in audit.history(alice.entity, newest_first=False).items if event.scope == "/engineering"]
    assert told == ["user.granted", "user.revoked"], where


def make_pool(story: Story) -> None:
    rules.apply_rules(text=RULES + POOL_RULES, actor=system("setup"), now=story.clock.now())
    Labs(story).fill("gpu-1", "gpu-2")


def check_sandbox(story: Story, where: str) -> None:
    """Lent once, given back once; it waits for its cleaning."""
    (row,) = pool.list_by_status(status=Lent.PENDING_DELETION).items
    assert isinstance(row, Sandbox), where
    told = [event.action for event in pool.history(sandbox_id=row.sandbox_id)]
    assert told == ["sandbox.added", "sandbox.taken", "sandbox.released"], where
    assert list(ledger.problems_of_events(pool.history(sandbox_id=row.sandbox_id), row)) == [], where
    assert audit.check_head(row.entity, version=row.version, audit_head=row.audit_head) == [], where


def let_records_be(story: Story) -> None:
    rules.apply_rules(text=RULES + RECORD_RULES, actor=system("setup"), now=story.clock.now())


def check_record(case: Case) -> Callable[[Story, str], None]:
    """It is gone, and was granted once and revoked once."""

    def check(story: Story, where: str) -> None:
        assert record_of(case) is None, where
        told = [event.action for event in audit.history(entity_of(case.kind, read_scope(case.scope), case.names), newest_first=False).items]
        assert told == [f"{case.kind}.granted", f"{case.kind}.revoked"], where

    return check


def life_of_record(case: Case) -> Life:
    return Life(
        ask=lambda story: ask(story, case, seconds=10 * 3600, submission_id="form"),
        approve=lambda story, asked: story.approve(asked),
        check=check_record(case),
        steps=8,
        prepare=let_records_be,
    )


LIVES = {
    "aws_account": Life(
        ask=lambda story: story.ask(account="payments-prod", permission_set="ReadOnlyAccess", ticket="CHG-1", submission_id="form"),
        approve=lambda story, asked: story.approve(asked),
        check=check_account,
        steps=12,
    ),
    "group": Life(
        ask=lambda story: story.ask_to_join("/engineering", "contributor", submission_id="form"),
        approve=lambda story, asked: story.approve(asked, actor=story.gina),
        check=check_group,
        steps=8,
    ),
    "sandbox": Life(
        ask=lambda story: Labs(story).ask(prefix="", seconds=4 * 3600, submission_id="form"),
        approve=lambda story, asked: story.approve(asked),
        check=check_sandbox,
        steps=8,
        prepare=make_pool,
    ),
    "approval": life_of_record(APPROVAL),
}
if IS_DEEP:
    # Each of its steps is one of an approval's.
    LIVES["relationship"] = life_of_record(RELATIONSHIP)


@pytest.mark.deep
@pytest.mark.parametrize("kind", LIVES)
@pytest.mark.parametrize("after", MOMENTS, ids=lambda after: "after" if after else "before")
@pytest.mark.parametrize("share", range(_SHARES))
def test_a_crash_at_any_step_is_healed(story: Story, monkeypatch: pytest.MonkeyPatch, share: int, kind: str, *, after: bool) -> None:
    die_everywhere(story, monkeypatch, LIVES[kind], share=share, after=after)


@pytest.mark.parametrize("share", range(_SHARES))
def test_a_crash_leaves_nothing_in_cognito(story: Story, user_pool: str, monkeypatch: pytest.MonkeyPatch, share: int) -> None:
    """The same for a membership that Cognito must follow; right after each step alone, which is right before the next."""

    def check(story: Story, where: str) -> None:
        check_group(story, where)
        assert cognito.groups_of_user(user_pool, "alice@example.com") == {"/engineering/payments:contributor"}, where

    fill_pool(story)
    die_everywhere(story, monkeypatch, replace(LIVES["group"], check=check, steps=12), share=share, after=True)


def fill_pool(story: Story) -> None:
    """The directory was there before the pool."""
    mirror.compare_mirror(apply=True, actor=system("setup"), clock=story.clock)
    story.clock.advance(1)
    mirror.sweep_mirror(clock=story.clock, workers=1)


def die_everywhere(story: Story, monkeypatch: pytest.MonkeyPatch, life: Life, *, share: int, after: bool) -> None:
    fatal = share
    while True:
        story.start_over()
        life.prepare(story)
        process = Process(fatal=fatal, after=after)
        with living(process, monkeypatch, reads=_READS):
            granted, ended = live_through(story, process, life)
        where = f"killed {'after' if after else 'before'} step {fatal}: {[*process.names, '-'][min(fatal, len(process.names))]}"
        check_end(granted, ended, where)
        life.check(story, where)
        if not process.died:
            # This step was never reached: every step before it has been died at.
            assert fatal >= len(process.names) > life.steps
            return
        fatal += _SHARES


def check_end(granted: AccessRequest, ended: AccessRequest, where: str) -> None:
    assert granted.is_granted, where
    assert ended.status is Status.REVOKED, where
    actions = [event.action for event in queries.history(request=ended)]
    assert len(_DECISIONS & set(actions)) == sum(action in _DECISIONS for action in actions) == 1, f"{where}: {actions}"
    assert actions.count("request.granted") == actions.count("request.revoked") == 1, f"{where}: {actions}"
    assert audit.check_head(ended.entity, version=ended.version, audit_head=ended.audit_head) == [], where


def test_nothing_is_assigned_without_a_record(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the moment of every outside call that creates, the request and the claim are already written."""
    seen: list[tuple[Status, AssignmentState, frozenset[str]]] = []
    send = botocore.endpoint.Endpoint.make_request
    asked = story.ask()

    def make_request(self: Any, operation_model: Any, request_dict: Any) -> Any:
        if operation_model.name == "CreateAccountAssignment":
            (assignment,) = assignments.list_by_state(state=AssignmentState.CREATING).items
            seen.append((story.now_of(asked).status, assignment.state, assignment.claims))
        return send(self, operation_model, request_dict)

    with monkeypatch.context() as patch:
        patch.setattr(botocore.endpoint.Endpoint, "make_request", make_request)
        story.carry_out(asked)

    assert seen == [(Status.ACTIVE, AssignmentState.CREATING, frozenset({asked.request_id}))]
