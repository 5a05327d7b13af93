"""Who had something at a moment or in a time, and what somebody had in a time; each answer says up to when it knows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice, tee
from operator import attrgetter
from typing import Any

from accessportal.catalog.queries import find_account
from accessportal.history import policy, store
from accessportal.history.states import Answer, Held, Interval, NotMadeYet, Progress, Thing, ThingKind
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.pages import Page, Unreadable, every
from accessportal.kernel.texts import cut
from accessportal.store.cursors import read_cursor, sign_cursor
from accessportal.store.reading import side_by_side

LONGEST_TIME = timedelta(days=366)
# Of people and groups as much is read in vain at most, where that saves two of three queries.
_LATELY = timedelta(days=366)
# A moment is asked for as the shortest time that begins with it.
_MOMENT = timedelta(microseconds=1)
# Of a group's members so many stand in one answer; who wants all asks for the group.
MOST_MEMBERS = 200
# Ways by which somebody is in groups, of one answer.
MOST_WAYS = 200
_MOST_READS = 40
_ACCOUNT_ID = re.compile(r"[0-9]{12}")
# So many rows are looked at, at once, for whether anything follows a page that is full.
_AHEAD = 5
_BIG_PAGE = 500

Path = tuple[Interval, ...]


def who_had(
    *, thing: Thing, right: str = "", at: datetime, until: datetime | None = None, cursor: str | None = None, limit: int = 50, actor: Actor
) -> Answer:
    """Who had ``thing`` at that moment, or (``until``) at some moment from ``at`` on and before it, only with this ``right``. A group that
    had it is followed by whoever was in it then; of a group: also those of the groups below, and whoever had a role above. A page may hold
    fewer than ``limit``, or none, while more follow.

    :raises NotAllowed: unless the actor reads everything.
    :raises InvalidRequest: for more than a year at once.
    :raises NotMadeYet: while the history is being made.
    """
    policy.may_ask(actor).require()
    time = _Time.of(at, at + _MOMENT if until is None else until, about=f"who_had:{thing.key}:{right}", cursor=cursor)
    above, too_many = _ways(time, [(edge,) for edge in time.places(thing.name)] if thing.kind is ThingKind.GROUP else [])
    sources = [_Source(way[-1].thing.key if way else thing.key, way, span) for way in ((), *above) for span in time.spans()]
    left_out = list(too_many)

    def read(source: _Source, inner: str | None, most: int) -> Page[Held]:
        page = time.page(source.name, source.span, cursor=inner, limit=most)
        off = time.off(policy.top_of(source.path) if source.path else thing.name) if thing.kind is ThingKind.GROUP else []
        held: list[Held] = []
        for interval in page.items:
            # Roles in a group above reach down, being in another group below it does not.
            if right not in ("", interval.right) or (source.path and interval.is_group):
                continue
            held += time.real(off, Held(interval, source.path))
            if interval.is_group:
                # Of a group below a group, those below it are in both.
                off_then = off if policy.is_edge(interval) else time.off(interval.who)
                members = list(islice(time.members(off_then, interval), MOST_MEMBERS + 1))
                held += members[:MOST_MEMBERS]
                left_out.extend([interval.who] if len(members) > MOST_MEMBERS else [])
        return Page(tuple(held), page.next_cursor, page.unreadable)

    page = _paged(time, sources, read, limit)
    return Answer(page, time.known_until, tuple(dict.fromkeys(left_out)), policy.unfollowed_for(actor, time.progress))


def find_thing(kind: ThingKind, text: str) -> Thing:
    """What people call it: an account by id, or by the name that it has now; a group by its path; a sandbox by its id; of an approval or a
    relationship its scope, a slash, and the resource or object.

    :raises InvalidRequest: for one of these without a scope; and for what no account or group can have had as its name in the log, to which
        the answer would always be that nobody had it.
    """
    name, field = text.strip(), kind.value
    if not name:
        raise InvalidRequest(f"Say which {field}.", code=f"{field}_missing", field=field)
    if kind.has_scope:
        scope, slash, name = name.partition("/")
        if not slash or not name:
            words = "Give its scope, a slash, and the resource or object, like tenant:acme-corp/docs/plan."
            raise InvalidRequest(words, code=f"{field}_unreadable", field=field)
        return Thing(kind, name, scope)
    if kind in (ThingKind.ACCOUNT, ThingKind.LEASE):
        account = find_account(account=name)
        if account is None and not _ACCOUNT_ID.fullmatch(name):
            raise InvalidRequest(
                f"No account has the name “{cut(name)}” now. Give its id of 12 digits.", code=f"{field}_unknown", field=field
            )
        return Thing(kind, account.account_id if account else name)
    if kind is ThingKind.GROUP and not name.startswith("/"):
        raise InvalidRequest(
            f"A group is named by its path, like /engineering, and not “{cut(name)}”.", code="group_unreadable", field=field
        )
    return Thing(kind, name)


def what_had(*, email: str, begin: datetime, end: datetime, cursor: str | None = None, limit: int = 50, actor: Actor) -> Answer:
    """Everything that somebody had from ``begin`` on and before ``end``, by themselves and through groups. Pages as those of
    :func:`who_had`.

    :raises NotAllowed: for another person, unless the actor reads everything.
    :raises InvalidRequest: for more than a year at once.
    :raises NotMadeYet: while the history is being made.
    """
    who = fold_email(email)
    policy.may_ask_about(actor, who).require()
    time = _Time.of(begin, end, about=f"what_had:{who}", cursor=cursor)
    ways, left_out = _ways(time, [(one,) for one in time.rows(who) if one.thing.kind is ThingKind.GROUP])
    sources = [_Source(policy.top_of(way) if way else who, way) for way in ((), *ways)]

    def read(source: _Source, inner: str | None, most: int) -> Page[Held]:
        # All of it was read to find the ways; in this order it stays whatever is over meanwhile.
        found = sorted(time.rows(source.name), key=attrgetter("key"))
        rest = [one for one in found if one.key > (inner or "")]
        off = time.off(source.name) if source.path else []
        # Places in the tree are no access.
        had = (one for one in rest[:most] if not policy.is_edge(one))
        held = tuple(one for interval in had for one in time.real(off, Held(interval, source.path)))
        return Page(held, rest[most - 1].key if len(rest) > most else None)

    return Answer(_paged(time, sources, read, limit), time.known_until, left_out, policy.unfollowed_for(actor, time.progress))


def made() -> Progress:
    """:raises NotMadeYet: while the history is being made."""
    found = store.get_progress()
    if found is None or found.is_outdated or found.parts_done < policy.PARTS:
        raise NotMadeYet(0 if found is None or found.is_outdated else found.parts_done, policy.PARTS)
    return found


@dataclass(frozen=True, slots=True)
class _Source:
    """What a thing (in ``span``) or a person had. ``path`` leads from there to what was asked for."""

    name: str
    path: Path = ()
    span: store.Span = ("", "")

    @property
    def mark(self) -> str:
        """What tells it from the other sources of an answer, also when these have changed since."""
        names = (self.name, *self.span, *(one.key for one in self.path))
        return hashlib.sha256("\n".join(names).encode()).hexdigest()[:20]


@dataclass(frozen=True, slots=True)
class _Time:
    """What was so from ``begin`` on and before ``end``, for one page of an answer: ``start`` tells where it begins, and ``known_until`` is
    what the first page knew, so that all pages are one answer."""

    progress: Progress
    begin: datetime
    end: datetime
    known_until: datetime
    pattern: str
    start: Mapping[str, Any] | None
    _found: dict[tuple[str, bool], Iterator[Interval]] = field(default_factory=dict)

    @classmethod
    def of(cls, begin: datetime, end: datetime, *, about: str, cursor: str | None) -> _Time:
        """:raises InvalidRequest: for a time that is reversed or too long, and for a cursor of a history that was made anew since."""
        _check_time(begin, end)
        progress, pattern = made(), f"history.{about}:{begin}:{end}"
        start = read_cursor(pattern, cursor)
        if start is not None and start.get("generation") != progress.generation:
            raise _outdated()
        known_until = policy.known_until(progress) if start is None else from_epoch(start["known_until"])
        return cls(progress, begin, end, known_until, pattern, start)

    def spans(self, lately: timedelta = timedelta(0)) -> list[store.Span]:
        """In one query where at most as much as ``lately`` of it is read in vain, besides this month."""
        since = self.known_until - lately
        return store.spans_of(self.begin, self.end, is_late=(self.end.year, self.end.month) >= (since.year, since.month))

    def page(self, name: str, span: store.Span, **part: Any) -> Page[Interval]:
        return store.page_of(self.progress.generation, name, span, begin=self.begin, end=self.end, **part)

    def is_real(self, held: Held) -> bool:
        """Whether there was a moment at which all that it takes was so."""
        return max(self.begin, held.from_at) < min(self.end, held.over_at or self.end)

    def real(self, off: Sequence[Interval], held: Held) -> list[Held]:
        """``held`` in this time, but for when the group that had it was disabled."""
        return [one for one in _but_for(off, held) if self.is_real(one)]

    def places(self, group_id: str) -> list[Interval]:
        """Where the group stood below another, and whether it was disabled there."""
        return [one for one in self.rows(group_id) if policy.is_edge(one) and one.thing.name]

    def off(self, group_id: str) -> list[Interval]:
        """When the group was disabled."""
        return [one for one in self.places(group_id) if one.is_off]

    def members(self, off: Sequence[Interval], held: Interval, path: Path = ()) -> Iterator[Held]:
        """How each person was in the group that ``held`` it, or in a group below, while it did; but for ``off``."""
        group = path[0] if path else held
        for one in self.rows(Thing(ThingKind.GROUP, group.who).key, is_person=False):
            way = (one, *path)
            # Two groups that were each below the other, one after the other, end here.
            if len(path) > policy.MOST_LEVELS or not self.is_real(Held(held, way)):
                continue
            if one.is_group:
                yield from self.members(off, held, way)
            elif not group.is_off:
                yield from self.real(off, Held(held, way))

    def rows(self, name: str, *, is_person: bool = True) -> Iterator[Interval]:
        """All of a person, a group or (else) a thing; read once, and no further than somebody looks."""
        if (name, is_person) not in self._found:
            (self._found[name, is_person],) = tee(self._read(name, is_person=is_person), 1)
        return copy(self._found[name, is_person])

    def _read(self, name: str, *, is_person: bool) -> Iterator[Interval]:
        fetches = [partial(self.page, name, span, is_person=is_person, limit=_BIG_PAGE) for span in self.spans(_LATELY)]
        first = side_by_side([partial(fetch, cursor=None) for fetch in fetches])
        for fetch, page in zip(fetches, first, strict=True):
            yield from every(lambda cursor: page if cursor is None else fetch(cursor=cursor))  # noqa: B023


def _but_for(off: Sequence[Interval], held: Held) -> Iterator[Held]:
    """``held`` in the times between those in which the group that had it was disabled."""
    since: datetime | None = None
    for one in sorted(off, key=lambda one: one.from_at):
        yield replace(held, since=since, until=one.from_at)
        if one.over_at is None:
            return
        since = one.over_at
    yield replace(held, since=since)


def _ways(time: _Time, ways: list[Path]) -> tuple[list[Path], tuple[str, ...]]:
    """``ways``, each a membership or a place in the tree, with those that lead on from them up the tree; and the groups at which there were
    too many to look on."""
    left_out: list[str] = []
    for way in ways:
        group_id = policy.top_of(way)
        if len(ways) >= MOST_WAYS:
            left_out.append(group_id)
            continue
        if len(way) > policy.MOST_LEVELS:
            continue
        # Who is in a group that is disabled, is not in those above by it.
        is_member = len(way) == 1 and not policy.is_edge(way[0])
        edges = (edge for edge in time.places(group_id) if not (edge.is_off and is_member))
        ways += [(*way, edge) for edge in edges if time.is_real(Held(way[0], (*way[1:], edge)))]
    return ways, tuple(dict.fromkeys(left_out))


def _paged(time: _Time, sources: Sequence[_Source], read: Callable[[_Source, str | None, int], Page[Held]], limit: int) -> Page[Held]:
    """One page of many sources, one after the other. The cursor tells in which source it goes on, by its mark, and where; a page that is
    full looks further for whether anything follows."""
    number, inner = 0, None
    if time.start is not None:
        marks = [source.mark for source in sources]
        if time.start["source"] not in marks:
            raise _outdated()
        number, inner = marks.index(time.start["source"]), time.start["cursor"]
    held: list[Held] = []
    broken: list[Unreadable] = []
    for _ in range(_MOST_READS):
        if number >= len(sources):
            break
        is_full = len(held) >= limit
        page = read(sources[number], inner, _AHEAD if is_full else limit)
        if is_full and (page.items or page.unreadable):
            break
        held += page.items
        broken += page.unreadable
        number, inner = (number, page.next_cursor) if page.next_cursor else (number + 1, None)
    following = None
    if number < len(sources):
        following = {
            "generation": time.progress.generation,
            "known_until": to_epoch(time.known_until),
            "source": sources[number].mark,
            "cursor": inner,
        }
    return Page(tuple(held), sign_cursor(time.pattern, following), tuple(broken))


def _outdated() -> InvalidRequest:
    words = "The history has changed since the first page of this answer. Begin with the first page."
    return InvalidRequest(words, code="cursor_outdated", field="cursor")


def _check_time(begin: datetime, end: datetime) -> None:
    if begin >= end:
        raise InvalidRequest("“From” must lie before “To”. Give the earlier moment first.", code="time_reversed", field="to")
    if end - begin > LONGEST_TIME:
        words = f"That is more than {LONGEST_TIME.days} days. Ask for a year at a time."
        raise InvalidRequest(words, code="time_too_long", field="to")
