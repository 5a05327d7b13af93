"""What a resource of the console is made of: columns, access patterns, detail sections, deeds.

No ORM disguise: a resource lists what a table or index can really answer (each pattern is one function of a domain's
``queries``) and changes things only through the domain's ``operations``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypedDict

from django.urls import reverse

from accessportal.access_requests.queries import ApproverBook
from accessportal.kernel.actors import Actor
from accessportal.kernel.counts import Count
from accessportal.kernel.errors import NotAllowed, NotFound, PortalError
from accessportal.kernel.pages import Page, Unreadable
from accessportal.web.deeds import Deed
from accessportal.web.exporting import Exported

PAGE_SIZE = 25


class Right(enum.Enum):
    """Who may see something, among those whom the admin site lets in at all."""

    READERS = "operators and auditors"
    DECIDERS = "operators, auditors and approvers"

    def admits(self, actor: Actor) -> bool:
        return self is Right.DECIDERS or actor.reads_everything

    def require(self, actor: Actor) -> None:
        """:raises NotAllowed: naming who may."""
        if not self.admits(actor):
            raise NotAllowed(f"This page is for {self.value}.", code="not_a_reader")


class Part(TypedDict):
    """The part of a list that a query is asked for."""

    cursor: str | None
    limit: int


class PartSeen(Part):
    """The same of a list whose query asks who sees it."""

    actor: Actor
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Who asks, when, and for which part of a list. ``book`` and ``seen``, first pages by the name of their pattern: what this web
    request has read already; ``pattern``: which list, once it is chosen; ``more``: what was given besides the first input."""

    actor: Actor
    book: ApproverBook
    pattern: str = ""
    parameter: str = ""
    more: Mapping[str, str] = field(default_factory=dict)
    cursor: str | None = None
    limit: int = PAGE_SIZE
    seen: dict[str, Page[Any]] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        return self.book.now

    @property
    def part(self) -> Part:
        return {"cursor": self.cursor, "limit": self.limit}

    @property
    def part_seen(self) -> PartSeen:
        return {"actor": self.actor, "now": self.now, "cursor": self.cursor, "limit": self.limit}


_MOST_LOOKED_AT = 200


def filled(fetch: Callable[..., Page[Any]], ask: Ask, *, most_reads: int, keep: Callable[[Any], bool] | None = None) -> Page[Any]:
    """A whole page for people, of what lies in shares, each of them a short list, or of what ``keep`` leaves; ``fetch`` takes ``cursor``
    and ``limit``. After so many reads the page says "look further"."""
    found: list[Any] = []
    unreadable: list[Unreadable] = []
    cursor = ask.cursor
    for number in range(most_reads):
        # The fewer were left of the last, the more are looked at next.
        limit = ask.limit - len(found) if keep is None else max(ask.limit, min(ask.limit * 2**number, _MOST_LOOKED_AT))
        page = fetch(cursor=cursor, limit=limit)
        found += filter(keep, page.items) if keep else page.items
        unreadable += page.unreadable
        cursor = page.next_cursor
        if cursor is None or len(found) >= ask.limit:
            break
    return Page(tuple(found), cursor, tuple(unreadable))


@dataclass(frozen=True, slots=True)
class Column:
    """``template`` renders one cell; it gets ``row`` (a :class:`Row`), ``actor`` and ``now``."""

    label: str
    template: str
    css: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An input of a pattern; ``required`` parameters make the pattern useless without them. ``choices`` make it a list to choose from, and
    ``ago`` a moment: so long before now, unless another one is given. ``finds``: ``people``, ``groups`` or ``people and groups`` are looked
    up while one types. ``days_ago``: a button shows the list with the day so long ago in this input.
    ``unless``: what is given in that input stands in the place of this one."""

    label: str
    placeholder: str = ""
    input_type: str = "search"
    required: bool = True
    name: str = "q"
    choices: tuple[tuple[str, str], ...] = ()
    ago: timedelta | None = None
    finds: str = ""
    days_ago: int = 0
    unless: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A named list that a table or index can answer; ``fetch`` raises. ``columns`` and ``file_columns`` replace the resource's; ``bulk``
    and ``row_deeds`` name deeds; ``tally`` counts; ``more`` inputs follow ``parameter``. Not ``is_tab``: reached by the box or a link.
    ``is_live``: its first page looks again. ``is_in_bar``: the bar of every page tells how many there are, so other lists do not.
    ``takes_all``: where none is selected, ``bulk`` is about all on the page. ``goes_on``: while a page is not full, scripts add the next
    to it; ``is_by_time``: and keep its rows in order of their first moment."""

    name: str
    label: str
    fetch: Callable[[Ask], Page[Any]]
    empty_title: str
    empty_hint: str
    right: Right = Right.READERS
    parameter: Parameter | None = None
    more: tuple[Parameter, ...] = ()
    columns: tuple[Column, ...] = ()
    file_columns: tuple[Exported, ...] = ()
    bulk: tuple[str, ...] = ()
    row_deeds: tuple[str, ...] = ()
    tally: Callable[[Ask], Count] | None = None
    is_tab: bool = True
    is_live: bool = False
    takes_all: bool = False
    is_in_bar: bool = False
    goes_on: bool = False
    is_by_time: bool = False

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        return (self.parameter, *self.more) if self.parameter else ()


