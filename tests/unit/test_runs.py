"""Runs over many items: one that fails is named and hinders no other."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from accessportal.kernel.brakes import brake
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.kernel.pages import Unreadable
from accessportal.kernel.runs import Failure, Report, Run, each
from tests.crashing import Killed


def raising(error: BaseException) -> None:
    raise error


def test_each_item_is_done_by_itself() -> None:
    run, done = Run(), list[str]()

    run.unit("lost", lambda: raising(Conflict("Somebody was first.", code="overtaken")))
    run.unit("poisoned", lambda: raising(ValueError("no number")))
    run.unit("away", lambda: raising(Unavailable("The store does not answer.", code="store_unavailable")))
    run.pass_over(Unreadable("Sandboxes", "s-1", "no status"))
    run.unit("well", lambda: done.append("well"))

    assert done == ["well"]
    assert [failure.item for failure in run.failed] == ["poisoned", "away", "s-1"]
    assert [failure.error for failure in run.failed][:2] == ["ValueError: no number", "The store does not answer."]


def test_a_failure_is_told_once_however_often_it_came() -> None:
    run = Run()

    for _ in range(3):
        run.unit("poisoned", lambda: raising(ValueError("no number")))

    assert run.failed == (Failure("poisoned", "ValueError: no number"),)


def test_the_end_of_a_process_is_no_failure_of_an_item() -> None:
    run = Run()

    with pytest.raises(Killed):
        run.unit("at hand", lambda: raising(Killed()))

    assert run.failed == ()


@dataclass(frozen=True, slots=True)
class Swept(Report):
    gone: tuple[str, ...]
    seen: int
    where: str = "here"
    is_whole: bool = True


def test_a_report_counts_numbers_and_lists() -> None:
    report = Swept(("a", "b"), 7, failures=(Failure("c", "no"),))

    assert report.counts == {"gone": 2, "seen": 7, "failed": 1}
    assert not report.is_ok
    assert Swept((), 0).is_ok
    assert not Swept((), 0, stopped="The list is empty.").is_ok


@pytest.mark.parametrize("workers", [1, 4])
def test_each_is_done_in_so_many_threads(workers: int) -> None:
    names = set[str]()

    each(range(20), lambda _: names.add(threading.current_thread().name), workers=workers, name="sweep")

    assert all(name.startswith("sweep") for name in names) == (workers > 1)


def test_what_one_raises_in_a_thread_is_raised_in_the_end() -> None:
    done = list[int]()

    with pytest.raises(Killed):
        each(range(3), lambda number: done.append(number) if number else raising(Killed()), workers=2, name="sweep")

    assert sorted(done) == [1, 2]


def test_a_handful_may_always_go_and_more_only_as_a_share() -> None:
    def held(going: int, known: int, share: float = 0.2) -> str:
        return brake(going, known, share, would="rows would go", remedy="Look at them")

    assert [held(5, 5), held(20, 100), held(21, 100, 1.0)] == ["", "", ""]
    assert held(21, 100).startswith("21 of 100 rows would go, more than the share of 20% that may go at once. Look at them, then run")
