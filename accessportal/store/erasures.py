"""Who was erased, and who is being erased: by pseudonym alone.

One small table, ``Erasures`` (PK ``pseudonym``), durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from accessportal.kernel.pages import Unreadable
from accessportal.store.base import PortalModel, register
from accessportal.store.reading import scan_records
from accessportal.store.records import Records
from accessportal.store.transactions import Guard


@register
class ErasureItem(PortalModel):
    """One person. Times are epoch seconds."""

    base_table_name = "Erasures"

    pseudonym = UnicodeAttribute(hash_key=True)
    begun_by = UnicodeAttribute()
    begun_at = NumberAttribute()
    ended_at = NumberAttribute(null=True)
    version = NumberAttribute()
    audit_head = UnicodeAttribute()


@dataclass(frozen=True, slots=True)
class Erasure:
    """``ended_at`` is ``None`` while it is under way."""

    pseudonym: str
    begun_by: str
    begun_at: datetime
    ended_at: datetime | None = None
    version: int = 0
    audit_head: str = ""

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return f"erasure#{self.pseudonym}"

    @property
    def is_under_way(self) -> bool:
        return self.ended_at is None


ERASURES = Records(ErasureItem, Erasure)


def find_erasure(pseudonym: str) -> Erasure | None:
    """Strongly read."""
    return ERASURES.get(pseudonym)


def every_erasure(*, past: Callable[[Unreadable], object]) -> Iterator[Erasure]:
    """Strongly read, in no order; ``past`` is told of what can't be read."""
    return scan_records(ErasureItem, ERASURES.record, past=past)


def not_under_way(pseudonym: str) -> Guard:
    """Whoever makes the person anew meanwhile would be erased with them."""
    return Guard(ErasureItem, pseudonym, ErasureItem.ended_at.exists() | ErasureItem.version.does_not_exist(), may_be_missing=True)
