"""The assignments: what IAM Identity Center holds for the portal, and which requests claim it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from accessportal.access_requests import queries as requests
from accessportal.access_requests.states import AccessRequest
from accessportal.assignments import queries
from accessportal.assignments.states import Assignment, AssignmentState
from accessportal.console.resource import Ask, Column, Pattern, Resource, Row, Section
from accessportal.console.resources.drift import KEY, compared, drift_by_id, names_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import NotFound
from accessportal.web.exporting import exported


@dataclass(frozen=True, slots=True)
class Claim:
    request_id: str
    request: AccessRequest | None
    subject_name: str


class Assignments(Resource):
    name = "assignments"
    singular = "assignment"
    plural = "Assignments"
    icon = "link"
    about = "What really exists in IAM Identity Center, and which requests hold it."
    columns = (
        Column("Who", "console/cells/assignment_who.html", "col-who"),
        Column("Has", "console/cells/assignment_what.html", "col-what"),
        Column("Held by", "console/cells/assignment_claims.html", "col-context"),
        Column("State", "console/cells/assignment_state.html", "col-state"),
    )
    file_columns = exported(
        "assignment_id",
        "state",
        *KEY,
        "claims",
        "changed_at",
        "called_at",
        "proved_at",
        "fence",
    )
    patterns = (
        Pattern(
            name="present",
            label="Present",
            fetch=lambda ask: queries.list_by_state(state=AssignmentState.PRESENT, **ask.part),
            empty_title="No access exists through the portal",
            empty_hint="An assignment appears here when it is proved present in IAM Identity Center.",
        ),
        Pattern(
            name="creating",
            label="Being created",
            fetch=lambda ask: queries.list_by_state(state=AssignmentState.CREATING, **ask.part),
            empty_title="Nothing is being created",
            empty_hint="Creations take a few seconds; one that stays here is on the stuck board of the requests.",
        ),
        Pattern(
            name="deleting",
            label="Being deleted",
            fetch=lambda ask: queries.list_by_state(state=AssignmentState.DELETING, **ask.part),
            empty_title="Nothing is being deleted",
            empty_hint="Deletions take a few seconds; one that stays here is on the stuck board of the requests.",
        ),
        Pattern(
            name="absent",
            label="Gone",
            fetch=lambda ask: queries.list_by_state(state=AssignmentState.ABSENT, **ask.part),
            empty_title="Nothing has been taken back yet",
            empty_hint="An assignment stays here, proved absent, after its last claim ended.",
        ),
    )
    sections = (
        Section("Held by", "console/assignments/claims.html"),
        Section("Facts", "console/assignments/facts.html", is_aside=True),
    )
    headline_template = "console/assignments/headline.html"
    notice_template = "console/assignments/compared.html"

    def read(self, key: str, actor: Actor, now: datetime) -> Assignment:
        found = queries.get(key)
        if found is None:
            raise NotFound("There is no such assignment.", code="assignment_unknown")
        return found

    def title(self, record: Assignment) -> str:
        names = names_of(record)
        return f"{names.account} · {names.permission_set} for {names.principal}"

    def entity(self, record: Assignment) -> str:
        return f"assignment#{record.assignment_id}"

    def rows(self, items: Sequence[Assignment], ask: Ask) -> list[Row]:
        drift = drift_by_id(items) if items else {}
        return [Row(one.assignment_id, one, replace(names_of(one), drift=drift.get(one.assignment_id, ""))) for one in items]

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        return {**compared(), "leads_to_drift": True}

    def details(self, record: Assignment, ask: Ask) -> dict[str, Any]:
        return {
            "compared": compared(),
            "drift": drift_by_id([record]).get(record.assignment_id, ""),
            "names": names_of(record),
            "claims": [_claim(claim, ask) for claim in sorted(record.claims)],
        }


def _claim(request_id: str, ask: Ask) -> Claim:
    """The request behind a claim; a claim whose request is gone is shown all the same, it holds access."""
    try:
        request = requests.get(request_id=request_id, actor=ask.actor, now=ask.now)
    except NotFound:
        return Claim(request_id, None, "")
    return Claim(request_id, request, requests.describe(request=request).subject_name)
