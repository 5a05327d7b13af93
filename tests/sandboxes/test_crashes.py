"""The crash table of the pool: the process dies right before and right after every write and every deletion, from the first sync
to the second hand-over, and the next runs still end in the right state."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
import requests
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from accessportal.sandboxes import ledger, queries
from accessportal.sandboxes.states import Sandbox, Status
from tests.crashing import MOMENTS, Killed, Process, living
from tests.fixtures_provider import TwinAdapter
from tests.fixtures_twin import REGION
from tests.sandboxes.conftest import Upstream

T = TypeVar("T")
_READS = frozenset({"GetItem", "Query", "BatchGetItem", "TransactGetItems", "DescribeTable"})
_SHARES = 4


def again(process: Process, action: Callable[[], T]) -> T:
    """What a client, or the next run of a job, does after a crash: the same once more."""
    for _ in range(3):
        try:
            return action()
        except Killed:
            process.reboot()
    raise AssertionError("the process dies only once")


def live_through(upstream: Upstream, process: Process) -> None:
    """Two sandboxes come in; one is lent and given back, lent anew and expired; each time it is cleaned."""
    again(process, upstream.sync)
    lent = again(process, lambda: upstream.pool.take("track-1", key="first", name_prefix="lab-a")).sandbox
    again(process, lambda: upstream.pool.release(lent, "track-1"))
    clean_until_free(upstream, process, lent)
    newer = again(process, lambda: upstream.pool.take("track-1", key="first", name_prefix="lab-a")).sandbox
    assert (newer.sandbox_id, newer.fence) == (lent.sandbox_id, 2)
    upstream.later(4 * 3600 + 300)
    again(process, upstream.pool.expire)
    clean_until_free(upstream, process, lent)
    upstream.twin.lose("ext-b")
    for _ in range(3):
        upstream.later()
        again(process, upstream.sync)


def clean_until_free(upstream: Upstream, process: Process, sandbox: Sandbox) -> None:
    for _ in range(6):
        again(process, upstream.clean)
        if upstream.pool.status_of(sandbox) is Status.AVAILABLE:
            return
        upstream.later(121)
    raise AssertionError(f"still {upstream.pool.now_of(sandbox)}")


@pytest.mark.deep
@pytest.mark.parametrize("after", MOMENTS, ids=lambda after: "after" if after else "before")
@pytest.mark.parametrize("share", range(_SHARES))
def test_a_crash_at_any_step_is_healed(upstream: Upstream, monkeypatch: pytest.MonkeyPatch, share: int, *, after: bool) -> None:
    backend = dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION]
    empty, fatal = copy.deepcopy(backend.tables), share
    while True:
        backend.tables = copy.deepcopy(empty)
        for external_id in upstream.twin.sandboxes():
            upstream.twin.lose(external_id)
        for letter in "ab":
            upstream.twin.create(f"ext-{letter}", name=f"lab-{letter}")
        process = Process(fatal=fatal, after=after)
        with living(process, monkeypatch, reads=_READS), monkeypatch.context() as patch:
            patch.setattr(upstream.adapter, "send", _mortal(process, upstream.adapter))
            live_through(upstream, process)
        where = f"killed {'after' if after else 'before'} step {fatal}: {[*process.names, '-'][min(fatal, len(process.names))]}"
        check_end(upstream, where)
        if not process.died:
            assert fatal >= len(process.names) > 12
            return
        fatal += _SHARES


def _mortal(process: Process, adapter: TwinAdapter) -> Callable[..., requests.Response]:
    send = adapter.send

    def mortal(request: requests.PreparedRequest, *arguments: Any, **more: Any) -> requests.Response:
        answer = process.call(f"provider.{request.method}", lambda: send(request, *arguments, **more), is_read=request.method == "GET")
        assert isinstance(answer, requests.Response)
        return answer

    return mortal


def check_end(upstream: Upstream, where: str) -> None:
    rows = {row.external_id: row for row in upstream.pool.everything()}
    assert {row.external_id: row.status for row in rows.values()} == {"ext-a": Status.AVAILABLE, "ext-b": Status.STALE}, where
    upstream.pool.check_whole()
    for row in rows.values():
        events = queries.history(sandbox_id=row.sandbox_id)
        assert list(ledger.problems_of_events(events, row)) == [], where
    actions = [event.action for event in queries.history(sandbox_id=rows["ext-a"].sandbox_id)]
    counted = {name: actions.count(f"sandbox.{name}") for name in ("added", "taken", "released", "expired", "cleaned")}
    assert counted == {"added": 1, "taken": 2, "released": 1, "expired": 1, "cleaned": 2}, f"{where}: {actions}"


def test_a_deletion_is_noted_before_it_is_sent(upstream: Upstream) -> None:
    """Who comes after a crash knows which life was to end: the former one is never taken for the new one."""
    upstream.fill(1)
    given_back = upstream.given_back()
    seen: list[str] = []

    def look(call: str) -> None:
        if call.startswith("DELETE"):
            seen.append(upstream.pool.now_of(given_back).delete_generation)

    upstream.adapter.before = look
    upstream.clean()
    assert seen == ["1"]
