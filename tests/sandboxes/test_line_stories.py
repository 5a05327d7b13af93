"""The line lived through: many people and few sandboxes with returns, leaving and lapses; and a process that dies at any step."""

from __future__ import annotations

import copy
import heapq
import itertools
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from accessportal.audit import queries as audit
from accessportal.kernel.errors import Conflict
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import Sandbox, Status
from accessportal.waiting import operations as lines
from accessportal.waiting import queries as line
from accessportal.waiting.states import SANDBOXES, Expected
from tests.crashing import MOMENTS, Process, living
from tests.depth import IS_DEEP
from tests.fixtures_twin import REGION
from tests.sandboxes.cleaning_by_hand import free_again
from tests.sandboxes.conftest import CLIENT, Pool, Upstream
from tests.sandboxes.test_crashes import _READS, _mortal, again
from tests.sandboxes.test_waiting import ask, check, held, in_line, let_go

PEOPLE = 200 if IS_DEEP else 40
SANDBOXES_THERE = 5
CLEANING_SECONDS = 120


@dataclass
class Life:
    """``moments``: what happens when, the earliest first. Jobs come up to a minute late; ``lively``: people also give back early, leave,
    and let their places lapse."""

    pool: Pool
    lively: bool
    random: random.Random
    moments: list[tuple[datetime, int, str, str]] = field(default_factory=list)
    lapses: dict[str, datetime] = field(default_factory=dict)
    expected: list[tuple[str, Expected]] = field(default_factory=list)
    handed_at: dict[str, datetime] = field(default_factory=dict)
    sandboxes: dict[str, Sandbox] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def later(self, seconds: float, what: str, whom: str) -> None:
        at = self.pool.clock.now() + timedelta(seconds=seconds)
        heapq.heappush(self.moments, (at, next(self._numbers), what, whom))

    def arrive(self, claim: str) -> None:
        seconds = self.random.choice((600, 1_800, 3_600))
        now = self.pool.clock.now()
        lapses_at = now + timedelta(seconds=self.random.choice((1_200, 7_200)) if self.lively and self.random.random() < 0.1 else 260_000)
        self.lapses[claim] = lapses_at
        found = operations.hold(
            claim=claim,
            key=f"request:{claim}",
            track=f"person:{claim}",
            name_prefix="",
            ends_at=lapses_at.replace(microsecond=0),
            duration_seconds=seconds,
            most_held=1,
            guards=(),
            actor=CLIENT,
            clock=self.pool.clock,
        )
        if isinstance(found, Proof):
            self.got(claim)
            return
        self.later((lapses_at - now).total_seconds(), "lapse", claim)
        if self.lively and self.random.random() < 0.1:
            self.later(self.random.uniform(60, 7_200), "leave", claim)

    def got(self, claim: str) -> None:
        sandbox = held(claim)
        assert sandbox is not None
        assert sandbox.expires_at is not None
        self.handed_at[claim] = self.pool.clock.now()
        self.sandboxes[claim] = sandbox
        left = (sandbox.expires_at - self.pool.clock.now()).total_seconds()
        self.later(left * (self.random.random() if self.lively and self.random.random() < 0.3 else 1), "give back", claim)

    def happen(self) -> None:
        at, _, what, whom = heapq.heappop(self.moments)
        self.pool.clock.advance(max(0.0, (at - self.pool.clock.now()).total_seconds()))
        match what:
            case "give back":
                let_go(self.pool, whom)
                self.later(CLEANING_SECONDS + self.random.uniform(0, 60), "clean", whom)
            case "clean":
                handed = free_again(self.pool.now_of(self.sandboxes[whom]), now=self.pool.clock.now())
                lines.note_cleanings(line=SANDBOXES, seconds=[CLEANING_SECONDS])
                if handed.status is Status.ALLOCATED:
                    (claim,) = handed.claims
                    self.got(claim)
            case "leave" | "lapse" if whom not in self.handed_at:
                let_go(self.pool, whom)

    def foretell(self) -> None:
        """What some of those who wait are told now."""
        waiting = in_line()
        for claim in self.random.sample(waiting, min(2, len(waiting))):
            standing = line.find(line=SANDBOXES, claim=claim)
            assert standing is not None
            told = queries.expected_turn(standing=standing, now=self.pool.clock.now())
            if told is not None:
                self.expected.append((claim, told))


