"""Whether one rule fits one question, and every reason why not. Pure."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pydantic_core import SchemaError, SchemaValidator, ValidationError

from accessportal.kernel.durations import format_duration
from accessportal.kernel.keys import fold_key
from accessportal.rules import words
from accessportal.rules.states import AWS_ACCOUNT, EVERYBODY, GROUP, LONGEST_TICKET, SANDBOX, Effect, People, Question, Rule, Targets

_ACCOUNT_ID = re.compile(r"[0-9]{12}")


class Part(enum.Enum):
    """The part of a question that a rule can fail on."""

    SUBJECT = enum.auto()
    TARGET = enum.auto()
    UNREADABLE = enum.auto()
    OFFER = enum.auto()
    TOO_SHORT = enum.auto()
    TOO_LONG = enum.auto()
    TICKET_MISSING = enum.auto()
    TICKET_WRONG = enum.auto()


DURATION = frozenset({Part.TOO_SHORT, Part.TOO_LONG})
TICKET = frozenset({Part.TICKET_MISSING, Part.TICKET_WRONG})


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why a rule does not fit, and what would change that (empty: nothing that the asker could do)."""

    part: Part
    reason: str
    remedy: str = ""


def judge(rule: Rule, question: Question) -> tuple[Finding, ...]:
    """Every reason why ``rule`` does not fit ``question``; none: it fits.

    Both are of one kind. A deny rule has no limits. Duration and ticket are not judged while they are ``None``. Groups and
    OU path must have been read (``policy.decide`` sees to that); tags that could not be read are a finding of their own.
    """
    judge_target, judge_offer = _JUDGES[rule.kind]
    findings = [*_judge_subject(rule, question), *judge_target(rule, question), *judge_offer(rule, question)]
    if rule.effect is Effect.ALLOW:
        findings += [*_judge_duration(rule, question), *_judge_ticket(rule, question)]
    return tuple(findings)


def is_at_or_below(path: str, top: str) -> bool:
    """``/a/b`` is at or below ``/a`` and ``/``; ``/ab`` is not below ``/a``."""
    return top == "/" or path == top or path.startswith(top + "/")


def includes(who: People, *, subject: str, groups: frozenset[str], direct: frozenset[str]) -> bool:
    """Whether ``subject`` (a folded address or a group's id), who is in ``groups`` and ``direct``ly in some of them, is among
    ``who`` as subjects."""
    return EVERYBODY in who.groups or subject in who.users or not groups.isdisjoint(who.groups) or not direct.isdisjoint(who.groups_only)


def is_served_by_membership(rule: Rule, subject: str) -> bool:
    """Whether what ``rule`` gives ``subject``, whom it serves, ends when they leave its groups. Whom it names by address, and whom
    it serves as everybody, has nothing to leave."""
    return rule.serves_by_membership and EVERYBODY not in rule.subjects.groups and subject not in rule.subjects.users


def is_in_place(where: Targets, *, account_id: str, account_name: str, ou_path: str) -> bool:
    """Whether an account is in one of the OUs or accounts, whatever its tags. Twelve digits are an id, whoever's name they are too."""
    if not where.ous and not where.accounts:
        return True
    name = "" if _ACCOUNT_ID.fullmatch(account_name) else fold_key(account_name)
    return any(is_at_or_below(ou_path, top) for top in where.ous) or any(
        fold_key(account) in (account_id, name) for account in where.accounts
    )


def has_tags(where: Targets, tags: Mapping[str, str]) -> bool:
    return all(tags.get(key) in values for key, values in where.tags.items())


def pattern_fault(pattern: str) -> str:
    """Why ``pattern`` can't be a ticket pattern; empty when it can."""
    try:
        # By itself first: "a)|(b" would be well-formed once it stands between the anchors.
        SchemaValidator({"type": "str", "pattern": pattern})
        _ticket_validator(pattern)
    except SchemaError as error:
        return str(error).strip().splitlines()[-1].strip().removeprefix("error: ").removeprefix("SchemaError: ")
    return ""


@functools.lru_cache(maxsize=256)
def _ticket_validator(pattern: str) -> SchemaValidator:
    # The Rust engine that comes with pydantic has no backtracking: its time grows with the length of the ticket, never
    # with the nesting of the pattern. Python's own engine can be brought to a stand-still by "(a+)+$".
    return SchemaValidator({"type": "str", "pattern": rf"\A(?:{pattern})\z", "regex_engine": "rust-regex"})


