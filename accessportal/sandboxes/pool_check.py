"""The free list and the idempotency keys against the rows: both only repeat what rows say, so a row that its chain proves decides. For
checks, not for pages. What other programs have changed is not judged before the portal has taken note of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from accessportal.kernel.pages import Unreadable as UnreadableItem
from accessportal.kernel.pages import UnreadableItem as UnreadableItemError
from accessportal.sandboxes import policy
from accessportal.sandboxes.ledger import Problem
from accessportal.sandboxes.states import KEY_SEPARATOR, KeyRecord, Sandbox, Status
from accessportal.sandboxes.store import free_list, keys, pages, rows

_MOST_READS = 5


def problems_beside_rows(*, past: Callable[[UnreadableItem], object]) -> Iterator[Problem]:
    """Each line of the free list and each key that says otherwise than its row, and each row without its own. ``past`` is told of what
    can't be read."""
    found = {row.sandbox_id: row for row in pages.every_sandbox(past=past)}
    suspects: dict[str, None] = {}
    lines = {line.sandbox_id: line for line in free_list.every_line(past=past)}
    for sandbox_id, row in found.items():
        if _flaw_of_line(row, lines.get(sandbox_id)):
            suspects[sandbox_id] = None
    del lines
    standing = set()
    for record in keys.every_key(past=past):
        row_of_key = found.get(record.sandbox_id)
        if policy.stands_for(record, row_of_key):
            standing.add(record.sandbox_id)
        elif _flaw_of_key(record, row_of_key):
            yield from _readable(_settled_key, record.key, past)
    suspects |= {row.sandbox_id: None for row in found.values() if _needs_key(row) and row.sandbox_id not in standing}
    for sandbox_id in suspects:
        yield from _readable(_settled_row, sandbox_id, past)


def _readable(settle: Callable[[str], Iterator[Problem]], one: str, past: Callable[[UnreadableItem], object]) -> Iterator[Problem]:
    try:
        yield from settle(one)
    except UnreadableItemError as error:
        past(error.item)


def _settled_key(key: str) -> Iterator[Problem]:
    """One that changed between the reads is read anew."""
    for _ in range(_MOST_READS):
        record = keys.get_key(key)
        row = rows.look(record.sandbox_id) if record else None
        if record == keys.get_key(key):
            break
    if record is not None and isinstance(row, Sandbox) and (words := _flaw_of_key(record, row)):
        yield Problem("orphan", row.sandbox_id, words)


def _settled_row(sandbox_id: str) -> Iterator[Problem]:
    for _ in range(_MOST_READS):
        row, line = rows.look(sandbox_id), free_list.find(sandbox_id)
        record = keys.get_key(row.key) if isinstance(row, Sandbox) and row.key else None
        other = rows.look(record.sandbox_id) if record else None
        if rows.look(sandbox_id) == row:
            break
    if not isinstance(row, Sandbox):
        return
    if words := _flaw_of_line(row, line):
        yield Problem("orphan", sandbox_id, words)
    # Other programs may use a key a second time: it stands for the first.
    is_told = record is not None and isinstance(other, Sandbox) and policy.stands_for(record, other)
    if _needs_key(row) and not is_told:
        yield Problem("orphan", sandbox_id, "it is lent, and its idempotency key does not stand for it")


def _needs_key(row: Sandbox) -> bool:
    return row.status is Status.ALLOCATED and bool(row.key and row.version) and policy.mending_of(row) is policy.Mending.NOTHING


def _flaw_of_line(row: Sandbox, line: free_list.FreeEntry | None) -> str:
    if not row.version or policy.mending_of(row) is not policy.Mending.NOTHING:
        return ""
    if row.status is not Status.AVAILABLE:
        return f"the free list has a line of it, and it is {row.status.value}" if line else ""
    if line is None:
        return "it is free, and the free list has no line of it"
    if line.sandbox and (line.sandbox.name, line.sandbox.external_id) != (row.name, row.external_id):
        return f"its line of the free list is of {line.sandbox.name} ({line.sandbox.external_id})"
    return ""


def _flaw_of_key(record: KeyRecord, row: Sandbox | None) -> str:
    """Of an open key. One whose hand-over is over and was ended by another program stands for nothing."""
    if not record.is_open or row is None or row.status is not Status.ALLOCATED or record.fence < row.fence_held:
        return ""
    if policy.mending_of(row) is not policy.Mending.NOTHING or policy.stands_for(record, row):
        return ""
    return f"the idempotency key {record.key.replace(KEY_SEPARATOR, ' ')} is open for it, and it is lent for another"
