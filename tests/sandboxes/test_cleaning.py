"""Cleaning at the provider: what goes wrong there, and who else acts at the same moment."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from botocore.exceptions import ReadTimeoutError

from accessportal.sandboxes import operations, policy, queries
from accessportal.sandboxes.states import Status
from accessportal.twin.protocol import Answer
from accessportal.twin.sandbox_provider import PREFIX
from tests.fixtures_twin import when
from tests.sandboxes.conftest import OLGA, Upstream


class Odd:
    """Stands before the twin: it answers some calls (``DELETE``, ``GET list``, ``GET one``) by itself, and may know no generations."""

    def __init__(self, upstream: Upstream, statuses: Mapping[str, int], *, tells_generations: bool = True) -> None:
        self.twin = upstream.twin
        self.statuses = statuses
        self.tells_generations = tells_generations

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Answer:
        call = method if method == "DELETE" else f"GET {'one' if path.removeprefix(PREFIX).strip('/') else 'list'}"
        if call in self.statuses:
            return Answer(self.statuses[call], {}, b"not now")
        answer = self.twin.answer(method, path, query, headers, body)
        if self.tells_generations or method != "GET" or answer.status != 200:
            return answer
        told = json.loads(answer.body)
        for row in told.get("sandboxes", [told]):
            row.pop("generation", None)
        return Answer(answer.status, answer.headers, json.dumps(told).encode())


def test_a_list_that_the_store_does_not_answer_for_stops_nothing_else(upstream: Upstream) -> None:
    """What jobs of other programs left, and what a clock that was wrong put off, are lists beside that of what is due."""
    upstream.fill(2)
    given_back = upstream.given_back()
    upstream.pool.take("track-9")
    lost: list[int] = []

    def lose_second(_parameters: object) -> None:
        lost.append(0)
        if len(lost) == 2:
            raise ReadTimeoutError(endpoint_url="x")

    with when("Query", lose_second):
        cleaned = upstream.clean()
    lost.clear()
    upstream.pool.clock.advance(5 * 3600)
    with when("Query", lose_second):
        expired = upstream.pool.expire()

    assert cleaned.cleaned == (given_back.sandbox_id,)
    assert ["ReadTimeoutError" in failure.error for failure in cleaned.failures] == [True]
    assert len(expired.expired) == 1
    assert ["ReadTimeoutError" in failure.error for failure in expired.failures] == [True]


def test_a_sandbox_that_was_given_back_is_deleted_looked_at_and_free_again(upstream: Upstream) -> None:
    upstream.fill(1)
    given_back = upstream.given_back()

    report = upstream.clean()

    assert report.cleaned == (given_back.sandbox_id,)
    assert upstream.twin.deletions == ["ext-000"]
    after = upstream.pool.now_of(given_back)
    assert (after.status, after.fence, after.track, after.allocated_at) == (Status.AVAILABLE, 1, "", None)
    upstream.pool.check_whole()
    assert upstream.pool.take("track-2").sandbox.fence == 2


def test_one_that_does_not_come_back_leaves_the_pool_and_its_history_stays(upstream: Upstream) -> None:
    upstream.fill(2)
    given_back = upstream.given_back()
    released = upstream.pool.release(given_back)
    upstream.set(recycle=0)

    assert upstream.clean().removed == (given_back.sandbox_id,)

    assert len(upstream.pool.everything()) == 1
    assert [event.action for event in queries.history(sandbox_id=given_back.sandbox_id)][-1] == "sandbox.removed"
    upstream.later()
    assert upstream.pool.release(given_back) == released
    # It is listed once more: nobody knows in which state, so it is cleaned before it is lent.
    upstream.twin.create(given_back.external_id, name="lab-again")
    upstream.sync()
    assert upstream.pool.status_of(given_back) is Status.PENDING_DELETION
    upstream.set(recycle=1)
    upstream.clean()
    assert (upstream.pool.now_of(given_back).fence, upstream.pool.status_of(given_back)) == (1, Status.AVAILABLE)
    upstream.pool.check_whole()


def test_a_slow_reset_is_waited_for_and_deleted_once(upstream: Upstream) -> None:
    upstream.fill(1)
    given_back = upstream.given_back()
    upstream.set(reset_seconds=90)

    assert upstream.clean().waiting == (given_back.sandbox_id,)
    assert upstream.clean().waiting == ()
    upstream.later(60)
    assert upstream.clean().waiting == (given_back.sandbox_id,)
    upstream.later(60)
    assert upstream.clean().cleaned == (given_back.sandbox_id,)
    assert upstream.twin.deletions == ["ext-000"]


def test_a_lost_answer_is_no_second_life(upstream: Upstream) -> None:
    upstream.fill(1)
    given_back = upstream.given_back()
    upstream.set(lose_answer=1)
    upstream.clean()
    assert upstream.pool.now_of(given_back).deletion_retry_count == 1

    upstream.set(lose_answer=0)
    upstream.later(10)
    assert upstream.clean().cleaned == (given_back.sandbox_id,)


def test_five_failures_and_then_success_need_nobody(upstream: Upstream) -> None:
    upstream.fill(1)
    given_back = upstream.given_back()
    upstream.set(fail_delete=1)
    for failures in range(1, 6):
        assert len(upstream.clean().failures) == 1
        row = upstream.pool.now_of(given_back)
        assert row.deletion_retry_count == failures
        assert row.due_at is not None
        assert (row.due_at - upstream.pool.clock.now()).total_seconds() == policy.retry_gap_seconds(failures)
        assert upstream.clean().failures == ()
        upstream.later(policy.retry_gap_seconds(failures))

    upstream.set(fail_delete=0)
    assert upstream.clean().cleaned == (given_back.sandbox_id,)
    assert upstream.pool.now_of(given_back).deletion_retry_count == 0
    assert upstream.pool.now_of(given_back).clean_error == ""


def test_what_fails_for_ever_goes_to_quarantine_and_delays_nobody(upstream: Upstream) -> None:
    upstream.fill(3)
    bad = upstream.given_back()
    upstream.set(fail_delete=1)
    for failures in range(1, policy.MOST_FAILURES):
        upstream.clean()
        upstream.later(policy.retry_gap_seconds(failures))
        upstream.set(fail_delete=0)
        good = upstream.given_back("track-2")
        upstream.later(0)
        upstream.adapter.before = lambda call: upstream.set(fail_delete=1 if call == f"DELETE {bad.external_id}" else 0)
        report = upstream.clean()
        assert good.sandbox_id in report.cleaned
        if bad.sandbox_id in report.quarantined:
            break
        upstream.later(policy.retry_gap_seconds(policy.MOST_FAILURES))

    row = upstream.pool.now_of(bad)
    assert row.status is Status.QUARANTINED
    assert "500" in row.quarantine_reason
    upstream.pool.check_whole()
    upstream.adapter.before = lambda _call: upstream.set(fail_delete=0)
    operations.restore(sandbox_id=bad.sandbox_id, actor=OLGA, now=upstream.pool.clock.now())
    assert bad.sandbox_id in upstream.clean().cleaned


def test_a_provider_that_is_down_puts_nothing_into_quarantine(upstream: Upstream) -> None:
    rows = upstream.fill(10)
    for number in range(10):
        upstream.given_back(f"track-{number}")
    upstream.set(fail_list=1, fail_get=1, fail_delete=1)
    for _ in range(30):
        report = upstream.clean()
        assert report.stopped
        assert report.failures == ()
        upstream.later(60)

    assert {row.status for row in upstream.pool.everything()} == {Status.PENDING_DELETION}
    upstream.set(fail_list=0, fail_get=0, fail_delete=0)
    assert set(upstream.clean().cleaned) == {row.sandbox_id for row in rows}


def test_a_run_does_so_many_and_the_next_goes_on(upstream: Upstream) -> None:
    upstream.fill(5)
    for number in range(5):
        upstream.given_back(f"track-{number}")

    assert [len(upstream.clean(limit=2).cleaned) for _ in range(4)] == [2, 2, 1, 0]


def test_two_cleaners_on_one_sandbox(upstream: Upstream) -> None:
    upstream.fill(1)
    upstream.given_back()
    others: list[object] = []

    def meanwhile(call: str) -> None:
        if call.startswith("DELETE"):
            upstream.adapter.before = lambda _call: None
            others.append(upstream.clean())

    upstream.adapter.before = meanwhile
    report = upstream.clean()

    assert len(report.cleaned) == 1
    assert [other.cleaned for other in others] == [()]  # type: ignore[attr-defined]
    assert upstream.twin.deletions == ["ext-000"]
    upstream.pool.check_whole()


def test_a_cleaner_whose_hold_is_over_changes_nothing_and_deletes_nothing(upstream: Upstream) -> None:
    """It stands still before its deletion; another one cleans, and the sandbox is lent: the late call must not reach it."""
    upstream.fill(1)
    given_back = upstream.given_back()

    def meanwhile(call: str) -> None:
        if call.startswith("GET"):
            upstream.adapter.after = lambda _call: None
            upstream.later(policy.HOLD_SECONDS + 1)
            assert upstream.clean().cleaned == (given_back.sandbox_id,)
            upstream.pool.take("track-2")

    upstream.adapter.after = meanwhile
    report = upstream.clean()

    assert (report.cleaned, report.removed, report.failures) == ((), (), ())
    assert upstream.twin.deletions == ["ext-000"]
    assert upstream.pool.now_of(given_back).track == "track-2"
    upstream.pool.check_whole()


def test_a_deletion_that_arrives_late_names_a_life_that_is_over(upstream: Upstream) -> None:
    """The worst case: the call itself is held up on the way, until after the next hand-over."""
    upstream.fill(1)
    given_back = upstream.given_back()

    def meanwhile(call: str) -> None:
        if call.startswith("DELETE"):
            upstream.adapter.before = lambda _call: None
            upstream.later(policy.HOLD_SECONDS + 1)
            upstream.clean()
            upstream.pool.take("track-2")

    upstream.adapter.before = meanwhile
    upstream.clean()

    assert upstream.twin.deletions == ["ext-000"]
    assert upstream.pool.now_of(given_back).track == "track-2"


@pytest.mark.parametrize("call", ["GET", "DELETE"])
def test_clean_against_quarantine(upstream: Upstream, call: str) -> None:
    upstream.fill(1)
    given_back = upstream.given_back()

    def meanwhile(made: str) -> None:
        if made.startswith(call):
            upstream.adapter.before = lambda _call: None
            operations.quarantine(sandbox_id=given_back.sandbox_id, reason="Smoke.", actor=OLGA, now=upstream.pool.clock.now())

    upstream.adapter.before = meanwhile
    assert upstream.clean().cleaned == ()
    assert upstream.pool.status_of(given_back) is Status.QUARANTINED
    upstream.pool.check_whole()


def test_an_odd_entry_in_the_list_is_no_trouble_of_the_provider(upstream: Upstream) -> None:
    """The failure of a sandbox stays its own; the others are not delayed."""
    upstream.fill(2)
    bad, good = upstream.given_back(), upstream.given_back("track-2")
    upstream.twin.create("ext-odd", name="odd\nname")
    upstream.adapter.before = lambda call: upstream.set(fail_delete=1 if call == f"DELETE {bad.external_id}" else 0)

    report = upstream.clean()

    assert (report.stopped, report.cleaned) == ("", (good.sandbox_id,))
    assert [failure.item for failure in report.failures] == [bad.sandbox_id]


@pytest.mark.parametrize("tells_generations", [True, False])
@pytest.mark.parametrize("status", [404, 409, 410, 412])
def test_a_deletion_that_was_refused_is_no_cleaning(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch, status: int, tells_generations: bool
) -> None:
    """Busy, or a gateway's word: the life that was to end is still shown, so it must be asked again, soon."""
    upstream.fill(2)
    given_back = upstream.given_back()
    odd = Odd(upstream, {"DELETE": status}, tells_generations=tells_generations)
    monkeypatch.setattr(upstream.adapter, "twin", odd)

    report = upstream.clean()

    assert (report.cleaned, report.removed, report.waiting) == ((), (), ())
    assert [failure.item for failure in report.failures] == [given_back.sandbox_id]
    assert str(status) in upstream.pool.now_of(given_back).clean_error
    odd.statuses = {}
    upstream.later(policy.retry_gap_seconds(1))
    assert upstream.clean().cleaned == (given_back.sandbox_id,)
    assert upstream.twin.deletions == [given_back.external_id]


