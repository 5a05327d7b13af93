"""The seed's lists against the rows that they are made of."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from accessportal.kernel.actors import Actor
from accessportal.kernel.runs import Run
from accessportal.leases import policy
from accessportal.leases.states import NEARLY_FULL, Account, CheckReport, Difference
from accessportal.leases.store import lists, pages, rows
from accessportal.store.transactions import ConditionFailed


def check_pool(*, is_mending: bool, actor: Actor) -> CheckReport:
    """Hold the lists against the rows; with ``is_mending`` they are made as the rows are. What differs is looked at again by itself, so
    that what changes meanwhile is no difference. Rows that can't be read are failures, and stay in the lists as they are."""
    policy.may_operate(actor).require()
    run = _Check(is_mending=is_mending)
    wanted: dict[str, set[str]] = {name: set() for name in lists.NAMES}
    accounts = leases = 0
    for row in pages.every_row(past=run.pass_over):
        accounts, leases = (accounts + 1, leases) if isinstance(row, Account) else (accounts, leases + 1)
        for name in lists.of_row(row):
            wanted[name].add(rows.id_of(row))
    unread = {one.item.partition("#")[2] for one in run.failures}
    held = lists.read_all()
    differences = tuple(filter(None, (run.compared(name, wanted[name], ids, unread) for name, ids in held.items())))
    return CheckReport(
        accounts=accounts,
        leases=leases,
        differences=differences,
        nearly_full=tuple(name for name, ids in held.items() if len(ids) >= NEARLY_FULL * lists.most_in(name)),
        mended=run.mended,
        failures=run.failed,
    )


@dataclass(kw_only=True)
class _Check(Run):
    is_mending: bool
    mended: int = 0

    def compared(self, name: str, wanted: set[str], ids: list[str], unread: Collection[str]) -> Difference | None:
        """What of a list is not as the rows say; ``None``: nothing."""
        doubtful = (wanted - set(ids)) | set(lists.extra_in(ids, wanted))
        missing, extra = list[str](), list[str]()
        for one in sorted(doubtful - set(unread)):
            row, now = rows.get_row(name, one), lists.read(name)
            is_wanted, count = row is not None and name in lists.of_row(row), now.count(one)
            if count == is_wanted:
                continue
            (extra if count > is_wanted else missing).append(one)
            if self.is_mending:
                with suppress(ConditionFailed):
                    rows.mend(name, one, row, now)
                    self.mended += 1
        return Difference(name, tuple(missing), tuple(extra)) if missing or extra else None
