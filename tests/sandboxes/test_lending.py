"""Taking and giving back."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import Due, NoneFree, Sandbox, Status
from accessportal.sandboxes.store import pages
from tests.sandboxes.cleaning_by_hand import free_again
from tests.sandboxes.conftest import CLIENT, MALLORY, OLGA, Pool


def test_a_track_gets_a_free_sandbox_and_gives_it_back(pool: Pool) -> None:
    pool.fill(3)

    taken = pool.take()

    lent = taken.sandbox
    assert not taken.is_repeat
    assert (lent.status, lent.track, lent.fence) == (Status.ALLOCATED, "track-1", 1)
    assert lent.allocated_at is not None
    assert lent.expires_at == lent.allocated_at + timedelta(hours=4)
    assert pool.now_of(lent) == lent
    pool.check_whole()

    pool.clock.advance(60)
    released = pool.release(lent)
    assert (released.sandbox_id, released.fence, released.released_at) == (lent.sandbox_id, 1, pool.clock.now())
    assert (pool.now_of(lent).status, pool.now_of(lent).due) == (Status.PENDING_DELETION, Due.CLEAN)
    pool.check_whole()


def test_the_same_request_again_gets_the_same_answer(pool: Pool) -> None:
    pool.fill(3)
    first = pool.take()
    pool.clock.advance(30)

    again = pool.take()

    assert again.is_repeat
    assert again.sandbox == first.sandbox
    with pytest.raises(Conflict) as caught:
        pool.take(seconds=60)
    assert caught.value.code == "IDEMPOTENCY_MISMATCH"


def test_each_track_has_keys_of_its_own(pool: Pool) -> None:
    """Seed 002 asks its index for the track: no row of another's says it."""
    pool.fill(3)
    others = pool.take("track-2", key="track-1")
    mine = pool.take("track-1")

    assert not mine.is_repeat
    assert pool.take("track-1") == dataclasses.replace(mine, is_repeat=True)
    assert pool.take("track-2", key="track-1") == dataclasses.replace(others, is_repeat=True)
    assert [one.sandbox_id for one in pages.of_key("track-1", cursor=None, limit=9).items] == [mine.sandbox.sandbox_id]
    assert others.sandbox.sent_key == "track-1"
    pool.release(others.sandbox, "track-2")
    assert not pool.take("track-2", key="track-1").is_repeat
    pool.check_whole()


def test_a_key_is_closed_by_the_release(pool: Pool) -> None:
    pool.fill(2)
    first = pool.take()
    pool.release(first.sandbox)

    second = pool.take()

    assert not second.is_repeat
    assert second.sandbox.sandbox_id != first.sandbox.sandbox_id
    assert pool.take() == type(second)(second.sandbox, is_repeat=True)


def test_one_asks_for_less_time_than_the_lab_has_but_never_for_more(pool: Pool) -> None:
    pool.fill(2, hours=1)
    now = pool.clock.now()

    assert pool.take("short", seconds=60).sandbox.expires_at == now + timedelta(seconds=60)
    assert pool.take("long", seconds=90_000).sandbox.expires_at == now + timedelta(hours=1)


def test_a_name_prefix_is_kept_to(pool: Pool) -> None:
    pool.fill(5)
    wanted = pool.add("ext-gpu", name="gpu-1")

    assert pool.take("track-1", name_prefix="gpu-").sandbox.sandbox_id == wanted.sandbox_id
    with pytest.raises(NoneFree, match="gpu-"):
        pool.take("track-2", name_prefix="gpu-")


def test_an_empty_pool_says_when_the_next_one_is_expected(pool: Pool) -> None:
    with pytest.raises(NoneFree) as caught:
        pool.take()
    assert caught.value.next_return_at is None

    pool.fill(1)
    lent = pool.take("track-2").sandbox
    with pytest.raises(NoneFree) as caught:
        pool.take()
    assert lent.grace_ends_at is not None
    assert caught.value.next_return_at == lent.grace_ends_at + timedelta(seconds=60)

    pool.release(lent, "track-2")
    with pytest.raises(NoneFree) as caught:
        pool.take()
    assert caught.value.next_return_at == pool.clock.now() + timedelta(seconds=60)
    assert caught.value.code == "NO_SANDBOXES_AVAILABLE"