@pytest.mark.parametrize(
    "statuses",
    [
        *({"DELETE": status} for status in (403, 409, 429, 503)),
        *({"GET one": status} for status in (204, 429, 500)),
        {"DELETE": 403, "GET list": 403},
    ],
    ids=str,
)
def test_what_fails_for_every_sandbox_is_the_providers_failure(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch, statuses: dict[str, int]
) -> None:
    """Its list is read well all the time, but in the last case. Some are given back before, some while it fails."""
    rows = upstream.fill(8)
    for number in range(6):
        upstream.given_back(f"track-{number}")
    odd = Odd(upstream, statuses)
    monkeypatch.setattr(upstream.adapter, "twin", odd)
    for minute in range(20):
        if minute in {1, 2}:
            upstream.given_back(f"track-{5 + minute}")
        calls = upstream.adapter.calls.count("DELETE")
        report = upstream.clean()
        assert report.stopped
        assert (report.failures, report.quarantined) == ((), ())
        assert upstream.adapter.calls.count("DELETE") - calls <= 5
        upstream.later(60)

    waiting = upstream.pool.everything()
    assert {row.status for row in waiting} == {Status.PENDING_DELETION}
    assert {row.deletion_retry_count for row in waiting} == {0}
    odd.statuses = {}
    assert set(upstream.clean().cleaned) == {row.sandbox_id for row in rows}


