"""The crash table of leases: for every write and every outside call of take, grant, freeze, unfreeze, return, taking back and expiry, the
process dies at it, and what runs by itself still ends in the right state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from accessportal.access_requests import config, operations
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.audit import queries as audit
from accessportal.leases import config as leases_config
from accessportal.leases import operations as leases
from accessportal.leases import queries as pool
from accessportal.leases.states import AccountState, LeaseState
from accessportal.rules import operations as rules
from accessportal.waiting import queries as line
from tests.access_requests.test_crashes import survive, tick_until
from tests.crashing import MOMENTS, Killed, Process, living
from tests.depth import IS_DEEP
from tests.fixtures_accounts import LEASE_RULES, SETUP, Borrowed
from tests.fixtures_story import RULES
from tests.fixtures_twin import create_account
from tests.leases.reading import check_whole

_READS = frozenset({"GetItem", "Query", "BatchGetItem", "TransactGetItems", "DescribeTable"})
# How many steps lie between two at which one test dies, each in a life of its own; all steps are died at by night.
_STRIDE = 8 if IS_DEEP else 24
_RUN = range(_STRIDE) if IS_DEEP else (11,)

Live = Callable[[Borrowed, Process], list[AccessRequest]]


@pytest.fixture
def long_undo() -> Iterator[None]:
    """Whoever died is gone on for after minutes: by then it could not be taken back any more, which is right and not looked at here."""
    workflow, lending = config.current(), leases_config.current()
    operations.configure(replace(workflow, undo_seconds=1200))
    leases.configure(replace(lending, undo_seconds=1200))
    yield
    operations.configure(workflow)
    leases.configure(lending)


def prepare(borrowed: Borrowed, account_id: str) -> None:
    story = borrowed.story
    story.start_over()
    rules.apply_rules(text=RULES + LEASE_RULES, actor=SETUP, now=story.clock.now())
    borrowed.pool.add([account_id], pool="labs", size="small")
    borrowed.pool.clean(account_id)


def run_freezes(borrowed: Borrowed, process: Process, lease_id: str, wanted: LeaseState) -> None:
    """What the job does minute by minute, until the lease is so."""
    for _ in range(6):
        try:
            operations.freeze_leases(clock=borrowed.story.clock, workers=1)
        except Killed:
            process.reboot()
        lease = pool.get_lease(lease_id=lease_id)
        if (lease.state, lease.wanted) == (wanted, None):
            return
        borrowed.story.clock.advance(61)
    raise AssertionError(f"still {lease.state}, wanted {lease.wanted}: {lease.error}")


def granted(borrowed: Borrowed, process: Process, asked: AccessRequest) -> AccessRequest:
    return tick_until(borrowed.story, process, asked.request_id, lambda request: request.is_granted)


def over(borrowed: Borrowed, process: Process, request: AccessRequest) -> AccessRequest:
    return tick_until(borrowed.story, process, request.request_id, lambda request: request.status is Status.REVOKED)


def live_frozen(borrowed: Borrowed, process: Process) -> list[AccessRequest]:
    """Asked, approved, granted, frozen, unfrozen, given back, taken back, over."""
    story, clock = borrowed.story, borrowed.story.clock
    asked = survive(process, lambda: borrowed.ask(size="", submission_id="form"))
    survive(process, lambda: story.approve(asked))
    held = granted(borrowed, process, asked)
    survive(process, lambda: leases.freeze(lease_id=held.request_id, reason="Too dear", actor=story.olga, now=clock.now()))
    run_freezes(borrowed, process, held.request_id, LeaseState.FROZEN)
    assert not borrowed.has_access(held)
    survive(process, lambda: leases.unfreeze(lease_id=held.request_id, actor=story.olga, now=clock.now()))
    run_freezes(borrowed, process, held.request_id, LeaseState.ACTIVE)
    assert borrowed.has_access(held)
    survive(process, lambda: story.end(held))
    first = over(borrowed, process, held)
    again = survive(process, lambda: operations.take_back(request_id=held.request_id, actor=story.alice, now=clock.now()))
    second = granted(borrowed, process, again)
    clock.advance((second.expires_at - clock.now()).total_seconds())
    return [first, over(borrowed, process, second)]


def live_in_line(borrowed: Borrowed, process: Process) -> list[AccessRequest]:
    """One has it, the other waits, and is handed it when it has been cleaned; the other one's time is up at last."""
    story = borrowed.story
    first = survive(process, lambda: borrowed.ask(submission_id="form"))
    held = granted(borrowed, process, first)
    second = survive(process, lambda: borrowed.ask(actor=story.bob, submission_id="form"))
    tick_until(story, process, second.request_id, lambda _request: line.get_line("account").waiting == 1)
    survive(process, lambda: story.end(held))
    ended = over(borrowed, process, held)
    if pool.get_account(account_id=held.account_id).state is not AccountState.LEASED:
        survive(process, lambda: borrowed.pool.clean(held.account_id))
    other = granted(borrowed, process, second)
    story.clock.advance((other.expires_at - story.clock.now()).total_seconds())
    return [ended, over(borrowed, process, other)]


@pytest.mark.usefixtures("long_undo")
@pytest.mark.parametrize("live", [live_frozen, live_in_line], ids=["frozen", "in_line"])
@pytest.mark.parametrize("after", MOMENTS, ids=lambda after: "after" if after else "before")
@pytest.mark.parametrize("share", _RUN)
def test_a_crash_at_any_step_of_a_lease_is_healed(
    borrowed: Borrowed,
    monkeypatch: pytest.MonkeyPatch,
    share: int,
    live: Callable[[Borrowed, Process], list[AccessRequest]],
    *,
    after: bool,
) -> None:
    twin, fatal = borrowed.story.twin, share
    account_id = create_account(twin.organizations, twin.organizational_units, "lab", "/Labs", {"env": "lab"})
    while True:
        prepare(borrowed, account_id)
        process = Process(fatal=fatal, after=after)
        with living(process, monkeypatch, reads=_READS):
            requests = live(borrowed, process)
        check(borrowed, account_id, requests, f"killed at step {fatal}: {[*process.names, '-'][min(fatal, len(process.names))]}")
        if not process.died:
            # This step was never reached: every step before it has been died at.
            assert fatal >= len(process.names) > 20
            return
        fatal += _STRIDE


def check(borrowed: Borrowed, account_id: str, requests: list[AccessRequest], where: str) -> None:
    """Nobody has anything, each was granted and revoked once, each hand-over is told once, and every chain is whole."""
    check_whole()
    assert borrowed.story.twin.assignments() == set(), where
    account = pool.get_account(account_id=account_id)
    assert account.state is AccountState.DIRTY, where
    assert audit.check_head(account.entity, version=account.version, audit_head=account.audit_head) == [], where
    assert line.get_line("account").waiting == 0, where
    for request in requests:
        assert request.account_id == account_id, where
        actions = [event.action for event in audit.chain_of(request.entity)]
        assert actions.count("request.granted") == actions.count("request.revoked") == 1, f"{where}: {actions}"
        assert audit.check_head(request.entity, version=request.version, audit_head=request.audit_head) == [], where
        lease = [event.action for event in audit.chain_of(f"lease#{request.request_id}")]
        assert [lease.count(action) for action in ("lease.taken", "lease.started", "lease.ended")] == [1, 1, 1], f"{where}: {lease}"