def test_only_the_owner_gives_back(pool: Pool) -> None:
    pool.fill(1)
    lent = pool.take().sandbox

    with pytest.raises(NotAllowed) as caught:
        pool.release(lent, "track-2")
    assert caught.value.code == "NOT_SANDBOX_OWNER"
    with pytest.raises(NotFound):
        operations.release(sandbox_id="nowhere", track="track-1", actor=CLIENT, now=pool.clock.now())
    assert pool.status_of(lent) is Status.ALLOCATED


def test_a_repeated_release_answers_as_the_first_even_when_the_sandbox_has_moved_on(pool: Pool) -> None:
    pool.fill(1)
    lent = pool.take().sandbox
    first = pool.release(lent)
    pool.clock.advance(100)
    assert pool.release(lent) == first
    assert pool.release(lent, fence=1) == first

    free_again(pool.now_of(lent), now=pool.clock.now())
    assert pool.release(lent) == first
    pool.take("track-2")
    assert pool.release(lent) == first
    with pytest.raises(NotAllowed):
        pool.release(lent, "track-3")


def test_a_repeated_release_answers_as_the_first_when_others_have_held_and_given_back_the_sandbox_since(pool: Pool) -> None:
    pool.fill(1)
    lent = pool.take().sandbox
    first = pool.release(lent, fence=1)
    for track in ("track-2", "track-3"):
        free_again(pool.now_of(lent), now=pool.clock.now())
        pool.clock.advance(100)
        pool.release(pool.take(track).sandbox, track)
    free_again(pool.now_of(lent), now=pool.clock.now())
    pool.take("track-4")

    assert pool.release(lent, fence=1) == first
    assert pool.release(lent) == first
    for track, fence in (("track-1", 2), ("track-1", 9), ("mallory", 1), ("mallory", None)):
        with pytest.raises(NotAllowed, match=r"lent") as caught:
            pool.release(lent, track, fence=fence)
        assert caught.value.code == "NOT_SANDBOX_OWNER"
    assert pool.now_of(lent).track == "track-4"


def test_with_its_fence_a_late_release_does_not_end_a_newer_allocation(pool: Pool) -> None:
    pool.fill(1)
    lent = pool.take().sandbox
    first = pool.release(lent, fence=1)
    free_again(pool.now_of(lent), now=pool.clock.now())
    newer = pool.take().sandbox
    assert newer.fence == 2

    assert pool.release(lent, fence=1) == first
    assert pool.status_of(newer) is Status.ALLOCATED
    with pytest.raises(NotAllowed):
        pool.release(lent, "track-1", fence=7)


def test_release_works_until_the_end_of_grace_and_expiry_begins_there(pool: Pool) -> None:
    pool.fill(2)
    punctual, late = pool.take("track-1").sandbox, pool.take("track-2").sandbox
    pool.clock.advance(4 * 3600 + 299)
    assert pool.expire().expired == ()
    pool.release(punctual, "track-1")

    pool.clock.advance(1)
    with pytest.raises(NotAllowed) as caught:
        pool.release(late, "track-2")
    assert caught.value.code == "ALLOCATION_EXPIRED"
    assert pool.expire().expired == (late.sandbox_id,)
    assert pool.expire().expired == ()
    with pytest.raises(NotAllowed) as caught:
        pool.release(late, "track-2")
    assert caught.value.code == "ALLOCATION_EXPIRED"
    pool.check_whole()


def test_a_deadline_counts_before_any_job_has_come_by(pool: Pool) -> None:
    pool.fill(2)
    old = pool.take().sandbox
    pool.clock.advance(4 * 3600 + 300)

    again = pool.take()

    assert not again.is_repeat
    assert again.sandbox.sandbox_id != old.sandbox_id
    assert pool.status_of(old) is Status.PENDING_DELETION


