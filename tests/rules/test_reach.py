"""Which rules reach the people in a group, and by which name."""

from __future__ import annotations

import pytest

from accessportal.rules.loading import read_rules
from accessportal.rules.reach import reaches

RULES = """
rules:
  - name: no-visitors
    kind: aws_account
    effect: deny
    subjects: {groups: [/visitors]}
    targets: {ous: [/]}
  - name: prod
    kind: aws_account
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {ous: [/Prod]}
    permission_sets: [ReadOnlyAccess]
    duration: {max: 4h}
    approval: {required: true, approvers: {groups: [/security], groups_only: [/engineering/leads]}}
  - name: core
    kind: aws_account
    effect: allow
    subjects: {groups_only: [/engineering]}
    targets: {ous: [/Dev]}
    permission_sets: [ReadOnlyAccess]
    duration: {max: 4h}
    approval: {required: false, approvers: {groups: [/security]}}
  - name: help-out
    kind: group
    effect: allow
    subjects: {groups: [/]}
    targets: {groups: [/support], subtrees: [/engineering]}
    roles: [reader]
    duration: {max: 4h}
    approval: {required: true}
"""


@pytest.mark.parametrize(
    ("group", "above", "expected"),
    [
        ("/engineering", ("/",), ["prod is served", "core is served", "help-out is served /", "help-out admins approve"]),
        (
            "/engineering/leads",
            ("/", "/engineering"),
            ["prod is served /engineering", "prod approves", "help-out is served /", "help-out admins approve /engineering"],
        ),
        ("/security/lab", ("/", "/security"), ["prod approves /security", "help-out is served /"]),
        ("/visitors", ("/",), ["no-visitors is refused", "help-out is served /"]),
        ("/support", ("/",), ["help-out is served /", "help-out admins approve"]),
        ("/support/tools", ("/", "/support"), ["help-out is served /"]),
        ("/moved", ("/", "/engineering"), ["prod is served /engineering", "help-out is served /", "help-out admins approve /engineering"]),
    ],
)
def test_what_reaches_a_group(group: str, above: tuple[str, ...], expected: list[str]) -> None:
    found = [one for rule in read_rules(RULES) for one in reaches(rule, group_id=group, groups_above=above)]
    told = [f"{one.rule_name} {one.reaching.value}{'' if one.through == group else f' {one.through}'}" for one in found]
    assert told == expected
