"""Walking every chain of the audit log: the whole table once, in segments side by side, against the items.

What does not fit is read once more by itself before it counts: an item may have been changed meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent, ChainBreak
from accessportal.commands.audit_items import Item, break_of
from accessportal.evidence.heads import SignedHeads
from accessportal.evidence.replay import EXISTS, differences, kind_of, replay
from accessportal.kernel.pages import UnreadableItem

# Whoever is changed so often between two reads is looked at as it was read, up to its version.
_MOST_LOOKS = 6
_CLOCKS_APART = timedelta(seconds=30)
_TELLING = ("actor", "subject", "scope", "data")


class Walk:
    """``items`` by entity were read before, from ``began`` on, and the ``signed`` heads. Of those with the keys ``unread`` it was told that
    they can't be read. ``tell`` hears of each chain."""

    def __init__(
        self,
        items: Mapping[str, Item],
        *,
        unread: Iterable[str] = (),
        signed: SignedHeads | None = None,
        began: datetime,
        tell: Callable[[], object],
    ) -> None:
        self.breaks: list[ChainBreak] = []
        self._signed = signed
        # As an entity's name has the parts of a key.
        self._unread = [key.replace(", ", "#") for key in unread]
        self._items = items
        self._began = began
        self._tell = tell
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._is_broken_off = threading.Event()

    @property
    def chains(self) -> int:
        return len(self._items.keys() | self._seen)

    @property
    def gone(self) -> int:
        """Of how many the item is gone."""
        return len(self._seen - self._items.keys())

    def run(self, *, workers: int) -> None:
        """:raises Unavailable: when the store did not answer to some worker; the others stop, too."""
        with ThreadPoolExecutor(workers, thread_name_prefix="audit") as executor:
            for future in [executor.submit(self._segment, number, workers) for number in range(workers)]:
                future.result()
        for entity in self._items.keys() - self._seen:
            # The item is there, of its chain nothing.
            self.breaks += _settled(entity, self._items[entity], (), self._began)
            self._tell()
        self.breaks.sort(key=lambda one: (one.entity, one.sequence))

    def _segment(self, segment: int, segments: int) -> None:
        try:
            for entity, events in audit.every_chain(segment=segment, segments=segments):
                if self._is_broken_off.is_set():
                    return
                self._chain(entity, events)
        except BaseException:
            self._is_broken_off.set()
            raise

    def _chain(self, entity: str, events: list[AuditEvent]) -> None:
        with self._lock:
            if entity in self._seen:
                return
            self._seen.add(entity)
        item, name = self._items.get(entity), entity.partition("#")[2]
        is_told = item is None and any(name in key for key in self._unread)
        breaks = audit.breaks_in(events) if is_told else _settled(entity, item, events, self._began)
        with self._lock:
            if self._signed is not None:
                self._signed.compare(events)
            self.breaks += breaks
            self._tell()


def breaks_of_twins(twins: Iterable[Item], *, began: datetime) -> list[ChainBreak]:
    """Of items whose chain another item has, too: no chain tells of two."""
    return [one for item in twins for one in _settled(item.entity, item, audit.chain_of(item.entity), began)]


def _settled(entity: str, item: Item | None, events: Sequence[AuditEvent], began: datetime) -> list[ChainBreak]:
    """The breaks of a chain that was read after its item. Only what was the same before and after the chain was read is believed, and
    without an item what the chain tells twice: while somebody is erased, chains that their address names move on below a reader."""
    breaks = _breaks(entity, item, events, began)
    for _ in range(_MOST_LOOKS):
        if not breaks:
            return breaks
        try:
            now = item and item.again()
        except UnreadableItem as error:
            return [*breaks, break_of(error.item)]
        if item and now and (now.version, now.audit_head, now.facts) == (item.version, item.audit_head, item.facts):
            return breaks
        before, events = events, audit.chain_of(entity) or audit.chain_of(audit.nameless(entity))
        if item is None and [event.hash for event in before] == [event.hash for event in events]:
            return breaks
        item = now
        breaks = _breaks(entity, item, events, began)
    return breaks if item is None else _breaks(entity, item, events[: item.version], began)


def _breaks(entity: str, item: Item | None, events: Sequence[AuditEvent], began: datetime) -> list[ChainBreak]:
    if item is None:
        return _breaks_of_gone(entity, events, began) if events else []
    breaks, kind = audit.check_chain(entity, events, version=item.version, audit_head=item.audit_head), kind_of(entity)
    if breaks or kind is None or item.facts is None:
        # What a broken chain tells is worth nothing.
        return breaks
    breaks = differences(kind, replay(kind, events), item.facts, entity=entity, version=item.version)
    if not breaks:
        return breaks
    # While somebody is erased, their address may stand in one of them and the pseudonym in the other.
    nameless = [replace(event, **{name: audit.nameless_in(getattr(event, name)) for name in _TELLING}) for event in events]
    differs = differences(kind, replay(kind, nameless), audit.nameless_in(item.facts), entity=entity, version=item.version)
    return breaks if differs else []


def _breaks_of_gone(entity: str, events: Sequence[AuditEvent], began: datetime) -> list[ChainBreak]:
    """Find the breaks of a chain whose item is gone: it must tell that it went. One that was written to after ``began`` may have got its
    item only then."""
    breaks, newest, kind = audit.breaks_in(events), events[-1], kind_of(entity)
    if breaks or kind is None or newest.at > began - _CLOCKS_APART or audit.is_being_erased(entity):
        return breaks
    told = replay(kind, events)
    breaks = told.breaks
    exists = told.facts.get(EXISTS, kind.is_itemized)
    if exists and told.is_whole and not kind.may_vanish(told.facts, began):
        breaks.append(ChainBreak(entity, newest.sequence, "the item is gone, and no event tells that it went"))
    return breaks
