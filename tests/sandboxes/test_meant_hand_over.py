"""An operator takes back or quarantines what was meant: with a fence nobody is hit who got the sandbox since."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from accessportal.kernel.clock import to_epoch
from accessportal.kernel.errors import Conflict
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import Sandbox, Status
from tests.sandboxes import seed_examples as seed
from tests.sandboxes.cleaning_by_hand import free_again
from tests.sandboxes.conftest import OLGA, Pool
from tests.sandboxes.test_races import right_before_the_write

Change = Callable[..., object]
CHANGES = pytest.mark.parametrize("change", [operations.release_by_operator, operations.quarantine])


def pass_on(pool: Pool, lent: Sandbox, track: str = "track-2") -> Sandbox:
    """Its holder gives it back, it is cleaned, and ``track`` takes it."""
    pool.release(lent, lent.track)
    free_again(pool.now_of(lent), now=pool.clock.now())
    return pool.take(track).sandbox


def lend_elsewhere(pool: Pool, sandbox: Sandbox, track: str) -> Sandbox:
    """As the seed's own programs do: without a fence."""
    pool.clock.advance(60)
    seed.table_named("SandboxPool").update_item(
        Key={"PK": f"SBX#{sandbox.sandbox_id}", "SK": "META"},
        UpdateExpression="SET #s = :a, allocated_to_track = :t, allocated_at = :n, idempotency_key = :t, updated_at = :n",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":a": "allocated", ":t": track, ":n": to_epoch(pool.clock.now())},
    )
    return queries.get(sandbox_id=sandbox.sandbox_id)


@CHANGES
def test_who_got_it_since_keeps_it(pool: Pool, change: Change) -> None:
    pool.fill(1)
    first = pool.take().sandbox
    second = pass_on(pool, first)

    with pytest.raises(Conflict, match=r"Hand-over 1 of .* was meant, but it is at hand-over 2 now, lent to track-2") as caught:
        change(sandbox_id=first.sandbox_id, reason="Track 1 mines coins.", fence=first.fence, actor=OLGA, now=pool.clock.now())

    assert (caught.value.code, caught.value.present) == ("sandbox_moved_on", second)
    assert pool.now_of(second) == second
    change(sandbox_id=first.sandbox_id, reason="Track 2, too.", fence=second.fence, actor=OLGA, now=pool.clock.now())
    assert pool.status_of(second) in {Status.PENDING_DELETION, Status.QUARANTINED}
    pool.check_whole()


@CHANGES
def test_who_gets_it_in_the_last_moment_keeps_it(pool: Pool, change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(1)
    first = pool.take().sandbox

    with right_before_the_write(monkeypatch, lambda: pass_on(pool, first)), pytest.raises(Conflict) as caught:
        change(sandbox_id=first.sandbox_id, reason="Track 1 mines coins.", fence=first.fence, actor=OLGA, now=pool.clock.now())

    assert caught.value.code == "sandbox_moved_on"
    assert pool.now_of(first).track == "track-2"
    pool.check_whole()


@CHANGES
def test_whom_another_program_lent_it_since_keeps_it(pool: Pool, change: Change) -> None:
    """Its row has the old fence until a program of ours takes note of it."""
    (only,) = pool.fill(1)
    lent = pool.take().sandbox
    pool.release(lent)
    free_again(pool.now_of(lent), now=pool.clock.now())
    elsewhere = lend_elsewhere(pool, only, "track-9")
    assert (elsewhere.fence, elsewhere.fence_held) == (1, 2)

    with pytest.raises(Conflict, match="lent to track-9"):
        change(sandbox_id=only.sandbox_id, reason="Track 1 mines coins.", fence=lent.fence, actor=OLGA, now=pool.clock.now())

    assert pool.status_of(only) is Status.ALLOCATED
    change(sandbox_id=only.sandbox_id, reason="Track 9, too.", fence=elsewhere.fence_held, actor=OLGA, now=pool.clock.now())
    assert pool.status_of(only) is not Status.ALLOCATED


def test_a_free_sandbox_that_was_taken_since_is_not_put_in_quarantine(pool: Pool) -> None:
    (free,) = pool.fill(1)
    lent = pool.take().sandbox

    with pytest.raises(Conflict) as caught:
        operations.quarantine(sandbox_id=free.sandbox_id, reason="Smoke.", fence=free.fence, actor=OLGA, now=pool.clock.now())

    assert caught.value.code == "sandbox_moved_on"
    assert pool.now_of(free) == lent


def test_one_that_was_given_back_since_can_still_be_put_in_quarantine(pool: Pool) -> None:
    pool.fill(1)
    lent = pool.take().sandbox
    pool.release(lent)

    operations.quarantine(sandbox_id=lent.sandbox_id, reason="Smoke.", fence=lent.fence, actor=OLGA, now=pool.clock.now())

    assert pool.status_of(lent) is Status.QUARANTINED
