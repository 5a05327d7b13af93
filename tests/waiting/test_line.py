"""A line: first come, first served; one place for each claim; nobody skipped, nobody twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from accessportal.audit import queries as audit
from accessportal.kernel.actors import system
from accessportal.store.transactions import ConditionFailed, Overtaken, transact
from accessportal.waiting import operations, queries
from accessportal.waiting.models import WaitingItem
from accessportal.waiting.states import SANDBOXES, Place, Turn
from tests.conftest import FakeClock

pytestmark = pytest.mark.usefixtures("tables")
WORKER = system("worker")


def join(claim: str, clock: FakeClock, *, prefix: str = "", seconds: int = 3600, line: str = SANDBOXES) -> Place:
    now = clock.now()
    lapses_at = now + timedelta(hours=72)
    wants = {"name_prefix": prefix, "most_held": 1}
    return operations.join(line=line, claim=claim, wants=wants, duration_seconds=seconds, lapses_at=lapses_at, actor=WORKER, now=now)


def leave(claim: str, clock: FakeClock) -> Place | None:
    return operations.leave(line=SANDBOXES, claim=claim, actor=WORKER, now=clock.now())


def turn_of(name: str, clock: FakeClock) -> Turn | None:
    fits = lambda place: name.startswith(place.wants["name_prefix"])  # noqa: E731 - read as a word in the tests
    return queries.first_that_fits(line=SANDBOXES, fits=fits, now=clock.now())[1]


def serve(name: str, clock: FakeClock) -> str:
    turn = turn_of(name, clock)
    assert turn is not None
    transact(operations.served(turn, thing=name, actor=WORKER, now=clock.now()))
    return turn.place.claim


def claims() -> list[str]:
    return [place.claim for place in queries.places(SANDBOXES)]


def check_chain() -> None:
    line = queries.get_line(SANDBOXES)
    assert audit.check_head(line.entity, version=line.version, audit_head=line.audit_head) == []
    assert line.waiting == len(claims())


def test_who_comes_first_is_served_first(clock: FakeClock) -> None:
    numbers = [join(claim, clock).number for claim in ("a", "b", "c")]
    assert numbers == [1, 2, 3]
    standing = queries.find(line=SANDBOXES, claim="c")
    assert standing is not None
    assert (standing.before, standing.ahead) == (2, (3600, 3600))
    assert [serve("lab-1", clock) for _ in range(3)] == ["a", "b", "c"]
    assert turn_of("lab-1", clock) is None
    check_chain()
    events = audit.chain_of(queries.get_line(SANDBOXES).entity)
    assert [(event.action, event.subject, event.data["waiting"]) for event in events] == [
        ("line.joined", "a", 1),
        ("line.joined", "b", 2),
        ("line.joined", "c", 3),
        ("line.served", "a", 2),
        ("line.served", "b", 1),
        ("line.served", "c", 0),
    ]


def test_joining_again_is_the_same_place(clock: FakeClock) -> None:
    first = join("a", clock)
    clock.advance(60)
    assert join("a", clock) == first
    assert claims() == ["a"]
    check_chain()


def test_leaving_and_coming_back_is_a_new_place(clock: FakeClock) -> None:
    first = join("a", clock)
    join("b", clock)
    assert leave("a", clock) == first
    assert leave("a", clock) is None
    assert join("a", clock).number == 3
    assert claims() == ["b", "a"]
    check_chain()


def test_whoever_it_does_not_fit_keeps_their_place(clock: FakeClock) -> None:
    join("windows", clock, prefix="win-")
    join("any", clock)
    assert serve("lab-1", clock) == "any"
    assert turn_of("lab-2", clock) is None
    assert serve("win-1", clock) == "windows"
    check_chain()


def test_a_place_that_has_lapsed_is_passed_over(clock: FakeClock) -> None:
    join("a", clock)
    clock.advance(timedelta(hours=72).total_seconds())
    join("b", clock)
    assert serve("lab-1", clock) == "b"
    assert leave("a", clock) is not None
    check_chain()


def test_lines_know_nothing_of_each_other(clock: FakeClock) -> None:
    join("a", clock)
    join("a", clock, line="account")
    assert serve("lab-1", clock) == "a"
    assert queries.find(line="account", claim="a")
    assert queries.find(line=SANDBOXES, claim="a") is None


def test_a_turn_counts_no_more_once_the_line_has_moved(clock: FakeClock) -> None:
    join("a", clock)
    turn = turn_of("lab-1", clock)
    assert turn is not None
    join("b", clock)
    with pytest.raises(ConditionFailed):
        transact(operations.served(turn, thing="lab-1", actor=WORKER, now=clock.now()))
    assert claims() == ["a", "b"]
    check_chain()


def test_the_guard_holds_while_nobody_waits(clock: FakeClock) -> None:
    guard = queries.nobody_waits(SANDBOXES)
    transact([guard])
    join("a", clock)
    with pytest.raises(ConditionFailed):
        transact([guard])
    serve("lab-1", clock)
    transact([guard])


def test_a_guard_of_the_caller_keeps_out_who_is_not_wanted_any_more(clock: FakeClock) -> None:
    join("a", clock, line="account")
    unmet, now = queries.nobody_waits("account"), clock.now()
    with pytest.raises(ConditionFailed) as failed:
        operations.join(line=SANDBOXES, claim="b", wants={}, duration_seconds=60, lapses_at=now, guards=[unmet], actor=WORKER, now=now)
    assert failed.value.step is unmet
    assert claims() == []


def test_a_place_that_cannot_be_read_holds_up_nobody(clock: FakeClock) -> None:
    join("a", clock)
    join("b", clock)
    item = WaitingItem.get("LINE#sandbox", "000000000001")
    item.update([WaitingItem.claim.remove()])
    standing = queries.find(line=SANDBOXES, claim="b")
    assert standing is not None
    assert standing.before == 0
    assert serve("lab-1", clock) == "b"


def test_the_line_that_was_read_is_guarded(clock: FakeClock) -> None:
    for _ in range(2):
        guard = queries.has_not_moved(queries.get_line(SANDBOXES))
        transact([guard])
        join(f"{clock.now()}", clock)
        with pytest.raises(ConditionFailed):
            transact([guard])
        clock.advance(1)


def test_many_at_once_get_a_place_each(clock: FakeClock) -> None:
    wanted = [f"claim-{number % 12}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda claim: join(claim, clock), wanted))
    assert sorted(claims()) == sorted(set(wanted))
    assert [place.number for place in queries.places(SANDBOXES)] == list(range(1, 13))
    check_chain()


def test_two_workers_never_serve_one_place(clock: FakeClock) -> None:
    for number in range(8):
        join(f"claim-{number}", clock)
    served: list[str] = []

    def work(_: int) -> None:
        while turn := turn_of("lab-1", clock):
            try:
                transact(operations.served(turn, thing="lab-1", actor=WORKER, now=clock.now()))
            except (ConditionFailed, Overtaken):
                continue
            served.append(turn.place.claim)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert sorted(served) == [f"claim-{number}" for number in range(8)]
    check_chain()
