"""How often DynamoDB is asked, and what makes so few requests enough: whole lines, keys that are closed unread, one head of the hold."""

from __future__ import annotations

import random
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import botocore.endpoint
import pytest

from accessportal.audit import operations as audit
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.kernel.pages import every
from accessportal.sandboxes import models, operations, queries
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.operations import taking
from accessportal.sandboxes.states import Sandbox, Status
from accessportal.sandboxes.store import keys, rows
from accessportal.store.reading import get_together
from accessportal.store.restores import HEAD, RestoreItem
from tests.sandboxes import seed_examples as seed
from tests.sandboxes.cleaning_by_hand import free_again
from tests.sandboxes.conftest import CLIENT, OLGA, Pool

pytestmark = pytest.mark.usefixtures("quick_look")


@contextmanager
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    send, asked = botocore.endpoint.Endpoint.make_request, list[str]()

    def make_request(self: Any, operation_model: Any, request_dict: Any) -> Any:
        asked.append(operation_model.name)
        return send(self, operation_model, request_dict)

    with monkeypatch.context() as patch:
        patch.setattr(botocore.endpoint.Endpoint, "make_request", make_request)
        yield asked


def take(pool: Pool, track: str, key: str, *, most_held: int | None = None) -> Sandbox:
    return operations.take(key=key, track=track, most_held=most_held, actor=CLIENT, now=pool.clock.now()).sandbox


@pytest.mark.parametrize("most_held", [None, 9])
def test_a_take_is_three_requests_and_a_release_two(pool: Pool, monkeypatch: pytest.MonkeyPatch, most_held: int | None) -> None:
    pool.fill(40)
    # The first look of this table makes the head.
    take(pool, "track-0", "first")

    with requests(monkeypatch) as asked:
        lent = take(pool, "track-1", "one", most_held=most_held)
    # A random place behind the last line of its shard is followed by a look at the first.
    assert [name for name in asked if name != "Query"] == ["BatchGetItem", "TransactWriteItems"]
    assert asked.count("Query") <= 2
    assert pool.now_of(lent) == lent

    with requests(monkeypatch) as asked:
        pool.release(lent)
    assert asked == ["GetItem", "TransactWriteItems"]
    pool.check_whole()


def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """All lines lie in one partition, and a quick look begins at the first."""
    monkeypatch.setattr(models, "free_shard_of", lambda _: 3)
    monkeypatch.setattr(random, "choice", lambda _: 3)
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=0))


