"""Reading the rules and asking them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from accessportal.rules import policy, store
from accessportal.rules.reach import reaches, reaches_person
from accessportal.rules.states import Question, Reach, Rule, RuleDecision
from accessportal.rules.store import current_set, every_versions, find_versions, rule_history, rule_set_head

__all__ = [
    "current_rules",
    "current_set",
    "decide",
    "every_versions",
    "find_rule",
    "find_versions",
    "reach_of",
    "rule_history",
    "rule_set_head",
]


def current_rules() -> tuple[Rule, ...]:
    """Read the rules in force, in file order: one small strong read while the set is the same. Unavailable when they can't be read whole;
    never a shorter list for that."""
    return store.current_set().rules


def find_rule(*, name: str) -> Rule | None:
    """The version of a rule that is in force."""
    return next((rule for rule in current_rules() if rule.name == name), None)


def reach_of(*, group_id: str, groups_above: Sequence[str], among: Iterable[Rule]) -> tuple[Reach, ...]:
    """Tell which of the rules ``among``, those in force, the people in a group approve by, and which serve or refuse them, by the group's
    name or one above (root first); in file order. Users whom rules name are not told."""
    return tuple(one for rule in among for one in reaches(rule, group_id=group_id, groups_above=groups_above))


def reach_of_person(*, subject: str, groups: frozenset[str], direct: frozenset[str]) -> tuple[Reach, ...]:
    """Tell which rules in force serve or refuse somebody, and which they approve by, in file order."""
    return tuple(one for rule in current_rules() for one in reaches_person(rule, subject=subject, groups=groups, direct=direct))


def decide(*, question: Question, among: Iterable[Rule]) -> RuleDecision:
    """Ask the rules ``among``, which are those in force in their order, with the whole explanation."""
    return policy.decide(tuple(among), question)
