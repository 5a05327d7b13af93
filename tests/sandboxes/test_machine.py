"""Clients, jobs, operators, other programs and a failing provider, in every order that hypothesis can think of."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from accessportal.kernel.errors import Conflict, NotAllowed, NotFound, Unavailable
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.sandboxes import ledger, operations, policy, queries
from accessportal.sandboxes.states import NoneFree, Sandbox, Status, SyncStopped
from tests.depth import examples
from tests.fixtures_twin import REGION
from tests.sandboxes import seed_examples as seed
from tests.sandboxes.conftest import CLIENT, OLGA, Upstream

TRACKS = ("track-1", "track-2", "track-3")
SIZE = 4
_tracks = st.sampled_from(TRACKS)
_chances = st.sampled_from([0.0, 0.0, 0.5, 1.0])
_seconds = st.sampled_from([1, 60, 299, 300, 3600, 4 * 3600])


class Machine(RuleBasedStateMachine):
    """``held`` is what each track believes to hold, by its answers alone, until its deadline."""

    upstream: Upstream
    empty: Any

    def __init__(self) -> None:
        super().__init__()
        dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables = copy.deepcopy(self.empty)
        for external_id in self.upstream.twin.sandboxes():
            self.upstream.twin.lose(external_id)
        self.upstream.set(fail_list=0, fail_get=0, fail_delete=0, lose_answer=0, list_share=1, list_twice=0, recycle=1, reset_seconds=0)
        self.held: dict[str, Sandbox] = {}
        # By request: the first of its chain, and the sandbox as it was told when the claim was taken.
        self.claimed: dict[str, tuple[str, Sandbox]] = {}
        self.made = 0
        self.made_claims = 0

    @initialize()
    def fill(self) -> None:
        self.upstream.fill(SIZE)

    @rule(track=_tracks)
    def take(self, track: str) -> None:
        now = self.upstream.pool.clock.now()
        before = self.held.get(track)
        if before is not None and before.expires_at is not None and before.expires_at <= now:
            # In grace, asking anew gives it back.
            del self.held[track]
            before = None
        try:
            taken = self.upstream.pool.take(track)
        except NoneFree:
            assert not any(row.status is Status.AVAILABLE for row in self.upstream.pool.everything())
            return
        assert taken.sandbox.expires_at is not None
        assert taken.sandbox.expires_at > now
        if taken.is_repeat and before is not None:
            assert (taken.sandbox.sandbox_id, taken.sandbox.fence) == (before.sandbox_id, before.fence)
        self.held[track] = taken.sandbox

    @precondition(lambda self: self.held)
    @rule(track=_tracks)
    def release(self, track: str) -> None:
        lent = self.held.pop(track, None)
        if lent is None:
            return
        try:
            released = self.upstream.pool.release(lent, track, fence=lent.fence)
        except (NotAllowed, NotFound):
            # Taken away by its deadline or by quarantine; the invariant watches that it was not before.
            return
        assert self.upstream.pool.release(lent, track, fence=lent.fence) == released

    @rule(track=_tracks, seconds=st.sampled_from([60, 3600, 5 * 3600]))
    def hold(self, track: str, seconds: int) -> None:
        """A new request of a person, who may hold one at a time."""
        self.made_claims += 1
        request = f"r-{self.made_claims}"
        outcome = self._hold(request, request, track, seconds)
        if isinstance(outcome, Waiting) and outcome.code == "no_sandbox_free":
            assert not any(row.status is Status.AVAILABLE for row in self.upstream.pool.everything())
        if isinstance(outcome, Waiting) and outcome.code == "too_many_held":
            assert any(row.track == f"person:{track}" for row in self.upstream.pool.everything())
        if isinstance(outcome, Proof):
            now = self.upstream.pool.clock.now()
            lent = [one for one in self.upstream.pool.everything() if one.status is Status.ALLOCATED and not one.is_over(now)]
            assert len([one for one in lent if one.track == f"person:{track}"]) == 1, lent

    @precondition(lambda self: self.claimed)
    @rule(data=st.data(), seconds=st.sampled_from([60, 3600, 5 * 3600]))
    def extend(self, data: st.DataObject, seconds: int) -> None:
        self.made_claims += 1
        first, lent = self.claimed[data.draw(st.sampled_from(sorted(self.claimed)))]
        outcome = self._hold(f"r-{self.made_claims}", first, lent.track.removeprefix("person:"), seconds)
        if isinstance(outcome, Proof):
            assert (outcome.job_id, outcome.job_status) == (lent.sandbox_id, f"fence {lent.fence}")
        else:
            assert outcome.code == "allocation_over"

    @precondition(lambda self: self.claimed)
    @rule(data=st.data())
    def let_go(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(sorted(self.claimed)))
        first, lent = self.claimed.pop(claim)
        clock = self.upstream.pool.clock
        for _ in range(2):
            gone = operations.let_go(claim=claim, key=f"request:{first}", track=lent.track, actor=CLIENT, clock=clock)
            assert isinstance(gone, Proof)
            assert not gone.is_present

    def _hold(self, claim: str, first: str, track: str, seconds: int) -> Proof | Waiting:
        clock = self.upstream.pool.clock
        outcome = operations.hold(
            claim=claim,
            key=f"request:{first}",
            track=f"person:{track}",
            name_prefix="",
            ends_at=clock.now().replace(microsecond=0) + timedelta(seconds=seconds),
            most_held=1,
            is_first=claim == first,
            guards=(),
            actor=CLIENT,
            clock=clock,
        )
        lent = queries.find_by_key(key=f"request:{first}")
        if isinstance(outcome, Proof):
            assert lent is not None
            self.claimed[claim] = (first, lent)
        return outcome

    @rule(seconds=_seconds)
    def wait(self, seconds: int) -> None:
        self.upstream.later(seconds)

    @rule(list_=_chances, get=_chances, delete=_chances, lose=_chances, share=st.sampled_from([0.0, 0.5, 1.0, 1.0]), twice=_chances)
    def turn_up_the_provider(self, list_: float, get: float, delete: float, lose: float, share: float, twice: float) -> None:
        self.upstream.set(fail_list=list_, fail_get=get, fail_delete=delete, lose_answer=lose, list_share=share, list_twice=twice)

    @rule(recycle=_chances, reset=st.sampled_from([0, 0, 100]))
    def change_what_a_deletion_does(self, recycle: float, reset: int) -> None:
        self.upstream.set(recycle=recycle, reset_seconds=reset)

    @rule()
    def heal_the_provider(self) -> None:
        self.upstream.set(fail_list=0, fail_get=0, fail_delete=0, lose_answer=0, list_share=1, list_twice=0, recycle=1, reset_seconds=0)

    @rule()
    def clean(self) -> None:
        self.upstream.clean()

    @rule()
    def expire(self) -> None:
        self.upstream.pool.expire()

    @rule(most_share=st.sampled_from([0.2, 1.0]))
    def sync(self, most_share: float) -> None:
        try:
            self.upstream.sync(most_share=most_share)
        except (Unavailable, SyncStopped):
            return

    @rule()
    def the_provider_makes_another(self) -> None:
        if self.made < 3:
            self.made += 1
            self.upstream.twin.create(f"ext-new-{self.made}", name=f"lab-new-{self.made}")

    @rule(data=st.data(), verb=st.sampled_from(["quarantine", "restore"]))
    def operate(self, data: st.DataObject, verb: str) -> None:
        rows = self.upstream.pool.everything()
        if not rows:
            return
        chosen = data.draw(st.sampled_from(sorted(row.sandbox_id for row in rows)))
        now = self.upstream.pool.clock.now()
        try:
            if verb == "quarantine":
                operations.quarantine(sandbox_id=chosen, reason="Smoke.", actor=OLGA, now=now)
                self.held = {track: one for track, one in self.held.items() if one.sandbox_id != chosen}
                self.claimed = {claim: told for claim, told in self.claimed.items() if told[1].sandbox_id != chosen}
            else:
                operations.restore(sandbox_id=chosen, actor=OLGA, now=now)
        except Conflict:
            return

    @rule(track=st.sampled_from(["outside-1", "outside-2"]))
    def another_program_allocates(self, track: str) -> None:
        free = [row for row in self.upstream.pool.everything() if row.status is Status.AVAILABLE]
        if free:
            self._outside(free[0], "allocated", track)

    @rule()
    def another_program_marks(self) -> None:
        lent = [row for row in self.upstream.pool.everything() if row.status is Status.ALLOCATED and row.track.startswith("outside")]
        if lent:
            self._outside(lent[0], "pending_deletion", "")

    def _outside(self, row: Sandbox, status: str, track: str) -> None:
        now = int(self.upstream.pool.clock.now().timestamp())
        words = "SET #s = :s, updated_at = :n"
        more = {":t": track} if track else {}
        words += ", allocated_to_track = :t, idempotency_key = :t, allocated_at = :n" if track else ", deletion_requested_at = :n"
        seed.table_named("SandboxPool").update_item(
            Key={"PK": f"SBX#{row.sandbox_id}", "SK": "META"},
            UpdateExpression=words,
            ExpressionAttributeNames={"#s": "status"},
            ExpressionAttributeValues={":s": status, ":n": now, **more},
        )

    @invariant()
    def nobody_lost_what_is_theirs(self) -> None:
        now = self.upstream.pool.clock.now()
        for track, lent in self.held.items():
            assert lent.grace_ends_at is not None
            if now < lent.grace_ends_at:
                row = self.upstream.pool.now_of(lent)
                assert (row.status, row.track, row.fence) == (Status.ALLOCATED, track, lent.fence), (lent, row)

    @invariant()
    def no_claim_is_cut_short(self) -> None:
        now = self.upstream.pool.clock.now()
        for claim, (_, lent) in self.claimed.items():
            mine = lent.claims[claim]
            assert lent.expires_at is not None
            if now < min(mine, lent.expires_at):
                row = self.upstream.pool.now_of(lent)
                assert (row.status, row.track, row.fence) == (Status.ALLOCATED, lent.track, lent.fence), (lent, row)
                assert row.claims[claim] == mine
                assert row.expires_at is not None
                assert row.expires_at >= min(mine, lent.expires_at)

    @invariant()
    def the_ledger_is_whole(self) -> None:
        for row in self.upstream.pool.everything():
            events = queries.history(sandbox_id=row.sandbox_id)
            assert list(ledger.problems_of_events(events, row)) == [], (row, events)

    def teardown(self) -> None:
        """With the provider well and some time, everything is free again, but what is in quarantine."""
        self.heal_the_provider()
        for _ in range(3):
            self.upstream.later(4 * 3600 + 301)
            self.upstream.sync(most_share=1)
            self.upstream.pool.expire()
            for _ in range(policy.MOST_FAILURES):
                self.upstream.clean()
                self.upstream.later(policy.retry_gap_seconds(policy.MOST_FAILURES))
        self.upstream.sync(most_share=1)
        self.upstream.clean()
        rows = self.upstream.pool.everything()
        assert {row.status for row in rows} <= {Status.AVAILABLE, Status.STALE, Status.QUARANTINED}, rows
        assert {row.external_id for row in rows if row.status is Status.AVAILABLE} <= self.upstream.twin.sandboxes().keys()
        assert self.upstream.twin.sandboxes().keys() <= {row.external_id for row in rows}
        self.upstream.pool.check_whole()


@pytest.mark.deep
@pytest.mark.slow
def test_in_any_order_nothing_is_lent_twice_and_nothing_is_lost(upstream: Upstream) -> None:
    Machine.upstream = upstream
    Machine.empty = copy.deepcopy(dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables)
    run_state_machine_as_test(
        Machine,
        settings=settings(max_examples=examples(6), stateful_step_count=25, suppress_health_check=list(HealthCheck)),
    )
