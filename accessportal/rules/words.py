"""Parts of rules in words for people: used by decisions and by plans."""

from __future__ import annotations

from accessportal.kernel.durations import format_duration
from accessportal.rules.states import EVERYBODY, EndsWith, People, Rule
from accessportal.rules.terms import listed
from accessportal.rules.tickets import example_of


def people(who: People, word: str = "and") -> str:
    if EVERYBODY in who.groups:
        return "everybody"
    return listed(who.names, word) or "nobody"


def offered(rule: Rule) -> str:
    """``ReadOnlyAccess on /Workloads/Prod``, ``reader in /engineering and below``, ``a sandbox from those named lab-…``."""
    return f"{rule.terms.offered()} {rule.terms.at} {rule.terms.place()}"


def approval(rule: Rule) -> str:
    """``no approval``, ``one approval from /security``, ``2 approvals from /security``."""
    if not rule.approval.required:
        return "no approval"
    count = "one approval" if rule.approval.quorum == 1 else f"{rule.approval.quorum} approvals"
    return f"{count} from {approvers(rule)}"


def approvers(rule: Rule) -> str:
    named = rule.approval.approvers
    return rule.terms.stand_ins if rule.terms.stand_ins and named == People() else people(named, "or")


def ticket_like(pattern: str) -> str:
    """``a ticket like CHG-4711``; where a pattern is too much for an example, the pattern itself."""
    if not pattern:
        return "a ticket"
    example = example_of(pattern)
    return f"a ticket like {example}" if example else f"a ticket of the form {pattern}"


def limits(rule: Rule) -> str:
    """``up to 4 h, no approval``, with the ticket where one is required."""
    parts = [f"up to {format_duration(rule.max_duration_seconds)}"]
    if rule.max_total_seconds:
        parts[0] += f" (with extensions {format_duration(rule.max_total_seconds)})"
    parts.append(approval(rule))
    if rule.ticket.required:
        parts.append(ticket_like(rule.ticket.pattern))
    parts += rule.terms.limits()
    if rule.ends_with is EndsWith.TIME:
        parts.append("kept without the membership")
    return ", ".join(parts)
