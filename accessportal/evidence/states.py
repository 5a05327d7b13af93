"""Records of evidence."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from accessportal.kernel.runs import Report


@dataclass(frozen=True, slots=True)
class DayFile:
    """A day's file as it was written. ``late`` lines are of days before; ``heads``: sequence and hash of the last event of each chain in
    it."""

    day: date
    sha256: str
    lines: int
    late: int
    heads: Mapping[str, tuple[int, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalReport(Report):
    """What one run took out of the audit log: ``removed`` chains with so many ``events``. ``unproved`` were as old, and evidence does not
    have all of them; ``left``: their request is still there, an event waits for its topic, the chain was changed or is broken, or the time
    of the run was over."""

    removed: int = 0
    events: int = 0
    unproved: int = 0
    left: int = 0


class DayState(enum.StrEnum):
    """``OTHER_KEY``: signed by a key that is not that of this installation (any more), so it was not held against it. ``DUE``: it is over,
    and the next run writes it. ``MISSING``: later days are there. ``UNJUDGED``: nothing is wrong with it, but the day before is broken or
    missing, so it can't be held against that."""

    SIGNED = "signed"
    OTHER_KEY = "other_key"
    UNJUDGED = "unjudged"
    BROKEN = "broken"
    MISSING = "missing"
    DUE = "due"


@dataclass(frozen=True, slots=True)
class Day:
    """What the digest of a day says, of ``chains`` that changed; ``flaws``: what is wrong with it, or why it was not judged."""

    day: date
    state: DayState
    lines: int = 0
    late: int = 0
    file_sha256: str = ""
    digest_sha256: str = ""
    key_id: str = ""
    chains: int = 0
    flaws: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport(Report):
    """What one run did. ``newest`` is the last day with a digest; days that are over and were left are done by the next run.
    ``unlocked``: why nothing keeps the files from being deleted; empty when something does."""

    days: int = 0
    events: int = 0
    late: int = 0
    days_left: int = 0
    newest: date | None = None
    unlocked: str = ""
