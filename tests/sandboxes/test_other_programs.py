"""Rows that another program made anew, freed behind our back, or made unreadable: nothing is lent twice, and nothing hidden."""

from __future__ import annotations

from typing import Any

import pytest

from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import Sandbox, Status
from tests.sandboxes import seed_examples as seed
from tests.sandboxes.cleaning_by_hand import free_again
from tests.sandboxes.conftest import OLGA, Pool, Upstream


def made_anew(pool: Pool, sandbox: Sandbox, status: str = "available", **more: Any) -> None:
    """Another program puts the seed's row over ours, or in the place of one that has left the pool."""
    now = int(pool.clock.now().timestamp())
    seed.insert_available(seed.table_named("SandboxPool"), sandbox.sandbox_id, now=now)
    written(sandbox, name=sandbox.name, external_id=sandbox.external_id, status=status, **more)


def written(sandbox: Sandbox, **values: Any) -> None:
    """Another program sets attributes of the row."""
    seed.table_named("SandboxPool").update_item(
        Key={"PK": f"SBX#{sandbox.sandbox_id}", "SK": "META"},
        UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
        ExpressionAttributeNames={f"#{name}": name for name in values},
        ExpressionAttributeValues={f":{name}": value for name, value in values.items()},
    )


def test_a_key_does_not_stand_for_the_next_holder_of_a_row_that_was_made_anew(pool: Pool) -> None:
    (one,) = pool.fill(1)
    pool.take("track-1", key="one")
    made_anew(pool, one)
    other = pool.take("track-2", key="two").sandbox
    assert (other.sandbox_id, other.fence) == (one.sandbox_id, 2)
    pool.add("ext-more")

    mine = pool.take("track-1", key="one")

    assert (mine.is_repeat, mine.sandbox.track) == (False, "track-1")
    assert mine.sandbox.sandbox_id != other.sandbox_id
    assert pool.take("track-2", key="two").sandbox == other
    pool.check_whole()
    assert queries.verify(receipts=[], slack_seconds=0).problems == ()


def test_a_key_stands_for_no_other_holder_whatever_the_fence_says(pool: Pool) -> None:
    (one,) = pool.fill(1)
    lent = pool.take("track-1").sandbox
    assert lent.allocated_at is not None
    for values in ({"allocated_to_track": "track-2"}, {"idempotency_key": "track-2", "allocated_to_track": "track-1"}):
        written(one, **values)
        assert queries.find_by_key(key="track-1") is None


def test_a_free_one_that_was_made_anew_is_lent_from_the_free_list_with_the_next_fence(pool: Pool) -> None:
    (one,) = pool.fill(1)
    pool.release(pool.take().sandbox)
    free_again(pool.now_of(one), now=pool.clock.now())
    made_anew(pool, one)
    assert pool.free_list() == {one.sandbox_id}

    assert pool.take().sandbox.fence == 2
    pool.check_whole()


@pytest.mark.parametrize("was", ["lent", "free", "gone"])
@pytest.mark.parametrize("status", ["available", "allocated", "pending_deletion", "stale", "quarantined"])
def test_the_fence_of_a_row_that_was_made_anew_goes_on(upstream: Upstream, was: str, status: str) -> None:
    pool = upstream.pool
    (one,) = upstream.fill(1)
    for _ in range(2):
        pool.release(pool.take().sandbox)
        upstream.clean()
    pool.take()
    if was != "lent":
        pool.release(one)
    if was == "free":
        upstream.clean()
    if was == "gone":
        upstream.twin.lose(one.external_id)
        assert upstream.clean().removed == (one.sandbox_id,)
        upstream.twin.create(one.external_id, name=one.name)
    lent = {"allocated_to_track": "outside", "idempotency_key": "outside", "allocated_at": int(pool.clock.now().timestamp())}

    made_anew(pool, one, status, **(lent if status in {"allocated", "pending_deletion"} else {}))
    assert queries.verify(receipts=[], slack_seconds=0).problems == ()
    upstream.later(4 * 3600 + 301)
    upstream.sync()
    if status == "quarantined":
        operations.restore(sandbox_id=one.sandbox_id, actor=OLGA, now=pool.clock.now())
    pool.expire()
    upstream.clean()

    newer = pool.take().sandbox
    assert newer.fence == (5 if lent and status in {"allocated", "pending_deletion"} else 4)
    pool.release(newer, fence=1)
    assert pool.status_of(newer) is Status.ALLOCATED
    pool.check_whole()
    assert queries.verify(receipts=[], slack_seconds=0).problems == ()


@pytest.mark.parametrize("status", ["available", "stale"])
def test_quarantine_of_a_row_that_was_made_anew_keeps_its_fence(pool: Pool, status: str) -> None:
    (one,) = pool.fill(1)
    pool.take()
    made_anew(pool, one, status)

    operations.quarantine(sandbox_id=one.sandbox_id, reason="Smoke.", actor=OLGA, now=pool.clock.now())

    assert pool.now_of(one).fence == 1
    assert queries.verify(receipts=[], slack_seconds=0).problems == ()
