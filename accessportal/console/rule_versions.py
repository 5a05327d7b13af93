"""What changed between the versions of a rule, line by line as people read it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accessportal.access_requests.kind import KINDS
from accessportal.kernel.durations import format_duration
from accessportal.rules import words
from accessportal.rules.states import Effect, Rule


@dataclass(frozen=True, slots=True)
class Change:
    """One property; ``before`` is "" in the first version."""

    label: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Version:
    """``changes`` against the version before; all properties for the first."""

    rule: Rule
    changes: tuple[Change, ...]


def versions_of(newest_first: Sequence[Rule]) -> tuple[Version, ...]:
    """Each version with what it changed, in the order given."""
    older = [*newest_first[1:], None]
    return tuple(Version(rule, changes_between(before, rule)) for rule, before in zip(newest_first, older, strict=True))


def changes_between(before: Rule | None, after: Rule) -> tuple[Change, ...]:
    new = {} if after.is_removed else lines_of(after)
    old = lines_of(before) if before and not before.is_removed else {}
    labels = list(new) + [label for label in old if label not in new]
    return tuple(Change(label, old.get(label, ""), new.get(label, "")) for label in labels if old.get(label, "") != new.get(label, ""))


def lines_of(rule: Rule) -> dict[str, str]:
    """The properties of a rule worth reading, by label."""
    lines = {
        "Place": f"{rule.position + 1} in the file",
        "Effect": "allows" if rule.effect is Effect.ALLOW else "denies",
        "Kind": KINDS[rule.kind].fields.name if rule.kind in KINDS else rule.kind,
        "Who": words.people(rule.subjects),
        "Description": rule.description,
        **rule.terms.lines(),
    }
    if rule.effect is Effect.ALLOW:
        lines |= _terms_of(rule)
    return {label: told for label, told in lines.items() if told}


def _terms_of(rule: Rule) -> dict[str, str]:
    ticket = rule.ticket
    return {
        "Shortest": format_duration(rule.min_duration_seconds),
        "Usual": format_duration(rule.default_duration_seconds),
        "Longest": format_duration(rule.max_duration_seconds),
        "With extensions": format_duration(rule.max_total_seconds) if rule.max_total_seconds else "",
        "Ends": "with the membership, or at its time" if rule.serves_by_membership else "at its time",
        "Approval": words.approval(rule),
        "Ticket": (f"must match {ticket.pattern}" if ticket.pattern else "any text") if ticket.required else "not needed",
    }