def ticket_matches(pattern: str, ticket_id: str) -> bool:
    """Whether the whole of ``ticket_id`` matches; an empty pattern takes any ticket of at most 200 characters."""
    if len(ticket_id) > LONGEST_TICKET:
        return False
    if not pattern:
        return True
    try:
        _ticket_validator(pattern).validate_python(ticket_id)
    except ValidationError:
        return False
    return True


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
        parts.append(f"{'at or below' if question.subject.startswith('/') else 'in'} {words.listed(who.groups)}")
    if who.groups_only:
        parts.append(f"directly in {words.listed(who.groups_only)}")
    if who.users:
        parts.append(words.listed(who.users))
    joinable = [*who.groups, *who.groups_only]
    remedy = f"Join {words.listed(joinable)}." if joinable else ""
    yield Finding(Part.SUBJECT, f"{question.subject} is not {' and not '.join(parts) or 'anybody this rule names'}", remedy)


def _judge_account(rule: Rule, question: Question) -> Iterator[Finding]:
    where = rule.targets
    name, ou_path = question.account_name or question.account_id, question.ou_path or ""
    if not is_in_place(where, account_id=question.account_id, account_name=question.account_name, ou_path=ou_path):
        parts = []
        if where.ous:
            parts.append(f"is in {ou_path}, not below {words.listed(where.ous)}")
        if where.accounts:
            parts.append(f"is not {words.listed(where.accounts)}")
        yield Finding(Part.TARGET, f"{name} {' and '.join(parts)}", f"Choose an account in {words.targets(where)}.")
        return
    if not where.tags:
        return
    if question.tags is None:
        yield Finding(Part.UNREADABLE, f"the tags of {name} could not be read", "Try again when the catalog has been refreshed.")
        return
    for key, values in where.tags.items():
        found = question.tags.get(key)
        if found not in values:
            has = f"has no tag {key}" if found is None else f"has {key}={found}"
            yield Finding(Part.TARGET, f"{name} {has}, not {words.listed(values)}", f"Choose an account in {words.targets(where)}.")


def _judge_permission_set(rule: Rule, question: Question) -> Iterator[Finding]:
    # Only a deny rule may leave the list out: it then covers every permission set.
    if question.permission_set in rule.permission_sets or (rule.effect is Effect.DENY and not rule.permission_sets):
        return
    offered = words.listed(rule.permission_sets)
    yield Finding(Part.OFFER, f"{question.permission_set} is not {offered}", f"Ask for {offered}.")


def _judge_group(rule: Rule, question: Question) -> Iterator[Finding]:
    where = rule.targets
    if question.group_id in where.groups or not question.groups_above.isdisjoint(where.subtrees):
        return
    place = words.targets(where)
    yield Finding(Part.TARGET, f"{question.group_name or question.group_id} is not among {place}", f"Choose a group among {place}.")


def _judge_role(rule: Rule, question: Question) -> Iterator[Finding]:
    # As with permission sets: only a deny may leave the list out.
    if question.role in rule.roles or (rule.effect is Effect.DENY and not rule.roles):
        return
    offered = words.listed(rule.roles)
    yield Finding(Part.OFFER, f"{question.role} is not {offered}", f"Ask for {offered}.")


def _judge_name(rule: Rule, question: Question) -> Iterator[Finding]:
    where, asked = rule.targets, question.name_prefix
    if where.pool or any(asked.startswith(prefix) for prefix in where.name_prefixes):
        return
    # Whoever asks for more than what is refused could be given just that.
    if rule.effect is Effect.DENY and any(prefix.startswith(asked) for prefix in where.name_prefixes):
        return
    wanted = f"a sandbox whose name begins with {asked}" if asked else "a sandbox of any name"
    offered = words.targets(where)
    yield Finding(Part.TARGET, f"{wanted} is not among {offered}", f"Ask for one of {offered}.")


def _judge_nothing(rule: Rule, question: Question) -> Iterator[Finding]:
    """A sandbox is taken whole: there is no part of it to offer."""
    return iter(())


_Judge = Callable[[Rule, Question], Iterator[Finding]]
# Where, and what is offered there.
_JUDGES: Mapping[str, tuple[_Judge, _Judge]] = {
    AWS_ACCOUNT: (_judge_account, _judge_permission_set),
    GROUP: (_judge_group, _judge_role),
    SANDBOX: (_judge_name, _judge_nothing),
}


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
        shown = ticket_id if len(ticket_id) <= 40 else ticket_id[:40] + "…"
        if len(ticket_id) > LONGEST_TICKET:
            yield Finding(Part.TICKET_WRONG, f"the ticket is longer than {LONGEST_TICKET} characters", f"Give {like}.")
        else:
            yield Finding(Part.TICKET_WRONG, f"“{shown}” is not {like}", f"Give {like}.")
