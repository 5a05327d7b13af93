"""Reading the rules and asking them."""

from __future__ import annotations

from collections.abc import Iterator

from accessportal.directory import queries as directory
from accessportal.directory.states import Crowd
from accessportal.rules import policy, store
from accessportal.rules.states import Explanation, Question, Rule, RuleDecision, RuleHead, RuleSet


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


def rule_history(*, name: str) -> tuple[Rule, ...]:
    """Every version of a rule, newest first, the one that removed it included; empty when there never was such a rule.

    After a load of more than 32 changed rules was broken off, the newest version may not be in force yet.
    """
    return store.history(name)


def rule_head(*, name: str) -> RuleHead | None:
    """Where the chain of a rule must end, removed rules included; strongly read."""
    return store.head(name)


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


def explain(*, question: Question) -> Explanation:
    """The decision, what every single rule says, and who could approve it right now."""
    rule_set = store.current_set()
    decision = policy.decide(rule_set.rules, question)
    explanation = Explanation(decision, policy.verdicts(rule_set.rules, question), rule_set.version)
    rule = decision.rule
    if not decision.allowed or rule is None or not rule.approval.required:
        return explanation
    crowd = _crowd(rule, question)
    return Explanation(
        decision=decision,
        verdicts=explanation.verdicts,
        rule_set_version=rule_set.version,
        approvers=crowd.people,
        missing_groups=crowd.missing_groups,
        is_decidable=len(crowd.people) >= rule.approval.quorum,
    )


def _crowd(rule: Rule, question: Question) -> Crowd:
    """The rule's approvers without the subject, nor anybody whom a group as subject would serve."""
    approvers = rule.approval.approvers
    crowd = directory.people_in(groups=approvers.groups, users=approvers.users)
    served = {question.subject}
    if question.subject.startswith("/"):
        served = {person.key for person in directory.people_in(groups=[question.subject]).people}
    return Crowd(tuple(person for person in crowd.people if person.key not in served), crowd.missing_groups)
