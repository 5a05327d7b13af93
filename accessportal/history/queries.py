"""Who had something at a moment or in a time, and what somebody had in a time; each answer says up to when it knows."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
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
# Requests for rows of a page of so many lines, which ends there, whatever is left; to go on at its place takes one more. A larger page, of
# a file or a command, may take as many times more: what it has read once it need not read for each line.
_MOST_READS, _LINES = 7, 25
_ACCOUNT_ID = re.compile(r"[0-9]{12}")
_BIG_PAGE = 500
# The mark of a list that is read to its end.
_END = "end"

Path = tuple[Interval, ...]
Mark = Any
"""Behind which row a list goes on, as JSON holds it: a key, or where the list takes several requests, span, cursor and row."""
Fetch = Callable[[store.Span, str | None], Page[store.Row]]


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
    group_id = thing.name if thing.kind is ThingKind.GROUP else ""
    return _Walk(time, thing.key, group_id, limit, right=right).answer(actor)


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
    return _Walk(_Time.of(begin, end, about=f"what_had:{who}", cursor=cursor), who, who, limit, is_person=True).answer(actor)


def made() -> Progress:
    """:raises NotMadeYet: while the history is being made."""
    found = store.get_progress()
    if found is None or found.is_outdated or found.parts_done < policy.PARTS:
        raise NotMadeYet(0 if found is None or found.is_outdated else found.parts_done, policy.PARTS)
    return found


@dataclass(slots=True)
class _Time:
    """What was so from ``begin`` on and before ``end``, for one page of an answer: ``start`` tells where it begins, and ``known_until`` is
    what the first page knew, so that all pages are one answer. ``reads``: how many requests it took."""

    progress: Progress
    begin: datetime
    end: datetime
    known_until: datetime
    pattern: str
    start: Mapping[str, Any] | None
    reads: int = 0
    _found: dict[str, list[Interval]] = field(default_factory=dict)

    @classmethod
    def of(cls, begin: datetime, end: datetime, *, about: str, cursor: str | None) -> _Time:
        """:raises InvalidRequest: for a time that is reversed or too long, and for a cursor of a history that was made anew since."""
        _check_time(begin, end)
        progress, pattern = made(), f"history.walk.{about}:{begin}:{end}"
        start = read_cursor(pattern, cursor)
        if start is not None and start.get("generation") != progress.generation:
            raise _outdated()
        known_until = policy.known_until(progress) if start is None else from_epoch(start["known_until"])
        return cls(progress, begin, end, known_until, pattern, start)

    def spans(self, lately: timedelta = timedelta(0)) -> list[store.Span]:
        """In one query where at most as much as ``lately`` of it is read in vain, besides this month."""
        since = self.known_until - lately
        return store.spans_of(self.begin, self.end, is_late=(self.end.year, self.end.month) >= (since.year, since.month))

    def is_real(self, held: Held) -> bool:
        """Whether there was a moment at which all that it takes was so."""
        return max(self.begin, held.from_at) < min(self.end, held.over_at or self.end)

    def real(self, off: Sequence[Interval], held: Held) -> list[Held]:
        """``held`` in this time, but for when the group that had it was disabled."""
        return [one for one in _but_for(off, held) if self.is_real(one)]

    def off(self, group_id: str) -> list[Interval]:
        """When the group was disabled."""
        return [one for one in self.of_person(group_id) if policy.is_edge(one) and one.thing.name and one.is_off] if group_id else []

    def of_person(self, name: str) -> list[Interval]:
        """All that a person or a group had, read once."""
        if name not in self._found:
            spans = self.spans(_LATELY)
            fetch = partial(self._page, name, is_person=True, limit=_BIG_PAGE)
            self._found[name] = sorted(_whole(fetch, spans, self._first(fetch, spans)), key=attrgetter("key"))
        return self._found[name]

    def price(self, name: str, spans: Sequence[store.Span]) -> int:
        """How many requests it takes to read on about a person, a group or a thing."""
        return 0 if not name or name in self._found else len(spans)

    def of_thing(
        self, name: str, spans: Sequence[store.Span], after: Mark, *, at_once: int, past: Callable[[Unreadable], object] | None
    ) -> Iterator[tuple[Mark, Interval | None]]:
        """What lies behind ``after``, each with its mark. What one request (for each span) held at first, stays in an order that does not
        change with what is over meanwhile; of more this may be missing, and there is ``None`` before each further request."""
        fetch = partial(self._page, name, limit=_BIG_PAGE if isinstance(after, str) else at_once)
        pages: dict[int, Page[store.Row]] = {}
        number, start, last = after if isinstance(after, list) else (0, None, "")
        if not isinstance(after, list):
            if name not in self._found:
                first = self._first(fetch, spans)
                pages = dict(enumerate(first))
                if after or not any(page.next_cursor for page in first):
                    self._found[name] = sorted(_whole(fetch, spans, first, past), key=self._mark)
            if name in self._found:
                yield from ((self._mark(one), one) for one in self._found[name] if self._mark(one) > (after or ""))
                return
        while number < len(spans):
            page = pages.pop(number, None) or fetch(spans[number], start)
            for broken in page.unreadable:
                if past is None:
                    raise broken.error()
                past(broken)
            yield from (([number, start, row], one) for row, one in page.items if row > last)
            number, start, last = (number, page.next_cursor, "") if page.next_cursor else (number + 1, None, "")
            if number < len(spans):
                yield [number, start, last], None

    def _mark(self, one: Interval) -> str:
        """Those that were not over at the first page come last, also when they are now."""
        return f"{int(one.gone_at is None or one.gone_at > self.known_until)}|{one.key}"

    def _page(self, name: str, span: store.Span, cursor: str | None, *, limit: int, is_person: bool = False) -> Page[store.Row]:
        self.reads += 1
        generation = self.progress.generation
        return store.page_of(generation, name, span, begin=self.begin, end=self.end, is_person=is_person, cursor=cursor, limit=limit)

    def _first(self, fetch: Fetch, spans: Sequence[store.Span]) -> list[Page[store.Row]]:
        return side_by_side([partial(fetch, span, None) for span in spans])


def _whole(
    fetch: Fetch, spans: Sequence[store.Span], first: Sequence[Page[store.Row]], past: Callable[[Unreadable], object] | None = None
) -> list[Interval]:
    """All of some spans, of which the ``first`` pages were read."""
    found: list[Interval] = []
    for span, page in zip(spans, first, strict=True):
        found += (one for _, one in every(lambda cursor: page if cursor is None else fetch(span, cursor), past=past))  # noqa: B023
    return found


def _but_for(off: Sequence[Interval], held: Held) -> Iterator[Held]:
    """``held`` in the times between those in which the group that had it was disabled."""
    since: datetime | None = None
    for one in sorted(off, key=lambda one: one.from_at):
        yield replace(held, since=since, until=one.from_at)
        if one.over_at is None:
            return
        since = one.over_at
    yield replace(held, since=since)


class _Kind(enum.StrEnum):
    HAD = "had"
    IN = "in"
    UP = "up"


@dataclass(slots=True)
class _List:
    """A list on the way through an answer: what a person or who a thing had (``HAD``), who was in a group (``IN``), or in which groups
    somebody was (``UP``). ``by`` is the interval that led to it; it is read up to ``after``."""

    kind: _Kind
    by: Interval | None = None
    after: Mark = None
    rows: Iterator[tuple[Mark, Interval | None]] | None = None


@dataclass(slots=True)
class _Walk:
    """One page of an answer, depth first through the tree of groups: of ``name``, the key of a thing or (``is_person``) a person; from the
    group or person ``start`` ways lead up. The cursor tells the lists on the way, each with the interval that led to it and how far it is
    read, so that no page looks at what others had."""

    time: _Time
    name: str
    start: str
    limit: int
    right: str = ""
    is_person: bool = False
    broken: list[Unreadable] = field(default_factory=list)

    def answer(self, actor: Actor) -> Answer:
        """As many lines as ``limit``, or as its requests give; a page that is full looks further for whether anything follows."""
        lists, held = self._begin(), list[Held]()
        while lists:
            last, way = lists[-1], tuple(one.by for one in lists if one.by)
            if last.after == _END:
                lists.pop()
                continue
            if last.rows is None:
                if not self._has_left(self._price(last, way)):
                    break
                last.rows = self._rows(last, way)
            row = next(last.rows, None)
            if row is None:
                lists.pop()
                continue
            mark, interval = row
            lines, further = self._look(last.kind, way, interval) if interval else ([], [])
            if lines and len(held) >= self.limit:
                break
            last.after = mark
            held += lines
            lists += further
            if interval is None and (len(held) >= self.limit or not self._has_left(1)):
                break
        page = Page(tuple(held), self._cursor(lists), tuple(self.broken))
        return Answer(page, self.time.known_until, policy.unfollowed_for(actor, self.time.progress))

    def _begin(self) -> list[_List]:
        """The lists of the cursor; :raises InvalidRequest: when an interval of it is there no more."""
        if self.time.start is None:
            return [*([_List(_Kind.UP)] if self.start else []), _List(_Kind.HAD)]
        kept = self.time.start["lists"]
        try:
            by = store.find_each(self.time.progress.generation, [tuple(one[2]) for one in kept if one[2]], begin=self.time.begin)
        except LookupError as error:
            raise _outdated() from error
        found = iter(by)
        return [_List(_Kind(kind), next(found) if key else None, after) for kind, after, key in kept]

    def _cursor(self, lists: Sequence[_List]) -> str | None:
        for one in lists[:-1]:
            if one.rows is not None and next(one.rows, None) is None:
                one.after = _END
        kept = [(one.kind, one.after, one.by and (one.by.thing.key, one.by.key)) for one in lists]
        key = {"generation": self.time.progress.generation, "known_until": to_epoch(self.time.known_until), "lists": kept}
        return sign_cursor(self.time.pattern, key if lists else None)

    def _has_left(self, price: int) -> bool:
        """Whether so many requests may follow. Those for one list always may, so that each page comes further."""
        return not self.time.reads or self.time.reads + price <= _MOST_READS * max(1, self.limit // _LINES)

    def _holder(self, kind: _Kind, way: Path) -> str:
        """The person or group whose own lines are needed, also for when the group was disabled."""
        if kind is _Kind.IN:
            # Of a group below a group, those below it are in both.
            return self.start if policy.is_edge(way[0]) else way[0].who
        return policy.top_of(way) if way else self.start

    def _price(self, one: _List, way: Path) -> int:
        price = self.time.price(self._holder(one.kind, way), self.time.spans(_LATELY))
        if one.kind is _Kind.IN:
            return price + self.time.price(Thing(ThingKind.GROUP, way[-1].who).key, self.time.spans(_LATELY))
        if one.kind is _Kind.HAD and not self.is_person:
            return price + self.time.price(way[-1].thing.key if way else self.name, self.time.spans())
        return price

    def _rows(self, one: _List, way: Path) -> Iterator[tuple[Mark, Interval | None]]:
        if one.kind is _Kind.IN:
            group = Thing(ThingKind.GROUP, way[-1].who).key
            return self.time.of_thing(group, self.time.spans(_LATELY), one.after, at_once=_BIG_PAGE, past=None)
        if one.kind is _Kind.HAD and not self.is_person:
            name = way[-1].thing.key if way else self.name
            return self.time.of_thing(name, self.time.spans(), one.after, at_once=self.limit, past=self.broken.append)
        found = self.time.of_person(self._holder(one.kind, way))
        return ((interval.key, interval) for interval in found if interval.key > (one.after or ""))

    def _look(self, kind: _Kind, way: Path, one: Interval) -> tuple[list[Held], list[_List]]:
        """The lines of an interval, and the lists to which it leads."""
        if kind is _Kind.UP:
            return [], self._up(way, one)
        off = partial(self.time.off, self._holder(kind, way))
        if kind is _Kind.IN:
            held = Held(way[0], (one, *reversed(way[1:])))
            # Two groups that were each below the other, one after the other, end here.
            if len(way) > policy.MOST_LEVELS + 1 or not self.time.is_real(held):
                return [], []
            if one.is_group:
                return [], [_List(_Kind.IN, one)]
            return [] if way[-1].is_off else self.time.real(off(), held), []
        if self.is_person:
            # Places in the tree are no access.
            return [] if policy.is_edge(one) else self.time.real(off(), Held(one, way)), []
        # Roles in a group above reach down, being in another group below it does not.
        if self.right not in ("", one.right) or (way and one.is_group):
            return [], []
        return self.time.real(off(), Held(one, way)), [_List(_Kind.IN, one)] if one.is_group else []

    def _up(self, way: Path, one: Interval) -> list[_List]:
        """What was had by the group in which ``one`` is, then the groups above it."""
        if one.thing.kind is not ThingKind.GROUP or not one.thing.name:
            return []
        # Who is in a group that is disabled, is not in those above by it.
        if one.is_off and len(way) == 1 and not policy.is_edge(way[0]):
            return []
        first, *rest = (*way, one)
        if not self.time.is_real(Held(first, tuple(rest))):
            return []
        if len(way) >= policy.MOST_LEVELS:
            return [_List(_Kind.HAD, one)]
        return [_List(_Kind.UP, one), _List(_Kind.HAD)]


def _outdated() -> InvalidRequest:
    words = "The history has changed since the first page of this answer. Begin with the first page."
    return InvalidRequest(words, code="cursor_outdated", field="cursor")


def _check_time(begin: datetime, end: datetime) -> None:
    if begin >= end:
        raise InvalidRequest("“From” must lie before “To”. Give the earlier moment first.", code="time_reversed", field="to")
    if end - begin > LONGEST_TIME:
        words = f"That is more than {LONGEST_TIME.days} days. Ask for a year at a time."
        raise InvalidRequest(words, code="time_too_long", field="to")
