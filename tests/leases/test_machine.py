"""People, operators, cleaners, time and deaths in every order that hypothesis can think of, beside what people were told.

After each step the lists equal the rows, no account has two holders, each hand-over has a fence of its own, and the line is in order.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from accessportal.audit import queries as audit
from accessportal.kernel.errors import Conflict, NotFound
from accessportal.leases import operations, queries
from accessportal.leases.states import AccountState, Lease, LeaseState
from accessportal.store.transactions import Overtaken
from accessportal.waiting import queries as line
from accessportal.waiting.states import ACCOUNTS
from tests.crashing import Killed, Process, living
from tests.depth import examples
from tests.fixtures_twin import REGION
from tests.leases.conftest import ALICE, CARL, JOB, OLGA, AccountsPool, account_ids
from tests.leases.reading import check_whole

IDS = account_ids(3)
READS = frozenset({"GetItem", "BatchGetItem", "Query", "Scan"})
MOST_HELD = 2
_ids, _users = st.sampled_from(IDS), st.sampled_from([ALICE, CARL])
# So many writes are survived.
_lives = st.sampled_from([None, None, None, 0, 1])


class Machine(RuleBasedStateMachine):
    """``held``: the leases of which somebody knows, by the claim; ``asked``: who asked for one and knows of none yet, in order."""

    pool: AccountsPool
    patch: pytest.MonkeyPatch
    empty: Any

    def __init__(self) -> None:
        super().__init__()
        dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables = copy.deepcopy(self.empty)
        self.held: dict[str, Lease] = {}
        self.asked: dict[str, str] = {}
        self.given_back: list[Lease] = []
        self.fences: set[tuple[str, int]] = set()
        self.number = 0

    def living(self, act: Callable[[], Any], lives: int | None) -> Any:
        """What ``act`` answers; when it dies after so many writes, it is done once more. ``None``: it was refused."""
        process = Process(fatal=-1 if lives is None else lives, after=True)
        for _ in range(2):
            try:
                with living(process, self.patch, reads=READS):
                    return act()
            except Killed:
                process.reboot()
            except (Conflict, NotFound, Overtaken):
                return None
        raise AssertionError("it dies only once")

    def note(self, lease: Lease, *, is_new: bool = True) -> None:
        """Somebody was told that they have it."""
        self.asked.pop(lease.lease_id, None)
        assert lease.account_id not in {one.account_id for name, one in self.held.items() if name != lease.lease_id}
        if is_new and lease.lease_id not in self.held:
            assert (lease.account_id, lease.fence) not in self.fences
            self.fences.add((lease.account_id, lease.fence))
        self.held[lease.lease_id] = lease

    def look(self) -> None:
        """Whoever asked looks whether their turn has come: in the order in which they joined."""
        for claim in list(self.asked):
            found = queries.find_lease(lease_id=claim)
            if found is not None:
                self.note(found)

    @rule(one=_ids, lives=_lives)
    def add(self, one: str, lives: int | None) -> None:
        self.living(lambda: self.pool.add([one]), lives)

    @rule(one=_ids, lives=_lives)
    def clean(self, one: str, lives: int | None) -> None:
        def act() -> None:
            if self.pool.get(one).state.is_cleaned_next:
                self.pool.clean(one)

        self.living(act, lives)
        self.look()

    @rule(user=_users, lives=_lives)
    def take(self, user: str, lives: int | None) -> None:
        self.number += 1
        claim = f"claim-{self.number:04}"
        self.asked[claim] = user
        self._take(claim, lives)

    @rule(lives=_lives)
    def ask_again(self, lives: int | None) -> None:
        for claim in list(self.asked)[:1]:
            self._take(claim, lives)

    def _take(self, claim: str, lives: int | None) -> None:
        user = self.asked[claim]
        found = self.living(lambda: self.pool.take(user, claim=claim, most_held=MOST_HELD), lives)
        if isinstance(found, Lease):
            self.note(found)
        elif found.code == "too_many_held":
            assert sum(one.user == user for one in self.held.values()) >= MOST_HELD
            if line.find(line=ACCOUNTS, claim=claim) is None:
                del self.asked[claim]

    @rule(data=st.data(), lives=_lives)
    def start(self, data: st.DataObject, lives: int | None) -> None:
        if self.held:
            lease = self.held[data.draw(st.sampled_from(sorted(self.held)))]
            self.note(self.living(lambda: self.pool.start(lease), lives), is_new=False)

    @rule(data=st.data(), lives=_lives)
    def freeze_and_back(self, data: st.DataObject, lives: int | None) -> None:
        started = sorted(name for name, lease in self.held.items() if lease.state is not LeaseState.STARTING)
        if not started:
            return
        name, now = data.draw(st.sampled_from(started)), self.pool.clock.now()
        order = operations.unfreeze if self.held[name].state is LeaseState.FROZEN else None
        if order is not None:
            self.living(lambda: order(lease_id=name, actor=OLGA, now=now), lives)
            lease = self.living(lambda: operations.note_access_on(lease_id=name, actor=JOB, now=now), None)
        else:
            self.living(lambda: operations.freeze(lease_id=name, reason="Too dear", actor=OLGA, now=now), lives)
            lease = self.living(lambda: operations.note_access_off(lease_id=name, actor=JOB, now=now), None)
        assert lease.wanted is None
        self.note(lease, is_new=False)

    @rule(data=st.data(), lives=_lives)
    def give_back(self, data: st.DataObject, lives: int | None) -> None:
        if self.held:
            lease = self.held.pop(data.draw(st.sampled_from(sorted(self.held))))
            answer = self.living(lambda: self.pool.let_go(lease), lives)
            assert (answer.account_id, answer.fence, answer.claims) == (lease.account_id, lease.fence, frozenset())
            self.given_back.append(lease)

    @rule(lives=_lives)
    def take_back(self, lives: int | None) -> None:
        if self.given_back:
            lease = self.given_back[-1]
            self.number += 1
            found = self.living(lambda: self.pool.revive(lease, f"claim-{self.number:04}", most_held=MOST_HELD), lives)
            if found is not None:
                assert (found.account_id, found.fence) == (lease.account_id, lease.fence)
                self.given_back.pop()
                self.note(found, is_new=False)

    @rule(one=_ids, lives=_lives, verb=st.sampled_from(["retire", "quarantine", "restore"]))
    def operate(self, one: str, lives: int | None, verb: str) -> None:
        why: dict[str, str] = {} if verb == "restore" else {"reason": "Odd"}
        deed = getattr(operations, verb)
        self.living(lambda: deed(account_id=one, actor=OLGA, now=self.pool.clock.now(), **why), lives)

    @rule(lives=_lives)
    def serve(self, lives: int | None) -> None:
        self.living(lambda: operations.serve_line(actor=JOB, clock=self.pool.clock), lives)
        self.look()
        self._nobody_waits_for_what_is_free()

    def _nobody_waits_for_what_is_free(self) -> None:
        free = queries.list_accounts(pool="default", state=AccountState.AVAILABLE).items
        has = {user: sum(one.user == user for one in self.held.values()) for user in (ALICE, CARL)}
        waiting = [one.claim for one in line.places(ACCOUNTS) if has[self.asked[one.claim]] < MOST_HELD]
        assert not (free and waiting)

    @rule(seconds=st.sampled_from([1, 60, 121, 3_600]))
    def time_passes(self, seconds: int) -> None:
        self.pool.clock.sleep(seconds)

    @invariant()
    def the_lists_equal_the_rows(self) -> None:
        check_whole()

    @invariant()
    def everybody_has_what_they_were_told(self) -> None:
        rows = {row.entity: row for row in queries.every_row(past=_must_not_be)}
        assert {row.lease_id for row in rows.values() if isinstance(row, Lease)} == self.held.keys()
        for lease in self.held.values():
            assert rows[f"lease#{lease.lease_id}"] == lease

    @invariant()
    def the_line_is_in_order(self) -> None:
        claims = [one.claim for one in line.places(ACCOUNTS)]
        assert claims == sorted(claims, key=list(self.asked).index)

    def teardown(self) -> None:
        for row in queries.every_row(past=_must_not_be):
            assert audit.check_head(row.entity, version=row.version, audit_head=row.audit_head) == []


def _must_not_be(one: object) -> None:
    raise AssertionError(one)


@pytest.mark.deep
@pytest.mark.slow
def test_in_any_order_the_lists_equal_the_rows_and_nobody_shares(accounts: AccountsPool, monkeypatch: pytest.MonkeyPatch) -> None:
    Machine.pool, Machine.patch = accounts, monkeypatch
    Machine.empty = copy.deepcopy(dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables)
    run_state_machine_as_test(
        Machine,
        settings=settings(max_examples=examples(2), stateful_step_count=25, suppress_health_check=list(HealthCheck)),
    )
