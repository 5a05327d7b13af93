"""A provider that answers wrongly, not at all, or slowly, against a pool with a sandbox in every stage of its life."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import requests

from accessportal.kernel.errors import Unavailable
from accessportal.sandboxes import queries
from accessportal.sandboxes.states import Sandbox, Status, SyncStopped
from tests.sandboxes.conftest import Upstream

POOL = 20
Fault = Callable[[Upstream], None]


def empty(upstream: Upstream) -> None:
    upstream.set(list_share=0)


def half(upstream: Upstream) -> None:
    upstream.set(list_share=0.5)


def doubled(upstream: Upstream) -> None:
    upstream.set(list_twice=1)


def failing(upstream: Upstream) -> None:
    upstream.set(fail_list=1, fail_get=1, fail_delete=1)


def timing_out(upstream: Upstream) -> None:
    def before(_call: str) -> None:
        raise requests.ReadTimeout("no byte within the time limit")

    upstream.adapter.before = before


def dying_amid_the_list(upstream: Upstream) -> None:
    """The first page comes, and every later one fails: half a list that would look like a whole one."""
    pages = 0

    def before(call: str) -> None:
        nonlocal pages
        pages += call == "list" or call.endswith(" list")
        if pages % 5 != 1:
            raise requests.ConnectionError("reset by peer")

    upstream.twin.settings.change({"page_size": 5})
    upstream.adapter.before = before


def slow(upstream: Upstream) -> None:
    """Each page takes nine seconds, and somebody borrows and gives back while the list is read."""
    upstream.twin.settings.change({"page_size": 5})
    upstream.set(latency_seconds=9)

    def before(_call: str) -> None:
        lent = upstream.pool.take("in-a-hurry").sandbox
        upstream.pool.release(lent, "in-a-hurry")

    upstream.adapter.before = before


def heal(upstream: Upstream) -> None:
    upstream.adapter.before = lambda _call: None
    upstream.twin.settings.change({"page_size": 100})
    upstream.set(list_share=1, list_twice=0, fail_list=0, fail_get=0, fail_delete=0, latency_seconds=0)


def borrowed(upstream: Upstream) -> tuple[Sandbox, Sandbox]:
    """One that is lent, and one that waits for its cleaning."""
    lent = upstream.pool.take("track-lent").sandbox
    return lent, upstream.given_back("track-back")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (empty, SyncStopped),
        (half, SyncStopped),
        (doubled, None),
        (failing, Unavailable),
        (timing_out, Unavailable),
        (dying_amid_the_list, Unavailable),
        (slow, None),
    ],
)
def test_look_after_look_nothing_is_lost_and_nothing_goes_stale(upstream: Upstream, fault: Fault, error: type[Exception] | None) -> None:
    upstream.fill(POOL)
    lent, _ = borrowed(upstream)
    upstream.later()
    stopped = []
    fault(upstream)
    for _ in range(4):
        try:
            upstream.sync()
        except (SyncStopped, Unavailable) as raised:
            stopped.append(raised)
        rows = upstream.pool.everything()
        assert len(rows) == POOL
        assert Status.STALE not in {row.status for row in rows}
        assert (upstream.pool.now_of(lent).track, upstream.pool.now_of(lent).fence) == ("track-lent", lent.fence)
        upstream.later()
    assert {type(one) for one in stopped} == ({error} if error else set())
    if error is SyncStopped:
        last = queries.last_sync()
        assert last is not None
        assert last.stopped, "the brake is shown"

    heal(upstream)
    upstream.later(60)
    upstream.sync()
    upstream.later()
    upstream.clean()
    upstream.pool.release(lent, "track-lent")
    upstream.clean()
    rows = upstream.pool.everything()
    assert {row.status for row in rows} == {Status.AVAILABLE}
    assert {row.missing_since for row in rows} == {None}
    assert len(upstream.pool.free_list()) == POOL
    upstream.pool.check_whole()


def test_twice_in_one_page_and_once_more_on_the_next_is_one_sandbox(upstream: Upstream) -> None:
    upstream.twin.settings.change({"page_size": 3})
    upstream.set(list_twice=1)
    for number in range(7):
        upstream.twin.create(f"ext-{number:03}", name=f"lab-{number:03}")

    assert len(upstream.sync().new) == 7
    assert upstream.sync().new == ()
    assert len(upstream.pool.everything()) == 7
    assert len(upstream.pool.free_list()) == 7


def test_what_is_truly_gone_goes_stale_at_its_second_look_while_the_rest_is_lent(upstream: Upstream) -> None:
    rows = upstream.fill(POOL)
    gone = rows[:3]
    for one in gone:
        upstream.twin.lose(one.external_id)
    upstream.later()
    assert set(upstream.sync().missing) == {one.sandbox_id for one in gone}
    assert {upstream.pool.status_of(one) for one in gone} == {Status.AVAILABLE}
    # A bad look in between is no sighting.
    upstream.later()
    failing(upstream)
    with pytest.raises(Unavailable):
        upstream.sync()
    assert {upstream.pool.status_of(one) for one in gone} == {Status.AVAILABLE}
    heal(upstream)
    upstream.later(60)
    assert set(upstream.sync().going_stale) == {one.sandbox_id for one in gone}
    lent = [upstream.pool.take(f"track-{number}").sandbox for number in range(POOL - len(gone))]
    assert {one.sandbox_id for one in lent} == {one.sandbox_id for one in rows[3:]}
