"""Rules of kind ``group``: the decision as a table, reading the file, and what a plan tells."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from accessportal.directory.states import Group, State
from accessportal.rules import planning
from accessportal.rules.loading import hash_of, read_rules
from accessportal.rules.policy import decide
from accessportal.rules.states import InvalidRules, RuleSet
from accessportal.rules.terms import Facts
from tests.rules.stories import GROUP_RULES, HOUR, MALLORY, RULES, ask, changed_terms, join, rules

DAY = 24 * HOUR
OPERATORS: dict[str, Any] = {
    "subject": "carol@example.com",
    "subject_groups": frozenset({"/", "/support"}),
    "group_id": "/portal/operators",
    "group_name": "Operators",
    "groups_above": frozenset({"/", "/portal", "/portal/operators"}),
    "role": "contributor",
    "ticket_id": "INC-1",
}
CONTRACTOR: dict[str, Any] = {"subject": "carl@example.com", "subject_groups": frozenset({"/", "/contractors", "/engineering"})}
ROOT: dict[str, Any] = {"group_id": "/", "group_name": "Company", "groups_above": frozenset({"/"})}

ANSWERS = [
    pytest.param({}, "allowed", "look-around", "", id="at once"),
    pytest.param({"duration_seconds": DAY}, "allowed", "help-out", "", id="longer, with approval"),
    pytest.param({"role": "contributor"}, "allowed", "help-out", "", id="more, with approval"),
    pytest.param({"role": "contributor", "duration_seconds": None}, "allowed", "help-out", "", id="a form being filled in"),
    pytest.param({"duration_seconds": 8 * DAY}, "duration_too_long", "", "duration", id="too long"),
    pytest.param({"role": "admin"}, "role_not_offered", "", "role", id="a role that no rule offers"),
    pytest.param({"role": "Reader"}, "role_not_offered", "", "role", id="roles are exact"),
    pytest.param(
        {"group_id": "/engineering", "groups_above": frozenset({"/", "/engineering"})}, "allowed", "look-around", "", id="the top"
    ),
    pytest.param(
        {"group_id": "/engineering/old", "groups_above": frozenset({"/", "/archive", "/engineering/old"})},
        "group_not_covered",
        "",
        "group",
        id="moved away: the tree counts, not the path",
    ),
    pytest.param(ROOT, "group_not_covered", "", "group", id="the root is not in a subtree"),
    pytest.param(MALLORY, "subject_not_covered", "", "", id="stranger"),
    pytest.param({"subject_groups": None}, "groups_unreadable", "", "", id="unreadable groups"),
    pytest.param(OPERATORS, "allowed", "stand-in", "", id="exactly that group"),
    pytest.param(
        OPERATORS | {"group_id": "/portal", "groups_above": frozenset({"/", "/portal"})},
        "group_not_covered",
        "",
        "group",
        id="not above it",
    ),
    pytest.param(
        OPERATORS | {"group_id": "/night", "groups_above": OPERATORS["groups_above"] | {"/night"}},
        "group_not_covered",
        "",
        "group",
        id="not below it",
    ),
    pytest.param(OPERATORS | {"ticket_id": ""}, "ticket_missing", "", "ticket_id", id="a ticket is needed"),
    pytest.param(CONTRACTOR, "allowed", "look-around", "", id="what the deny leaves"),
    pytest.param(CONTRACTOR | {"role": "contributor"}, "denied_by_rule", "no-foreign-admins", "role", id="denied role"),
    pytest.param(CONTRACTOR | {"role": "admin"}, "denied_by_rule", "no-foreign-admins", "role", id="denied higher role"),
    pytest.param(CONTRACTOR | ROOT, "denied_by_rule", "closed-groups", "group", id="denied root"),
    pytest.param(
        CONTRACTOR | {"group_id": "/audit", "groups_above": frozenset({"/", "/security", "/audit"})},
        "denied_by_rule",
        "closed-groups",
        "group",
        id="denied subtree",
    ),
]


@pytest.mark.parametrize(("facts", "code", "rule", "field"), ANSWERS)
def test_the_answer_is(facts: dict[str, Any], code: str, rule: str, field: str) -> None:
    decision = decide(rules(GROUP_RULES), join(**facts))
    assert (decision.code, decision.rule.name if decision.rule else "", decision.field) == (code, rule, field)
    assert decision.reason.endswith(".")


def test_decisions_speak_of_groups_and_roles() -> None:
    said = {
        code: decide(rules(GROUP_RULES), join(**facts)).reason
        for code, facts in {
            "yes": {"role": "contributor"},
            "role": {"role": "admin"},
            "place": ROOT,
            "subject": MALLORY,
            "deny": CONTRACTOR | {"role": "admin"},
        }.items()
    }
    assert said == {
        "yes": "Rule help-out admits it: up to 7 d, one approval from the group's admins.",
        "role": "No rule offers alice@example.com admin in Web.",
        "place": "No rule offers alice@example.com reader in Company, only in other groups.",
        "subject": "mallory@example.com is in none of the groups that may ask for reader in Web.",
        "deny": "Rule no-foreign-admins refuses contributor and admin in /engineering and below to /contractors.",
    }
    denied = decide(rules(GROUP_RULES), join(**(CONTRACTOR | {"role": "admin"})))
    assert denied.remedies == ("Ask for another role or choose another group.",)


def test_rules_of_another_kind_are_not_even_looked_at() -> None:
    both = rules(RULES.rstrip() + GROUP_RULES.removeprefix("\nrules:"))
    assert {miss.rule_name for miss in decide(both, join(role="admin")).misses} == {rule.name for rule in both if rule.kind == "group"}
    assert {miss.rule_name for miss in decide(both, ask(**MALLORY)).misses} == {rule.name for rule in both if rule.kind == "aws_account"}
    assert decide(rules(RULES), join()).code == decide(rules(GROUP_RULES), ask()).code == "no_rule"


def test_rules_that_were_in_force_before_there_were_group_rules_keep_their_hashes() -> None:
    """Taken from the version that knew kind ``aws_account`` alone: another hash would say that every rule was changed."""
    stored = [dataclasses.replace(rule, ends_with=None) for rule in rules(RULES)]
    assert {rule.name: hash_of(rule) for rule in stored} == {
        "no-security": "a67e2f16f826806bb0ccf0b79489a106fd5918a27fb0a5c100a180ffb016f3f1",
        "no-contractor-admin": "85c0d088459c3415233ba658f4f73fdcf253a796085db5f3030f736c5ee20f3e",
        "payments-dev": "18b5a1033d09155530f7beb6027a337ee9d116c574416bc2ea9a2e5cbebde4fb",
        "payments-dev-long": "d9872b408d7e7a35615617281a31198fcd65cf3d26da1a95eff65c022c6c066c",
        "prod-readonly": "e86726ad6e2cfa0783eeeb5cac26885cb548f4d5529dfc50e232708129d1ce52",
        "named-account": "ba330e99e4fbf190fa6dccb5c5b2b8d308b4cdc8ebfc5f786e459b47e0b2dffa",
    }


def test_the_hash_covers_groups_and_roles() -> None:
    (rule,) = read_rules(GOOD)
    others = (
        changed_terms(rule, roles=("reader",)),
        changed_terms(rule, targets=dataclasses.replace(rule.terms.targets, groups=("/web",))),
        changed_terms(rule, targets=dataclasses.replace(rule.terms.targets, subtrees=())),
    )
    assert len({rule.hash, *map(hash_of, others)}) == 4
    assert hash_of(changed_terms(rule, roles=("contributor", "reader"))) == rule.hash


GOOD = """\
rules:
  - name: help-out
    kind: group
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {groups: [/support], subtrees: [/engineering]}
    roles: [reader, contributor]
    duration: {max: 7d}
    approval: {required: true}
