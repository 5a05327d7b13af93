"""Reading the rules and asking them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accessportal.rules import policy, store
from accessportal.rules.reach import reaches
from accessportal.rules.states import Question, Reach, Rule, RuleDecision, RuleHead, RuleSet


def current_rules() -> tuple[Rule, ...]:
    """The rules in force, in file order. One small strong read; the rules are kept until the set changes.

    :raises Unavailable: when they can't be read whole; never an empty or shorter list for that.
    """
    return store.current_set().rules


def current_set() -> RuleSet:
    """The rules in force with the number of their set, and who put them in force when."""
    return store.current_set()


def find_rule(*, name: str) -> Rule | None:
    """The version of a rule that is in force."""
    return next((rule for rule in current_rules() if rule.name == name), None)


def reach_of(*, group_id: str, groups_above: Sequence[str]) -> tuple[Reach, ...]:
    """Which rules in force the people in a group approve by, and which serve or refuse them, by the group's name or one above
    (root first); in file order. Users whom rules name are not told.

    :raises Unavailable: when the rules can't be read.
    """
    return tuple(one for rule in current_rules() for one in reaches(rule, group_id=group_id, groups_above=groups_above))


def rule_history(*, name: str) -> tuple[Rule, ...]:
    """Every version of a rule, newest first, the one that removed it included; empty when there never was such a rule.

    After a load of more than 32 changed rules was broken off, the newest version may not be in force yet.
    """
    return store.history(name)


def rule_head(*, name: str) -> RuleHead | None:
    """Where the chain of a rule must end, removed rules included; strongly read."""
    return store.head(name)


def rule_set_head() -> RuleHead | None:
    """Where the chain of the rule sets must end; ``None`` before the first load. Read even when the rules can't be."""
    return store.set_head()


def list_rule_heads() -> Iterator[RuleHead]:
    """Where the chain of every rule that there ever was must end. Reads the whole table, so for checks by command alone.

    :raises Unavailable: when the store did not answer.
    """
    return store.every_head()


def decide(*, question: Question) -> RuleDecision:
    """What the rules in force say to ``question``, with the whole explanation.

    :raises Unavailable: when the rules can't be read; that is not a refusal.
    """
    return policy.decide(current_rules(), question)
