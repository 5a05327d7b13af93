"""Rules of the kinds ``approval`` and ``relationship``: reading the file, and what a plan tells."""

from __future__ import annotations

import pytest

from accessportal.access_requests.kinds.relationship.terms import RelationshipTargets, RelationshipTerms
from accessportal.rules import planning
from accessportal.rules.loading import hash_of, read_rules
from accessportal.rules.states import InvalidRules, RuleSet
from accessportal.rules.terms import Facts

NO_SCOPES = ("acme", "tenant", "tenant:a:b", "tenant:a*", "global:*", "env:e:*", "tenant:a:env:e:*", "tenant:*:env:prod")
NO_NAMES = ("doc-*", "*/x", "a/*/b", "/*")
APPROVAL = "{scopes: [tenant:a], resources: [docs/*], actions: [GET]}"
RELATIONSHIP = "{scopes: [tenant:a], relations: [editor], objects: [docs/*]}"


def rule(kind: str, targets: str, *, effect: str = "allow", more: str = "") -> str:
    limits = "" if effect == "deny" else "    duration: {max: 2h}\n    approval: {required: false}\n"
    head = f"rules:\n  - name: one\n    kind: {kind}\n    effect: {effect}\n    subjects: {{groups: [/engineering]}}\n"
    return f"{head}    targets: {targets}\n{limits}{more}"


def approval(**changed: str) -> str:
    parts = {"scopes": "[tenant:a]", "resources": "[docs/*]", "actions": "[GET]"} | changed
    return rule("approval", "{" + ", ".join(f"{key}: {value}" for key, value in parts.items() if value) + "}")


def relationship(**changed: str) -> str:
    parts = {"scopes": "[tenant:a]", "relations": "[editor]", "objects": "[docs/*]"} | changed
    return rule("relationship", "{" + ", ".join(f"{key}: {value}" for key, value in parts.items() if value) + "}")


@pytest.mark.parametrize(
    "scope",
    [
        "global",
        "tenant:a",
        "env:e",
        "tenant:a:env:e",
        "custom:a:b",
        "tenant:a:*",
        "tenant:a:env:*",
        "custom:a:*",
        "tenant:*",
        "env:*",
        '"*"',
    ],
)
def test_scopes_that_can_be_named(scope: str) -> None:
    assert read_rules(approval(scopes=f"[{scope}]"))


@pytest.mark.parametrize("name", ["docs/1", "docs/*", '"*"', '"https://api.example.com/*"', "document-1"])
def test_names_that_can_be_named(name: str) -> None:
    assert read_rules(approval(resources=f"[{name}]", actions=f"[{name}]"))


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (approval(scopes=""), "rules[0].targets.scopes", "The key scopes is missing."),
        (approval(resources=""), "rules[0].targets.resources", "The key resources is missing."),
        (approval(actions=""), "rules[0].targets.actions", "The key actions is missing."),
        (approval(scopes="[]"), "rules[0].targets.scopes", "The list is empty."),
        (approval(resources="[]"), "rules[0].targets.resources", "The list is empty."),
        (approval(actions="GET"), "rules[0].targets.actions", "Here a list is needed"),
        *((approval(scopes=f'["{bad}"]'), "rules[0].targets.scopes[0]", "is no scope") for bad in NO_SCOPES),
        *((approval(resources=f'["{bad}"]'), "rules[0].targets.resources[0]", "where it stands for nothing") for bad in NO_NAMES),
        (approval(resources='["cafe\u0301"]'), "rules[0].targets.resources[0]", "write it in Unicode NFC"),
        (approval(objects="[docs/*]"), "rules[0].targets.objects", "“objects” is not a key here."),
        (relationship(resources="[docs/*]"), "rules[0].targets.resources", "“resources” is not a key here."),
        (relationship(relation_types="[]"), "rules[0].targets.relation_types", "The list is empty."),
        (relationship(relation_types="[friend]"), "rules[0].targets.relation_types[0]", "is no type of relation: write one of role, trust"),
        (rule("approval", APPROVAL, more="    roles: [reader]\n"), "rules[0].roles", "is not a key here"),
    ],
)
def test_every_mistake_is_told_with_its_place(text: str, path: str, message: str) -> None:
    with pytest.raises(InvalidRules) as caught:
        read_rules(text)
    assert any(error.path == path and message in error.message for error in caught.value.errors), caught.value.message


def test_types_left_out_are_role_for_an_allow_and_all_for_a_deny() -> None:
    (allow,), (deny,) = read_rules(relationship()), read_rules(rule("relationship", RELATIONSHIP, effect="deny"))
    assert allow.terms == RelationshipTerms(RelationshipTargets(("tenant:a",), ("editor",), ("docs/*",), ("role",)))
    assert deny.terms.targets.relation_types == ("role", "trust", "membership", "ownership", "delegation", "custom")
    assert len({hash_of(one) for one in (allow, deny, *read_rules(relationship(relation_types="[trust]")))}) == 3


@pytest.mark.parametrize(
    ("old", "new", "gains", "loses"),
    [
        ("", approval(), "gains GET on docs/* in tenant:a up to 2 h, no approval", ""),
        (approval(), approval(actions="[GET, POST]"), "gains POST on docs/* in tenant:a", ""),
        (approval(), approval(actions='["*"]'), "gains every action but GET on docs/* in tenant:a", ""),
        (approval(actions='["*"]'), approval(), "", "loses every action but GET on docs/* in tenant:a"),
        (approval(), approval(resources="[docs/*, api]"), "gains GET on api in tenant:a", ""),
        (approval(), approval(resources="[docs/a]"), "", "loses GET on docs/* in tenant:a"),
        (approval(), approval(scopes='["*"]'), "gains GET on docs/* in every scope", ""),
        (approval(scopes="[tenant:*]"), approval(scopes="[tenant:a, tenant:b]"), "", "loses GET on docs/* in tenant:*"),
        ("", relationship(), "gains editor (role) of docs/* in tenant:a", ""),
        (relationship(), relationship(relation_types="[role, trust]"), "role or trust instead of role", ""),
        (relationship(relation_types="[role, trust]"), relationship(), "", "role instead of role or trust"),
    ],
)
def test_a_plan_tells_who_gains_and_loses_what(old: str, new: str, gains: str, loses: str) -> None:
    base = RuleSet(1, read_rules(old) if old else ())
    (impact,) = planning.impacts(planning.compare(base, read_rules(new)), Facts())
    assert gains in " ".join(impact.gains)
    assert loses in " ".join(impact.loses)
    assert bool(gains) == bool(impact.gains), impact
    assert bool(loses) == bool(impact.loses), impact


def test_what_was_covered_before_is_no_gain() -> None:
    plan = planning.compare(RuleSet(1, read_rules(approval())), read_rules(approval(resources="[docs/*, docs/a]", scopes="[tenant:a]")))
    assert planning.impacts(plan, Facts()) == ()
