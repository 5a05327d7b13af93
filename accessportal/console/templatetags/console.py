"""Words for the cells and sections of the console; those for times and states are the portal's tags."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django import template

from accessportal.assignments.states import Assignment, AssignmentState
from accessportal.console import rule_versions
from accessportal.console.resources.scopes import policy_in_words
from accessportal.kernel.durations import format_duration
from accessportal.rules import words
from accessportal.rules.states import Effect, Rule
from accessportal.web.facts import Fact

register = template.Library()
register.filter("policy_words", policy_in_words)
register.filter("people_words", words.people)

_ASSIGNMENT_WORDS = {
    AssignmentState.ABSENT: ("Gone", "done"),
    AssignmentState.CREATING: ("Being created", "wait"),
    AssignmentState.PRESENT: ("Present", "live"),
    AssignmentState.DELETING: ("Being deleted", "wait"),
}


@register.filter
def until(moment: datetime, now: datetime) -> str:
    """How long until ``moment``, rounded down to whole hours, or minutes below an hour: ``1 d 3 h``, ``23 h``, ``12 min``."""
    seconds = max(int((moment - now).total_seconds()), 0)
    unit = next((unit for unit in (3_600, 60) if seconds >= unit), 1)
    return format_duration(seconds // unit * unit)


@register.filter
def few(items: Iterable[Any], most: int) -> list[Any]:
    """The first ``most``, in order: a cell is no list. What is left out is told by :func:`beyond`."""
    return sorted(items)[:most]


@register.filter
def beyond(items: Collection[Any], most: int) -> int:
    return max(len(items) - most, 0)


_DRIFT_WORDS = {
    "missing": ("Missing", "stop", "a request gives it, and it was there, but AWS does not have it now"),
    "unknown": ("Unknown", "wait", "AWS has it, but no request of the portal gave it"),
    "left_over": ("Left over", "stop", "AWS still has it, though the requests that gave it are over"),
    "dead_claim": ("Dead claim", "wait", "it is still recorded for a request that is over"),
}


@register.inclusion_tag("console/assignments/drift.html")
def drift_pill(drift: str) -> dict[str, str]:
    word, tone, words = _DRIFT_WORDS.get(drift, ("Differs", "stop", drift))
    return {"word": word, "tone": tone, "words": words}


@register.filter
def assignment_word(assignment: Assignment) -> str:
    return _ASSIGNMENT_WORDS[assignment.state][0]


@register.filter
def assignment_tone(assignment: Assignment) -> str:
    return _ASSIGNMENT_WORDS[assignment.state][1]


@register.filter
def limits_words(rule: Rule) -> str:
    """``up to 8 h, one approval from /security, a ticket``; nothing for a deny."""
    return "" if rule.effect is Effect.DENY else words.limits(rule)


@register.filter
def rule_lines(rule: Rule) -> list[Fact]:
    return [Fact(label, told) for label, told in rule_versions.lines_of(rule).items()]
