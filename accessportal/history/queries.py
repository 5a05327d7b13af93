"""Who had something at a moment or in a time, and what somebody had in a time; each answer says up to when it knows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import islice

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
"""Of what somebody had."""
LONGEST_PERIOD = timedelta(days=92)
"""Of who had something: any three months, which are nine reads, however long the past is."""
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
    :raises InvalidRequest: for more than three months at once.
    :raises NotMadeYet: while the history is being made.
    """
    policy.may_ask(actor).require()
    end = at + _MOMENT if until is None else until
    _check_time(at, end, LONGEST_PERIOD)
    progress = made()
    time = _Time(progress.generation, at, end)
    places_of = cache(time.places)
    above, too_many = _ways(time, [(edge,) for edge in places_of(thing.name)] if thing.kind is ThingKind.GROUP else [], places_of)
    sources = [source for way in ((), *above) for source in time.sources(way[-1].thing.key if way else thing.key, way)]
    left_out = list(too_many)

    def read(source: _Source, inner: str | None, most: int) -> Page[Held]:
        page = source.page(end, inner, most)
        off = _off(places_of(policy.top_of(source.path) if source.path else thing.name)) if thing.kind is ThingKind.GROUP else []
        held: list[Held] = []
        for interval in page.items:
            # Roles in a group above reach down, being in another group below it does not.
            if not time.meets(source, interval) or right not in ("", interval.right) or (source.path and interval.is_group):
                continue
            held += time.real(off, Held(interval, source.path))
            if interval.is_group:
                # Of a group below a group, those below it are in both.
                off_then = off if policy.is_edge(interval) else _off(places_of(interval.who))
                members = list(islice(time.members(off_then, interval), MOST_MEMBERS + 1))
                held += members[:MOST_MEMBERS]
                left_out.extend([interval.who] if len(members) > MOST_MEMBERS else [])
        return Page(tuple(held), page.next_cursor, page.unreadable)

    page, known_until = _paged(f"history.who_had:{thing.key}:{right}:{at}:{end}", progress, sources, read, cursor, limit)
    return Answer(page, known_until, tuple(dict.fromkeys(left_out)), policy.unfollowed_for(actor, progress))


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
    _check_time(begin, end, LONGEST_TIME)
    progress = made()
    time = _Time(progress.generation, begin, end)
    # Many ways meet at the same groups.
    places_of = cache(time.places)
    ways, left_out = _ways(time, [(one,) for one in time.rows(who) if one.thing.kind is ThingKind.GROUP], places_of)
    sources = [source for way in ((), *ways) for source in time.sources(policy.top_of(way) if way else who, way, is_person=True)]

    def read(source: _Source, inner: str | None, most: int) -> Page[Held]:
        page = source.page(end, inner, most)
        off = _off(places_of(policy.top_of(source.path))) if source.path and page.items else []
        # Places in the tree are no access.
        met = (one for one in page.items if time.meets(source, one) and not policy.is_edge(one))
        held = tuple(one for interval in met for one in time.real(off, Held(interval, source.path)))
        return Page(held, page.next_cursor, page.unreadable)

    page, known_until = _paged(f"history.what_had:{who}:{begin}:{end}", progress, sources, read, cursor, limit)
    return Answer(page, known_until, left_out, policy.unfollowed_for(actor, progress))


def made() -> Progress:
    """:raises NotMadeYet: while the history is being made."""
    found = store.get_progress()
    if found is None or found.parts_done < policy.PARTS:
        raise NotMadeYet(0 if found is None else found.parts_done, policy.PARTS)
    return found


@dataclass(frozen=True, slots=True)
class _Source:
    """One part of what a thing or a person had. ``path`` leads from there to what was asked for."""

    generation: int
    name: str
    part: str
    is_person: bool = False
    path: Path = ()

    @property
    def mark(self) -> str:
        """What tells it from the other sources of an answer, also when these have changed since."""
        names = (self.name, self.part, *(one.key for one in self.path))
        return hashlib.sha256("\n".join(names).encode()).hexdigest()[:20]

    def page(self, until: datetime, cursor: str | None, limit: int) -> Page[Interval]:
        return store.page_of(self.generation, self.name, self.part, until=until, is_person=self.is_person, cursor=cursor, limit=limit)


