"""Rules and questions that the tests of this room tell their stories with."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from accessportal.access_requests.kinds.aws_account.terms import AccountAsked
from accessportal.access_requests.kinds.group.terms import MembershipAsked
from accessportal.kernel.actors import Role, person
from accessportal.rules.loading import read_rules
from accessportal.rules.states import Question, Rule
from accessportal.rules.terms import Asked

HOUR = 3600
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
OLGA = person("olga@example.com", roles=frozenset({Role.OPERATOR}))

RULES = """
rules:
  - name: no-security
    kind: aws_account
    effect: deny
    description: Ask the security team.
    subjects: {groups: [/]}
    targets: {ous: [/Security]}

  - name: no-contractor-admin
    kind: aws_account
    effect: deny
    subjects: {groups: [/contractors/outside]}
    targets: {tags: {pii: ["yes"]}}
    permission_sets: [AdministratorAccess]

  - name: payments-dev
    kind: aws_account
    effect: allow
    subjects: {groups: [/engineering/payments]}
    targets: {ous: [/Workloads/Dev]}
    permission_sets: [PowerUserAccess]
    duration: {min: 1m, default: 1h, max: 4h}
    approval: {required: false}
    ticket: {required: false, pattern: "DEV-[0-9]+"}

  - name: payments-dev-long
    kind: aws_account
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {ous: [/Workloads/Dev]}
    permission_sets: [PowerUserAccess]
    duration: {min: 30m, max: 8h}
    approval: {required: true, approvers: {groups: [/security]}}
    ticket: {required: true, pattern: "CHG-[0-9]+"}

  - name: prod-readonly
    kind: aws_account
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {ous: [/Workloads/Prod], tags: {env: [prod, live]}}
    permission_sets: [ReadOnlyAccess]
    duration: {default: 1h, max: 8h}
    approval: {required: true, quorum: 2, approvers: {groups: [/security], users: [sam@example.com]}}
    ticket: {required: true, pattern: "CHG-[0-9]+"}

  - name: named-account
    kind: aws_account
    effect: allow
    subjects: {users: [Carol@Example.com]}
    targets: {accounts: [Legacy-One, "000000000007"]}
    permission_sets: [ReadOnlyAccess]
    duration: {max: 2h}
    approval: {required: false}
"""


def rules(text: str = RULES) -> tuple[Rule, ...]:
    return read_rules(text)


def question_of(kind: type[Asked], facts: dict[str, Any]) -> Question:
    """The question whose facts are those of the asker and, by the fields of ``kind``, of what is asked for."""
    own = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]  # every kind's is a dataclass
    asked = kind(**{name: value for name, value in facts.items() if name in own})
    return Question(asked=asked, **{name: value for name, value in facts.items() if name not in own})


def changed_terms(rule: Rule, **terms: Any) -> Rule:
    """The rule with other keys of its kind."""
    return dataclasses.replace(rule, terms=dataclasses.replace(rule.terms, **terms))  # type: ignore[type-var]


def ask(**facts: Any) -> Question:
    """Alice of the payments team asks for PowerUserAccess in payments-dev, unless told otherwise."""
    plain: dict[str, Any] = {
        "subject": "alice@example.com",
        "subject_groups": frozenset({"/engineering", "/engineering/payments"}),
        "account_id": "000000000001",
        "account_name": "payments-dev",
        "ou_path": "/Workloads/Dev",
        "tags": {"env": "dev"},
        "permission_set": "PowerUserAccess",
        "duration_seconds": HOUR,
        "ticket_id": "",
    }
    return question_of(AccountAsked, plain | facts)


PROD: dict[str, Any] = {
    "account_id": "000000000002",
    "account_name": "payments-prod",
    "ou_path": "/Workloads/Prod/Payments",
    "tags": {"env": "prod"},
    "permission_set": "ReadOnlyAccess",
    "ticket_id": "CHG-1",
}
"""Alice asks for ReadOnlyAccess in payments-prod, with a ticket."""
SECURITY: dict[str, Any] = {"account_id": "000000000003", "account_name": "audit", "ou_path": "/Security/Logs"}
MALLORY: dict[str, Any] = {"subject": "mallory@example.com", "subject_groups": frozenset()}


def in_tree(*path: str, below: Collection[str] = ()) -> dict[str, Any]:
    """As the subject: the group at the end of ``path`` (the groups above it, and itself), with the groups ``below`` it."""
    return {"subject": path[-1], "subject_groups": frozenset(path), "subject_below": frozenset(below)}


GROUP_RULES = """
rules:
  - name: closed-groups
    kind: group
    effect: deny
    description: Ask the security team.
    subjects: {groups: [/contractors]}
    targets: {groups: [/], subtrees: [/security]}

  - name: no-foreign-admins
    kind: group
    effect: deny
    subjects: {groups: [/contractors]}
    targets: {subtrees: [/engineering]}
    roles: [contributor, admin]

  - name: look-around
    kind: group
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {subtrees: [/engineering]}
    roles: [reader]
    duration: {max: 8h}
    approval: {required: false}

  - name: help-out
    kind: group
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {subtrees: [/engineering]}
    roles: [reader, contributor]
    duration: {default: 1d, max: 7d}
    approval: {required: true}

  - name: stand-in
    kind: group
    effect: allow
    subjects: {users: [carol@example.com]}
    targets: {groups: [/portal/operators]}
    roles: [contributor]
    duration: {max: 4h}
    approval: {required: true, quorum: 2, approvers: {groups: [/security]}}
    ticket: {required: true, pattern: "INC-[0-9]+"}
"""


def join(**facts: Any) -> Question:
    """Alice of the payments team asks to be a reader in the group Web, which was once moved below engineering."""
    plain: dict[str, Any] = {
        "subject": "alice@example.com",
        "subject_groups": frozenset({"/", "/engineering", "/engineering/payments"}),
        "group_id": "/web",
        "group_name": "Web",
        "groups_above": frozenset({"/", "/engineering", "/web"}),
        "role": "reader",
        "duration_seconds": HOUR,
        "ticket_id": "",
    }
    return question_of(MembershipAsked, plain | facts)


def many(count: int, *, longest: str = "8h") -> tuple[Rule, ...]:
    """``count`` small rules named rule-0, rule-1, …"""
    one = (
        "  - {{name: rule-{number}, kind: aws_account, effect: allow, subjects: {{groups: [/engineering]}},"
        " targets: {{ous: [/Dev{number}]}}, permission_sets: [ReadOnlyAccess],"
        " duration: {{max: {longest}}}, approval: {{required: false}}}}\n"
    )
    return rules("rules:\n" + "".join(one.format(number=number, longest=longest) for number in range(count)))
