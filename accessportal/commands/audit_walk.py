"""Walking every chain of the audit log: the whole table once, in segments side by side, against the heads that the items say.

A chain that does not fit is read once more by itself before it counts as broken: an item may have been changed meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent, ChainBreak
from accessportal.commands.audit_heads import Head, breaks_of, breaks_of_gone


class Walk:
    """``heads`` by entity were read before, from ``began`` on. ``tell`` hears of each chain."""

    def __init__(self, heads: Mapping[str, Head], *, began: datetime, tell: Callable[[], object]) -> None:
        self.breaks: list[ChainBreak] = []
        self._heads = heads
        self._began = began
        self._tell = tell
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._is_broken_off = threading.Event()

    @property
    def chains(self) -> int:
        return len(self._heads.keys() | self._seen)

    @property
    def gone(self) -> int:
        """Of how many the item is gone."""
        return len(self._seen - self._heads.keys())

    def run(self, *, workers: int) -> None:
        """:raises Unavailable: when the store did not answer to some worker; the others stop, too."""
        with ThreadPoolExecutor(workers, thread_name_prefix="audit") as executor:
            for future in [executor.submit(self._segment, number, workers) for number in range(workers)]:
                future.result()
        for entity in self._heads.keys() - self._seen:
            # The item is there, of its chain nothing.
            self.breaks += breaks_of(self._heads[entity], began=self._began)
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
        breaks = self._breaks(entity, events)
        with self._lock:
            self.breaks += breaks
            self._tell()

    def _breaks(self, entity: str, events: list[AuditEvent]) -> list[ChainBreak]:
        head = self._heads.get(entity)
        if head is None:
            return breaks_of_gone(entity, events, began=self._began)
        if not audit.check_chain(entity, events, version=head.version, audit_head=head.audit_head):
            return []
        return breaks_of(head, began=self._began)
