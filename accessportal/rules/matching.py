"""Whether one rule fits one question, and every reason why not. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from accessportal.kernel.durations import format_duration
from accessportal.kernel.texts import cut
from accessportal.rules import words
from accessportal.rules.states import EVERYBODY, LONGEST_TICKET, Effect, People, Question, Rule
from accessportal.rules.terms import Finding, Part, listed
from accessportal.rules.tickets import ticket_matches

DURATION = frozenset({Part.TOO_SHORT, Part.TOO_LONG})
TICKET = frozenset({Part.TICKET_MISSING, Part.TICKET_WRONG})


def judge(rule: Rule, question: Question) -> tuple[Finding, ...]:
    """Find every reason why ``rule`` does not fit ``question``, which is of its kind; none: it fits. A deny has no limits, and what a form
    has not said yet (``None``) is not judged. What every rule of the kind needs must have been read (``policy.decide``)."""
    is_deny = rule.effect is Effect.DENY
    findings = [*_judge_subject(rule, question), *rule.terms.judge(question.asked, is_deny=is_deny)]
    if not is_deny:
        findings += [*_judge_duration(rule, question), *_judge_ticket(rule, question)]
    return tuple(findings)


def includes(who: People, *, subject: str, groups: frozenset[str], direct: frozenset[str]) -> bool:
    """Whether ``subject`` (a folded address or a group's id), who is in ``groups`` and ``direct``ly in some of them, is among
    ``who`` as subjects."""
    return EVERYBODY in who.groups or subject in who.users or not groups.isdisjoint(who.groups) or not direct.isdisjoint(who.groups_only)


def is_served_by_membership(rule: Rule, subject: str) -> bool:
    """Whether what ``rule`` gives ``subject``, whom it serves, ends when they leave its groups. Whom it names by address, and whom
    it serves as everybody, has nothing to leave."""
    return rule.serves_by_membership and EVERYBODY not in rule.subjects.groups and subject not in rule.subjects.users


def _judge_subject(rule: Rule, question: Question) -> Iterator[Finding]:
    who = rule.subjects
    if includes(who, subject=question.subject, groups=question.subject_groups or frozenset(), direct=question.subject_direct):
        return
    # Access given to a group serves everybody in it and below it, the refused ones too.
    served = question.subject_below | {question.subject}
    if rule.effect is Effect.DENY and not served.isdisjoint((*who.groups, *who.groups_only)):
        return
    parts = []
    if who.groups:
        parts.append(f"{'at or below' if question.subject.startswith('/') else 'in'} {listed(who.groups)}")
    if who.groups_only:
        parts.append(f"directly in {listed(who.groups_only)}")
    if who.users:
        parts.append(listed(who.users))
    joinable = [*who.groups, *who.groups_only]
    remedy = f"Join {listed(joinable)}." if joinable else ""
    yield Finding(Part.SUBJECT, f"{question.subject} is not {' and not '.join(parts) or 'anybody this rule names'}", remedy)


def _judge_duration(rule: Rule, question: Question) -> Iterator[Finding]:
    asked, longest = question.duration_seconds, rule.longest_after(question.held_seconds)
    if question.held_seconds and longest < rule.min_duration_seconds:
        yield Finding(Part.TOO_LONG, f"{_held(rule, question)}, and no more is to be had", "Ask anew when it has ended.")
    elif asked is None:
        return
    elif asked > rule.max_duration_seconds:
        words_longest = format_duration(longest)
        reason = f"{format_duration(asked)} is more than this rule's longest {format_duration(rule.max_duration_seconds)}"
        yield Finding(Part.TOO_LONG, reason, f"Ask for {words_longest} or less.")
    elif asked > longest:
        reason = f"{_held(rule, question)}, so {format_duration(asked)} more is too long"
        yield Finding(Part.TOO_LONG, reason, f"Ask for {format_duration(longest)} or less, or anew when it has ended.")
    elif asked < rule.min_duration_seconds:
        shortest = format_duration(rule.min_duration_seconds)
        words_asked = format_duration(asked) if asked >= 0 else f"{asked} s"
        yield Finding(Part.TOO_SHORT, f"{words_asked} is less than this rule's shortest {shortest}", f"Ask for {shortest} or more.")


def _held(rule: Rule, question: Question) -> str:
    held, total = format_duration(question.held_seconds), format_duration(rule.total_seconds)
    return f"it has been held for {held} without a gap, of at most {total} by this rule, extensions counted"


def _judge_ticket(rule: Rule, question: Question) -> Iterator[Finding]:
    ticket_id, like = question.ticket_id, words.ticket_like(rule.ticket.pattern)
    if ticket_id is None:
        return
    if not ticket_id:
        if rule.ticket.required:
            yield Finding(Part.TICKET_MISSING, f"{like} is needed", f"Give {like}.")
    elif not ticket_matches(rule.ticket.pattern, ticket_id):
        if len(ticket_id) > LONGEST_TICKET:
            yield Finding(Part.TICKET_WRONG, f"the ticket is longer than {LONGEST_TICKET} characters", f"Give {like}.")
        else:
            yield Finding(Part.TICKET_WRONG, f"“{cut(ticket_id)}” is not {like}", f"Give {like}.")