@pytest.mark.deep
@pytest.mark.parametrize("lively", [False, True], ids=["kept to the end", "with returns, leaving and lapses"])
def test_many_people_and_few_sandboxes(pool: Pool, *, lively: bool) -> None:
    pool.fill(SANDBOXES_THERE)
    lines.note_cleanings(line=SANDBOXES, seconds=[CLEANING_SECONDS])
    life = Life(pool, lively, random.Random(8))
    for number in range(PEOPLE):
        life.arrive(f"r-{number:03}")
        pool.clock.advance(1)
    assert len(in_line()) == PEOPLE - SANDBOXES_THERE

    for number in itertools.count():
        if not life.moments:
            break
        if number % 7 == 0:
            life.foretell()
        if number % 11 == 0 and in_line():
            with pytest.raises(Conflict, match="goes to them first"):
                pool.take("track-1")
        life.happen()

    check(pool)
    assert in_line() == []
    gone = _check_order(life)
    assert set(life.handed_at) | gone == {f"r-{number:03}" for number in range(PEOPLE)}
    assert bool(gone) == lively
    came = [(told, life.handed_at[claim]) for claim, told in life.expected if claim in life.handed_at]
    assert len(came) > PEOPLE / 4
    assert all(at <= told.latest for told, at in came)
    if not lively:
        assert all(told.earliest <= at for told, at in came)


def _check_order(life: Life) -> set[str]:
    """By the events of the line alone: whoever was served was the first of those whose place had not lapsed. Who was not served is
    returned."""
    seen, gone = line.get_line(SANDBOXES), set[str]()
    assert audit.check_head(seen.entity, version=seen.version, audit_head=seen.audit_head) == []
    waiting: dict[str, int] = {}
    for event in audit.chain_of(seen.entity):
        if event.action == "line.joined":
            assert event.data["place"] > max(waiting.values(), default=0)
            waiting[event.subject] = event.data["place"]
            continue
        place = waiting.pop(event.subject)
        assert event.data["waiting"] == len(waiting)
        if event.action == "line.served":
            assert all(life.lapses[claim] <= event.at for claim, before in waiting.items() if before < place), event
        else:
            gone.add(event.subject)
    assert waiting == {}
    return gone


def live_through(upstream: Upstream, process: Process) -> None:
    """Alice and Bob wait for the only one, and have it one after the other; Carol leaves."""
    pool = upstream.pool
    lent = again(process, lambda: pool.take("track-1")).sandbox
    for claim in ("alice", "carol", "bob"):
        assert isinstance(again(process, lambda claim=claim: ask(pool, claim)), Waiting)  # type: ignore[misc]
    again(process, lambda: let_go(pool, "carol"))
    again(process, lambda: pool.release(lent))
    for claim in ("alice", "bob"):
        _clean_until_held(upstream, process, claim)
        assert isinstance(again(process, lambda claim=claim: ask(pool, claim)), Proof)  # type: ignore[misc]
        again(process, lambda claim=claim: let_go(pool, claim))  # type: ignore[misc]
    for _ in range(3):
        again(process, upstream.clean)
        upstream.later(121)


def _clean_until_held(upstream: Upstream, process: Process, claim: str) -> None:
    for _ in range(6):
        again(process, upstream.clean)
        if held(claim) is not None:
            return
        upstream.later(121)
    raise AssertionError(f"{claim} was not served")


@pytest.mark.deep
@pytest.mark.parametrize("after", MOMENTS, ids=lambda after: "after" if after else "before")
def test_a_crash_at_any_step_of_the_line_is_healed(upstream: Upstream, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
    (only,) = upstream.fill(1)
    backend = dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION]
    filled, provided = copy.deepcopy(backend.tables), upstream.twin.sandboxes()
    for fatal in itertools.count():
        backend.tables = copy.deepcopy(filled)
        for external_id, sandbox in provided.items():
            upstream.twin.restore(external_id, sandbox)
        process = Process(fatal=fatal, after=after)
        with living(process, monkeypatch, reads=_READS), monkeypatch.context() as patch:
            patch.setattr(upstream.adapter, "send", _mortal(process, upstream.adapter))
            live_through(upstream, process)
        where = f"killed {'after' if after else 'before'} step {fatal}: {[*process.names, '-'][min(fatal, len(process.names))]}"
        check(upstream.pool)
        told = [event.action for event in audit.chain_of(line.get_line(SANDBOXES).entity)]
        assert told == ["line.joined"] * 3 + ["line.left"] + ["line.served"] * 2, where
        lent = [event for event in queries.history(sandbox_id=only.sandbox_id) if event.action == "sandbox.taken"]
        assert [event.data["track"] for event in lent] == ["track-1", "person:alice", "person:bob"], where
        assert upstream.pool.status_of(only) is Status.AVAILABLE, where
        if not process.died:
            assert fatal > 15
            return
