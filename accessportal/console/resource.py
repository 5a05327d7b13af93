"""What a resource of the console is made of: columns, access patterns, detail sections, operations.

No ORM disguise: a resource lists what a table or index can really answer (each pattern is one function of a domain's
``queries``) and changes things only through the domain's ``operations``.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from accessportal.access_requests.queries import ApproverBook
from accessportal.kernel.actors import Actor
from accessportal.kernel.counts import Count
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.errors import Conflict, NotAllowed, NotFound
from accessportal.kernel.pages import Page

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Who asks, when, and for which part of a list. ``book``: what the page has looked up already."""

    actor: Actor
    now: datetime
    parameter: str = ""
    cursor: str | None = None
    limit: int = PAGE_SIZE
    book: ApproverBook | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """``template`` renders one cell; it gets ``row`` (a :class:`Row`), ``actor`` and ``now``."""

    label: str
    template: str
    css: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """The one input of a pattern; ``required`` parameters make the pattern useless without them."""

    label: str
    placeholder: str = ""
    input_type: str = "search"
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A named list that a table or index can answer. ``fetch`` raises; it never turns an error into an empty page.

    ``columns`` replaces the resource's. ``bulk`` and ``row_operations`` name operations. ``tally`` counts. A pattern that is not
    ``is_tab`` is reached by the box or a link. ``is_live``: its first page looks again.
    """

    name: str
    label: str
    fetch: Callable[[Ask], Page[Any]]
    empty_title: str
    empty_hint: str
    right: Right = Right.READERS
    parameter: Parameter | None = None
    columns: tuple[Column, ...] = ()
    bulk: tuple[str, ...] = ()
    row_operations: tuple[str, ...] = ()
    tally: Callable[[Ask], Count] | None = None
    is_tab: bool = True
    is_live: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """``key`` addresses the detail page ("" when there is none); ``context`` is what the cells need besides the record."""

    key: str
    record: Any
    context: Any = None


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the detail page; ``template`` gets everything that ``Resource.details`` returned."""

    title: str
    template: str
    is_aside: bool = False

    @property
    def anchor(self) -> str:
        return "section-" + self.title.lower().replace(" ", "-")


class ReasonRule(enum.Enum):
    OPTIONAL = "optional"
    REQUIRED = "required"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A verb of the domain as a button. ``run`` gets record, reason, actor and now, and returns the sentence of success.

    ``offered`` is the domain's own policy; ``stale_codes`` are its refusals that mean "too late" and not "not you".
    ``is_for`` keeps the button from people who could never press it, at the price of no look-up a row.
    ``will`` says in words what pressing the button does. ``ends_record``: afterwards there is no page to return to.
    ``stands_on`` tells what of the record those words rest on, for records that may be somebody else's by the time the button
    is pressed: when it has changed since the page that asked, nothing is done and the page asks again. ``None``: a record of
    this kind stays the same thing, whatever happens to it.
    """

    name: str
    label: str
    offered: Callable[[Any, Actor, datetime], Decision]
    run: Callable[[Any, str, Actor, datetime], str]
    will: Callable[[Any], str]
    reason: ReasonRule = ReasonRule.NONE
    reason_label: str = "Reason"
    is_danger: bool = False
    is_bulk: bool = False
    ends_record: bool = False
    is_for: Callable[[Actor, datetime], bool] = lambda actor, now: True
    stale_codes: frozenset[str] = frozenset()
    stands_on: Callable[[Any], str] | None = None

    def require(self, record: Any, actor: Actor, now: datetime) -> None:
        """:raises Conflict: when the record has moved on. :raises NotAllowed: when it is not this actor's to do."""
        decision = self.offered(record, actor, now)
        if not decision.allowed and decision.code in self.stale_codes:
            raise Conflict(decision.reason, code=decision.code, present=record)
        decision.require()

    def mark_of(self, record: Any) -> str:
        """What the page that asks carries to the button, to prove what it described; "" when nothing needs proof."""
        return hashlib.sha256(self.stands_on(record).encode()).hexdigest()[:32] if self.stands_on else ""

    def as_described(self, record: Any, mark: str) -> Decision:
        """Whether ``record`` is still what the page that carried ``mark`` described. A form without its mark described nothing."""
        if mark == self.mark_of(record):
            return allow("It is as it was described.")
        words = f"It has changed since you were asked, so nothing was done. Read again what “{self.label}” would do to it now."
        return refuse(words, code="moved_on")


class Resource:
    """Base of all resources; a subclass fills the class attributes and what of the methods it needs."""

    name: ClassVar[str]
    singular: ClassVar[str]
    plural: ClassVar[str]
    icon: ClassVar[str]
    about: ClassVar[str]
    right: ClassVar[Right] = Right.READERS
    columns: ClassVar[tuple[Column, ...]]
    patterns: ClassVar[tuple[Pattern, ...]]
    sections: ClassVar[tuple[Section, ...]] = ()
    operations: ClassVar[tuple[Operation, ...]] = ()
    notice_template: ClassVar[str] = ""
    headline_template: ClassVar[str] = ""
    summary_template: ClassVar[str] = ""
    # What tells records with the same title apart; gets ``record`` and ``now``.
    line_template: ClassVar[str] = ""
    box: ClassVar[Parameter | None] = None

    def load(self, key: str, actor: Actor, now: datetime) -> Any:
        """The record strongly read, and the check that ``actor`` may see it, in one call. :raises NotFound:"""
        raise NotFound(f"There is no {self.singular} page for this.", code="no_detail")

    def rows(self, items: Sequence[Any], ask: Ask) -> list[Row]:
        """What the cells need, for a page of records at once."""
        raise NotImplementedError

    def title(self, record: Any) -> str:
        raise NotImplementedError

    def details(self, record: Any, ask: Ask) -> dict[str, Any]:
        """The template context of the detail sections."""
        return {}

    def offers(self, record: Any, ask: Ask) -> Sequence[Operation]:
        """The operations that the domain lets this actor do to ``record`` now."""
        return [operation for operation in self.operations if operation.offered(record, ask.actor, ask.now).allowed]

    def entity(self, record: Any) -> str:
        """The record's chain in the audit log."""
        raise NotImplementedError

    def head(self, record: Any) -> tuple[int, str] | None:
        """Version and audit head that the chain must end with; ``None`` when the record holds neither."""
        return None

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        """Context of ``notice_template``, shown above every list."""
        return {}

    def find(self, text: str, ask: Ask) -> tuple[str, str]:
        """The pattern and parameter that answer what somebody typed into the box. :raises InvalidRequest: with remedies."""
        raise NotImplementedError

    def pattern(self, name: str, actor: Actor) -> Pattern:
        """The pattern called ``name`` ("" is the first that ``actor`` may see). :raises NotFound: :raises NotAllowed:"""
        if not name:
            return self.patterns_for(actor)[0]
        for pattern in self.patterns:
            if pattern.name == name:
                pattern.right.require(actor)
                return pattern
        raise NotFound(f"{self.plural} have no list “{name[:40]}”.", code="no_such_pattern")

    def patterns_for(self, actor: Actor) -> list[Pattern]:
        return [pattern for pattern in self.patterns if pattern.right.admits(actor)]

    def operation(self, name: str) -> Operation:
        """:raises NotFound:"""
        for operation in self.operations:
            if operation.name == name:
                return operation
        raise NotFound(f"There is no operation “{name[:40]}” here.", code="no_such_operation")

    def operations_for(self, names: Sequence[str], actor: Actor, now: datetime) -> list[Operation]:
        return [operation for operation in map(self.operation, names) if operation.is_for(actor, now)]
