"""Approvals and relationships that people ask for: the rules, and what Alice asks for of each kind."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from accessportal.access_requests import operations
from accessportal.access_requests.states import AccessRequest
from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, Ledger, read_scope
from tests.fixtures_story import Story

RECORD_RULES = """
  - name: read-docs
    kind: approval
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {scopes: [tenant:acme-corp, tenant:acme-corp:*], resources: [docs/*], actions: [GET]}
    duration: {min: 1m, max: 8h, max_total: 2d}
    approval: {required: false}
  - name: write-docs
    kind: approval
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {scopes: [tenant:acme-corp, tenant:acme-corp:env:dev], resources: [docs/*], actions: [GET, POST]}
    duration: {max: 30d}
    approval: {required: true, approvers: {groups: [/security]}}
  - name: edit-docs
    kind: relationship
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {scopes: [tenant:acme-corp], relations: [editor, viewer], objects: [docs/*]}
    duration: {min: 1m, max: 8h, max_total: 2d}
    approval: {required: false}
  - name: trust
    kind: relationship
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {scopes: [tenant:acme-corp], relations: [editor], objects: [docs/*], relation_types: [role, trust]}
    duration: {max: 1d}
    approval: {required: true, approvers: {groups: [/security]}}
"""
SCOPE = "tenant:acme-corp"


@dataclass(frozen=True)
class Case:
    """One of the two kinds, and what Alice asks for of it."""

    kind: str
    ledger: Ledger[Any]
    target: dict[str, str]
    title: str
    words: str
    wrong: dict[str, str]
    refused: str
    names: tuple[str, str, str]
    other: dict[str, str]
    scope: str = SCOPE


APPROVAL = Case(
    "approval",
    APPROVALS,
    {"scope": SCOPE, "resource": "docs/plan", "action": "GET"},
    "docs/plan · GET in tenant:acme-corp",
    "Scope tenant:acme-corp Resource docs/plan Action GET",
    {"resource": "api"},
    "No rule offers alice@example.com GET on api in tenant:acme-corp, only on other resources or in other scopes.",
    names=("alice@example.com", "docs/plan", "GET"),
    other={"resource": "docs/other"},
)
RELATIONSHIP = Case(
    "relationship",
    RELATIONSHIPS,
    {"scope": SCOPE, "relation": "editor", "object": "docs/plan", "relation_type": "role"},
    "docs/plan · editor in tenant:acme-corp",
    "Scope tenant:acme-corp Relation editor Object docs/plan Relation type role",
    {"relation": "owner"},
    "No rule offers alice@example.com owner of docs/plan in tenant:acme-corp.",
    names=("alice@example.com", "editor", "docs/plan"),
    other={"object": "docs/other"},
)


def ask(story: Story, case: Case, *, seconds: int = 3_600, submission_id: str = "", **target: str) -> AccessRequest:
    return operations.submit(
        kind=case.kind,
        subject_id=None,
        target=case.target | target,
        duration_seconds=seconds,
        reason="Write the plan",
        ticket_id="",
        submission_id=submission_id or str(uuid.uuid4()),
        actor=story.alice,
        now=story.clock.now(),
    )


def record_of(case: Case) -> Any:
    return case.ledger.get(read_scope(case.scope), case.names)
