"""Rules that name a group without the groups below it (``groups_only``)."""

from __future__ import annotations

import dataclasses

import pytest

from accessportal.access_requests.kinds.aws_account.terms import Catalog
from accessportal.rules import store, words
from accessportal.rules.loading import hash_of, read_rules
from accessportal.rules.planning import compare, impacts, warnings
from accessportal.rules.policy import decide
from accessportal.rules.states import InvalidRules, People, RuleSet
from accessportal.rules.terms import Facts
from tests.rules.stories import ask, in_tree

RULES = """
rules:
  - name: no-visitors
    kind: aws_account
    effect: deny
    subjects: {groups_only: [/visitors]}
    targets: {ous: [/]}
  - name: core-team
    kind: aws_account
    effect: allow
    subjects: {groups_only: [/engineering]}
    targets: {ous: [/Workloads/Dev]}
    permission_sets: [PowerUserAccess]
    duration: {max: 4h}
    approval: {required: true, approvers: {groups_only: [/security]}}
"""
BOTH = frozenset({"/engineering", "/engineering/payments"})


@pytest.mark.parametrize(
    ("groups", "direct", "code"),
    [
        pytest.param(BOTH, BOTH, "allowed", id="in both"),
        pytest.param(frozenset({"/engineering"}), frozenset({"/engineering"}), "allowed", id="directly in it"),
        pytest.param(BOTH, frozenset({"/engineering/payments"}), "subject_not_covered", id="only in one below"),
        pytest.param(BOTH | {"/visitors"}, frozenset({"/engineering", "/visitors"}), "denied_by_rule", id="refused directly"),
        pytest.param(BOTH | {"/visitors"}, frozenset({"/engineering", "/visitors/old"}), "allowed", id="in one below the refused"),
    ],
)
def test_a_person_must_be_directly_in_it(groups: frozenset[str], direct: frozenset[str], code: str) -> None:
    decision = decide(read_rules(RULES), ask(subject_groups=groups, subject_direct=direct))
    assert decision.code == code, decision.reason


@pytest.mark.parametrize(
    ("path", "below", "code"),
    [
        pytest.param(("/", "/engineering"), ("/engineering/payments",), "subject_not_covered", id="access for all of it reaches below"),
        pytest.param(("/", "/visitors"), (), "denied_by_rule", id="the refused group"),
        pytest.param(("/", "/guests"), ("/visitors",), "denied_by_rule", id="a group whose access reaches the refused"),
        pytest.param(("/", "/visitors", "/visitors/old"), (), "subject_not_covered", id="below the refused"),
    ],
)
def test_a_group_as_subject(path: tuple[str, ...], below: tuple[str, ...], code: str) -> None:
    decision = decide(read_rules(RULES), ask(**in_tree(*path, below=below)))
    assert decision.code == code, decision.reason


def test_a_refusal_says_what_would_help() -> None:
    decision = decide(read_rules(RULES), ask(subject_groups=BOTH, subject_direct=frozenset({"/engineering/payments"})))
    assert "alice@example.com is not directly in /engineering" in decision.misses[-1].reasons
    assert "Join /engineering." in decision.remedies[0]


def test_words_say_that_it_is_alone() -> None:
    rule = read_rules(RULES)[1]
    assert words.people(rule.subjects) == "/engineering alone"
    assert words.limits(rule) == "up to 4 h, one approval from /security alone"


def test_it_is_kept_and_hashed_and_rules_without_it_keep_their_hash() -> None:
    rule = read_rules(RULES)[1]
    assert store._people(store._people_map(rule.subjects)) == rule.subjects
    wide = dataclasses.replace(rule, subjects=People(groups=("/engineering",)))
    assert hash_of(rule) != hash_of(wide)
    assert hash_of(dataclasses.replace(wide, hash="")) == hash_of(
        read_rules(RULES.replace("groups_only: [/engineering]", "groups: [/engineering]"))[1]
    )


@pytest.mark.parametrize("who", ["subjects: {groups_only: [/]}", "subjects: {groups_only: [Security]}"])
def test_what_is_no_group_is_told(who: str) -> None:
    with pytest.raises(InvalidRules) as caught:
        read_rules(RULES.replace("subjects: {groups_only: [/engineering]}", who))
    assert caught.value.errors[0].path == "rules[1].subjects.groups_only[0]"


def test_a_plan_tells_it_and_warns_of_groups_that_do_not_exist() -> None:
    old = read_rules(RULES)
    new = read_rules(RULES.replace("groups_only: [/engineering]", "groups_only: [/engineering, /web]"))
    plan = compare(RuleSet(version=1, rules=old), new)
    facts = Facts(missing_groups=frozenset({"/web"}), of_kinds={"aws_account": Catalog((), frozenset())})
    (change,) = plan.changed[0].fields
    assert (change.field, change.old, change.new) == ("subjects.groups_only", "/engineering", "/engineering, /web")
    assert "Rule core-team: there is no group /web." in warnings(new, facts)
    assert impacts(plan, facts)[0].gains[0].startswith("/web alone (nobody new now) gains PowerUserAccess")
