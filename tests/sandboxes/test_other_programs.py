"""Rows that another program made anew, freed behind our back, or made unreadable: nothing is lent twice, and nothing hidden."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from accessportal.kernel.clock import from_epoch
from accessportal.kernel.errors import Unavailable
from accessportal.sandboxes import models, operations, queries
from accessportal.sandboxes.states import NoneFree, Sandbox, Status, Unreadable
from accessportal.sandboxes.store import pages, rows
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


def test_a_line_of_the_free_list_that_can_not_be_read_stops_no_take_and_is_named(upstream: Upstream) -> None:
    pool = upstream.pool
    newer, odd, absurd, good = upstream.fill(4)
    lined(newer, schema_version=99)
    lined(odd, fence="nonsense")
    lined(absurd, updated_at=10**17)

    first, second = pool.take("track-1").sandbox, pool.take("track-2").sandbox

    # Of the others one is lent by its row: its line says nonsense, and is ours to take away.
    assert [first.sandbox_id, second.sandbox_id] == [good.sandbox_id, absurd.sandbox_id]
    with pytest.raises(NoneFree):
        pool.take("track-3")
    named = {one.item.partition("SBX#")[2]: one.error for one in upstream.sync().failures}
    assert named.keys() == {newer.sandbox_id, odd.sandbox_id}
    assert "made by a newer version" in named[newer.sandbox_id]
    assert "can't be read" in named[odd.sandbox_id]


def lined(sandbox: Sandbox, **values: Any) -> None:
    """Another program sets attributes of the sandbox's line."""
    pk, sk = models.free_key(sandbox.sandbox_id)
    line = {"PK": pk, "SK": sk}
    table = seed.table_named("SandboxPool")
    table.put_item(Item={**table.get_item(Key=line)["Item"], **values})


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


# One attribute that makes no sense is enough: in no index, in the wrong one, or in the right one with the wrong type.
UNREADABLE: list[dict[str, Any]] = [
    {"status": "maintenance"},
    {"lab_duration_hours": "four"},
    {"fence": "one"},
    {"updated_at": 10**17},
    {"claims": "mine"},
]


@pytest.mark.parametrize("values", UNREADABLE, ids=str)
def test_a_free_one_that_cant_be_read_is_passed_over_and_makes_no_pool_unavailable(pool: Pool, values: dict[str, Any]) -> None:
    odd, *others = pool.fill(4)
    written(odd, **values)

    lent = {pool.take(f"track-{number}").sandbox.sandbox_id for number in range(3)}

    assert lent == {one.sandbox_id for one in others}
    for prefix in ("", "lab-"):
        with pytest.raises(NoneFree):
            pool.take("track-9", name_prefix=prefix)
    # Mended by hand, it is lent as before.
    written(odd, **{name: value for name, value in seed_values(odd).items() if name in values})
    assert pool.take("track-9").sandbox.sandbox_id == odd.sandbox_id


def seed_values(sandbox: Sandbox) -> dict[str, Any]:
    return {
        "status": "available",
        "lab_duration_hours": 4,
        "fence": 0,
        "updated_at": int(sandbox.updated_at.timestamp()),
        "claims": {},
    }


@pytest.mark.parametrize("values", UNREADABLE, ids=str)
def test_another_programs_allocation_that_cant_be_read_hides_no_sandbox_from_its_track_and_key(pool: Pool, values: dict[str, Any]) -> None:
    odd, other = pool.fill(2)
    written(
        odd, allocated_to_track="track-1", idempotency_key="track-1", allocated_at=int(pool.clock.now().timestamp()), status="allocated"
    )
    written(odd, **values)

    mine = pool.take("track-1")

    assert (mine.is_repeat, mine.sandbox.sandbox_id) == (False, other.sandbox_id)
    seen = [one for one in queries.list_of_track(track="track-1").items if isinstance(one, Sandbox)]
    assert [one.sandbox_id for one in seen] == [other.sandbox_id]


@pytest.mark.parametrize("values", UNREADABLE, ids=str)
def test_a_key_whose_own_sandbox_cant_be_read_gets_no_second_one(pool: Pool, values: dict[str, Any]) -> None:
    """Nobody knows whether that allocation still stands."""
    pool.fill(2)
    lent = pool.take().sandbox
    written(lent, **values)

    for act in (pool.take, lambda: pool.release(lent)):
        with pytest.raises(Unavailable) as caught:
            act()
        assert caught.value.code == "item_unreadable"
    assert len(pool.free_list()) == 1


