"""Records of evidence."""

from __future__ import annotations

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
class ExportReport(Report):
    """What one run did. ``newest`` is the last day with a digest; days that are over and were left are done by the next run."""

    days: int = 0
    events: int = 0
    late: int = 0
    days_left: int = 0
    newest: date | None = None