def test_where_sandboxes_come_back_one_by_one_an_outage_costs_at_most_one_a_day(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fails alone: the first can't be told from one that is bad by itself, the others can."""
    upstream.fill(4)
    monkeypatch.setattr(upstream.adapter, "twin", Odd(upstream, {"DELETE": 403}))
    for number in range(4):
        upstream.given_back(f"track-{number}")
        for _ in range(17):
            upstream.clean()
            upstream.later(60)

    statuses = [row.status for row in upstream.pool.everything()]
    assert (statuses.count(Status.QUARANTINED), statuses.count(Status.PENDING_DELETION)) == (1, 3)


def test_bad_ones_among_good_ones_go_to_quarantine_and_delay_nobody(upstream: Upstream) -> None:
    """Also when all that wait at first are bad."""
    upstream.fill(5)
    bad = {upstream.given_back(f"track-{number}").external_id for number in range(3)}
    upstream.adapter.before = lambda call: upstream.set(fail_delete=1 if call.removeprefix("DELETE ") in bad else 0)
    for _ in range(30):
        upstream.clean()
        upstream.later(10)
        good = upstream.given_back("track-good")
        upstream.later(10)
        assert good.sandbox_id in upstream.clean().cleaned
        upstream.later(40)

    assert {row.external_id for row in upstream.pool.everything() if row.status is Status.QUARANTINED} == bad


@pytest.mark.parametrize("status", [403, 429, 503])
def test_a_provider_that_does_a_few_at_a_time_does_all_in_the_end(upstream: Upstream, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """It says so with whatever status it likes: what fails after the last success is nobody's own failure."""
    upstream.fill(10)
    for number in range(10):
        upstream.given_back(f"track-{number}")
    odd = Odd(upstream, {})
    monkeypatch.setattr(upstream.adapter, "twin", odd)
    done = 0

    def count(call: str) -> None:
        nonlocal done
        if call.startswith("DELETE"):
            done += 1
            odd.statuses = {"DELETE": status} if done > 2 else {}

    upstream.adapter.before = count
    for _ in range(5):
        done = 0
        report = upstream.clean()
        assert (len(report.cleaned), report.failures) == (2, ())
        upstream.later(60)

    assert {row.status for row in upstream.pool.everything()} == {Status.AVAILABLE}


@pytest.mark.parametrize("code", [404, 410])
@pytest.mark.parametrize("calls", [("DELETE", "GET one", "GET list"), ("DELETE", "GET one"), ("GET one",)], ids=" ".join)
def test_nothing_leaves_the_pool_by_the_word_of_a_gateway(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch, calls: tuple[str, ...], code: int
) -> None:
    """A wrong address is answered with 404 as well. Without the list, or against it, no sandbox is gone."""
    rows = upstream.fill(4)
    given_back = [upstream.given_back(f"track-{number}") for number in range(3)]
    odd = Odd(upstream, dict.fromkeys(calls, code))
    monkeypatch.setattr(upstream.adapter, "twin", odd)
    for _ in range(12):
        report = upstream.clean()
        assert (report.removed, report.failures) == ((), ())
        assert bool(report.stopped) is ("GET list" in calls)
        upstream.later(60)
    assert len(upstream.pool.everything()) == len(rows)

    odd.statuses = {}
    assert set(upstream.clean().cleaned) == {one.sandbox_id for one in given_back}
    assert set(upstream.twin.deletions) == {one.external_id for one in given_back}


def test_one_that_is_listed_a_while_longer_leaves_the_pool_later(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream.fill(3)
    given_back = [upstream.given_back("track-1"), upstream.given_back("track-2")]
    monkeypatch.setattr(upstream.adapter, "twin", Odd(upstream, {"GET one": 404}))
    assert set(upstream.clean().waiting) == {one.sandbox_id for one in given_back}

    for one in given_back:
        upstream.twin.lose(one.external_id)
    upstream.later(policy.LOOK_AGAIN_SECONDS)
    lists = upstream.adapter.calls.count("GET list")
    assert set(upstream.clean().removed) == {one.sandbox_id for one in given_back}
    assert upstream.adapter.calls.count("GET list") == lists + 1


def test_one_that_waits_for_its_reset_is_no_failing_one(upstream: Upstream) -> None:
    upstream.fill(2)
    slow = upstream.given_back()
    upstream.set(fail_delete=1)
    upstream.clean()
    upstream.set(fail_delete=0, reset_seconds=600)
    upstream.later(10)
    assert upstream.clean().waiting == (slow.sandbox_id,)
    assert upstream.pool.now_of(slow).clean_error == ""

    bad = upstream.given_back("track-2")
    upstream.set(fail_delete=1)
    report = upstream.clean()

    assert ([failure.item for failure in report.failures], report.stopped) == ([bad.sandbox_id], "")
