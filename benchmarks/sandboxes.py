"""What the sandbox pool costs in DynamoDB, at 200 and at 100,000 sandboxes, on DynamoDB Local:

    python tools/dynamodb_local.py python -m benchmarks.sandboxes

Exit code 1 when a cost grows with the pool.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import os
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import boto3
from botocore.config import Config

from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.sandboxes import models, operations, queries
from accessportal.sandboxes.states import NoneFree, Sandbox, Taken
from accessportal.store.base import StoreSettings, configure, current_settings, registered_models
from accessportal.store.cursors import configure_cursors
from accessportal.store.tables import ensure_table
from accessportal.twin.sandbox_provider import SandboxProviderTwin
from accessportal.twin.settings import TwinSettings
from accessportal.upstream.provider import UpstreamSandbox
from benchmarks import meter
from benchmarks.installation import REGION
from benchmarks.meter import Measured, measured

CLOCK = SystemClock()
BENCH = system("bench")
_TIMES = 15
_DUE = 10
_BATCH = 25
_ALLOWED_GROWTH = 1.1
# Of a hundred sandboxes; none of the lent ones is due, and none of those to be cleaned.
_FREE_SHARE = 60
Item = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=200, help="sandboxes in the pool at first (default: %(default)s)")
    parser.add_argument("--large", type=int, default=100_000, help="sandboxes in the pool then (default: %(default)s)")
    options = parser.parse_args()
    meter.install()
    os.environ.update(AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench")
    configure(StoreSettings(table_prefix=f"bench-{uuid.uuid4().hex[:8]}-", region=REGION, read_timeout_seconds=60))
    configure_cursors("bench")
    for model in registered_models():
        ensure_table(model, clock=CLOCK)
    patterns = _patterns()
    found: dict[int, dict[str, Measured]] = {}
    filled = 0
    for size in (options.small, options.large):
        began = time.monotonic()
        _fill(patterns, range(filled, size))
        print(f"{size:,} sandboxes in the pool; filling took {time.monotonic() - began:.0f} s", flush=True)
        filled, found[size] = size, dict(_measure_all())
    print(f"\nThe pool at {options.small:,} and {options.large:,} sandboxes: round trips, units, milliseconds (medians)\n")
    problems = meter.show_growth(found[options.small], found[options.large], most=_ALLOWED_GROWTH)
    for problem in problems:
        print(f"NOT GOOD ENOUGH: {problem}")
    return 1 if problems else 0


class _Provider:
    """Everything is there and ready again at once; what is measured is DynamoDB."""

    def __init__(self) -> None:
        self._twin = SandboxProviderTwin(clock=CLOCK, settings=TwinSettings())

    def list_sandboxes(self) -> Iterator[tuple[UpstreamSandbox, ...]]:
        yield ()

    def get_sandbox(self, external_id: str) -> UpstreamSandbox | None:
        made = self._twin.create(external_id, name=external_id)
        return UpstreamSandbox(external_id, external_id, is_ready=True, lab_duration_hours=4, generation=str(made.generation))

    def delete_sandbox(self, external_id: str, *, generation: str = "") -> None:
        self._twin.answer("DELETE", f"/twin/provider/sandboxes/{external_id}", "", {}, b"")


def _measure_all() -> Iterator[tuple[str, Measured]]:
    keys = [str(uuid.uuid4()) for _ in range(_TIMES)]
    lent: list[Sandbox] = []
    yield "take", measured([lambda key=key: lent.append(_take(key).sandbox) for key in keys])  # type: ignore[misc]
    yield "take, the same key again", measured([lambda key=key: _take(key) for key in keys])  # type: ignore[misc]
    yield "get", measured([lambda one=one: queries.get(sandbox_id=one.sandbox_id) for one in lent])  # type: ignore[misc]
    yield "list of a track", measured([lambda: queries.list_of_track(track="bench")] * _TIMES)
    yield "release", measured([lambda one=one: _release(one) for one in lent])  # type: ignore[misc]
    yield "release again", measured([lambda one=one: _release(one) for one in lent])  # type: ignore[misc]
    yield f"clean run, {_TIMES} due", measured([_clean])
    yield "clean run, nothing due", measured([_clean] * _TIMES)
    yield "expire run, nothing due", measured([_expire] * _TIMES)
    overdue = [_take(str(uuid.uuid4()), seconds=1).sandbox for _ in range(_DUE)]
    _Later.seconds = 400.0
    try:
        yield f"expire run, {_DUE} due", measured([lambda: _expired(len(overdue))])
        _clean()
    finally:
        _Later.seconds = 0.0
    yield "next return", measured([lambda: queries.next_return_at(now=CLOCK.now())] * _TIMES)


class _Later:
    """The clock of the expire and clean runs; moved forward so that a short allocation is over."""

    seconds = 0.0

    def now(self) -> datetime:
        return CLOCK.now() + timedelta(seconds=self.seconds)

    def sleep(self, seconds: float) -> None:
        CLOCK.sleep(seconds)


def _take(key: str, *, seconds: int | None = None) -> Taken:
    try:
        return operations.take(key=key, track="bench", duration_seconds=seconds, actor=BENCH, now=CLOCK.now())
    except NoneFree as error:
        raise AssertionError("the pool is too small for this benchmark") from error


def _release(one: Sandbox) -> None:
    operations.release(sandbox_id=one.sandbox_id, track="bench", fence=one.fence, actor=BENCH, now=CLOCK.now())


_PROVIDER = _Provider()


def _clean() -> None:
    report = operations.clean(provider=_PROVIDER, clock=_Later(), pace_seconds=0, workers=1)
    assert report.failures == ()
    assert report.stopped == ""


def _expire() -> None:
    assert operations.expire(clock=_Later()).failures == ()


def _expired(count: int) -> None:
    assert len(operations.expire(clock=_Later()).expired) == count


# Filling: copies of a free and of a lent sandbox that the pool itself has made.


def _patterns() -> dict[str, Item]:
    made = [operations.add(external_id=f"pattern-{name}", name=name, lab_duration_hours=400, actor=BENCH, now=CLOCK.now()) for name in "ab"]
    lent = operations.take(key="pattern", track="pattern", actor=BENCH, now=CLOCK.now()).sandbox
    free = next(one for one in made if one.sandbox_id != lent.sandbox_id)
    keys = {
        "free": models.sandbox_key(free.sandbox_id),
        "line": models.free_key(free.sandbox_id),
        "lent": models.sandbox_key(lent.sandbox_id),
    }
    return {name: _item(*key) for name, key in keys.items()}


def _fill(patterns: dict[str, Item], numbers: range) -> None:
    write_all(_client(), _table(), _copies(patterns, numbers))


def free_copies(count: int) -> Iterator[Item]:
    """Rows and lines of so many free sandboxes, for a pool that has none of these names."""
    made = operations.add(external_id="pattern", name="pattern", lab_duration_hours=4, actor=BENCH, now=CLOCK.now())
    row, line = _item(*models.sandbox_key(made.sandbox_id)), _item(*models.free_key(made.sandbox_id))
    return itertools.chain.from_iterable(_free_copy(row, line, number) for number in range(count))


def write_all(client: Any, table: str, items: Iterator[Item]) -> None:
    while batch := list(islice(items, _BATCH)):
        left: Any = {table: [{"PutRequest": {"Item": item}} for item in batch]}
        while left:
            left = client.batch_write_item(RequestItems=left).get("UnprocessedItems", {})


def _copies(patterns: dict[str, Item], numbers: range) -> Iterator[Item]:
    for number in numbers:
        if number % 100 < _FREE_SHARE:
            yield from _free_copy(patterns["free"], patterns["line"], number)
        else:
            track = {"S": f"track-{number}"}
            yield _copy(patterns["lent"], str(uuid.uuid4()), number) | {"allocated_to_track": track, "idempotency_key": track}


def _free_copy(row: Item, line: Item, number: int) -> tuple[Item, Item]:
    sandbox_id = str(uuid.uuid4())
    pk, sk = models.free_key(sandbox_id)
    return _copy(row, sandbox_id, number), _copy(line, sandbox_id, number) | {"PK": {"S": pk}, "SK": {"S": sk}}


def _copy(pattern: Item, sandbox_id: str, number: int) -> Item:
    pk, sk = models.sandbox_key(sandbox_id)
    texts = {"PK": pk, "SK": sk, "sandbox_id": sandbox_id, "name": f"lab-{number:06}", "external_id": f"ext-{number}"}
    return copy.deepcopy(pattern) | {name: {"S": text} for name, text in texts.items()}


def _item(pk: str, sk: str) -> Item:
    found: Item = _client().get_item(TableName=_table(), Key={"PK": {"S": pk}, "SK": {"S": sk}}, ConsistentRead=True)["Item"]
    return found


def _table() -> str:
    return f"{current_settings().table_prefix}SandboxPool"


def _client() -> Any:
    config = Config(retries={"total_max_attempts": 10, "mode": "standard"})
    return boto3.session.Session(region_name=REGION).client("dynamodb", config=config)


if __name__ == "__main__":
    sys.exit(main())
