"""What changed between the versions of a rule, line by line as people read it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accessportal.kernel.durations import format_duration
from accessportal.rules.states import AWS_ACCOUNT, EVERYBODY, GROUP, SANDBOX, Effect, People, Rule, Targets

# What a rule lists of each kind; a sandbox is taken whole.
_OFFERED = {AWS_ACCOUNT: "Permission sets", GROUP: "Roles"}


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
        "Effect": rule.effect.value,
        "Kind": rule.kind,
        "Who": people_words(rule.subjects),
        "Where": targets_words(rule.targets),
        "Description": rule.description,
    }
    if rule.kind in _OFFERED:
        lines[_OFFERED[rule.kind]] = ", ".join(rule.roles or rule.permission_sets) or "every one"
    if rule.effect is Effect.ALLOW:
        lines |= _terms_of(rule)
    return {label: words for label, words in lines.items() if words}


def _terms_of(rule: Rule) -> dict[str, str]:
    approval, ticket = rule.approval, rule.ticket
    pool = {"At a time": f"{rule.most_per_person} per person", "Extending": "possible" if rule.extend else "not possible"}
    return (pool if rule.kind == SANDBOX else {}) | {
        "Shortest": format_duration(rule.min_duration_seconds),
        "Usual": format_duration(rule.default_duration_seconds),
        "Longest": format_duration(rule.max_duration_seconds),
        "With extensions": format_duration(rule.max_total_seconds) if rule.max_total_seconds else "",
        "Ends": "with the membership, or at its time" if rule.serves_by_membership else "at its time",
        "Approval": f"{approval.quorum} of {approvers_words(rule)}" if approval.required else "not needed",
        "Ticket": (f"must match {ticket.pattern}" if ticket.pattern else "any text") if ticket.required else "not needed",
    }


def approvers_words(rule: Rule) -> str:
    if rule.kind == SANDBOX and rule.approval.approvers == People():
        return "the operators"
    return "the group's admins" if rule.asks_admins else people_words(rule.approval.approvers)


def people_words(people: People) -> str:
    if EVERYBODY in people.groups:
        return "everybody"
    return ", ".join(people.names)


def targets_words(targets: Targets) -> str:
    """``/Workloads/Prod, payments-dev; env is prod or staging``; an empty place means any account (rules' own meaning).
    Of groups, ``/engineering and below, /support``; of sandboxes, ``the whole pool`` or ``lab-…``."""
    if targets.pool or targets.name_prefixes:
        return ", ".join(f"{prefix}…" for prefix in targets.name_prefixes) or "the whole pool"
    if targets.groups or targets.subtrees:
        return ", ".join([*(f"{top} and below" if top != EVERYBODY else "every group" for top in targets.subtrees), *targets.groups])
    place = ", ".join((*targets.ous, *targets.accounts)) or "any account"
    tags = [f"{key} is {' or '.join(values)}" for key, values in sorted(targets.tags.items())]
    return "; ".join((place, *tags))