def test_the_lines_that_a_take_leaves_are_tried_first_by_the_next(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    everywhere(monkeypatch)
    pool.fill(5)
    first = take(pool, "track-0", "first")

    with requests(monkeypatch) as asked:
        lent = [take(pool, "track-1", f"key-{number}") for number in range(3)]
    assert asked == ["BatchGetItem", "TransactWriteItems"] * 3

    assert len({one.sandbox_id for one in (first, *lent)}) == 4
    assert all(pool.now_of(one) == one for one in lent)
    pool.check_whole()


@pytest.mark.parametrize("since", ["lent", "free again", "in quarantine", "lent outside", "gone"])
def test_a_line_that_was_kept_is_judged_as_the_row_is_now(pool: Pool, monkeypatch: pytest.MonkeyPatch, since: str) -> None:
    everywhere(monkeypatch)
    pool.fill(4)
    take(pool, "track-0", "first")
    kept, *others = list(taking._kept)
    monkeypatch.setattr(taking, "_kept", deque([kept]))
    match since:
        case "lent" | "free again":
            other = take(pool, "track-2", "second")
            assert other.sandbox_id == kept.sandbox_id
            if since == "free again":
                pool.release(other, "track-2")
                free_again(pool.now_of(other), now=pool.clock.now())
            taking._kept.extend([kept, *others])
        case "in quarantine":
            operations.quarantine(sandbox_id=kept.sandbox_id, reason="odd", actor=OLGA, now=pool.clock.now())
        case "lent outside":
            seed.allocate(seed.table_named("SandboxPool"), kept.sandbox_id, track="outside", now=int(pool.clock.now().timestamp()))
        case "gone":
            pk, sk = models.sandbox_key(kept.sandbox_id)
            seed.table_named("SandboxPool").delete_item(Key={"PK": pk, "SK": sk})

    lent = take(pool, "track-1", "mine")

    assert (lent.sandbox_id == kept.sandbox_id) == (since == "free again")
    assert lent.fence == (2 if since == "free again" else 1)
    assert pool.now_of(lent) == lent
    assert kept not in taking._kept
    assert queries.verify(receipts=[], slack_seconds=0).problems == ()


def test_what_a_client_holds_is_judged_in_one_read(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.fill(12)
    for number in range(8):
        take(pool, "track-1", f"k-{number}", most_held=8)

    with requests(monkeypatch) as asked, pytest.raises(Conflict, match="8 sandboxes"):
        take(pool, "track-1", "one-more", most_held=8)

    assert asked == ["BatchGetItem", "BatchGetItem"]


def test_a_line_of_the_version_before_is_followed_by_its_row(pool: Pool) -> None:
    (one,) = pool.fill(1)
    pk, sk = models.free_key(one.sandbox_id)
    line = {"PK": pk, "SK": sk, "sandbox_id": one.sandbox_id, "name": one.name, "version": one.version}
    seed.table_named("SandboxPool").put_item(Item=line)

    lent = pool.take().sandbox

    assert (lent.fence, pool.now_of(lent)) == (1, lent)
    pool.check_whole()
    assert queries.verify(receipts=[], slack_seconds=0).problems == ()


def test_a_free_row_that_another_program_has_written_to_is_judged_by_itself(pool: Pool) -> None:
    (one,) = pool.fill(1)
    pool.clock.advance(5)
    seed.table_named("SandboxPool").update_item(
        Key={"PK": f"SBX#{one.sandbox_id}", "SK": "META"},
        UpdateExpression="SET lab_duration_hours = :h, updated_at = :n",
        ExpressionAttributeValues={":h": 1, ":n": int(pool.clock.now().timestamp())},
    )

    lent = pool.take().sandbox

    assert lent.expires_at == pool.clock.now() + timedelta(hours=1)
    pool.check_whole()


@pytest.mark.parametrize("state", ["gone", "closed", "another's"])
def test_a_release_closes_no_key_that_does_not_stand_for_it(pool: Pool, state: str) -> None:
    pool.fill(2)
    lent = pool.take().sandbox
    table, key = seed.table_named("SandboxPool"), dict(zip(("PK", "SK"), models.idempotency_item_key(lent.key), strict=True))
    values: dict[str, Any] = {"closed": {"state": "closed"}, "another's": {"sandbox_id": "other"}}.get(state, {})
    for name, value in values.items():
        table.update_item(
            Key=key, UpdateExpression="SET #n = :v", ExpressionAttributeNames={"#n": name}, ExpressionAttributeValues={":v": value}
        )
    if state == "gone":
        table.delete_item(Key=key)
    before = keys.get_key(lent.key)

    pool.release(lent)

    assert pool.status_of(lent) is Status.PENDING_DELETION
    assert keys.get_key(lent.key) == before
    pool.check_whole()


@pytest.mark.usefixtures("tables")
def test_a_restore_that_the_version_before_began_holds_grants_too(pool: Pool) -> None:
    pool.fill(1)
    now = pool.clock.now()
    restored = audit.begin_restore(restored_to=now - timedelta(hours=1), actor=OLGA, now=now)
    seed.table_named("Restores").delete_item(Key={"name": "head", "epoch": 0})

    for _ in range(2):
        with pytest.raises(Unavailable, match="nothing is granted"):
            pool.take()
    (head,) = get_together([HEAD])
    assert isinstance(head, RestoreItem)
    assert head.held_epoch == restored.epoch

    audit.confirm_restore(restored, counts={}, actor=OLGA, now=now)
    assert pool.take().sandbox.fence == 1


@pytest.mark.usefixtures("tables")
def test_a_restore_that_the_version_before_began_beside_this_one_is_held_when_told_again_and_confirmed(pool: Pool) -> None:
    """The head was made before, and the version before knows none."""
    pool.fill(1)
    now = pool.clock.now()
    moment = now - timedelta(hours=1)
    restored = audit.begin_restore(restored_to=moment, actor=OLGA, now=now)
    key = {"name": "head", "epoch": 0}
    seed.table_named("Restores").update_item(Key=key, UpdateExpression="SET held_epoch = :v", ExpressionAttributeValues={":v": 0})

    assert audit.begin_restore(restored_to=moment, actor=OLGA, now=now) == restored
    with pytest.raises(Unavailable, match="nothing is granted"):
        pool.take()

    seed.table_named("Restores").update_item(Key=key, UpdateExpression="SET held_epoch = :v", ExpressionAttributeValues={":v": 0})
    assert not audit.confirm_restore(restored, counts={}, actor=OLGA, now=now).is_held
    assert pool.take().sandbox.fence == 1


def test_items_read_together_come_in_the_order_asked_however_many(pool: Pool) -> None:
    made = pool.fill(3)
    wanted = [(SandboxItem, *models.sandbox_key(one.sandbox_id)) for one in made]
    missing = [(SandboxItem, *models.sandbox_key(f"none-{number}")) for number in range(120)]

    found = get_together([wanted[2], *missing, wanted[0], wanted[2], (SandboxItem, "", "META")])

    assert [item and item.sandbox_id for item in found] == [made[2].sandbox_id, *[None] * 120, made[0].sandbox_id, made[2].sandbox_id, None]
    assert get_together([]) == []
    assert rows.look_all([one.sandbox_id for one in made]) == {one.sandbox_id: one for one in made}
    assert len(list(every(lambda cursor: queries.list_by_status(status=Status.AVAILABLE, cursor=cursor)))) == 3
