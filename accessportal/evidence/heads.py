"""Every head of a chain that was ever signed, to hold the audit log against.

A chain that was cut, rewritten from inside by somebody with the key of the hashes, or deleted with its item, differs from a head that was
signed while it was whole.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent, ChainBreak
from accessportal.evidence import policy
from accessportal.evidence.store import EvidenceFiles
from accessportal.evidence.verify_evidence import flaws_of_digest, keys_by_id
from accessportal.kernel.clock import from_epoch
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.moments import SKEW
from accessportal.store.restores import Restore

# Sequence, day, and half of the hash: 24 bytes for each head, of however many chains.
_HEAD = struct.Struct(">II16s")
_DAMAGED = {"digest_damaged", "evidence_missing"}


@dataclass(frozen=True, slots=True)
class Missing:
    """A signed head that the chain of ``entity`` does not have (any more)."""

    entity: str
    sequence: int
    day: date
    is_other: bool

    def __str__(self) -> str:
        if self.is_other:
            return f"event {self.sequence} is not the one that the digest of {self.day} has signed"
        return f"event {self.sequence} is missing, and the digest of {self.day} has signed it"


@dataclass(slots=True)
class SignedHeads:
    """``breaks`` are of the digests themselves."""

    files: EvidenceFiles
    days: int = 0
    breaks: list[ChainBreak] = field(default_factory=list)
    _heads: dict[str, bytearray] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _people: dict[str, dict[int, str]] = field(default_factory=dict)
    _missing: list[Missing] = field(default_factory=list)
    _sha256: dict[date, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(len(kept) for kept in self._heads.values()) // _HEAD.size

    def compare(self, events: Sequence[AuditEvent]) -> None:
        """Hold a chain that was read after the digests against the heads of its name."""
        hashes = {event.sequence: event.hash for event in events}
        name = audit.nameless(events[0].entity)
        self._seen.add(name)
        if "person-" in name:
            # Of somebody who was erased a part may lie under the address.
            self._people.setdefault(name, {}).update(hashes)
        else:
            self._missing += _missing_in(name, self._heads.get(name, b""), hashes)

    def lines_of(self, day: date) -> Iterator[dict[str, Any]]:
        """What the file of a day tells, line by line; nothing when it is not there, or not the one that was signed: whoever writes to the
        store could else tell what never was."""
        if self._is_as_signed(day):
            yield from map(json.loads, self.files.lines(day))

    def whole_lines_about(self, names: Iterable[str]) -> Iterator[dict[str, Any]]:
        """What the signed files tell of these chains, day after day, but for what the portal never wrote so."""
        names_by_day: dict[int, set[str]] = defaultdict(set)
        for name in names:
            for _, day, _ in _HEAD.iter_unpack(self._heads.get(name, b"")):
                names_by_day[day].add(name)
        for day, wanted in sorted(names_by_day.items()):
            told_of = (told for told in self.lines_of(date.fromordinal(day)) if told["entity"] in wanted)
            yield from (told for told in told_of if audit.is_as_written(policy.event_of(told)))

    def take_out_removed(self, before: datetime) -> int:
        """Chains of requests of which nothing is there count for nothing more, if what was signed of them happened ``before``, and tells
        that they were over; how many there were."""
        gone = set(filter(policy.is_of_request, self._heads.keys() - self._seen))
        over, ended = set[str](), set[str]()
        for told in self.whole_lines_about(gone):
            name, last = told["entity"], max(_HEAD.iter_unpack(self._heads[told["entity"]]))[0]
            if policy.tells_of_end(told["action"]):
                over.add(name)
            if told["sequence"] == last and datetime.fromisoformat(told["at"]) < before:
                ended.add(name)
        for name in over & ended:
            del self._heads[name]
        return len(over & ended)

    def breaks_of_chains(self, restores: Sequence[Restore]) -> tuple[list[ChainBreak], int]:
        """The first signed head that each chain lacks; and how many it rightly lacks, because a restore of the tables lost their events."""
        for name in self._heads.keys() - (self._seen - self._people.keys()):
            heads, hashes = self._heads[name], self._people.get(name, {})
            if "person-" in name and any(_missing_in(name, heads, hashes)):
                # While somebody is erased, their chain moves on below a reader.
                hashes = hashes | {event.sequence: event.hash for event in audit.chain_of(name)}
            self._missing += _missing_in(name, heads, hashes)
        lost = self._lost(restores) if restores else set()
        breaks: dict[str, ChainBreak] = {}
        for one in self._missing:
            if one not in lost:
                breaks.setdefault(one.entity, ChainBreak(one.entity, one.sequence, str(one)))
        return sorted(breaks.values(), key=lambda one: one.entity), len(lost)

    def _lost(self, restores: Sequence[Restore]) -> set[Missing]:
        """By the times of their events, in the files of their days."""
        wanted = {(one.day, one.entity, one.sequence): one for one in self._missing}
        lost: set[Missing] = set()
        for day in sorted({one.day for one in self._missing}):
            for told in self.lines_of(day):
                one = wanted.get((day, audit.nameless(told["entity"]), told["sequence"]))
                if one is not None and _is_lost(datetime.fromisoformat(told["at"]), restores):
                    lost.add(one)
        return lost

    def _is_as_signed(self, day: date) -> bool:
        try:
            return self.files.sha256(policy.file_name(day)) == self._sha256[day]
        except Unavailable as error:
            if error.code not in _DAMAGED:
                raise
            return False


def read_signed_heads(files: EvidenceFiles, *, public_keys: Sequence[bytes]) -> SignedHeads:
    """Read every digest, oldest first, one request each, and which files are there. What a digest with a wrong signature says counts for
    nothing.

    :raises ValueError: when a public key can't be read.
    :raises Unavailable: when the store of evidence does not answer.
    """
    keys, found, before = keys_by_id(public_keys), SignedHeads(files), None
    for day in files.days():
        name = policy.digest_name(day)
        content, heads = b"", dict[str, bytes]()
        try:
            digest, content = files.digest(day)
            flaws = [ChainBreak(file, 0, problem) for file, problem in flaws_of_digest(name, str(day), digest, keys=keys, before=before)]
            found._sha256[day] = str(digest["files"][0]["sha256"])
            heads = {} if flaws else _heads_of(digest["heads"], day)
        except Unavailable as error:
            if error.code not in _DAMAGED:
                raise
            flaws = [ChainBreak(name, 0, error.message)]
        except (ValueError, LookupError, TypeError, AttributeError, struct.error) as error:
            flaws = [ChainBreak(name, 0, f"it is no digest ({type(error).__name__}: {error})")]
        found.days += 1
        found.breaks += flaws
        for entity, head in heads.items():
            # Before there were pseudonyms digests told addresses, which may be erased since.
            found._heads.setdefault(audit.nameless(entity), bytearray()).extend(head)
        before = name, "" if flaws else hashlib.sha256(content).hexdigest()
    there = files.file_names()
    missing = [(policy.file_name(day), day) for day in found._sha256 if policy.file_name(day) not in there]
    found.breaks += [ChainBreak(name, 0, f"it is missing, and the digest of {day} has signed it") for name, day in missing]
    return found


def _heads_of(heads: Mapping[str, tuple[int, str]], day: date) -> dict[str, bytes]:
    return {entity: _HEAD.pack(sequence, day.toordinal(), bytes.fromhex(text)[:16]) for entity, (sequence, text) in heads.items()}


def _missing_in(name: str, heads: bytes | bytearray, hashes: Mapping[int, str]) -> Iterator[Missing]:
    for sequence, day, half in _HEAD.iter_unpack(heads):
        text = hashes.get(sequence)
        if text is None or not text.startswith(half.hex()):
            yield Missing(name, sequence, date.fromordinal(day), is_other=text is not None)


def _is_lost(at: datetime, restores: Sequence[Restore]) -> bool:
    return any(one.restored_to - SKEW <= at <= from_epoch(one.epoch) + SKEW for one in restores)