@pytest.mark.parametrize("values", UNREADABLE, ids=str)
def test_an_allocation_is_adopted_though_its_key_stands_for_one_that_cant_be_read(pool: Pool, values: dict[str, Any]) -> None:
    pool.fill(2)
    lent = pool.take().sandbox
    written(lent, **values)
    (other,) = (one for one in queries.list_by_status(status=Status.AVAILABLE).items if isinstance(one, Sandbox))
    written(
        other, allocated_to_track="track-1", idempotency_key="track-1", allocated_at=int(pool.clock.now().timestamp()), status="allocated"
    )

    adopted = operations.mend(sandbox_id=other.sandbox_id, actor=OLGA, now=pool.clock.now())

    assert (adopted.fence, adopted.is_foreign) == (1, False)
    with pytest.raises(Unavailable):
        pool.take()


@pytest.mark.parametrize("values", UNREADABLE, ids=str)
def test_verify_names_what_cant_be_read_and_goes_on(pool: Pool, values: dict[str, Any]) -> None:
    odd, other = pool.fill(2)
    written(odd, **values)
    written(other, fence=7)

    verdict = queries.verify(receipts=[], slack_seconds=0)

    assert {(one.kind, one.sandbox_id) for one in verdict.problems} == {("unreadable", odd.sandbox_id), ("gap", other.sandbox_id)}
    assert verdict.sandboxes == 2


@pytest.mark.parametrize("meanwhile", ["allocated", "pending_deletion", "stale", "quarantined", "maintenance"])
@pytest.mark.parametrize("prefix", ["", "lab-"])
def test_one_that_another_program_frees_again_is_lent_at_once(pool: Pool, meanwhile: str, prefix: str) -> None:
    """The line that was left in the free list is gone by then, and the row shows no trace."""
    (one,) = pool.fill(1)
    written(one, status=meanwhile, allocated_to_track="outside", allocated_at=int(pool.clock.now().timestamp()))
    with pytest.raises(NoneFree):
        pool.take(name_prefix=prefix)
    written(one, status="available", allocated_at=0, updated_at=int(pool.clock.now().timestamp()))

    assert pool.take(name_prefix=prefix).sandbox.sandbox_id == one.sandbox_id


def test_a_none_reads_a_few_at_most_of_those_that_an_index_shows_late(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(30)
    late = queries.list_by_status(status=Status.AVAILABLE)
    for number in range(30):
        pool.take(f"track-{number}")
    read: list[str] = []
    look = rows.look

    def counted(sandbox_id: str) -> Sandbox | Unreadable | None:
        read.append(sandbox_id)
        return look(sandbox_id)

    monkeypatch.setattr(pages, "by_status", lambda *_, **__: late)
    monkeypatch.setattr(rows, "look", counted)

    with pytest.raises(NoneFree):
        pool.take("track-30")

    assert len(set(read)) == len(read) == 20


@pytest.mark.parametrize("values", UNREADABLE, ids=str)
def test_rows_that_cant_be_read_hide_no_expected_return(pool: Pool, values: dict[str, Any]) -> None:
    pool.fill(5)
    odd = [pool.take(f"track-{number}").sandbox for number in range(4)]
    pool.clock.advance(60)
    last = pool.take("track-9").sandbox
    for one in odd:
        written(one, **values)

    assert last.grace_ends_at is not None
    assert queries.next_return_at(now=pool.clock.now()) == last.grace_ends_at + timedelta(seconds=60)
    pool.release(last, "track-9")
    assert queries.next_return_at(now=pool.clock.now()) == pool.clock.now() + timedelta(seconds=60)


@pytest.mark.parametrize("status", ["allocated", "pending_deletion"])
def test_every_list_shows_the_deadline_that_another_programs_allocation_gets(pool: Pool, status: str) -> None:
    (one,) = pool.fill(1)
    now = int(pool.clock.now().timestamp())
    written(one, status=status, allocated_to_track="outside", idempotency_key="outside", allocated_at=now)

    seen = queries.get(sandbox_id=one.sandbox_id)

    assert seen.expires_at == from_epoch(now + 4 * 3600)
    assert queries.list_by_status(status=Status(status)).items == (seen,)
    assert queries.list_of_track(track="outside").items == (seen,)