@dataclass(frozen=True, slots=True)
class Row:
    """``key`` addresses the detail page ("" when there is none); ``context`` is what the cells need besides the record. ``deeds`` names
    those of the list's ``row_deeds`` that are for this record; ``None``: each is."""

    key: str
    record: Any
    context: Any = None
    deeds: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the detail page; ``template`` gets everything that ``Resource.details`` returned."""

    title: str
    template: str
    is_aside: bool = False

    @property
    def anchor(self) -> str:
        return "section-" + self.title.lower().replace(" ", "-")


class Resource:
    """Base of all resources; a subclass fills the class attributes and what of the methods it needs."""

    name: ClassVar[str]
    singular: ClassVar[str]
    plural: ClassVar[str]
    icon: ClassVar[str]
    about: ClassVar[str]
    right: ClassVar[Right] = Right.READERS
    columns: ClassVar[tuple[Column, ...]]
    file_columns: ClassVar[tuple[Exported, ...]]
    patterns: ClassVar[tuple[Pattern, ...]]
    sections: ClassVar[tuple[Section, ...]] = ()
    deeds: ClassVar[tuple[Deed[Any], ...]] = ()
    # The route of the portal's page of a record, which is the only one, with its deeds on it; "" when the console has it.
    portal_page: ClassVar[str] = ""
    # What is asked about at once, where a line for each is too little; gets what ``described_together`` returned.
    prospects_template: ClassVar[str] = ""
    notice_template: ClassVar[str] = ""
    headline_template: ClassVar[str] = ""
    # What is said beside the items of a list; gets the ``page`` that the pattern fetched.
    remark_template: ClassVar[str] = ""
    # Whether a record has a page; where none has, that is said to everybody.
    has_page: ClassVar[bool] = True
    # Whether its records have chains in the audit log.
    has_history: ClassVar[bool] = True
    # What tells records with the same title apart; gets ``record`` and ``now``.
    line_template: ClassVar[str] = ""
    box: ClassVar[Parameter | None] = None
    # Patterns that may well be empty: where none is asked for, the first of them that has something is shown, or the last.
    opens_on: ClassVar[tuple[str, ...]] = ()

    def load(self, key: str, actor: Actor, now: datetime) -> Any:
        """The record strongly read, and the check that ``actor`` may see it, in one call. :raises NotFound:"""
        if not self.has_page:
            raise NotFound(f"There is no {self.singular} page for this.", code="no_detail")
        self.right.require(actor)
        return self.read(key, actor, now)

    def read(self, key: str, actor: Actor, now: datetime) -> Any:
        """As :meth:`load`, for who may see the list."""
        raise NotImplementedError

    def load_many(self, keys: Sequence[str], ask: Ask) -> Mapping[str, Any]:
        """As :meth:`load` for each, in their order: the record, or the ``PortalError`` that says why it is not to be had."""
        return {key: self._load_or_tell(key, ask) for key in keys}

    def _load_or_tell(self, key: str, ask: Ask) -> Any:
        try:
            return self.load(key, ask.actor, ask.now)
        except PortalError as error:
            return error

    def described_together(self, prospects: Sequence[Any]) -> dict[str, Any]:
        """The context of ``prospects_template``, of what is possible."""
        return {}

    def rows(self, items: Sequence[Any], ask: Ask) -> list[Row]:
        """What the cells need, for a page of records at once."""
        raise NotImplementedError

    def title(self, record: Any) -> str:
        return str(record.name)

    def details(self, record: Any, ask: Ask) -> dict[str, Any]:
        """The template context of the detail sections."""
        return {}

    def page_url(self, key: str) -> str:
        """The page of one record."""
        return reverse(self.portal_page or f"admin:console_{self.name}_detail", args=[key])

    def entity(self, record: Any) -> str:
        """The record's chain in the audit log."""
        return str(record.entity)

    def head(self, record: Any) -> tuple[int, str] | None:
        """Version and audit head that the chain must end with; ``None`` when the record holds neither, or has no chain yet."""
        return (record.version, record.audit_head) if record.version else None

    def notice(self, pattern: Pattern, ask: Ask) -> Mapping[str, Any]:
        """Context of ``notice_template``, shown above every list."""
        return {}

    def badge(self) -> str:
        """A word beside its name in the navigation, when there is something to look at."""
        return ""

    def find(self, text: str, ask: Ask) -> tuple[str, Mapping[str, str]]:
        """The pattern and its inputs that answer what somebody typed into the box. :raises InvalidRequest: with remedies."""
        raise NotImplementedError

    def pattern(self, name: str, ask: Ask) -> Pattern:
        """The pattern called ``name``; "" is the one to begin with. :raises NotFound: :raises NotAllowed:"""
        if not name:
            mine = self.patterns_for(ask.actor)
            *firsts, last = [pattern for pattern in mine if pattern.name in self.opens_on] or mine[:1]
            for pattern in firsts:
                ask.seen[pattern.name] = page = pattern.fetch(ask)
                if page.items:
                    return pattern
            return last
        for pattern in self.patterns:
            if pattern.name == name:
                pattern.right.require(ask.actor)
                return pattern
        raise NotFound(f"Under {self.plural} there is no list “{name[:40]}”.", code="no_such_pattern")

    def patterns_for(self, actor: Actor) -> list[Pattern]:
        return [pattern for pattern in self.patterns if pattern.right.admits(actor)]

    def deed(self, name: str) -> Deed[Any]:
        """:raises NotFound:"""
        for deed in self.deeds:
            if deed.name == name:
                return deed
        raise NotFound(f"There is no operation “{name[:40]}” here.", code="no_such_operation")

    def deeds_for(self, names: Sequence[str], ask: Ask) -> list[Deed[Any]]:
        return [deed for deed in map(self.deed, names) if deed.is_for(ask.actor, ask.book)]
