"""Two who act at the same moment, in forced order: the other one comes right before the first one's write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import botocore.endpoint
import pytest

from accessportal.kernel.errors import NotAllowed
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import NoneFree, Status
from tests.sandboxes import seed_examples as seed
from tests.sandboxes.conftest import OLGA, Pool, Upstream


@contextmanager
def right_before_the_write(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> Iterator[list[Any]]:
    """``act`` runs once, when the first transaction is about to be sent; what it returned is in the list."""
    send, done = botocore.endpoint.Endpoint.make_request, list[Any]()

    def make_request(self: Any, operation_model: Any, request_dict: Any) -> Any:
        if operation_model.name == "TransactWriteItems" and not done:
            done.append(None)
            done[0] = act()
        return send(self, operation_model, request_dict)

    with monkeypatch.context() as patch:
        patch.setattr(botocore.endpoint.Endpoint, "make_request", make_request)
        yield done
    assert done, "nothing was written"


def test_take_against_take_of_the_last_one_but_one(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(2)
    with right_before_the_write(monkeypatch, lambda: pool.take("track-2")) as others:
        mine = pool.take("track-1")

    assert mine.sandbox.sandbox_id != others[0].sandbox.sandbox_id
    pool.check_whole()


def test_take_against_take_with_the_same_key(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(2)
    with right_before_the_write(monkeypatch, lambda: pool.take("track-1")) as others:
        mine = pool.take("track-1")

    assert mine.is_repeat
    assert mine.sandbox == others[0].sandbox
    pool.check_whole()


def test_release_against_expire_and_expire_against_release(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(2)
    first, second = pool.take("track-1").sandbox, pool.take("track-2").sandbox
    pool.clock.advance(4 * 3600 + 299)

    def expire_at_the_end_of_grace() -> object:
        pool.clock.advance(1)
        return pool.expire()

    with right_before_the_write(monkeypatch, expire_at_the_end_of_grace), pytest.raises(NotAllowed) as caught:
        pool.release(first, "track-1")
    assert caught.value.code == "ALLOCATION_EXPIRED"
    assert pool.status_of(second) is Status.PENDING_DELETION

    pool.add("ext-new")
    third = pool.take("track-3").sandbox
    pool.clock.advance(4 * 3600 + 300)

    def release_just_in_time() -> object:
        # Its clock is a little behind.
        assert third.grace_ends_at is not None
        moment = third.grace_ends_at - timedelta(seconds=1)
        return operations.release(sandbox_id=third.sandbox_id, track="track-3", actor=OLGA, now=moment)

    with right_before_the_write(monkeypatch, release_just_in_time):
        report = pool.expire()
    assert report.expired == ()
    assert report.failures == ()
    assert pool.now_of(third).last_released_fence == third.fence
    assert pool.release(third, "track-3").released_at < pool.clock.now()
    pool.check_whole()


def test_release_against_quarantine(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(1)
    lent = pool.take().sandbox

    def quarantine() -> object:
        return operations.quarantine(sandbox_id=lent.sandbox_id, reason="Smoke.", actor=OLGA, now=pool.clock.now())

    with right_before_the_write(monkeypatch, quarantine), pytest.raises(NotAllowed):
        pool.release(lent)
    assert pool.status_of(lent) is Status.QUARANTINED
    pool.check_whole()


def test_take_against_a_sandbox_that_goes_stale(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    missing, *_ = upstream.fill(2)
    upstream.twin.lose(missing.external_id)
    upstream.later()
    upstream.sync()
    upstream.later()

    with right_before_the_write(monkeypatch, upstream.sync):
        taken = upstream.pool.take("track-1").sandbox

    assert taken.sandbox_id != missing.sandbox_id
    assert upstream.pool.status_of(missing) is Status.STALE
    upstream.pool.check_whole()


def test_a_sandbox_that_goes_stale_against_take(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    missing, *_ = upstream.fill(2)
    upstream.twin.lose(missing.external_id)
    upstream.later()
    upstream.sync()
    upstream.later()

    with right_before_the_write(monkeypatch, lambda: upstream.pool.take("track-1", name_prefix=missing.name)):
        upstream.sync()

    assert upstream.pool.status_of(missing) is Status.ALLOCATED
    upstream.pool.check_whole()


def test_take_against_clean(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is being cleaned while somebody finds the pool empty: it is lent the moment it is free, never before."""
    upstream.fill(1)
    given_back = upstream.given_back()
    with right_before_the_write(monkeypatch, lambda: refused(upstream)) as others:
        assert upstream.clean().cleaned == (given_back.sandbox_id,)

    assert others == [True]
    assert upstream.pool.take("track-2").sandbox.fence == 2


def refused(upstream: Upstream) -> bool:
    try:
        upstream.pool.take("track-2")
    except NoneFree:
        return True
    return False


def test_a_take_against_the_seeds_own_allocation(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    (only,) = pool.fill(1)
    rows = seed.table_named("SandboxPool")

    def allocate_outside() -> object:
        return rows.update_item(
            Key={"PK": f"SBX#{only.sandbox_id}", "SK": "META"},
            UpdateExpression="SET #s = :a, allocated_to_track = :t, allocated_at = :n, idempotency_key = :t, updated_at = :n",
            ConditionExpression="attribute_exists(PK) AND #s = :f",
            ExpressionAttributeNames={"#s": "status"},
            ExpressionAttributeValues={":a": "allocated", ":f": "available", ":t": "track-9", ":n": int(pool.clock.now().timestamp())},
        )

    with right_before_the_write(monkeypatch, allocate_outside), pytest.raises(NoneFree):
        pool.take("track-1")

    assert queries.get(sandbox_id=only.sandbox_id).track == "track-9"
    assert pool.take("track-9").sandbox.sandbox_id == only.sandbox_id
    pool.check_whole()


@pytest.mark.parametrize("faster", ["take", "release", "expire"])
def test_a_take_after_the_deadline_against_what_else_ends_the_allocation(pool: Pool, monkeypatch: pytest.MonkeyPatch, faster: str) -> None:
    pool.fill(3)
    old = pool.take("track-1").sandbox
    pool.clock.advance(4 * 3600 + 299)

    def expire() -> object:
        pool.clock.advance(1)
        return pool.expire()

    others = {"take": lambda: pool.take("track-1"), "release": lambda: pool.release(old, "track-1"), "expire": expire}
    with right_before_the_write(monkeypatch, others[faster]) as done:
        mine = pool.take("track-1")

    assert mine.sandbox.sandbox_id != old.sandbox_id
    assert mine.is_repeat is (faster == "take")
    assert faster != "take" or done[0].sandbox == mine.sandbox
    ends = [event for event in queries.history(sandbox_id=old.sandbox_id) if event.action in {"sandbox.released", "sandbox.expired"}]
    assert len(ends) == 1
    pool.check_whole()
