"""What can be done to one record from a page: declared once, for the record's own page and for many at once in a list."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from accessportal.access_requests.queries import ApproverBook
from accessportal.directory.states import Mirrored
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.errors import Conflict
from accessportal.web.forms import DeedForm

R = TypeVar("R")
Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """What was done, in words; ``url`` is where it leads, ``links`` (words, address) what may be done next. While Cognito follows
    (``mirror``), only ``doing`` is true. ``entity`` is whom it follows, ``about`` the group when only a person's place there changed."""

    done: str
    url: str = ""
    doing: str = ""
    entity: str = ""
    about: str = ""
    mirror: Mirrored | None = None
    links: tuple[tuple[str, str], ...] = ()

    @property
    def is_done(self) -> bool:
        return self.mirror is None or self.mirror.is_done

    @property
    def words(self) -> str:
        return self.done if self.is_done else self.doing


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed(Generic[R]):
    """``question`` is asked once, ``explain`` says what will happen, ``button`` (else the label) answers, ``keep`` is the way out.

    ``may`` is the domain's own decision; ``stale_codes`` are its refusals that mean "too late" and not "not you". ``fits``: whether
    it makes sense in the present state. ``is_for`` keeps a list's button from people who could never press it, with no look-up a row.
    ``is_bulk``: also for many at once. ``is_page``: too much for a sheet. ``starts_with`` fills the form.
    ``with_book``: the same deed for a page that asks about many, each fact read once; never to do it.
    ``stands_on``: what ``explain`` rests on, of a record that may be somebody else's when the button is pressed: a sandbox.
    ``template`` is shown below ``explain`` in the admin pages; it gets ``record``.
    """

    name: str
    label: str
    question: Callable[[R], str]
    explain: Callable[[R], str]
    may: Callable[[R, Actor, datetime], Decision]
    run: Callable[[R, Data, Actor, datetime], Told]
    form: Callable[..., DeedForm] = DeedForm
    button: str = ""
    keep: str = "Not now"
    fits: Callable[[R], bool] = lambda _record: True
    starts_with: Callable[[R, Data], dict[str, Any]] = lambda _record, given: dict(given)
    is_for: Callable[[Actor, ApproverBook], bool] = lambda _actor, _book: True
    stale_codes: frozenset[str] = frozenset()
    stands_on: Callable[[R], str] | None = None
    template: str = ""
    with_book: Callable[[Deed[R], ApproverBook], Deed[R]] = lambda deed, _book: deed
    is_destructive: bool = False
    is_bulk: bool = False
    is_page: bool = False

    def require(self, record: R, actor: Actor, now: datetime) -> None:
        """:raises Conflict: when the record has moved on. :raises NotAllowed: when it is not this actor's to do."""
        decision = self.may(record, actor, now)
        if not decision.allowed and decision.code in self.stale_codes:
            raise Conflict(decision.reason, code=decision.code, present=record)
        decision.require()

    def mark_of(self, record: R) -> str:
        """What the page that asks carries to the button, to prove what it described; "" when nothing needs proof."""
        return hashlib.sha256(self.stands_on(record).encode()).hexdigest()[:32] if self.stands_on else ""

    def as_described(self, record: R, mark: str) -> Decision:
        """Whether ``record`` is still what the page that carried ``mark`` described. A form without its mark described nothing."""
        if mark == self.mark_of(record):
            return allow("It is as it was described.")
        words = f"It has changed since you were asked, so nothing was done. Read again what “{self.label}” would do to it now."
        return refuse(words, code="moved_on")
