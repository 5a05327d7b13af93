"""What the kinds ``approval`` and ``relationship`` share: a record of the room ``authz`` for a person, which a request holds by a claim.

Why a request can't be granted beyond the limits of its scope: docs/decisions/0071-records-by-request.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar

from accessportal.access_requests.kind import Field, Grant, Resolved, Target, require_person
from accessportal.access_requests.offers import Choice, Offers, Seeker, sift
from accessportal.access_requests.states import AccessRequest, Subject
from accessportal.authz.config import current
from accessportal.authz.operations import check_holdable, hold, holders_of, let_go
from accessportal.authz.policy.checks import check_pattern, matches
from accessportal.authz.policy.names import check_names
from accessportal.authz.policy.rights import check_phase
from accessportal.authz.queries import Ledger, read_scope
from accessportal.authz.states import DIRECT, Approval, Relationship
from accessportal.directory.queries import Book
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.kernel.texts import check_length, clean_text
from accessportal.rules.states import Rule
from accessportal.rules.terms import Asked, Facts, Finding, Part, Terms, listed
from accessportal.rules.yaml_nodes import Place
from accessportal.store.transactions import Guard

R = TypeVar("R", Approval, Relationship)
EVERY = "*"
"""In a list of the targets: every one."""
# As long as a field of the portal's form may be, so that what was asked for can be asked for again there.
_LONGEST_NAME = 256


@dataclass(frozen=True, slots=True)
class RecordAsked(Asked):
    """``verb`` (an action, a relation) on ``thing`` (a resource, an object) within ``scope``."""

    at: ClassVar[str]
    scope: str = ""
    thing: str = ""
    verb: str = ""

    def words(self) -> str:
        return f"{self.verb} {self.at} {self.thing} in {self.scope}"


class RecordTerms(Terms):
    """Which verbs on which things in which scopes. The targets have a list for each, called as the ``inputs`` and an ``s``."""

    __slots__ = ()

    @classmethod
    def lists(cls, place: Place, *, optional: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
        """The lists of the targets, by key; every mistake is noted."""
        verb, thing = cls.inputs
        checks: dict[str, Callable[[str], str]] = {"scopes": _check_scope, f"{thing}s": _check_name, f"{verb}s": _check_name}
        section = place.section(required=tuple(checks), optional=optional)
        for key in checks:
            if section[key].is_empty_list:
                section[key].report("The list is empty.", f'Name {key}, or write ["*"] for all.')
        return {key: section[key].texts(check) for key, check in checks.items()}

    @property
    def things(self) -> tuple[str, ...]:
        found: tuple[str, ...] = getattr(self.targets, f"{self.inputs[1]}s")
        return found

    @property
    def verbs(self) -> tuple[str, ...]:
        found: tuple[str, ...] = getattr(self.targets, f"{self.inputs[0]}s")
        return found

    @property
    def offers(self) -> tuple[str, ...]:
        return () if EVERY in self.verbs else self.verbs

    def judge(self, asked: Any, *, is_deny: bool) -> Iterator[Finding]:
        scopes, (verb, thing) = self.targets.scopes, self.inputs
        if not covers_scope(scopes, asked.scope):
            yield Finding(Part.TARGET, f"{asked.scope} is not {listed(scopes)}", f"Choose a scope among {listed(scopes)}.")
        if not covers(self.things, asked.thing):
            things = listed(self.things)
            yield Finding(Part.TARGET, f"the {thing} {asked.thing} is not {things}", f"Choose the {thing} {things}.")
        if not covers(self.verbs, asked.verb):
            verbs = listed(self.verbs)
            yield Finding(Part.OFFER, f"the {verb} {asked.verb} is not {verbs}", f"Ask for the {verb} {verbs}.")

    def offered(self) -> str:
        return _told(self.verbs, self.inputs[0])

    def place(self) -> str:
        return f"{_told(self.things, self.inputs[1])} in {_told(self.targets.scopes, 'scope')}"

    def lines(self) -> dict[str, str]:
        verb, thing = self.inputs
        lists = {"scope": self.targets.scopes, thing: self.things, verb: self.verbs}
        return {f"{word.capitalize()}s": f"every {word}" if EVERY in names else ", ".join(names) for word, names in lists.items()}

    def places(self, facts: Facts) -> dict[str, str]:
        """What lies in a scope changes all the time: the names and patterns are what can be told."""
        return {name: name for name in self.things}

    def further_places(self, before: Any, facts: Facts) -> str:
        things = tuple(name for name in self.things if not covers(before.things, name))
        scopes = tuple(name for name in self.targets.scopes if not covers_scope(before.targets.scopes, name))
        parts = [f"{_told(things, self.inputs[1])} in {_told(self.targets.scopes, 'scope')}"] if things else []
        parts += [f"{_told(self.things, self.inputs[1])} in {_told(scopes, 'scope')}"] if scopes else []
        return listed(parts, "and")


def covers(patterns: Sequence[str], name: str) -> bool:
    """Whether one of the patterns is ``name``, or one whose ``*`` stands for it."""
    return any(pattern == EVERY or matches(pattern, name) for pattern in patterns)


def covers_scope(patterns: Sequence[str], scope: str) -> bool:
    """The same for scopes, whose parts are set apart by ``:`` (none holds a ``/``): ``tenant:acme:*`` holds ``tenant:acme:env:prod``."""
    return covers([pattern.replace(":", "/") for pattern in patterns], scope.replace(":", "/"))


def _told(names: Sequence[str], word: str) -> str:
    return f"every {word}" if EVERY in names else listed(names, "and")


def _check_scope(value: str) -> str:
    above = value.removesuffix(":*")
    possible = [value] if above == value else [f"{above}:x", f"{above}:env:x"]
    if value == EVERY or any(_is_scope(text) for text in possible):
        return ""
    return 'is no scope: write global, tenant:T, env:E, tenant:T:env:E or custom:A:B, tenant:T:* for all below it, or "*" for all.'


def _is_scope(text: str) -> bool:
    try:
        return bool(read_scope(text))
    except InvalidRequest:
        return False


def _check_name(value: str) -> str:
    if value == EVERY:
        return ""
    try:
        is_clean = clean_text(check_pattern(value, field="name"), field="name", name="It", longest=_LONGEST_NAME) == value
    except InvalidRequest:
        return 'has a * where it stands for nothing: write docs/* for all below a path, or "*" for all.'
    return "" if is_clean else "has letters that are written in another way: write it in Unicode NFC."


class RecordTarget(Target, Generic[R]):
    """Given as a scope and the names of the record but the first, which is the subject: a person, by e-mail address."""

    ledger: ClassVar[Ledger[Any]]
    terms: ClassVar[type[RecordTerms]]

    @abstractmethod
    def record(self, target: Mapping[str, Any], *, subject_id: str, by: str, at: datetime, metadata: Mapping[str, str]) -> R:
        """What is written when the person has it, by whom and since when."""

    @abstractmethod
    def asked_for(self, stored: Mapping[str, str]) -> RecordAsked:
        """What the rules judge."""

    def read(self, target: Mapping[str, str]) -> dict[str, str]:
        """The parts as a request keeps them, but those that not every record has."""
        scope = target.get("scope", "").strip()
        if not scope:
            raise InvalidRequest("A scope is needed, like tenant:acme-corp:env:prod.", code="scope_missing", field="scope")
        names = {name: target.get(name, "").strip() for name in self.ledger.fields[1:]}
        for name, value in names.items():
            check_length(value, field=name, name=name.capitalize(), longest=_LONGEST_NAME)
        return {"scope": str(read_scope(scope)), **names}

    def resolve(
        self, *, target: Mapping[str, str], subject: Subject, duration_seconds: int | None, ticket_id: str | None, book: Book, now: datetime
    ) -> Resolved:
        """Nothing is looked up here: who may not ask for it learns nothing about what is in a scope."""
        require_person(subject, f"An {self.ledger.word} is for a person: ask for yourself. Whoever else needs it asks for themselves.")
        stored = self.read(target)
        wanted = self.record(stored, subject_id=subject.subject_id, by="", at=now, metadata={})
        check_names(wanted.names, self.ledger.fields)
        advice = check_phase(wanted.scope, current().global_scope)
        asked = self.asked_for(stored)
        return Resolved(
            stored=stored,
            scope=stored["scope"],
            evidence={},
            facts={"advice": advice} if advice else {},
            question=subject.question(asked, duration_seconds=duration_seconds, ticket_id=ticket_id),
        )

    def asked(self, request: AccessRequest) -> dict[str, str]:
        return {name: str(request.target[name]) for name in self.parts}

    def title(self, request: AccessRequest) -> str:
        verb, thing = (request.target[name] for name in self.terms.inputs)
        return f"{thing} · {verb} in {request.target['scope']}"

    def facts(self, request: AccessRequest) -> tuple[tuple[str, str], ...]:
        return tuple((name.replace("_", " ").capitalize(), str(request.target[name])) for name in self.parts)

    def holding(self, request: AccessRequest) -> tuple[str, ...]:
        return request.kind, *(str(request.target[name]) for name in self.parts)

    def held_by(self, request: AccessRequest) -> R:
        """The record of a request that was decided."""
        assert request.decided_at is not None
        by, metadata = request.decided_by, {"request": request.request_id}
        return self.record(request.target, subject_id=request.subject_id, by=by, at=request.decided_at, metadata=metadata)


class RecordGrant(Grant, Generic[R]):
    """A claim on the record. Who asks may have it, by a rule, for as long as the policy of its scope allows, too."""

    def __init__(self, target: RecordTarget[R]) -> None:
        self._target: RecordTarget[R] = target

    def require_free(
        self, *, resolved: Resolved, subject: Subject, rule: Rule, open_now: Sequence[AccessRequest], book: Book, now: datetime
    ) -> None:
        wanted = self._target.record(resolved.stored, subject_id=subject.subject_id, by="", at=now, metadata={})
        seconds = resolved.question.duration_seconds
        try:
            check_holdable(self._target.ledger, wanted, ends_at=None if seconds is None else now + timedelta(seconds=seconds), now=now)
        except (Conflict, InvalidRequest) as error:
            raise NotAllowed(error.message, code=error.code) from error

    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        wanted = self._target.held_by(request)
        try:
            return hold(
                self._target.ledger, wanted, claim=request.request_id, ends_at=request.expires_at, guards=guards, actor=actor, clock=clock
            )
        except (Conflict, InvalidRequest) as error:
            if error.code == "guard_failed":
                raise
            return Waiting(error.code, error.message, clock.now(), is_error=True, is_final=True)

    def revoke(self, *, request: AccessRequest, actor: Actor, clock: Clock) -> Proof | Waiting:
        wanted = self._target.held_by(request)
        return let_go(self._target.ledger, wanted.scope, wanted.names, claim=request.request_id, actor=actor, clock=clock)

    def is_given_directly(self, request: AccessRequest, *, now: datetime) -> bool:
        wanted = self._target.held_by(request)
        return DIRECT in holders_of(self._target.ledger, wanted.scope, wanted.names, now=now)

    def is_there(self, request: AccessRequest, *, now: datetime) -> Decision:
        wanted, word = self._target.held_by(request), self._target.ledger.word
        if request.request_id in holders_of(self._target.ledger, wanted.scope, wanted.names, now=now):
            return allow("it counts for this request")
        return refuse(f"The {word} was taken away: somebody revoked it, or deleted its scope.", code="taken_away")


def _scopes(text: str, seeker: Seeker) -> Offers:
    """Those that the rules name whole. Others that they let through are typed."""
    named = dict.fromkeys(scope for rule in seeker.served for scope in rule.terms.targets.scopes if not scope.endswith(EVERY))
    return sift((Choice(scope, scope), "") for scope in named if all(word in scope.casefold() for word in text.casefold().split()))


SCOPE = Field(
    name="scope",
    label="Scope",
    missing="Name a scope, like tenant:acme-corp:env:prod.",
    placeholder="tenant:acme-corp:env:prod",
    search=_scopes,
    is_open=True,
    about="the scope, like tenant:acme-corp or tenant:acme-corp:env:prod",
    metavar="SCOPE",
)


def has_rules(kind: str) -> Callable[[Iterable[Rule]], bool]:
    """Whether some of the rules are about this kind."""
    return lambda rules: any(rule.kind == kind for rule in rules)
