"""Who had something at a moment, and what somebody had in a time; each answer says up to when it knows."""

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


def who_had(*, thing: Thing, right: str = "", at: datetime, cursor: str | None = None, limit: int = 50, actor: Actor) -> Answer:
    """Who had ``thing`` at that moment (``right``: only with this permission set, role, action or relation). A group that had it is
    followed by the people who were in it then. Of a group: its members, with those of the groups below, and whoever had a role above. A
    page may hold fewer than ``limit``, or none, while more follow.

    :raises NotAllowed: unless the actor reads everything.
    :raises NotMadeYet: while the history is being made.
    """
    policy.may_ask(actor).require()
    progress = made()
    sources = _sources(progress.generation, thing, at)
    left_out: list[str] = []

    def read(source: _Source, inner: str | None, most: int) -> Page[Held]:
        page = source.page(at, inner, most)
        held: list[Held] = []
        for interval in page.items:
            if interval.is_at(at) and right in ("", interval.right):
                held.append(Held(interval, source.path))
                is_followed = interval.is_group and not _is_empty(progress.generation, interval, at)
                members = list(islice(_members(progress.generation, interval, at), MOST_MEMBERS + 1)) if is_followed else []
                held += [Held(interval, path) for path in members[:MOST_MEMBERS]]
                left_out.extend([interval.who] if len(members) > MOST_MEMBERS else [])
        return Page(tuple(held), page.next_cursor, page.unreadable)

    page, known_until = _paged(f"history.who_had:{thing.key}:{right}:{at}", progress, sources, read, cursor, limit)
    return Answer(page, known_until, tuple(left_out), policy.unfollowed_for(actor, progress))


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
    _check_time(begin, end)
    progress = made()
    time = _Time(progress.generation, begin, end)
    # Many ways meet at the same groups.
    places_of = cache(time.places)
    ways, left_out = _ways(time, who, places_of)
    sources = [source for way in ((), *ways) for source in time.sources(policy.top_of(way) if way else who, way)]

    def read(source: _Source, inner: str | None, most: int) -> Page[Held]:
        page = source.page(end, inner, most)
        off = [one for one in places_of(policy.top_of(source.path)) if one.is_off] if source.path and page.items else []
        held = (one for interval in page.items if time.meets(source, interval) for one in _but_for(off, Held(interval, source.path)))
        return Page(tuple(one for one in held if time.is_real(one)), page.next_cursor, page.unreadable)

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


def _parts_at(at: datetime) -> tuple[str, ...]:
    return store.OPEN, f"{at:%Y-%m}", f"{at:%Y}"


def _sources(generation: int, thing: Thing, at: datetime) -> list[_Source]:
    """Where to read who had a thing; for a group, those above it, too."""
    if thing.kind is not ThingKind.GROUP:
        return [_Source(generation, thing.key, part) for part in _parts_at(at)]
    above = _above(generation, thing.name, at)
    own = [] if above and above[0].is_off else [_Source(generation, thing.key, part) for part in _parts_at(at)]
    # What is given in a group that is disabled gives nothing.
    off = {edge.who for edge in above if edge.is_off}
    paths = ((edge.thing.key, above[: number + 1]) for number, edge in enumerate(above) if edge.thing.name not in off)
    return own + [_RoleSource(generation, key, part, path=path) for key, path in paths for part in _parts_at(at)]


class _RoleSource(_Source):
    """A group above: roles there reach down, being in another group below it does not."""

    __slots__ = ()

    def page(self, until: datetime, cursor: str | None, limit: int) -> Page[Interval]:
        page = _Source.page(self, until, cursor, limit)
        return Page(tuple(one for one in page.items if not one.is_group), page.next_cursor, page.unreadable)


def _above(generation: int, group_id: str, at: datetime) -> Path:
    """The place of a group in the tree at a moment, from itself up to the root."""
    path: list[Interval] = []
    while len(path) <= policy.MOST_LEVELS:
        edge = _place(generation, group_id, at)
        if edge is None or not edge.thing.name:
            break
        path.append(edge)
        group_id = edge.thing.name
    return tuple(path)


def _place(generation: int, group_id: str, at: datetime) -> Interval | None:
    return next((one for one in _rows(generation, group_id, at, is_person=True) if policy.is_edge(one)), None)


