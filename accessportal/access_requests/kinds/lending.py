"""What kinds have in common that lend a thing out of a pool: a request, and all that extend it, hold the same thing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from accessportal.access_requests.config import current
from accessportal.access_requests.kind import Grant, Target
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.directory import queries as directory
from accessportal.directory.queries import Book
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import NotAllowed
from accessportal.rules import queries as rules
from accessportal.rules.matching import includes
from accessportal.rules.states import Effect, Rule
from accessportal.rules.terms import Terms

T = TypeVar("T", bound=Terms)


class LentTarget(Target):
    """``wishes`` tell what is asked for; ``continues`` is the id of the first request where what is held is asked for longer."""

    wishes: ClassVar[tuple[str, ...]]

    def asked(self, request: AccessRequest) -> dict[str, str]:
        """Of what is held, that it goes on; of what is not decided yet or over, the same thing anew."""
        continues = str(request.target.get("continues", ""))
        if request.status is Status.ACTIVE:
            continues = continues or request.request_id
        elif request.status is not Status.PENDING:
            continues = ""
        asked = {name: str(request.target[name]) for name in self.wishes}
        return asked | {"continues": continues} if continues else asked

    def holding(self, request: AccessRequest) -> tuple[str, ...]:
        return request.kind, chain_of(request)

    def gives(self, request: AccessRequest, stored: Mapping[str, Any]) -> bool:
        """Whoever asks for a new one gets another than they hold."""
        return bool(chain_of(request) == stored["continues"])

    def taken_back(self, stored: Mapping[str, Any]) -> Mapping[str, Any]:
        """It begins a chain of its own: the former one is over."""
        return {**stored, "continues": ""}


class LentGrant(Grant):
    is_had_anew = False

    def longest_wait_seconds(self, stored: Mapping[str, Any]) -> int:
        """More time with what is held is waited for by nobody."""
        return 0 if stored["continues"] else current().longest_wait_seconds

    def ended_with(self, request: AccessRequest, others: Sequence[AccessRequest]) -> list[AccessRequest]:
        """Giving a thing back ends all that extend it, or it would stay lent; who waits for one holds nothing yet."""
        return [one for one in others if request.granted_at is not None and chain_of(one) == chain_of(request)]


def chain_of(request: AccessRequest) -> str:
    """The request with which it began: all that extend it hold the same thing."""
    return str(request.target.get("continues") or request.request_id)


def require_fewer(held: Sequence[AccessRequest], *, than: int, one: str, many: str, rule: Rule) -> None:
    """Requests that go on with one thing count once, whether or not the first of them is over."""
    if len({chain_of(request) for request in held}) >= than:
        words = f"one {one}" if than == 1 else f"{than} {many}"
        text = f"One person has or waits for at most {words} at a time (rule {rule.name}). Give one back, or cancel one, first."
        raise NotAllowed(text, code="too_many_held")


def offering(terms: type[T], actor: Actor, book: Book, now: datetime) -> Iterator[T]:
    """The ``terms`` of the rules that offer the actor something, in the order of the rules."""
    _, groups, direct = directory.find_person_with_groups(email=actor.name, now=now, book=book)
    for rule in rules.current_rules():
        is_offer = rule.effect is Effect.ALLOW and includes(rule.subjects, subject=actor.name, groups=groups, direct=direct)
        if is_offer and isinstance(rule.terms, terms):
            yield rule.terms