@dataclass(frozen=True, slots=True)
class _Time:
    generation: int
    begin: datetime
    end: datetime

    def sources(self, name: str, path: Path = (), *, is_person: bool = False) -> list[_Source]:
        parts = (*store.months_between(self.begin, self.end), *map(str, range(self.begin.year, self.end.year + 1)))
        return [_Source(self.generation, name, part, is_person=is_person, path=path) for part in (store.OPEN, *parts)]

    def meets(self, source: _Source, interval: Interval) -> bool:
        """Whether it was so in this time, and is met in this part first."""
        return interval.overlaps(self.begin, self.end) and source.part == store.first_part(interval, self.begin)

    def is_real(self, held: Held) -> bool:
        """Whether there was a moment at which all that it takes was so."""
        return max(self.begin, held.from_at) < min(self.end, held.over_at or self.end)

    def real(self, off: Sequence[Interval], held: Held) -> list[Held]:
        """``held`` in this time, but for when the group that had it was disabled."""
        return [one for one in _but_for(off, held) if self.is_real(one)]

    def places(self, group_id: str) -> list[Interval]:
        """Where the group stood below another, and whether it was disabled there."""
        return [one for one in self.rows(group_id) if policy.is_edge(one) and one.thing.name]

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
        sources = self.sources(name, is_person=is_person)
        first = side_by_side([partial(source.page, self.end, None, _BIG_PAGE) for source in sources])
        for source, page in zip(sources, first, strict=True):
            for one in every(lambda cursor: page if cursor is None else source.page(self.end, cursor, _BIG_PAGE)):  # noqa: B023
                if self.meets(source, one):
                    yield one


def _off(places: Sequence[Interval]) -> list[Interval]:
    return [one for one in places if one.is_off]


def _but_for(off: Sequence[Interval], held: Held) -> Iterator[Held]:
    """``held`` in the times between those in which the group that had it was disabled."""
    since: datetime | None = None
    for one in sorted(off, key=lambda one: one.from_at):
        yield replace(held, since=since, until=one.from_at)
        if one.over_at is None:
            return
        since = one.over_at
    yield replace(held, since=since)


def _ways(time: _Time, ways: list[Path], places_of: Callable[[str], Sequence[Interval]]) -> tuple[list[Path], tuple[str, ...]]:
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
        edges = (edge for edge in places_of(group_id) if not (edge.is_off and is_member))
        ways += [(*way, edge) for edge in edges if time.is_real(Held(way[0], (*way[1:], edge)))]
    return ways, tuple(dict.fromkeys(left_out))


def _paged(
    pattern: str,
    progress: Progress,
    sources: Sequence[_Source],
    read: Callable[[_Source, str | None, int], Page[Held]],
    cursor: str | None,
    limit: int,
) -> tuple[Page[Held], datetime]:
    """One page of many sources, one after the other, and up to when the first page knew: so all pages are one answer. The cursor tells in
    which source it goes on, by its mark, and where; a page that is full looks further for whether anything follows."""
    known_until, number, inner = policy.known_until(progress), 0, None
    if (start := read_cursor(pattern, cursor)) is not None:
        marks = [source.mark for source in sources]
        if start.get("generation") != progress.generation or start["source"] not in marks:
            words = "The history has changed since the first page of this answer. Begin with the first page."
            raise InvalidRequest(words, code="cursor_outdated", field="cursor")
        known_until, number, inner = from_epoch(start["known_until"]), marks.index(start["source"]), start["cursor"]
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
            "generation": progress.generation,
            "known_until": to_epoch(known_until),
            "source": sources[number].mark,
            "cursor": inner,
        }
    return Page(tuple(held), sign_cursor(pattern, following), tuple(broken)), known_until


def _check_time(begin: datetime, end: datetime, longest: timedelta) -> None:
    if begin >= end:
        raise InvalidRequest("“From” must lie before “To”. Give the earlier moment first.", code="time_reversed", field="to")
    if end - begin > longest:
        words = f"That is more than {longest.days} days. Ask for {'a year' if longest == LONGEST_TIME else 'three months'} at a time."
        raise InvalidRequest(words, code="time_too_long", field="to")