"""


def test_a_group_rule_is_read_whole() -> None:
    (rule,) = read_rules(GOOD)
    assert (rule.kind, rule.terms.targets.groups, rule.terms.targets.subtrees) == ("group", ("/support",), ("/engineering",))
    assert (rule.terms.offers, rule.asks_admins) == (("reader", "contributor"), True)
    (named,) = read_rules(GOOD.replace("{required: true}", "{required: true, approvers: {groups: [/security]}}"))
    assert not named.asks_admins


MISTAKES = [
    ("kind: group", "kind: groups", 3, "kind", "“groups” is not possible here"),
    ("targets: {groups: [/support], subtrees: [/engineering]}", "targets: {}", 6, "targets", "about no group"),
    ("targets: {groups: [/support], subtrees: [/engineering]}", "targets: {groups: [], subtrees: []}", 6, "targets", "about no group"),
    ("groups: [/support]", "ous: [/Workloads]", 6, "targets.ous", "“ous” is not a key here"),
    ("[/support]", "[support]", 6, "targets.groups[0]", "is not a group path"),
    ("subtrees: [/engineering]", "subtrees: [/Engineering]", 6, "targets.subtrees[0]", "in lower case"),
    ("roles: [reader, contributor]", "roles: []", 7, "roles", "The list is empty"),
    ("roles: [reader, contributor]", "roles: [owner]", 7, "roles[0]", "“owner” is not a role"),
    ("roles: [reader, contributor]", "roles: reader", 7, "roles", "a list is needed"),
    ("roles: [reader, contributor]", "permission_sets: [ReadOnlyAccess]", 7, "permission_sets", "is not a key here"),
    ("    roles: [reader, contributor]\n", "", 2, "roles", "The key roles is missing"),
    ("{required: true}", "{required: true, approvers: {groups: []}}", 9, "approval.approvers", "nobody may approve"),
    ("{required: true}", "{required: true, quorum: 0}", 9, "approval.quorum", "from 1 to 20"),
]


@pytest.mark.parametrize(("old", "new", "line", "path", "message"), MISTAKES)
def test_a_mistake_is_told_with_line_place_and_remedy(old: str, new: str, line: int, path: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(InvalidRules) as caught:
        read_rules(GOOD.replace(old, new))
    told = [problem for problem in caught.value.errors if problem.path == f"rules[0].{path}"]
    assert told, caught.value.errors
    assert message in told[0].message
    assert told[0].line == line
    assert told[0].remedy or "write" in told[0].message


DENY = "rules: [{name: a, kind: group, effect: deny, subjects: {groups: [/]}, targets: {subtrees: [/]}, roles: %s}]"


def test_a_deny_does_not_leave_out_a_role_that_includes_what_it_refuses() -> None:
    for roles, missing in {"[reader]": "contributor", "[contributor]": "admin", "[reader, admin]": "contributor"}.items():
        with pytest.raises(InvalidRules, match=f"but not {missing}, which includes it"):
            read_rules(DENY % roles)
    for roles in ("[admin]", "[contributor, admin]", "[reader, contributor, admin]"):
        assert len(read_rules(DENY % roles)) == 1
    (rule,) = read_rules(DENY.replace(", roles: %s", ""))
    assert rule.terms.offers == ()


def test_an_account_rule_takes_no_group_keys() -> None:
    with pytest.raises(InvalidRules) as caught:
        read_rules(GOOD.replace("kind: group", "kind: aws_account"))
    paths = {problem.path.removeprefix("rules[0].") for problem in caught.value.errors}
    assert {"roles", "permission_sets", "targets.groups", "targets.subtrees", "approval.approvers"} <= paths


def _group(group_id: str, *ancestors: str) -> Group:
    return Group(group_id, group_id, "", State.ENABLED, ancestors=ancestors)


TREE = {
    group.group_id: group
    for group in (
        _group("/"),
        _group("/engineering", "/"),
        _group("/engineering/payments", "/", "/engineering"),
        _group("/web", "/", "/engineering"),
        _group("/support", "/"),
    )
}
FACTS = Facts(groups=TREE, missing_groups=frozenset({"/suport"}))


def told(old: str, new: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Gains and losses when one file follows another."""
    plan = planning.compare(RuleSet(1, rules(old)), rules(new))
    impacts = planning.impacts(plan, FACTS)
    return (impacts[0].gains, impacts[0].loses) if impacts else ((), ())


