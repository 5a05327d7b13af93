"""The twin's journal: a file of JSON lines that only grows, read back at the next start.

A line is handed to the operating system before the client has its answer, so a killed twin loses nothing that was answered. It is
forced to the disk at most once a second and at the end, so a power failure may cost the last second. A line torn by the end of
the process is cut off at the next start: nobody had the answer to it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

_FORMAT = {"kind": "journal", "format": 1}


class JournalError(Exception):
    """The journal cannot be used; the message says why and what to do."""


class Journal:
    """The journal file, held by one process at a time."""

    def __init__(self, path: Path) -> None:
        """Open or make the file, and hold it. Raises ``JournalError`` when another twin has it."""
        self.path = path
        self._forced_at = 0.0
        path.parent.mkdir(parents=True, exist_ok=True)
        # A lock file of its own: compaction puts a new file in the place of the journal.
        self._lock = path.with_suffix(path.suffix + ".lock").open("ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise JournalError(f"{path} is in use by another twin. Stop that one first, or give another --journal.") from error
        self._file = self._open()

    def entries(self) -> Iterator[dict[str, Any]]:
        """Every entry, oldest first; a torn last line is cut off. Raises ``JournalError`` for a broken line before the last."""
        good = 0
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                entry = self._parse(line, number, lines)
                if entry is None:
                    break
                good += len(line)
                if number > 1:
                    yield entry
                elif entry != _FORMAT:
                    raise JournalError(f"{self.path} is not a journal of this version of the twin. Move it away to start anew.")
        self._file.truncate(good)
        if good == 0:
            self._write(_FORMAT)

    def append(self, entry: dict[str, Any]) -> None:
        """Keep one entry: after this a killed process does not lose it."""
        self._write(entry)
        now = time.monotonic()
        if now - self._forced_at >= 1.0:
            os.fsync(self._file.fileno())
            self._forced_at = now

    def replace(self, entries: Iterable[dict[str, Any]]) -> None:
        """Put a shorter journal of the same state in place of this one, whole or not at all."""
        beside = self.path.with_suffix(self.path.suffix + ".new")
        with beside.open("wb") as file:
            os.fchmod(file.fileno(), 0o600)
            for entry in [_FORMAT, *entries]:
                file.write(_line(entry))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)
        self._file.close()
        self._file = self._open()

    def close(self) -> None:
        """Force everything to the disk and let the file go."""
        os.fsync(self._file.fileno())
        self._file.close()
        self._lock.close()

    def _open(self) -> BinaryIO:
        file = self.path.open("ab")
        os.fchmod(file.fileno(), 0o600)
        return file

    def _write(self, entry: dict[str, Any]) -> None:
        self._file.write(_line(entry))
        self._file.flush()

    def _parse(self, line: bytes, number: int, rest: BinaryIO) -> dict[str, Any] | None:
        try:
            entry = json.loads(line)
        except ValueError as error:
            if rest.read(1):
                raise JournalError(
                    f"{self.path}, line {number} is broken. Remove that line, or move the file away to start anew."
                ) from error
            return None
        if not line.endswith(b"\n") or not isinstance(entry, dict):
            return None
        return entry


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
