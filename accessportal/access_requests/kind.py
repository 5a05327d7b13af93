"""What a kind of access must do for the workflow, and the kinds that there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from accessportal.access_requests.offers import Search
from accessportal.access_requests.states import AccessRequest, Described, PlaceInLine, Subject
from accessportal.directory.queries import Book
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock, to_epoch
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.kernel.texts import cut
from accessportal.rules.states import Question, Rule
from accessportal.rules.terms import Terms, register_terms
from accessportal.store.transactions import Guard

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A target with its facts, read now: ``stored`` is what the request keeps, ``evidence`` what it stood on, ``scope`` its name in the
    audit log, ``facts`` are for the preview. No more than ``longest_seconds`` is to be had, whatever the rules say. ``account_id`` and
    ``permission_set`` are the seed's attributes."""

    stored: Mapping[str, Any]
    scope: str
    evidence: Mapping[str, Any]
    facts: Mapping[str, str]
    question: Question
    account_id: str = ""
    permission_set: str = ""
    session_seconds: int = 0
    longest_seconds: int | None = None


class Target(ABC):
    """What is asked for. Stateless. ``parts``: what the target of a request has in every version, all of them texts.

    ``book`` is what the page or the decision has read of the directory.
    """

    parts: ClassVar[tuple[str, ...]]

    @abstractmethod
    def resolve(
        self, *, target: Mapping[str, str], subject: Subject, duration_seconds: int | None, ticket_id: str | None, book: Book, now: datetime
    ) -> Resolved:
        """Validate ``target`` against what exists and gather the facts that a rule may ask for. InvalidRequest names the part that is
        wrong, and the remedy."""

    @abstractmethod
    def asked(self, request: AccessRequest) -> dict[str, str]:
        """What :meth:`resolve` takes as ``target`` to ask for the same thing as ``request`` again, or to go on with it."""

    @abstractmethod
    def title(self, request: AccessRequest) -> str:
        """Like ``payments-prod · ReadOnlyAccess``, from what the request keeps; no look-up."""

    @abstractmethod
    def facts(self, request: AccessRequest) -> tuple[tuple[str, str], ...]:
        """The target in words, each with a label; no look-up."""

    def title_of(self, request: AccessRequest) -> str:
        """As people call it by now."""
        return self.title(request)

    def describe(self, request: AccessRequest) -> Described:
        """The request in words, from the facts that it keeps; no look-up."""
        return Described(
            title=self.title(request),
            subject_name=text_of(request.evidence, "subject_name", request.subject_id),
            requested_by_name=text_of(request.evidence, "requested_by_name", request.requested_by),
            facts=tuple((label, value) for label, value in self.facts(request) if value),
            session_seconds=int(request.evidence.get("session_seconds") or 0),
        )

    def membership(self, stored: Mapping[str, Any]) -> tuple[str, str]:
        """The group and the role that whoever has it is in; empty for what is no membership."""
        return "", ""

    def holding(self, request: AccessRequest) -> tuple[str, ...]:
        """What tells apart what a subject holds: requests with the same hold one thing together."""
        return request.kind, request.scope, request.permission_set

    def gives(self, request: AccessRequest, stored: Mapping[str, Any]) -> bool:
        """Whether ``request``, while it is active, gives its subject just what the target ``stored`` asks for."""
        return self.same_target(request.target, stored)

    def taken_back(self, stored: Mapping[str, Any]) -> Mapping[str, Any]:
        """The target of a request that takes back what one with the target ``stored`` gave back."""
        return stored

    def same_target(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Whether two stored targets are the same thing."""
        return all(one[name] == other[name] for name in self.parts)


class Grant(ABC):
    """Making it so, and undoing it. Stateless. ``is_had_anew``: an extension that is approved when the time of what it extends is up gives
    the same again. ``line``: where requests wait for what is lent."""

    is_had_anew: ClassVar[bool] = True
    line: ClassVar[str] = ""

    @abstractmethod
    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        """Make it so, idempotently, only while ``guards`` hold; the proof that it is so, or what is waited for."""

    @abstractmethod
    def revoke(self, *, request: AccessRequest, actor: Actor, clock: Clock) -> Proof | Waiting:
        """Undo it, idempotently; the proof that this request no longer gives access, or what is waited for."""

    def require_free(
        self, *, resolved: Resolved, subject: Subject, rule: Rule, open_now: Sequence[AccessRequest], book: Book, now: datetime
    ) -> None:
        """Judge what ``rule``, which admits the request, leaves to counts of now: how many the subject has open, whether others wait.
        NotAllowed says what would have to change."""
        return

    def longest_wait_seconds(self, stored: Mapping[str, Any]) -> int:
        """For how long a request for the target ``stored`` keeps its place in the line of what is lent, before it lapses: its own time runs
        from the hand-over (``Proof.ends_at``). 0: from the decision."""
        return 0

    def places_in_line(self, requests: Sequence[AccessRequest], *, now: datetime) -> dict[str, PlaceInLine]:
        """Where those of the ``requests``, which are approved and not granted yet, stand that are in the line of what is lent, by id."""
        return {}

    def may_take_back(self, request: AccessRequest, *, now: datetime) -> Decision:
        """Whether whoever gave back what ``request`` held can have that very thing again; :meth:`grant` of a request that ``takes_back`` it
        revives it."""
        return refuse("This is given again only to whoever asks anew.", code="not_taken_back")

    def ends_for_good(self, request: AccessRequest) -> bool:
        """Whether what ``request`` holds could not be taken back if its holder gave it back now."""
        return False

    def is_given_directly(self, request: AccessRequest, *, now: datetime) -> bool:
        """Whether somebody gave the subject the same without a request, too: then that stays when the request ends."""
        return False

    def is_there(self, request: AccessRequest, *, now: datetime) -> Decision:
        """Whether what a request was granted is there still: somebody may have taken it away, and it says “Active” meanwhile."""
        return allow("nothing tells that it is not")

    def made_anew(self, request: AccessRequest, *, book: Book, now: datetime) -> Waiting | None:
        """Why the access is not to be given any more: somebody or something else has the names that it was asked for under."""
        subject_id = request.subject_id
        if subject_id.startswith("/"):
            return group_made_anew(subject_id, request, book=book, now=now)
        return _person_made_anew(request, book=book, now=now)

    def ended_with(self, request: AccessRequest, others: Sequence[AccessRequest]) -> list[AccessRequest]:
        """Which of the ``others``, active ones of its kind and subject, end when somebody ends ``request`` by hand: what the same person
        asked for as an extension of it, or extended with it, over as many as there are."""
        chain, rest = {request.request_id, request.extends} - {""}, [one for one in others if one.requested_by == request.requested_by]
        found: list[AccessRequest] = []
        while more := [one for one in rest if one not in found and not chain.isdisjoint((one.request_id, one.extends))]:
            found += more
            chain |= {name for one in more for name in (one.request_id, one.extends) if name}
        return found


Choices = Callable[[Actor, Book, datetime], Sequence[tuple[str, str]]]
"""What somebody may choose now: values with their words. Never empty; a single one is not asked."""


@dataclass(frozen=True, slots=True)
class Field:
    """One part of the target, as a form and a command (``about``, ``metavar``) ask for it. ``missing`` is said when it is empty; without,
    it may be. ``search`` lists what fits what is typed, which is not all there is where it ``is_open``; ``spell`` says a value as people
    know it; ``wrong`` is said of what is none of the ``choices``."""

    name: str
    label: str
    about: str
    metavar: str
    missing: str = ""
    placeholder: str = ""
    search: Search | None = None
    spell: Callable[[str], str] | None = None
    choices: Choices | None = None
    is_open: bool = False
    is_radio: bool = False
    wrong: str = ""

    @property
    def is_searched(self) -> bool:
        return self.search is not None


@dataclass(frozen=True, slots=True)
class Fields:
    """What the form of a kind asks (``continued``: parts that only an extension has; ``hint``: said while a needed part is empty;
    ``around``: what it tells of the kind as a whole), and what its pages say: where it is proved, what a receipt names, word and sentence
    for waiting until one is free, what it is called in a sentence (``thing``), and who can give it without a request (``giver``)."""

    name: str
    about: str
    icon: str
    heading: str
    target: tuple[Field, ...]
    lengths: tuple[str, ...]
    usual: str
    place: str
    hint: str = ""
    has_subject: bool = False
    continued: tuple[str, ...] = ()
    is_offered: Callable[[Iterable[Rule]], bool] = lambda rules: True
    around: Callable[[], Mapping[str, Any]] = dict
    at_once: str = "Approved by rule. This page shows when the access is there."
    beside: str = "You can end it at any time."
    extending: str = "Extend your access"
    receipt: str = "Job"
    queued: tuple[str, str] | None = None
    thing: str = "access"
    giver: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Those that say who is to get what."""
        return (*(field.name for field in self.target), *self.continued, *(("subject",) if self.has_subject else ()))

    @property
    def needed(self) -> tuple[str, ...]:
        """Those without which nothing is asked for."""
        return tuple(field.name for field in self.target if field.missing)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of access, whole: its folder in ``kinds``."""

    target: Target
    terms: type[Terms]
    grant: Grant
    fields: Fields

    @property
    def name(self) -> str:
        return self.terms.kind


KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    """Let this kind of access be asked for, and let rules be about it."""
    register_terms(kind.terms)
    KINDS[kind.name] = kind


def kind_named(name: str) -> Kind:
    """:raises InvalidRequest: for a kind that the portal does not have."""
    kind = KINDS.get(name)
    if kind is None:
        raise InvalidRequest(
            f"There is no kind of access “{name[:40]}”; choose one of {', '.join(KINDS)}.", code="kind_unknown", field="kind"
        )
    return kind


def named(target: Mapping[str, str], part: str, find: Callable[[str], T | None], *, missing: str, remedy: str) -> T:
    """Find what a part of a target names. InvalidRequest for nothing, and for what there is not."""
    wanted = target.get(part, "").strip()
    if not wanted:
        raise InvalidRequest(missing, code=f"{part}_missing", field=part)
    found = find(wanted)
    if found is None:
        raise InvalidRequest(f"There is no {part.replace('_', ' ')} “{cut(wanted)}”. {remedy}", code=f"{part}_unknown", field=part)
    return found


def text_of(evidence: Mapping[str, Any], name: str, otherwise: str = "") -> str:
    """A text among the facts that a request keeps; requests of earlier versions lack some."""
    return str(evidence.get(name) or otherwise)


def require_person(subject: Subject, message: str) -> None:
    """:raises InvalidRequest: with ``message`` when the access would be for a group."""
    if subject.subject_id.startswith("/"):
        raise InvalidRequest(message, code="subject_is_group", field="subject")


def _person_made_anew(request: AccessRequest, *, book: Book, now: datetime) -> Waiting | None:
    """What was granted to somebody who was deleted since is not for whoever has the address now."""
    person = book.people([request.subject_id]).get(request.subject_id)
    if person is None or to_epoch(person.created_at) <= to_epoch(request.requested_at):
        return None
    text = f"{person.email} was deleted and made anew after this was asked for. They can ask themselves."
    return Waiting("person_made_anew", text, now, is_error=True, is_final=True)


def group_made_anew(group_id: str, request: AccessRequest, *, book: Book, now: datetime) -> Waiting | None:
    """Another group took the path since: nobody approved that one."""
    group = book.groups([group_id]).get(group_id)
    if group is None or group.created_at is None or to_epoch(group.created_at) <= to_epoch(request.requested_at):
        return None
    text = f"{group.group_id} was deleted and made anew after this was asked for. Ask again."
    return Waiting("group_made_anew", text, now, is_error=True, is_final=True)
