"""Rules of kind ``sandbox``: reading the file, what a plan tells, and that they come back from the store as they were."""

from __future__ import annotations

import pytest

from accessportal.access_requests.kinds.sandbox.terms import SandboxAsked, SandboxTargets, SandboxTerms
from accessportal.rules import planning, words
from accessportal.rules.loading import content_of, hash_of, read_rules
from accessportal.rules.policy import decide
from accessportal.rules.states import InvalidRules, Question, Rule, RuleSet
from accessportal.rules.terms import Facts
from tests.rules.stories import GROUP_RULES, RULES, rules

LAB = """
  - name: labs
    kind: sandbox
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {name_prefixes: [lab-]}
    duration: {max: 2h}
    approval: {required: false}
"""
FACTS = Facts()


def lab(*more: str, **changed: str) -> str:
    text = LAB
    for old, new in changed.items():
        lines = [f"    {old}: {new}" if line.startswith(f"    {old}:") else line for line in text.splitlines()]
        text = "\n".join(lines) + "\n"
    return "rules:" + text + "".join(f"    {line}\n" for line in more)


def one(text: str) -> Rule:
    (rule,) = read_rules(text)
    return rule


def test_what_is_left_out_has_its_usual_value() -> None:
    rule = one(lab())
    assert rule.terms == SandboxTerms(SandboxTargets(("lab-",), ""), most_per_person=1, extend=True)
    rule = one(lab("most_per_person: 3", "extend: false", targets="{pool: all}"))
    assert rule.terms == SandboxTerms(SandboxTargets((), "all"), most_per_person=3, extend=False)


def test_approvers_may_be_left_out_then_operators_decide() -> None:
    rule = one(lab(approval="{required: true}"))
    assert rule.approval.required
    assert words.approval(rule) == "one approval from the operators"


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (lab(targets="{}"), "rules[0].targets", "about no sandbox"),
        (lab(targets="{name_prefixes: []}"), "rules[0].targets", "about no sandbox"),
        (lab(targets="{pool: some}"), "rules[0].targets.pool", "“some” is not possible"),
        (lab(targets="{pool: all, name_prefixes: [lab-]}"), "rules[0].targets", "at once"),
        (lab(targets="{ous: [/]}"), "rules[0].targets.ous", "ous"),
        (lab("most_per_person: 0"), "rules[0].most_per_person", "0"),
        (lab("extend: maybe"), "rules[0].extend", "maybe"),
        (lab("roles: [reader]"), "rules[0].roles", "roles"),
        (lab("permission_sets: [ReadOnlyAccess]"), "rules[0].permission_sets", "permission_sets"),
        (lab(kind="laptop"), "rules[0].kind", "laptop"),
        (
            RULES.replace("    kind: aws_account\n", "    kind: aws_account\n    most_per_person: 2\n", 1),
            "rules[0].most_per_person",
            "most_per",
        ),
    ],
)
def test_every_mistake_is_told_with_its_place(text: str, path: str, message: str) -> None:
    with pytest.raises(InvalidRules) as caught:
        read_rules(text)
    assert any(error.path == path and message in error.message for error in caught.value.errors), caught.value.message


def test_a_deny_has_no_limits() -> None:
    deny = "rules:\n  - {name: none, kind: sandbox, effect: deny, subjects: {groups: [/]}, targets: {pool: all}}\n"
    rule = one(deny)
    assert rule.terms == SandboxTerms(SandboxTargets(pool="all"), most_per_person=0)
    with pytest.raises(InvalidRules):
        read_rules(deny.replace("}}", "}, extend: false}"))
    decision = decide([rule], Question(asked=SandboxAsked(), subject="alice@example.com", subject_groups=frozenset()))
    assert (decision.code, decision.field) == ("denied_by_rule", "name_prefix")
    assert decision.reason == "Rule none refuses a sandbox from the whole pool to everybody."
    assert decision.remedies == ("Choose another name prefix.",)


def test_the_content_of_other_kinds_knows_nothing_of_sandboxes() -> None:
    """Their hashes are in force: a further kind must not change them."""
    for rule in (*rules(RULES), *rules(GROUP_RULES)):
        content = content_of(rule)
        assert not {"most_per_person", "extend"} & content.keys()
        assert not {"name_prefixes", "pool"} & content["targets"].keys()
    assert len({hash_of(one(text)) for text in (lab(), lab("most_per_person: 2"), lab("extend: false"), lab(targets="{pool: all}"))}) == 4


@pytest.mark.parametrize(
    ("old", "new", "gains", "loses"),
    [
        ("", lab(), "/engineering (0 people) gains a sandbox from those named lab-… up to 2 h, no approval, 1 at a time", ""),
        (lab(), lab(targets="{pool: all}"), "gains a sandbox from the whole pool", ""),
        (lab(targets="{pool: all}"), lab(), "", "loses a sandbox from the whole pool"),
        (lab(), lab(targets="{name_prefixes: [lab-, gpu-]}"), "gains a sandbox from those named gpu-…", ""),
        (lab(), lab(targets="{name_prefixes: [lab-a-]}"), "", "loses a sandbox from those named lab-…"),
        (lab(), lab("most_per_person: 2"), "2 at a time instead of 1", ""),
        (lab(), lab("extend: false"), "", "what is held may not be extended"),
    ],
)
def test_a_plan_tells_who_gains_and_loses_what(old: str, new: str, gains: str, loses: str) -> None:
    base = RuleSet(1, read_rules(old) if old else ())
    (impact,) = planning.impacts(planning.compare(base, read_rules(new)), FACTS)
    assert gains in " ".join(impact.gains)
    assert loses in " ".join(impact.loses)
    assert bool(gains) == bool(impact.gains), impact
    assert bool(loses) == bool(impact.loses), impact


def test_a_plan_names_the_keys_that_change() -> None:
    plan = planning.compare(RuleSet(1, read_rules(lab())), read_rules(lab("most_per_person: 2", "extend: false", targets="{pool: all}")))
    (change,) = plan.changed
    assert [(field.field, field.old, field.new) for field in change.fields] == [
        ("targets.name_prefixes", "lab-", ""),
        ("targets.pool", "", "all"),
        ("most_per_person", "1", "2"),
        ("extend", "true", "false"),
    ]


def test_who_is_offered_other_names_is_told_which() -> None:
    asked = Question(asked=SandboxAsked(), subject="alice@example.com", subject_groups=frozenset({"/engineering"}))
    decision = decide([one(lab())], asked)
    assert (decision.code, decision.field) == ("name_prefix_not_covered", "name_prefix")
    assert decision.reason == "No rule offers alice@example.com a sandbox, only with other names."
    assert decision.remedies == ("Ask for one of those named lab-….",)
