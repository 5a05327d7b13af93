"""Parts of rules in words for people: used by decisions and by plans."""

from __future__ import annotations

import re
from collections.abc import Sequence

from accessportal.kernel.durations import format_duration
from accessportal.rules.states import EVERYBODY, GROUP, SANDBOX, EndsWith, People, Question, Rule, Targets

_SHOWN = 5
_LITERAL_START = re.compile(r"[A-Za-z0-9 _:#/-]+(?![*+?{])")


def listed(items: Sequence[str], word: str = "or") -> str:
    """``a``, ``a or b``, ``a, b or c``; of many the first five and how many more."""
    if len(items) > _SHOWN:
        return ", ".join(items[:_SHOWN]) + f" {word} {len(items) - _SHOWN} more"
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + f" {word} {items[-1]}"


def people(who: People, word: str = "and") -> str:
    if EVERYBODY in who.groups:
        return "everybody"
    return listed(who.names, word) or "nobody"


def targets(where: Targets) -> str:
    """``/Workloads/Prod``, ``accounts a and b``, ``any account``, each with its tags; ``/engineering and below``; ``the whole pool``."""
    if where.pool:
        return "the whole pool"
    if where.name_prefixes:
        return f"those named {listed([f'{prefix}…' for prefix in where.name_prefixes], 'and')}"
    if where.groups or where.subtrees:
        below = [] if EVERYBODY in where.subtrees else [f"{top} and below" for top in where.subtrees]
        return "every group" if EVERYBODY in where.subtrees else listed([*below, *where.groups], "and")
    parts = []
    if where.ous:
        parts.append("every account" if "/" in where.ous else listed(where.ous, "and"))
    if where.accounts:
        parts.append(("account " if len(where.accounts) == 1 else "accounts ") + listed(where.accounts, "and"))
    place = " and ".join(parts) or "any account"
    tags = [f"{key} {listed(values)}" for key, values in where.tags.items()]
    return f"{place} with tag {listed(tags, 'and')}" if tags else place


def offers(rule: Rule) -> str:
    """The permission sets or the roles that a rule is about, or a sandbox."""
    if rule.kind == SANDBOX:
        return "a sandbox"
    if rule.kind == GROUP:
        return listed(rule.roles, "and") or "every role"
    return listed(rule.permission_sets, "and") or "every permission set"


def at(kind: str) -> str:
    """The word between what is offered and where."""
    return {GROUP: "in", SANDBOX: "from"}.get(kind, "on")


def offered(rule: Rule) -> str:
    """``ReadOnlyAccess on /Workloads/Prod``, ``reader in /engineering and below``, ``a sandbox from those named lab-…``."""
    return f"{offers(rule)} {at(rule.kind)} {targets(rule.targets)}"


def asked_for(question: Question) -> str:
    """``ReadOnlyAccess on payments-prod``, ``reader in Payments``, ``a sandbox named lab-…``."""
    if question.kind == SANDBOX:
        return f"a sandbox named {question.name_prefix}…" if question.name_prefix else "a sandbox"
    if question.kind == GROUP:
        return f"{question.role} in {question.group_name or question.group_id}"
    return f"{question.permission_set} on {question.account_name or question.account_id}"


def approval(rule: Rule) -> str:
    """``no approval``, ``one approval from /security``, ``2 approvals from /security``."""
    if not rule.approval.required:
        return "no approval"
    count = "one approval" if rule.approval.quorum == 1 else f"{rule.approval.quorum} approvals"
    return f"{count} from {approvers(rule)}"


def approvers(rule: Rule) -> str:
    if rule.kind == SANDBOX and rule.approval.approvers == People():
        return "an operator"
    return "the group's admins" if rule.asks_admins else people(rule.approval.approvers, "or")


def ticket_like(pattern: str) -> str:
    """``a ticket like CHG-… (pattern CHG-[0-9]+)``: the literal start of the pattern where it has one."""
    if not pattern:
        return "a ticket"
    start = _LITERAL_START.match(pattern)
    like = f"like {start.group()}…" if start and "|" not in pattern else "of the right form"
    return f"a ticket {like} (pattern {pattern})"


def limits(rule: Rule) -> str:
    """``up to 4 h, no approval``, with the ticket where one is required."""
    parts = [f"up to {format_duration(rule.max_duration_seconds)}"]
    if rule.max_total_seconds:
        parts[0] += f" (with extensions {format_duration(rule.max_total_seconds)})"
    parts.append(approval(rule))
    if rule.ticket.required:
        parts.append(ticket_like(rule.ticket.pattern))
    if rule.kind == SANDBOX:
        parts.append(f"{rule.most_per_person} at a time")
        parts += [] if rule.extend else ["not to be extended"]
    if rule.ends_with is EndsWith.TIME:
        parts.append("kept without the membership")
    return ", ".join(parts)
