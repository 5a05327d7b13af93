"""What somebody may choose in the form of a kind: what a rule offers them first, and the rest with the reason. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from accessportal.access_requests.states import Subject
from accessportal.rules.matching import includes
from accessportal.rules.states import Effect, Question, Rule, RuleDecision
from accessportal.rules.terms import Asked

T = TypeVar("T")

CHOICES = 20
_OTHERS = 8
NOT_SERVED = "No rule offers you this."


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing to choose: ``value`` is what the form takes, ``code`` and ``about`` tell it from others of its name."""

    value: str
    name: str
    code: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Offers:
    """``others`` are what fits the text and can't be asked for, each with the reason; the first few."""

    offered: tuple[Choice, ...]
    others: tuple[tuple[Choice, str], ...] = ()
    is_more: bool = False


@dataclass(frozen=True, slots=True)
class Seeker:
    """Who looks for something of a kind, the rules of it that serve them, in their order, and how the rules decide. ``given`` is what the
    form says by now; ``lately`` has what they asked for lately, as the form takes it."""

    subject: Subject
    served: tuple[Rule, ...]
    decide: Callable[[Question], RuleDecision]
    given: Mapping[str, str]
    lately: Collection[str] = ()

    def decision(self, asked: Asked) -> RuleDecision:
        """What the rules say of it, whatever the length and the ticket."""
        return self.decide(self.subject.question(asked, duration_seconds=None, ticket_id=None))

    def refusal(self, asked: Asked) -> str:
        """Why this can't be asked for; empty: it can."""
        decision = self.decision(asked)
        return "" if decision.allowed else decision.reason

    @property
    def offers(self) -> tuple[str, ...]:
        """What the rules that serve them offer, by name, each once."""
        return tuple(dict.fromkeys(offer for rule in self.served for offer in rule.terms.offers))


Search = Callable[[str, Seeker], Offers]
"""What fits a text, the best first."""


def serving(rules: Iterable[Rule], kind: str, subject: Subject) -> tuple[Rule, ...]:
    """The rules of the kind that offer the subject something."""
    allows = (rule for rule in rules if rule.kind == kind and rule.effect is Effect.ALLOW)
    who = {"subject": subject.subject_id, "groups": subject.groups, "direct": subject.direct}
    return tuple(rule for rule in allows if includes(rule.subjects, **who))  # type: ignore[arg-type]


def sift_places(places: Iterable[T], seeker: Seeker, ask: Callable[[T, str], Asked], show: Callable[[T], Choice]) -> Offers:
    """Of ``places``, best first, those where some offer of a rule may be had; ``ask`` makes the question about one offer there."""
    offered: list[Choice] = []
    others: list[tuple[Choice, str]] = []
    for place in places:
        if _is_offered(place, seeker, ask):
            offered.append(show(place))
        elif len(others) < _OTHERS:
            others.append((show(place), seeker.refusal(ask(place, seeker.offers[0])) if seeker.served else NOT_SERVED))
        if len(offered) > CHOICES:
            break
    offered.sort(key=lambda choice: choice.value not in seeker.lately)
    return Offers(tuple(offered[:CHOICES]), tuple(others), is_more=len(offered) > CHOICES)


def sift(choices: Iterable[tuple[Choice, str]]) -> Offers:
    """Of choices, each with the reason why it can't be had (empty: it can)."""
    known = list(choices)
    offered = [choice for choice, refusal in known if not refusal]
    others = [(choice, refusal) for choice, refusal in known if refusal]
    return Offers(tuple(offered[:CHOICES]), tuple(others[:_OTHERS]), is_more=len(offered) > CHOICES)


def _is_offered(place: T, seeker: Seeker, ask: Callable[[T, str], Asked]) -> bool:
    for rule in seeker.served:
        for offer in rule.terms.offers:
            asked = ask(place, offer)
            # The offer is the rule's own: what does not fit is the place, and that for every offer.
            if any(True for _ in rule.terms.judge(asked, is_deny=False)):
                break
            if not seeker.refusal(asked):
                return True
    return False
