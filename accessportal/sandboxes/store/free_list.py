"""The free list: a line for each free sandbox, with what a hand-over needs of its row, and the counts of returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pynamodb.expressions.condition import Condition

from accessportal.kernel.clock import to_epoch
from accessportal.kernel.pages import Page, Unreadable
from accessportal.sandboxes import models
from accessportal.sandboxes.models import SandboxItem
from accessportal.sandboxes.states import Sandbox, Status
from accessportal.sandboxes.store.converting import record_of, sandboxes
from accessportal.store.listing import Listing
from accessportal.store.reading import get_item, read_item
from accessportal.store.transactions import ConditionFailed, Remove, Step, Upsert, transact

_PAGE = 100
# What a free sandbox's row holds beside its status and zeros. Nothing of it is in an index of the seed or in ours.
_LINE = (
    "sandbox_id",
    "name",
    "external_id",
    "lab_duration_hours",
    "created_at",
    "updated_at",
    "last_synced",
    "generation",
    "fence",
    "last_released_by",
    "last_released_at",
    "last_released_fence",
    "version",
    "audit_head",
)


@dataclass(frozen=True, slots=True)
class FreeEntry:
    """One line. ``sandbox`` is its row as it became free, but for what syncs note since; ``None`` in lines of version 0.5.0."""

    sandbox_id: str
    name: str
    version: int
    sandbox: Sandbox | None


def _entry_of(item: SandboxItem) -> FreeEntry:
    is_whole = item.audit_head is not None
    item.status = Status.AVAILABLE.value
    return FreeEntry(item.sandbox_id or "", item.name or "", int(item.version or 0), record_of(item) if is_whole else None)


_free = Listing("sandboxes.free", SandboxItem, _entry_of, consistent=True)


def shards() -> range:
    """The partitions of the free list."""
    return range(models.FREE_SHARDS)


def page(shard: int, *, cursor: str | None, limit: int, after: str = "") -> Page[FreeEntry]:
    """One shard of the free list, strongly read, from the sandbox id ``after`` on."""
    where = SandboxItem.sk > models.sandbox_key(after)[0] if after else None
    return _free(models.free_pk(shard), cursor=cursor, limit=limit, where=where, bound=after)


def every_entry(shard: int, *, past: Callable[[Unreadable], object]) -> Iterator[FreeEntry]:
    """All pages of :func:`page`, a hundred lines a request; ``past`` as in :func:`every`."""
    return _free.every(models.free_pk(shard), past=past, at_once=_PAGE)


def is_listed(sandbox_id: str) -> bool:
    """Whether it has a line, whatever that says; strongly read."""
    return get_item(SandboxItem, *models.free_key(sandbox_id)) is not None


def find(sandbox_id: str) -> FreeEntry | None:
    """Its line, strongly read. :raises Unavailable: also when it can't be read; it is named."""
    return read_item(SandboxItem, _entry_of, *models.free_key(sandbox_id))


def every_line(*, past: Callable[[Unreadable], object]) -> Iterator[FreeEntry]:
    """The whole list; ``past`` is told of each line that can't be read."""
    for shard in shards():
        yield from _free.every(models.free_pk(shard), past=past)


def returns() -> tuple[int, ...]:
    """How often a sandbox has become free in each shard: all of one moment, strongly read."""
    item = get_item(SandboxItem, *models.pool_key())
    return tuple(0 if item is None else int(getattr(item, f"returns_{shard}") or 0) for shard in shards())


def as_listed(sandbox: Sandbox) -> Condition:
    """Require the row to be as its line says: the seed's programs set ``updated_at`` at every change, versions of ours the head of its
    events. ``claims`` and ``lab_duration_hours`` make a row unreadable when they are not what they should be."""
    same: Condition = SandboxItem.updated_at == to_epoch(sandbox.updated_at)
    same &= (SandboxItem.audit_head == sandbox.audit_head) & (SandboxItem.lab_duration_hours == sandbox.lab_duration_hours)
    same &= SandboxItem.claims.does_not_exist()
    return same


def put(sandbox: Sandbox) -> list[Step]:
    """The steps for a sandbox that becomes available: its line, and the count of returns."""
    pk, sk = models.free_key(sandbox.sandbox_id)
    pool_pk, pool_sk = models.pool_key()
    returned = models.returns_in(models.free_shard_of(sandbox.sandbox_id))
    line = [sandboxes.action(name, value) for name, value in sandboxes.values(sandbox).items() if name in _LINE]
    return [
        # Over whatever line is left from before: it is the row's own condition that decides.
        Upsert(SandboxItem, pk, line, _always(), range_key=sk),
        Upsert(SandboxItem, pool_pk, [returned.add(1)], _always(), range_key=pool_sk),
    ]


def take(sandbox_id: str) -> Remove:
    """The step with which the line leaves the free list, which must hold it."""
    pk, sk = models.free_key(sandbox_id)
    return Remove(SandboxItem, pk, SandboxItem.pk.exists(), range_key=sk)


def drop(entry: FreeEntry) -> None:
    """A line whose sandbox is not free goes, unless it was written anew meanwhile."""
    pk, sk = models.free_key(entry.sandbox_id)
    try:
        transact([Remove(SandboxItem, pk, SandboxItem.version == entry.version, range_key=sk)])
    except ConditionFailed:
        return


def _always() -> Condition:
    condition: Condition = SandboxItem.pk.exists() | SandboxItem.pk.does_not_exist()
    return condition
