"""The decision of the rules: pure, over facts that are handed in, and always with its whole explanation.

Precedence (design, data model): any matching deny refuses; otherwise the first allow rule in file order whose limits admit
the request decides. What could not be read refuses with its own code and never counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, refuse
from accessportal.kernel.durations import format_duration
from accessportal.kernel.lasting import operators_right, rule_on_effect
from accessportal.rules import words
from accessportal.rules.matching import DURATION, TICKET, judge
from accessportal.rules.states import Effect, Miss, Question, Rule, RuleDecision
from accessportal.rules.terms import Finding, Part

_LIMITS = DURATION | TICKET
_MOST_REMEDIES = 5


@dataclass(frozen=True, slots=True)
class _Judged:
    rule: Rule
    findings: tuple[Finding, ...]

    @property
    def parts(self) -> frozenset[Part]:
        return frozenset(finding.part for finding in self.findings)

    @property
    def fits(self) -> bool:
        return not self.findings

    @property
    def is_unknown(self) -> bool:
        """It would fit but for a fact that could not be read."""
        return self.parts == {Part.UNREADABLE}

    @property
    def fits_but_for_limits(self) -> bool:
        return self.parts <= _LIMITS

    @property
    def miss(self) -> Miss:
        # Nobody wants to know how to be refused as well.
        remedies = () if self.rule.effect is Effect.DENY else _remedies([self])
        return Miss(self.rule.name, tuple(finding.reason for finding in self.findings), remedies)


def decide(rules: Sequence[Rule], question: Question) -> RuleDecision:
    """Decide by ``rules``, in file order. ``code`` of a refusal: ``denied_by_rule``, ``groups_unreadable``, ``duration_too_long``,
    ``duration_too_short``, ``ticket_missing``, ``ticket_mismatch``, ``subject_not_covered``, ``no_rule``, or of the kind (docs/rules.md).
    ``misses`` are its rules that did not decide."""
    if question.subject_groups is None:
        return _unreadable(f"The groups of {question.subject} could not be read, so nothing can be decided.", "groups_unreadable")
    unread = question.asked.unreadable()
    if unread is not None:
        return _unreadable(f"{_capital(unread.reason)}, so nothing can be decided.", unread.code)
    judged = [_Judged(rule, judge(rule, question)) for rule in rules if rule.kind == question.kind]
    denies = [one for one in judged if one.rule.effect is Effect.DENY]
    allows = [one for one in judged if one.rule.effect is Effect.ALLOW]
    return _by_deny(denies, judged) or _by_allow(allows, denies, question) or _refused(allows, judged, question)


def may_apply(actor: Actor) -> Decision:
    """Whether ``actor`` may put rules in force. They stay for good."""
    if actor.is_operator or actor.is_system:
        return rule_on_effect(operators_right(actor)).decision
    return refuse("Only operators may load rules. Ask an operator.", code="rules_operators_only")


def _by_deny(denies: Sequence[_Judged], judged: Sequence[_Judged]) -> RuleDecision | None:
    for one in denies:
        if one.fits:
            return _denied(one.rule, [other for other in judged if not other.fits])
    for one in denies:
        if one.is_unknown:
            return _fact_unreadable(one, judged)
    return None


def _by_allow(allows: Sequence[_Judged], denies: Sequence[_Judged], question: Question) -> RuleDecision | None:
    """The first that admits it. One that might but for an unreadable fact stops the search: a later rule is not the first."""
    for position, one in enumerate(allows):
        looked_at = [*denies, *allows[:position]]
        if one.is_unknown:
            return _fact_unreadable(one, [*looked_at, one])
        if one.fits:
            longest = max(other.rule.longest_after(question.held_seconds) for other in allows if other.fits_but_for_limits)
            reason = f"Rule {one.rule.name} admits it: {words.limits(one.rule)}."
            misses = tuple(other.miss for other in looked_at)
            return RuleDecision(
                allowed=True, code="allowed", reason=reason, rule=one.rule, misses=misses, remedies=(), max_duration_seconds=longest
            )
    return None


def _refused(allows: Sequence[_Judged], judged: Sequence[_Judged], question: Question) -> RuleDecision:
    """No rule admits it: say which input is the nearest to change, nearest first."""
    misses = tuple(one.miss for one in judged)
    what = question.asked.words()
    if not judged:
        return _refuse("no_rule", f"No rule is about {what} for {question.subject}.", ())
    near = [one for one in allows if one.fits_but_for_limits]
    if near:
        return _outside_limits(near, misses, question)
    for one in allows:
        if one.parts - _LIMITS == {Part.UNREADABLE}:
            return _fact_unreadable(one, judged)
    terms = judged[0].rule.terms
    offer, target = terms.inputs
    ways: tuple[tuple[Part, str, str, str], ...] = (
        (Part.OFFER, f"{offer}_not_offered", offer, f"No rule offers {question.subject} {what}."),
        (Part.SUBJECT, "subject_not_covered", "", f"{question.subject} is in none of the groups that may ask for {what}."),
        (Part.TARGET, f"{target}_not_covered", target, f"No rule offers {question.subject} {what}, only {terms.elsewhere}."),
    )
    for part, code, field, reason in ways:
        near = [one for one in allows if one.parts - _LIMITS == {part}]
        if near:
            return _refuse(code, reason, misses, remedies=_remedies(near), field=field)
    return _refuse("no_rule", f"No rule is about {what} for {question.subject}.", misses)


def _outside_limits(near: Sequence[_Judged], misses: tuple[Miss, ...], question: Question) -> RuleDecision:
    """Everything fits but the duration, the ticket or both. A wanted duration that a ticket makes possible asks for the ticket."""
    longest = max(one.rule.longest_after(question.held_seconds) for one in near)
    by_ticket = [one for one in near if one.parts <= TICKET]
    by_duration = _most_generous([one for one in near if one.parts <= DURATION], question)
    nearest = [*by_ticket, *by_duration] or _most_generous(near, question)
    if by_ticket:
        finding = by_ticket[0].findings[0]
        code = "ticket_missing" if finding.part is Part.TICKET_MISSING else "ticket_mismatch"
        reason, field = f"Rule {by_ticket[0].rule.name}: {finding.reason}.", "ticket_id"
    else:
        code, reason = _duration_fault(nearest[0], question)
        field = "duration" if by_duration else ""
    return _refuse(code, reason, misses, remedies=_remedies(nearest), field=field, longest=longest)


def _most_generous(near: Sequence[_Judged], question: Question) -> list[_Judged]:
    """Of the rules for which it is too long the one that gives the longest, and of those for which it is too short the one that gives the
    shortest: what the others give would be said beside it as if it were more."""
    too_long = [one for one in near if Part.TOO_LONG in one.parts]
    too_short = [one for one in near if Part.TOO_SHORT in one.parts]
    longest = max(too_long, key=lambda one: one.rule.longest_after(question.held_seconds), default=None)
    shortest = min(too_short, key=lambda one: one.rule.min_duration_seconds, default=None)
    return [one for one in (longest, shortest) if one is not None]


def _duration_fault(nearest: _Judged, question: Question) -> tuple[str, str]:
    """Code and reason."""
    asked, rule = question.duration_seconds or 0, nearest.rule
    if Part.TOO_LONG in nearest.parts:
        if asked <= rule.max_duration_seconds:
            return "duration_too_long", f"Rule {rule.name}: {nearest.findings[0].reason}."
        reason = f"{format_duration(asked)} is more than the longest {format_duration(rule.max_duration_seconds)} (rule {rule.name})."
        return "duration_too_long", reason
    reason = f"{max(asked, 0)} s is less than the shortest {format_duration(rule.min_duration_seconds)} (rule {rule.name})."
    return "duration_too_short", reason


def _denied(rule: Rule, others: Sequence[_Judged]) -> RuleDecision:
    reason = f"Rule {rule.name} refuses {words.offered(rule)} to {words.people(rule.subjects)}."
    if rule.description:
        reason += f" {rule.description}"
    offer, target = rule.terms.inputs
    is_of_some = bool(rule.terms.offers)
    target_words = target.replace("_", " ")
    remedy = f"Choose another {target_words}."
    if is_of_some:
        remedy = f"Ask for another {offer.replace('_', ' ')} or choose another {target_words}."
    return RuleDecision(
        allowed=False,
        code="denied_by_rule",
        reason=reason,
        rule=rule,
        misses=tuple(one.miss for one in others),
        remedies=(remedy,),
        max_duration_seconds=0,
        field=offer if is_of_some else target,
    )


def _fact_unreadable(one: _Judged, looked_at: Iterable[_Judged]) -> RuleDecision:
    unread = next(finding for finding in one.findings if finding.part is Part.UNREADABLE)
    reason = f"{_capital(unread.reason)}, and rule {one.rule.name} depends on them, so nothing can be decided."
    return _refuse(unread.code, reason, tuple(other.miss for other in looked_at if not other.fits), remedies=(unread.remedy,))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _unreadable(reason: str, code: str) -> RuleDecision:
    return _refuse(code, reason, (), remedies=("Try again in a moment; if it stays so, tell an operator.",))


def _refuse(
    code: str, reason: str, misses: tuple[Miss, ...], *, remedies: tuple[str, ...] = (), field: str = "", longest: int = 0
) -> RuleDecision:
    return RuleDecision(
        allowed=False, code=code, reason=reason, rule=None, misses=misses, remedies=remedies, max_duration_seconds=longest, field=field
    )


def _remedies(near: Iterable[_Judged]) -> tuple[str, ...]:
    """One sentence or chain of sentences a rule, each once, in file order; the first few, for people."""
    chains = (" ".join(dict.fromkeys(finding.remedy for finding in one.findings if finding.remedy)) for one in near)
    return tuple(dict.fromkeys(chain for chain in chains if chain))[:_MOST_REMEDIES]
