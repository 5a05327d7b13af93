"""The files of evidence, in whatever storage is set: written once, read back, listed."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import IO, Any

from django.core.files.base import File

from accessportal.aws.errors import OutsideError, sorted_call
from accessportal.evidence import policy
from accessportal.evidence.storages import WriteOnce
from accessportal.kernel.errors import Conflict, NoAnswer, Unavailable

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class EvidenceFiles:
    """Every method raises :class:`Unavailable` when the storage does not answer."""

    storage: WriteOnce

    def put(self, name: str, content: IO[bytes]) -> bool:
        """Whether it was written; false when the name is there already, and then nothing is changed."""
        try:
            with _answered():
                sorted_call(self.storage.save, name, File(content, name))
        except FileExistsError:
            return False
        return True

    @contextmanager
    def opened(self, name: str) -> Iterator[IO[bytes]]:
        """:raises Unavailable: also when it is missing; it is named."""
        try:
            with _answered(), sorted_call(self.storage.open, name, "rb") as file:
                yield file
        except FileNotFoundError as error:
            raise Unavailable(f"{name} is missing: look for it, and verify the evidence.", code="evidence_missing") from error

    def sha256(self, name: str) -> str:
        digest = hashlib.sha256()
        with self.opened(name) as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
        return digest.hexdigest()

    def digest(self, day: date) -> tuple[dict[str, Any], bytes]:
        """A digest, and its bytes. :raises Unavailable: also when it can't be read; it is named."""
        name = policy.digest_name(day)
        with self.opened(name) as file:
            content = file.read()
        try:
            return dict(json.loads(content)), content
        except ValueError as error:
            raise Unavailable(f"The digest {name} can't be read: look at it, and verify the evidence.", code="digest_damaged") from error

    def lines(self, day: date) -> Iterator[bytes]:
        """The lines of a day's file. :raises Unavailable: also when it is missing. :raises Conflict: when it can't be unpacked."""
        name = policy.file_name(day)
        with self.opened(name) as packed, gzip.open(packed) as lines:
            try:
                yield from lines
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise Conflict(f"{name} can't be unpacked ({error}). Look at it, and verify the evidence.", code="file_damaged") from error

    def put_digest(self, day: date, digest: dict[str, Any]) -> bool:
        return self.put(policy.digest_name(day), io.BytesIO(json.dumps(digest, sort_keys=True, indent=1).encode() + b"\n"))

    def days(self) -> list[date]:
        """Every day with a digest, in order."""
        with _answered():
            names = self._names(policy.DIGESTS)
        return sorted(day for day in map(policy.day_of, names) if day is not None)

    def file_names(self) -> frozenset[str]:
        """Every file of events that may be looked at."""
        with _answered():
            return frozenset(f"{policy.EVENTS}/{name}" for name in self._names(policy.EVENTS) if policy.is_file_of_events(name))

    def copy_to(self, folder: Path) -> None:
        """All that a verifier looks at, as files in ``folder``."""
        with _answered():
            digests = [f"{policy.DIGESTS}/{name}" for name in self._names(policy.DIGESTS) if policy.day_of(name)]
        for name in (*digests, *sorted(self.file_names())):
            (folder / name).parent.mkdir(exist_ok=True)
            with self.opened(name) as content, (folder / name).open("xb") as copy:
                shutil.copyfileobj(content, copy)

    def _names(self, folder: str) -> list[str]:
        try:
            return sorted_call(self.storage.listdir, folder)[1]
        except FileNotFoundError:
            return []

    def written_over(self) -> list[str]:
        """Every name that somebody has written again, or deleted, since; where nothing keeps versions nobody knows."""
        with _answered():
            return self.storage.written_over()

    def lock_flaw(self) -> str:
        """Why nothing keeps the files from being deleted; empty when something does."""
        with _answered():
            return self.storage.lock_flaw()


@contextmanager
def _answered() -> Iterator[None]:
    try:
        yield
    except (FileExistsError, FileNotFoundError):
        raise
    except (OSError, OutsideError) as error:
        words = f"The store of the evidence did not answer ({error}). Look at PORTAL_EVIDENCE_BUCKET or PORTAL_EVIDENCE_DIR."
        raise NoAnswer(words, code="evidence_unavailable") from error
