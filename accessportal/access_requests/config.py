"""What an installation sets for the workflow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from accessportal.kernel.setting import Setting


@dataclass(frozen=True, slots=True)
class WorkflowSettings:
    """When an undecided request lapses, how long an ended one stays in the table, who stands in where a rule has too few approvers left,
    how often one person may ask a minute, and how many requests of one person or group are open at a time (0: no limit). So long
    what was given back can be taken back (``undo_seconds``), and a place in a line is kept (``longest_wait_seconds``). A stand-in is named
    for so many days at most."""

    decide_within_seconds: int = 86_400
    purge_after_days: int = 90
    operator_group: str = "/portal/operators"
    asks_per_minute: int = 0
    most_open: int = 0
    undo_seconds: int = 120
    longest_wait_seconds: int = 72 * 3_600
    stand_in_days: int = 90


_settings = Setting(WorkflowSettings())
configure, current = _settings.configure, _settings.current


@contextmanager
def lifted_limits() -> Iterator[None]:
    """Nobody asks too often or for too much: for whoever makes up a past at one moment, in a process of its own."""
    former = current()
    configure(replace(former, asks_per_minute=0, most_open=0))
    try:
        yield
    finally:
        configure(former)
