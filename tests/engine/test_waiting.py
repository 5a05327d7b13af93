"""The line on a real engine: many threads that ask, leave, give back and clean at once. Nobody is skipped, nobody is served twice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial

import pytest

from accessportal.audit import queries as audit
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import NoneFree, Sandbox, Status
from accessportal.sandboxes.store import rows
from accessportal.store.transactions import ConditionFailed, transact
from accessportal.waiting import operations as lines
from accessportal.waiting import queries as line
from accessportal.waiting.states import SANDBOXES, Place
from tests.depth import examples
from tests.engine.stage import at_once, lost, patient, won
from tests.engine.test_sandboxes import check_whole, everything, fill, take
from tests.sandboxes.cleaning_by_hand import free_again

pytestmark = pytest.mark.usefixtures("engine")
CLOCK = SystemClock()
WORKER = system("worker")
PEOPLE = examples(16)
THERE = 5


def ask(claim: str) -> Proof | Waiting:
    return operations.hold(
        claim=claim,
        key=f"request:{claim}",
        track=f"person:{claim}",
        name_prefix="",
        ends_at=CLOCK.now().replace(microsecond=0) + timedelta(hours=72),
        duration_seconds=3_600,
        most_held=1,
        guards=(),
        actor=WORKER,
        clock=CLOCK,
    )


def let_go(claim: str) -> Proof | Waiting:
    return operations.let_go(claim=claim, key=f"request:{claim}", track=f"person:{claim}", actor=WORKER, clock=CLOCK)


def clean(sandbox: Sandbox) -> None:
    with suppress(rows.Overtaken):
        free_again(sandbox, now=CLOCK.now())


def ask_as_program() -> None:
    """A program gets none, because what becomes free is somebody's in the same write."""
    with pytest.raises(NoneFree):
        take("track-1")


def in_line() -> list[Place]:
    return list(line.places(SANDBOXES))


def served_in_order() -> list[str]:
    """Who was served, by the events of the line; each of them was the first."""
    seen = line.get_line(SANDBOXES)
    assert audit.check_head(seen.entity, version=seen.version, audit_head=seen.audit_head) == []
    waiting: dict[str, int] = {}
    served = []
    for event in audit.chain_of(seen.entity):
        if event.action == "line.joined":
            assert event.subject not in waiting
            assert event.data["place"] > max(waiting.values(), default=0)
            waiting[event.subject] = event.data["place"]
        else:
            place = waiting.pop(event.subject)
            if event.action == "line.served":
                assert place < min(waiting.values(), default=place + 1)
                served.append(event.subject)
        assert event.data["waiting"] == len(waiting)
    assert list(waiting) == [place.claim for place in in_line()]
    assert seen.waiting == len(waiting)
    return served


def test_many_people_and_few_sandboxes_at_once() -> None:
    fill(THERE)
    claims = [f"r-{number:03}" for number in range(PEOPLE)]
    asked = at_once([partial(patient, partial(ask, claim)) for claim in claims for _ in range(2)])
    assert lost(asked) == []
    assert len({one.job_id for one in won(asked) if isinstance(one, Proof)}) == THERE
    assert len(in_line()) == PEOPLE - THERE
    left = [place.claim for place in in_line()[::6]]

    while in_line():
        holders = [row.track.removeprefix("person:") for row in everything() if row.status is Status.ALLOCATED]
        leaving = [left.pop() for _ in range(min(1, len(left)))]
        acts: list[Callable[[], object]] = [partial(let_go, claim) for claim in (*holders, *leaving)]
        acts += [partial(operations.serve_line, clock=CLOCK)] * 2
        assert lost(at_once(acts)) == []
        dirty = [row for row in everything() if row.status is Status.PENDING_DELETION]
        acts = [partial(clean, row) for row in dirty for _ in range(2)] + [partial(operations.serve_line, clock=CLOCK)]
        acts += [ask_as_program] * 2 if len(in_line()) > len(dirty) else []
        assert lost(at_once(acts)) == []

    served = served_in_order()
    assert len(served) == len(set(served))
    at_first = {event.data["track"] for row in everything() for event in queries.history(sandbox_id=row.sandbox_id) if _is_first(event)}
    assert len(at_first) == THERE
    check_whole()
    assert queries.verify(receipts=[], slack_seconds=0).problems == ()


def _is_first(event: object) -> bool:
    return getattr(event, "action", "") == "sandbox.taken" and getattr(event, "data", {}).get("fence") == 1


def test_many_join_leave_and_are_served_at_once() -> None:
    def join(claim: str) -> None:
        now = CLOCK.now()
        lines.join(line=SANDBOXES, claim=claim, wants={}, duration_seconds=60, lapses_at=now + timedelta(hours=1), actor=WORKER, now=now)

    def serve() -> str:
        while True:
            _, turn = line.first_that_fits(line=SANDBOXES, fits=lambda _: True, now=CLOCK.now())
            if turn is None:
                return ""
            with suppress(ConditionFailed):
                transact(lines.served(turn, thing="lab-1", actor=WORKER, now=CLOCK.now()))
                return turn.place.claim

    claims = [f"r-{number:03}" for number in range(PEOPLE)]
    first, second = claims[: PEOPLE // 2], claims[PEOPLE // 2 :]
    assert lost(at_once([partial(join, claim) for claim in first for _ in range(2)])) == []
    acts: list[Callable[[], object]] = [partial(join, claim) for claim in second]
    acts += [partial(lines.leave, line=SANDBOXES, claim=claim, actor=WORKER, now=CLOCK.now()) for claim in first[::4]]
    answers = at_once([*acts, *[serve] * 4])
    assert lost(answers) == []
    served = [claim for claim in won(answers) if isinstance(claim, str) and claim]
    assert sorted(served) == sorted(served_in_order())
    assert len(set(served)) == len(served)
