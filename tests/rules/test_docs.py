"""The manual says what the code does: its examples load and its table of answers holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from accessportal.access_requests.kinds.account_lease.terms import LeaseAsked
from accessportal.access_requests.kinds.approval.terms import ApprovalAsked
from accessportal.access_requests.kinds.aws_account.terms import AccountAsked
from accessportal.access_requests.kinds.group.terms import MembershipAsked
from accessportal.access_requests.kinds.relationship.terms import RelationshipAsked
from accessportal.access_requests.kinds.sandbox.terms import SandboxAsked
from accessportal.kernel.durations import parse_duration
from accessportal.rules.loading import read_rules
from accessportal.rules.policy import decide
from accessportal.rules.states import Question
from accessportal.rules.terms import Asked, kinds, terms_of

MANUAL = (Path(__file__).parent.parent.parent / "docs" / "rules.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", MANUAL, re.DOTALL)
TABLE_START = "| subject | groups | OU |"
GROUPS_START = "| subject | groups | group asked for |"
SANDBOXES_START = "| subject | groups | name begins |"
APPROVALS_START = "| subject | groups | scope | resource |"
RELATIONSHIPS_START = "| subject | groups | scope | relation |"
LEASES_START = "| subject | groups | pool | size |"
WHOLE, WHOLE_GROUP, WHOLE_SANDBOX, WHOLE_APPROVAL, WHOLE_RELATIONSHIP, WHOLE_LEASE = range(6)
RULES, GROUP_RULES, SANDBOX_RULES, APPROVAL_RULES, RELATIONSHIP_RULES, LEASE_RULES = range(6, 12)


def rows(start: str) -> list[list[str]]:
    """The cells of the table whose head begins with ``start``."""
    lines = MANUAL[MANUAL.index(start) :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def question(subject: str, groups: str, ou: str, tags: str, permission_set: str, duration: str, ticket: str) -> Question:
    return Question(
        asked=AccountAsked(
            account_id="123456789012",
            account_name="example",
            ou_path=None if ou == "?" else ou,
            tags=None if tags == "?" else dict(pair.split("=") for pair in tags.split() if pair != "-"),
            permission_set=f"{permission_set}Access",
        ),
        subject=subject,
        subject_groups=None if groups == "?" else frozenset(groups.split()) - {"-"},
        duration_seconds=None if duration == "…" else parse_duration(duration),
        ticket_id=None if ticket == "…" else "" if ticket == "-" else ticket,
    )


@pytest.mark.parametrize("row", rows(TABLE_START), ids=lambda row: " ".join(row[:1] + row[2:8]))
def test_the_table_of_answers_holds(row: list[str]) -> None:
    *facts, answer, rule = row
    decision = decide(read_rules(EXAMPLES[RULES]), question(*facts))
    assert (decision.code, decision.rule.name if decision.rule else "-") == (answer, rule)


def group_question(subject: str, groups: str, path: str, role: str, duration: str) -> Question:
    return Question(
        asked=MembershipAsked(path.rsplit(maxsplit=1)[-1], "Example", frozenset({"/", *path.split()}), role),
        subject=subject,
        subject_groups=frozenset(groups.split()) - {"-"},
        duration_seconds=None if duration == "…" else parse_duration(duration),
        ticket_id="",
    )


@pytest.mark.parametrize("row", rows(GROUPS_START), ids=lambda row: " ".join(row[2:6]))
def test_the_table_of_answers_about_groups_holds(row: list[str]) -> None:
    *facts, answer, rule = row
    decision = decide(read_rules(EXAMPLES[GROUP_RULES]), group_question(*facts))
    assert (decision.code, decision.rule.name if decision.rule else "-") == (answer, rule)


def sandbox_question(subject: str, groups: str, prefix: str, duration: str) -> Question:
    return Question(
        asked=SandboxAsked("" if prefix == "-" else prefix),
        subject=subject,
        subject_groups=frozenset(groups.split()) - {"-"},
        duration_seconds=None if duration == "…" else parse_duration(duration),
        ticket_id="",
    )


@pytest.mark.parametrize("row", rows(SANDBOXES_START), ids=lambda row: " ".join(row[:1] + row[2:4]))
def test_the_table_of_answers_about_sandboxes_holds(row: list[str]) -> None:
    *facts, answer, rule = row
    decision = decide(read_rules(EXAMPLES[SANDBOX_RULES]), sandbox_question(*facts))
    assert (decision.code, decision.rule.name if decision.rule else "-") == (answer, rule)


def record_question(subject: str, groups: str, asked: Asked, duration: str) -> Question:
    return Question(
        asked=asked,
        subject=subject,
        subject_groups=frozenset(groups.split()) - {"-"},
        duration_seconds=None if duration == "…" else parse_duration(duration),
        ticket_id="",
    )


@pytest.mark.parametrize("row", rows(APPROVALS_START), ids=lambda row: " ".join(row[:1] + row[2:6]))
def test_the_table_of_answers_about_approvals_holds(row: list[str]) -> None:
    subject, groups, scope, resource, action, duration, answer, rule = row
    asked = record_question(subject, groups, ApprovalAsked(scope, resource, action), duration)
    decision = decide(read_rules(EXAMPLES[APPROVAL_RULES]), asked)
    assert (decision.code, decision.rule.name if decision.rule else "-") == (answer, rule)


@pytest.mark.parametrize("row", rows(RELATIONSHIPS_START), ids=lambda row: " ".join(row[:1] + row[2:7]))
def test_the_table_of_answers_about_relationships_holds(row: list[str]) -> None:
    subject, groups, scope, relation, target, relation_type, duration, answer, rule = row
    asked = record_question(subject, groups, RelationshipAsked(scope, target, relation, relation_type), duration)
    decision = decide(read_rules(EXAMPLES[RELATIONSHIP_RULES]), asked)
    assert (decision.code, decision.rule.name if decision.rule else "-") == (answer, rule)


@pytest.mark.parametrize("row", rows(LEASES_START), ids=lambda row: " ".join(row[:1] + row[2:7]))
def test_the_table_of_answers_about_leases_holds(row: list[str]) -> None:
    subject, groups, pool, size, tags, permission_set, duration, answer, rule = row
    named = dict(pair.split("=") for pair in tags.split() if pair != "-")
    asked = record_question(subject, groups, LeaseAsked(pool, size.strip("-"), named, f"{permission_set}Access"), duration)
    decision = decide(read_rules(EXAMPLES[LEASE_RULES]), asked)
    assert (decision.code, decision.rule.name if decision.rule else "-") == (answer, rule)


def test_every_answer_that_there_is_has_a_row() -> None:
    assert decide.__doc__ is not None
    told = decide.__doc__.partition("of a refusal:")[2].partition("``misses``")[0]
    codes = set(re.findall(r"``([a-z_]+)``", told)) | {"ou_unreadable", "tags_unreadable"}
    for offer, target in (terms_of(kind).inputs for kind in kinds()):
        codes |= {f"{target}_not_covered", *([f"{offer}_not_offered"] if offer else [])}
    assert len(codes) == 20
    # These need other rules than the examples: none of the kind, and none for the whole pool (tests/rules/test_sandboxes.py).
    starts = (GROUPS_START, SANDBOXES_START, APPROVALS_START, RELATIONSHIPS_START, LEASES_START)
    of_others = {row[-2] for start in starts for row in rows(start)}
    assert codes - {"no_rule", "name_prefix_not_covered"} <= {row[7] for row in rows(TABLE_START)} | of_others


def test_the_whole_example_has_every_key_and_the_table_every_key_of_it() -> None:
    assert keys_of(EXAMPLES[WHOLE]) == {row[0].strip("`") for row in rows("| key |")}
    of_groups = {row[0].strip("`") for row in rows("| key of kind `group`")}
    assert of_groups - {"approval.approvers"} <= keys_of(EXAMPLES[WHOLE_GROUP]) <= of_groups | keys_of(EXAMPLES[WHOLE])
    of_sandboxes = {row[0].strip("`") for row in rows("| key of kind `sandbox`")}
    found = keys_of(EXAMPLES[WHOLE_SANDBOX])
    assert of_sandboxes - {"approval.approvers", "targets.pool"} <= found <= of_sandboxes | keys_of(EXAMPLES[WHOLE])
    for kind, example in (("approval", WHOLE_APPROVAL), ("relationship", WHOLE_RELATIONSHIP), ("account_lease", WHOLE_LEASE)):
        of_kind = {row[0].strip("`") for row in rows(f"| key of kind `{kind}`")}
        assert of_kind - {"approval.approvers"} <= keys_of(EXAMPLES[example]) <= of_kind | keys_of(EXAMPLES[WHOLE])


def keys_of(text: str) -> set[str]:
    (rule,) = yaml.safe_load(text)["rules"]
    read_rules(text)
    nested = ("subjects", "targets", "duration", "approval", "ticket")
    return {f"{key}.{inner}" if key in nested else key for key, value in rule.items() for inner in (value if key in nested else [""])}
