"""Records of the lines in which approved requests wait for a thing of a pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accessportal.kernel.clock import Precise

SANDBOXES = "sandbox"
ACCOUNTS = "account"
LINES = (SANDBOXES, ACCOUNTS)


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it was read: how many wait, and the number of the next place. ``version`` 0: nobody has ever joined it."""

    line: str
    waiting: int = 0
    next_number: int = 1
    version: int = 0
    audit_head: str = ""

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return f"line#{self.line}"


@dataclass(frozen=True, slots=True)
class Place:
    """The place of ``claim`` (the id of a request). It never changes: whoever leaves and comes back gets another. ``wants`` says what fits,
    in the words of the pool's own room. It lapses with its request at ``lapses_at``; what is handed over is for ``duration_seconds``."""

    line: str
    number: int
    claim: str
    joined_at: Precise
    lapses_at: datetime
    duration_seconds: int
    wants: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LineWithPlaces:
    """A line, and everybody who waits in it."""

    line: Line
    places: tuple[Place, ...]

    @property
    def entity(self) -> str:
        return self.line.entity

    @property
    def version(self) -> int:
        return self.line.version

    @property
    def audit_head(self) -> str:
        return self.line.audit_head


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it is: the ``place``, and the ``line`` in which it is the first that fits. Once the line has moved it counts no more."""

    line: Line
    place: Place


@dataclass(frozen=True, slots=True)
class Standing:
    """A place, and for how long each of those before it wants what they wait for, in order."""

    place: Place
    ahead: tuple[int, ...]

    @property
    def before(self) -> int:
        """How many are before it."""
        return len(self.ahead)


@dataclass(frozen=True, slots=True)
class Expected:
    """Between which moments a turn is expected to come, when everybody keeps what they have until its end."""

    earliest: datetime
    latest: datetime
