"""The crash table of cleaning: the process dies at every write and every call, and the next runs still end in the right state."""

from __future__ import annotations

import copy

import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends
from moto.stepfunctions.models import stepfunctions_backends

from accessportal.audit import queries as audit
from accessportal.leases.states import AccountState
from tests.crashing import MOMENTS, Killed, Process, living
from tests.depth import IS_DEEP
from tests.fixtures_twin import REGION
from tests.leases.conftest import Cleaning
from tests.leases.reading import lists, lists_by_rows

# By day every fifth step alone.
_STRIDE = 1 if IS_DEEP else 5
# Looking changes nothing.
_READS = frozenset(
    {"GetItem", "Query", "BatchGetItem", "TransactGetItems", "DescribeTable", "DescribeStateMachine", "DescribeExecution"}
    | {"DescribeOrganization", "ListParents"}
)


def live_through(cleaning: Cleaning, process: Process, ids: list[str]) -> None:
    """One account is cleaned at its first try, one at its second, one fails for ever, one must not be cleaned."""
    cleaning.twin.settings.cleaner_failures = {ids[1]: 1, ids[2]: 99}
    for _ in range(8):
        try:
            cleaning.run()
        except Killed:
            process.reboot()
        cleaning.clock.advance(160)


@pytest.mark.parametrize("after", MOMENTS, ids=lambda after: "after" if after else "before")
def test_a_crash_at_any_step_is_healed(cleaning: Cleaning, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
    tables = dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION]
    empty, fatal = copy.deepcopy(tables.tables), 0
    ids = cleaning.make("good", "second", "never", "outside")
    cleaning.set(most_attempts=2)
    cleaning.move(ids[3], "/Workloads")
    (machine,) = stepfunctions_backends[DEFAULT_ACCOUNT_ID][REGION].state_machines
    while True:
        tables.tables = copy.deepcopy(empty)
        machine.executions.clear()
        cleaning.accounts.add(ids)
        process = Process(fatal=fatal, after=after)
        with living(process, monkeypatch, reads=_READS):
            live_through(cleaning, process, ids)
        where = f"killed {'after' if after else 'before'} step {fatal}: {[*process.names, '-'][min(fatal, len(process.names))]}"
        check_end(cleaning, ids, where)
        if not process.died:
            assert process.names.count("stepfunctions.StartExecution") == 5
            assert len(process.names) >= 18
            return
        fatal += _STRIDE


def check_end(cleaning: Cleaning, ids: list[str], where: str) -> None:
    good, second, never, outside = ids
    assert (
        lists()
        == lists_by_rows()
        == {
            "available": sorted([good, second]),
            "failed": sorted([never, outside]),
            "all": sorted(ids),
        }
    ), where
    assert sorted(cleaning.runs()) == sorted([f"{good}-0-1", f"{second}-0-1", f"{second}-0-2", f"{never}-0-1", f"{never}-0-2"]), where
    counted = {one: cleaning.actions(one) for one in ids}
    assert counted == {
        good: ["added", "cleaning_begun", "cleaned"],
        second: ["added", "cleaning_begun", "clean_failed", "cleaning_begun", "cleaned"],
        never: ["added", "cleaning_begun", "clean_failed", "cleaning_begun", "clean_failed"],
        outside: ["added", "clean_refused", "clean_refused"],
    }, where
    for one in ids:
        account = cleaning.accounts.get(one)
        assert audit.check_head(account.entity, version=account.version, audit_head=account.audit_head) == [], where
        assert account.run == "", where
    assert cleaning.accounts.get(never).state is AccountState.FAILED