def _is_empty(generation: int, held: Interval, at: datetime) -> bool:
    """Whether the group that ``held`` something was disabled. Of a group below a group, those below it are in both."""
    place = None if policy.is_edge(held) else _place(generation, held.who, at)
    return place is not None and place.is_off


def _rows(generation: int, name: str, at: datetime, *, is_person: bool = False) -> Iterator[Interval]:
    """All that a thing or person had at a moment."""
    sources = [_Source(generation, name, part, is_person=is_person) for part in _parts_at(at)]
    first = side_by_side([partial(source.page, at, None, _BIG_PAGE) for source in sources])
    for source, page in zip(sources, first, strict=True):
        for interval in every(lambda cursor: page if cursor is None else source.page(at, cursor, _BIG_PAGE)):  # noqa: B023
            if interval.is_at(at):
                yield interval


def _members(generation: int, held: Interval, at: datetime, path: Path = ()) -> Iterator[Path]:
    """How each person was in the group that ``held`` it, or in a group below."""
    if len(path) > policy.MOST_LEVELS:
        return
    for interval in _rows(generation, Thing(ThingKind.GROUP, (path[0] if path else held).who).key, at):
        if interval.is_group:
            yield from _members(generation, held, at, (interval, *path))
        elif not (path[0] if path else held).is_off:
            yield (interval, *path)


@dataclass(frozen=True, slots=True)
class _Time:
    generation: int
    begin: datetime
    end: datetime

    def sources(self, name: str, path: Path = ()) -> list[_Source]:
        parts = (*store.months_between(self.begin, self.end), *map(str, range(self.begin.year, self.end.year + 1)))
        return [_Source(self.generation, name, part, is_person=True, path=path) for part in (store.OPEN, *parts)]

    def meets(self, source: _Source, interval: Interval) -> bool:
        """Whether it was so in this time, and is met in this part first."""
        return interval.overlaps(self.begin, self.end) and source.part == store.first_part(interval, self.begin)

    def is_real(self, held: Held) -> bool:
        """Whether there was a moment at which all that it takes was so. Places in the tree are no access."""
        until = min(self.end, held.over_at or self.end)
        return not policy.is_edge(held.interval) and max(self.begin, held.from_at) < until

    def places(self, group_id: str) -> list[Interval]:
        """Where the group stood below another, and whether it was disabled there."""
        return [one for one in self.rows(group_id) if policy.is_edge(one) and one.thing.name]

    def rows(self, name: str) -> Iterator[Interval]:
        sources = self.sources(name)
        first = side_by_side([partial(source.page, self.end, None, _BIG_PAGE) for source in sources])
        for source, page in zip(sources, first, strict=True):
            for one in every(lambda cursor: page if cursor is None else source.page(self.end, cursor, _BIG_PAGE)):  # noqa: B023
                if self.meets(source, one):
                    yield one


def _but_for(off: Sequence[Interval], held: Held) -> Iterator[Held]:
    """``held`` in the times between those in which the group that had it was disabled."""
    since: datetime | None = None
    for one in sorted(off, key=lambda one: one.from_at):
        yield replace(held, since=since, until=one.from_at)
        if one.over_at is None:
            return
        since = one.over_at
    yield replace(held, since=since)


def _ways(time: _Time, who: str, places_of: Callable[[str], Sequence[Interval]]) -> tuple[list[Path], tuple[str, ...]]:
    """By which memberships, and places in the tree, somebody was in groups; and the groups at which there were too many to look on."""
    ways: list[Path] = [(one,) for one in time.rows(who) if one.thing.kind is ThingKind.GROUP]
    left_out: list[str] = []
    for way in ways:
        group_id = policy.top_of(way)
        if len(ways) >= MOST_WAYS:
            left_out.append(group_id)
            continue
        if len(way) > policy.MOST_LEVELS:
            continue
        # Who is in a group that is disabled, is not in those above by it.
        edges = (edge for edge in places_of(group_id) if not (edge.is_off and len(way) == 1))
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


def _check_time(begin: datetime, end: datetime) -> None:
    if begin >= end:
        raise InvalidRequest("“From” must lie before “To”. Give the earlier moment first.", code="time_reversed", field="to")
    if end - begin > LONGEST_TIME:
        words = f"That is more than {LONGEST_TIME.days} days. Ask for a year at a time."
        raise InvalidRequest(words, code="time_too_long", field="to")