def test_expiry_closes_the_key(pool: Pool) -> None:
    pool.fill(2)
    old = pool.take().sandbox
    pool.clock.advance(4 * 3600 + 300)
    pool.expire()

    assert pool.take().sandbox.sandbox_id != old.sandbox_id


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"key": "x" * 257}, "key"),
        ({"track": "a\nb", "key": "k"}, "track"),
        ({"name_prefix": "\0"}, "name_prefix"),
        ({"seconds": 0}, "duration"),
    ],
)
def test_bad_input_names_the_field(pool: Pool, arguments: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        pool.take(**arguments)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_operators_take_a_sandbox_out_and_bring_it_back(pool: Pool) -> None:
    pool.fill(2)
    lent = pool.take().sandbox
    now = pool.clock.now()

    with pytest.raises(NotAllowed):
        operations.quarantine(sandbox_id=lent.sandbox_id, reason="Smoke", actor=MALLORY, now=now)
    operations.quarantine(sandbox_id=lent.sandbox_id, reason="Smoke.", actor=OLGA, now=now)
    assert pool.status_of(lent) is Status.QUARANTINED
    assert "Smoke" in queries.explain(sandbox_id=lent.sandbox_id, now=now)
    assert not pool.take().is_repeat
    pool.check_whole()

    operations.restore(sandbox_id=lent.sandbox_id, actor=OLGA, now=now)
    assert pool.now_of(lent).due is Due.CLEAN
    with pytest.raises(Conflict):
        operations.restore(sandbox_id=lent.sandbox_id, actor=OLGA, now=now)


def test_a_free_sandbox_in_quarantine_is_not_lent(pool: Pool) -> None:
    (free,) = pool.fill(1)
    operations.quarantine(sandbox_id=free.sandbox_id, reason="Smoke", actor=OLGA, now=pool.clock.now())

    with pytest.raises(NoneFree):
        pool.take()
    pool.check_whole()


def test_an_operator_ends_an_allocation_and_its_owner_is_answered_as_after_a_release(pool: Pool) -> None:
    pool.fill(1)
    lent = pool.take().sandbox
    with pytest.raises(InvalidRequest):
        operations.release_by_operator(sandbox_id=lent.sandbox_id, reason=" ", actor=OLGA, now=pool.clock.now())

    released = operations.release_by_operator(sandbox_id=lent.sandbox_id, reason="Course moved", actor=OLGA, now=pool.clock.now())

    assert pool.release(lent) == released
    with pytest.raises(Conflict):
        operations.release_by_operator(sandbox_id=lent.sandbox_id, reason="Again", actor=OLGA, now=pool.clock.now())


def test_a_sandbox_is_added_once(pool: Pool) -> None:
    pool.add("ext-1")

    with pytest.raises(Conflict):
        pool.add("ext-1")
    pool.check_whole()


def ended_by(pool: Pool, way: str, lent: Sandbox) -> None:
    now = pool.clock.now()
    if way == "expiry":
        pool.clock.advance(4 * 3600 + 300)
        pool.expire()
    elif way == "quarantine":
        operations.quarantine(sandbox_id=lent.sandbox_id, reason="Smoke.", actor=OLGA, now=now)
    elif way == "cleaned":
        pool.clock.advance(4 * 3600 + 300)
        pool.expire()
        free_again(pool.now_of(lent), now=now)
    elif way == "failed cleaning":
        pool.clock.advance(4 * 3600 + 300)
        pool.expire()
        operations.quarantine(sandbox_id=lent.sandbox_id, reason="Cleaning failed.", actor=OLGA, now=now)
    else:
        assert way == "lent on"
        pool.clock.advance(4 * 3600 + 300)
        pool.expire()
        free_again(pool.now_of(lent), now=now)
        pool.take("track-9")


@pytest.mark.parametrize("others", [[], ["track-2"], ["track-1"]], ids=str)
@pytest.mark.parametrize(
    ("way", "code"),
    [
        ("expiry", "ALLOCATION_EXPIRED"),
        ("cleaned", "ALLOCATION_EXPIRED"),
        ("failed cleaning", "ALLOCATION_EXPIRED"),
        ("lent on", "ALLOCATION_EXPIRED"),
        ("quarantine", "NOT_SANDBOX_OWNER"),
    ],
)
def test_a_release_that_comes_too_late_is_not_answered_with_an_older_one(pool: Pool, others: list[str], way: str, code: str) -> None:
    pool.fill(1)
    first = pool.release(pool.take("track-1").sandbox, "track-1")
    for track in [*others, "track-1"]:
        free_again(pool.now_of(pool.everything()[0]), now=pool.clock.now())
        lent = pool.take(track).sandbox
        if len(others) and lent.fence == 2:
            pool.release(lent, track)
    ended_by(pool, way, lent)

    for fence in (None, lent.fence):
        with pytest.raises(NotAllowed) as caught:
            pool.release(lent, fence=fence)
        assert caught.value.code == code
    # With its fence, the older one is still answered as the first time.
    assert pool.release(lent, fence=1) == first


def test_a_release_is_still_known_when_cleaning_failed_and_others_held_it_since(pool: Pool) -> None:
    pool.fill(1)
    lent = pool.take().sandbox
    first = pool.release(lent)
    now = pool.clock.now()
    operations.quarantine(sandbox_id=lent.sandbox_id, reason="Cleaning failed.", actor=OLGA, now=now)
    assert pool.release(lent) == first
    operations.restore(sandbox_id=lent.sandbox_id, actor=OLGA, now=now)
    free_again(pool.now_of(lent), now=now)
    pool.release(pool.take("track-2").sandbox, "track-2")

    assert pool.release(lent) == first


@pytest.mark.parametrize("prefix", ["", "lab-"])
@pytest.mark.parametrize("late", [0, 1, 299])
def test_a_take_after_the_deadline_is_a_new_one_and_the_release_works_to_the_end_of_grace(pool: Pool, late: int, prefix: str) -> None:
    pool.fill(2)
    old = pool.take().sandbox
    pool.clock.advance(4 * 3600 - 1)
    assert pool.take().is_repeat
    pool.clock.advance(1 + late)

    anew = pool.take(name_prefix=prefix)

    assert (anew.is_repeat, anew.sandbox.sandbox_id == old.sandbox_id) == (False, False)
    assert anew.sandbox.expires_at == pool.clock.now().replace(microsecond=0) + timedelta(hours=4)
    assert pool.take(name_prefix=prefix).sandbox == anew.sandbox
    assert pool.status_of(old) is Status.PENDING_DELETION
    released = pool.release(old, fence=old.fence)
    assert (released.fence, released.released_at) == (old.fence, pool.clock.now().replace(microsecond=0))
    pool.clock.advance(300)
    assert pool.release(old) == released
    assert pool.status_of(anew.sandbox) is Status.ALLOCATED
    pool.check_whole()
    assert queries.verify(receipts=[], slack_seconds=0).problems == ()


def test_another_tracks_take_ends_nothing_before_the_end_of_grace(pool: Pool) -> None:
    pool.fill(2)
    old = pool.take("track-1").sandbox
    pool.clock.advance(4 * 3600 + 299)

    assert not pool.take("track-2", key="track-1").is_repeat
    assert pool.status_of(old) is Status.ALLOCATED

    pool.clock.advance(1)
    with pytest.raises(NotAllowed) as refused:
        pool.release(old)
    assert refused.value.code == "ALLOCATION_EXPIRED"


def test_a_track_without_keys_whose_time_is_over_waits_for_the_next_sandbox_like_others(pool: Pool) -> None:
    pool.fill(1)
    old = pool.take().sandbox
    pool.clock.advance(4 * 3600)

    with pytest.raises(NoneFree) as caught:
        pool.take()

    assert caught.value.next_return_at == pool.clock.now() + timedelta(seconds=60)
    free_again(pool.now_of(old), now=pool.clock.now())
    assert pool.take().sandbox.fence == 2
