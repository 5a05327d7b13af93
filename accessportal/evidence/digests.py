"""What the digests of the days before tell an export: each is read once, and of each chain in it 20 bytes are kept."""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from accessportal.evidence.store import EvidenceFiles
from accessportal.kernel.errors import NoAnswer, Unavailable

# Half of the hash of the chain's name, and the sequence of its last event.
_HEAD = struct.Struct(">16sI")
_BAD_HEADS = (ValueError, LookupError, TypeError, AttributeError, struct.error)


@dataclass(frozen=True, slots=True)
class _Digest:
    """``heads``: in order of the names' hashes; ``None``: they can't be read."""

    sha256: str
    heads: bytes | None


@dataclass(frozen=True, slots=True)
class Digests:
    """Those of one run. Every method raises :class:`NoAnswer` when the storage does not answer."""

    files: EvidenceFiles
    _read: dict[date, _Digest | Unavailable] = field(default_factory=dict)

    def sha256(self, day: date) -> str:
        """:raises Unavailable: for a digest that can't be read; it is named."""
        found = self._of(day)
        if isinstance(found, Unavailable):
            raise found
        return found.sha256

    def last(self, day: date, name: str) -> int | None:
        """The sequence of the last event of a chain in the file of ``day``; 0: there is none. ``None`` when the digest can't be read: the
        verifier names it, and the days after it go on."""
        found = self._of(day)
        if isinstance(found, Unavailable) or found.heads is None:
            return None
        heads, wanted, size = found.heads, _hash_of(name), _HEAD.size
        place = bisect_left(range(len(heads) // size), wanted, key=lambda number: heads[number * size : number * size + len(wanted)])
        if not heads.startswith(wanted, place * size):
            return 0
        return int(_HEAD.unpack_from(heads, place * size)[1])

    def _of(self, day: date) -> _Digest | Unavailable:
        if day not in self._read:
            try:
                digest, content = self.files.digest(day)
                self._read[day] = _Digest(hashlib.sha256(content).hexdigest(), _heads_of(digest))
            except NoAnswer:
                raise
            except Unavailable as error:
                self._read[day] = error
        return self._read[day]


def _heads_of(digest: Mapping[str, Any]) -> bytes | None:
    try:
        return b"".join(sorted(_HEAD.pack(_hash_of(name), int(sequence)) for name, (sequence, _) in digest["heads"].items()))
    except _BAD_HEADS:
        return None


def _hash_of(name: str) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:16]
