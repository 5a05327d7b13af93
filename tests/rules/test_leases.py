"""Rules of kind ``account_lease``: reading the file, what a plan tells, and that they come back from the store as they were."""

from __future__ import annotations

import pytest

from accessportal.access_requests.kinds.account_lease.terms import AtLimit, Extend, LeaseTargets, LeaseTerms
from accessportal.rules import planning, words
from accessportal.rules.loading import read_rules
from accessportal.rules.states import InvalidRules, Rule, RuleSet
from accessportal.rules.terms import Facts

LAB = """
rules:
  - name: labs
    kind: account_lease
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {pools: [labs]}
    permission_sets: [PowerUserAccess]
    duration: {max: 3d}
    approval: {required: true}
"""


def one(text: str) -> Rule:
    (rule,) = read_rules(text)
    return rule


def with_targets(targets: str) -> str:
    return LAB.replace("{pools: [labs]}", targets)


def moved(before: str, after: str) -> str:
    """What a plan tells of the change."""
    (impact,) = planning.impacts(planning.compare(RuleSet(1, read_rules(before)), read_rules(after)), Facts())
    return " ".join((*impact.gains, *impact.loses))


def test_what_is_left_out_has_its_usual_value() -> None:
    assert one(LAB).terms == LeaseTerms(LeaseTargets(("labs",)), ("PowerUserAccess",), most_per_person=1)
    more = LAB + "    extend: never\n    most_per_person: 3\n    budget: {usd: 50, at_limit: end}\n"
    terms = one(more).terms
    assert isinstance(terms, LeaseTerms)
    assert (terms.extending, terms.most_per_person) == (Extend.NEVER, 3)
    assert (terms.budget_usd, terms.budget_warn_percent, terms.budget_at_limit) == (50, 80, AtLimit.END)


def test_it_comes_back_as_it_was_written() -> None:
    terms = one(with_targets("{pools: [labs], sizes: [small], tags: {env: [lab, dev]}}") + "    budget: {usd: 50}\n").terms
    assert LeaseTerms.restored(terms.stored()) == terms


def test_it_is_told_in_words() -> None:
    rule = one(with_targets("{pools: [labs, demo], sizes: [small], tags: {env: [lab]}}") + "    budget: {usd: 50, at_limit: freeze}\n")
    assert words.offered(rule) == "PowerUserAccess on accounts of pools labs and demo of size small with tag env lab"
    assert words.limits(rule).endswith(
        "1 at a time, extending possible while nobody waits, budget 50 USD, warning at 80 %, freeze at the limit"
    )
    assert rule.terms.lines() == {
        "Pools": "labs, demo; size small; env is lab",
        "Permission sets": "PowerUserAccess",
        "At a time": "1 per person",
        "Extending": "possible while nobody waits",
        "Budget": "50 USD, warning at 80 %, freeze at the limit",
    }


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (with_targets("{}"), "rules[0].targets.pools", "missing"),
        (with_targets("{pools: []}"), "rules[0].targets.pools", "about no account"),
        (with_targets("{pools: [Labs]}"), "rules[0].targets.pools[0]", "no pool or size"),
        (with_targets("{pools: [labs], sizes: [XL]}"), "rules[0].targets.sizes[0]", "no pool or size"),
        (with_targets("{pools: [labs], tags: {env: []}}"), "rules[0].targets.tags.env", "matches nothing"),
        (LAB + "    extend: true\n", "rules[0].extend", "not possible here"),
        (LAB + "    most_per_person: 0\n", "rules[0].most_per_person", "from 1 to 100"),
        (LAB + "    budget: {at_limit: warn}\n", "rules[0].budget.usd", "missing"),
        (LAB + "    budget: {usd: 0}\n", "rules[0].budget.usd", "from 1 to"),
        (LAB + "    budget: {usd: 5, warn_percent: 101}\n", "rules[0].budget.warn_percent", "from 1 to 100"),
        (LAB + "    budget: {usd: 5, at_limit: explode}\n", "rules[0].budget.at_limit", "not possible here"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, path: str, message: str) -> None:
    with pytest.raises(InvalidRules) as error:
        read_rules(text)
    assert any(one.path == path and message in one.message for one in error.value.errors), error.value.message


def test_a_plan_tells_what_becomes_easier_and_what_stricter() -> None:
    assert "PowerUserAccess on accounts of pools labs and demo" in moved(LAB, with_targets("{pools: [labs, demo]}"))
    narrow = with_targets("{pools: [labs], sizes: [small]}")
    assert "on accounts of pool labs" in moved(narrow, LAB)
    assert "extending is not possible" in moved(LAB, LAB + "    extend: never\n")
    assert "the budget is 50 USD, warning at 80 % instead of none" in moved(LAB, LAB + "    budget: {usd: 50}\n")