def test_a_plan_counts_the_groups_of_the_tree() -> None:
    gains, loses = told("rules: []", GOOD)
    what = "reader and contributor in /engineering and below and /support (4 groups)"
    assert gains == (f"/engineering (0 people) gains {what} up to 7 d, one approval from the group's admins",)
    assert loses == ()


def test_a_plan_tells_what_a_changed_group_rule_gives_and_takes() -> None:
    limits = "up to 7 d, one approval from the group's admins"
    assert told(GOOD, GOOD.replace("[/engineering]}\n    roles", "[/]}\n    roles")) == (
        (f"/engineering (0 people) gains reader and contributor in / (1 group) {limits}",),
        (),
    )
    assert told(GOOD, GOOD.replace("groups: [/support], ", "")) == (
        (),
        ("/engineering (0 people) loses reader and contributor in /support (1 group)",),
    )
    assert told(GOOD, GOOD.replace("roles: [reader, contributor]", "roles: [reader]"))[1] == (
        "/engineering (0 people) loses contributor in /engineering and below and /support (4 groups)",
    )
    assert told(GOOD, GOOD.replace("{required: true}", "{required: true, approvers: {groups: [/security]}}")) == (
        ("/security may approve",),
        ("the group's admins may approve no more",),
    )


def test_a_group_below_by_the_tree_is_nobody_new() -> None:
    assert told(GOOD, GOOD.replace("subjects: {groups: [/engineering]}", "subjects: {groups: [/engineering, /web]}")) == ((), ())


def test_a_plan_warns_of_groups_that_do_not_exist() -> None:
    assert planning.warnings(rules(GOOD.replace("[/support]", "[/suport]")), FACTS) == ("Rule help-out: there is no group /suport.",)


def test_a_plan_has_the_differences_key_by_key() -> None:
    plan = planning.compare(
        RuleSet(1, rules(GOOD)), rules(GOOD.replace("[reader, contributor]", "[reader]").replace("[/support]", "[/web]"))
    )
    (change,) = plan.changed
    assert [(field.field, field.old, field.new) for field in change.fields] == [
        ("targets.groups", "/support", "/web"),
        ("roles", "contributor, reader", "reader"),
    ]
