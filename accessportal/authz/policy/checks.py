"""Pure answers from records that were read: does one carry, is there a way from a subject to an object, is a name in a set."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from accessportal.authz.policy.ends import is_over
from accessportal.authz.states import Approval, Relationship
from accessportal.kernel.errors import InvalidRequest

# So many subjects are asked for their relations in one level.
MOST_IN_LEVEL = 200
# So many links are read of one subject; one more tells that it has more.
MOST_LINKS = 1_000
_END = "/*"


class Why(enum.StrEnum):
    """Why an answer is as it is; all but ``granted`` are a no."""

    GRANTED = "granted"
    NONE = "none"
    TOO_DEEP = "too_deep"
    TOO_WIDE = "too_wide"


_WORDS = {
    Why.GRANTED: "What was granted says so, and counts now.",
    Why.NONE: "Nothing that counts now says so.",
    Why.TOO_DEEP: "No way is so short, and longer ones are not looked for.",
    Why.TOO_WIDE: "There is too much to look at it all.",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """``by``: the records that carry it, in order; ``until``: when the first of them ends."""

    why: Why
    by: tuple[Approval | Relationship, ...] = ()

    @property
    def is_allowed(self) -> bool:
        return self.why is Why.GRANTED

    @property
    def words(self) -> str:
        return _WORDS[self.why]

    @property
    def until(self) -> datetime | None:
        ends = [record.expires_at for record in self.by if record.expires_at is not None]
        return min(ends, default=None)


def answer_by(record: Approval | Relationship | None, *, now: datetime) -> Answer:
    """Yes by ``record``, unless there is none or it is over."""
    if record is None or is_over(record.expires_at, now):
        return Answer(Why.NONE)
    return Answer(Why.GRANTED, (record,))


def answer_by_any(records: Sequence[Approval | Relationship], *, now: datetime) -> Answer:
    """Yes by the one that lasts longest; every one is looked at."""
    live = [record for record in records if not is_over(record.expires_at, now)]
    endless = [record for record in live if record.expires_at is None]
    if not live:
        return Answer(Why.NONE)
    return answer_by(endless[0] if endless else max(live, key=lambda record: record.expires_at or now), now=now)


def find_chain(
    subject: str,
    relation: str,
    target: str,
    *,
    links_of: Callable[[Sequence[str]], Mapping[str, Sequence[Relationship]]],
    now: datetime,
    depth: int,
) -> Answer:
    """The shortest way from ``subject`` to ``target`` over links of ``relation`` that are not over.

    One link of any type is a way; of several, each must be of trust or membership. ``links_of`` reads the links of one level's
    subjects, all of one scope; of one that has more than ``MOST_LINKS``, so many and the one to ``target``.
    """
    ways: dict[str, tuple[Relationship, ...]] = {subject: ()}
    level: list[str] = [subject]
    for steps in range(1, depth + 1):
        if len(level) > MOST_IN_LEVEL:
            return Answer(Why.TOO_WIDE)
        links = links_of(level)
        found: list[str] = []
        for origin in level:
            for link in links.get(origin, ()):
                if link.relation != relation or is_over(link.expires_at, now):
                    continue
                if link.object == target and (steps == 1 or link.relation_type.carries):
                    return Answer(Why.GRANTED, (*ways[origin], link))
                if link.relation_type.carries and link.object not in ways:
                    ways[link.object] = (*ways[origin], link)
                    found.append(link.object)
        if any(len(links.get(origin, ())) > MOST_LINKS for origin in level):
            return Answer(Why.TOO_WIDE)
        if not found:
            return Answer(Why.NONE)
        level = found
    return Answer(Why.TOO_DEEP)


def check_pattern(pattern: str, *, field: str) -> str:
    """:raises InvalidRequest: for a ``*`` anywhere but as the whole last part of a path, as in ``docs/*``."""
    plain = pattern.removesuffix(_END)
    if "*" in plain or not plain:
        message = "A * stands for whatever lies below a path, and only at its end: write docs/* or an exact name."
        raise InvalidRequest(message, code="pattern_unusable", field=field)
    return pattern


def matches(pattern: str, name: str) -> bool:
    """Whether ``name`` is ``pattern``, or lies below the path that it names: ``docs/*`` holds ``docs/a/b``, not ``docs`` or ``docs2/a``."""
    if pattern.endswith(_END):
        below = pattern[:-1]
        return name.startswith(below) and len(name) > len(below)
    return name == pattern
