"""The jobs of seed 002's own program scan the table: they must find sandboxes, all of them, and none of our other items."""

from __future__ import annotations

import pytest

from accessportal.kernel.clock import to_epoch
from accessportal.sandboxes import operations
from accessportal.sandboxes.states import NoneFree, RunKind
from tests.sandboxes import seed_examples as seed
from tests.sandboxes.conftest import OLGA, Upstream


@pytest.mark.usefixtures("asked_of_the_queue")
def test_scans_find_sandboxes_alone(upstream: Upstream) -> None:
    pool, rows = upstream.pool, seed.table_named("SandboxPool")
    upstream.fill(3)
    old = pool.take("track-old", key="a-key-of-its-own").sandbox
    upstream.later(3 * 3600)
    young, back = pool.take("track-young").sandbox, upstream.given_back("track-back")
    try:
        pool.take("track-too-late")
    except NoneFree:
        operations.order_run(kind=RunKind.CLEANUP, actor=OLGA, now=pool.clock.now())
    operations.count(clock=pool.clock)

    now = to_epoch(pool.clock.now())
    assert [item["sandbox_id"] for item in seed.scan_expired(rows, cutoff=now - 3600)] == [old.sandbox_id]
    assert [item["sandbox_id"] for item in seed.scan_pending(rows)] == [back.sandbox_id]
    lent = {item["sandbox_id"] for item in seed.scan_expired(rows, cutoff=now + 1)}
    assert lent == {old.sandbox_id, young.sandbox_id}
    # Nothing else that lies in the table is in one of the seed's indexes, or looks like a sandbox to a scan.
    others = [item for item in rows.scan()["Items"] if not item["PK"].startswith("SBX#")]
    assert len(others) > 5
    for item in others:
        assert not item.keys() & {"status", "allocated_to_track", "idempotency_key"}, item["PK"]
