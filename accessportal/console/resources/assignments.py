"""The assignments: what IAM Identity Center holds for the portal, and which requests claim it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from accessportal.access_requests import queries as requests
from accessportal.access_requests.states import AccessRequest
from accessportal.assignments import queries
from accessportal.assignments.states import Assignment, AssignmentKey, AssignmentState, Drift
from accessportal.catalog import queries as catalog
from accessportal.catalog.states import PrincipalType
from accessportal.console.resource import Ask, Column, Pattern, Resource, Row, Section
from accessportal.kernel.actors import Actor
from accessportal.kernel.counts import Count
from accessportal.kernel.errors import NotFound
from accessportal.kernel.pages import Page
from accessportal.observe import heartbeats
from accessportal.web.exporting import exported

# As many as the job keeps (jobs.tasks).
_KEPT = 100
_UNRECORDED = (Drift.UNKNOWN, Drift.NOT_OURS)

_KEY = tuple((name, f"key.{name}") for name in ("principal_type", "principal_id", "account_id", "permission_set_arn"))


@dataclass(frozen=True, slots=True)
class Names:
    """What the catalog calls the parts of the key; the bare ids where it does not know them (any more)."""

    principal: str
    account: str
    ou_path: str
    permission_set: str
    drift: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    request_id: str
    request: AccessRequest | None
    subject_name: str


@dataclass(frozen=True, slots=True)
class Drifted:
    """What the last comparison found to differ; ``assignment_id`` is empty for what the portal had no record of then."""

    drift: str
    key: AssignmentKey
    claims: tuple[str, ...]
    assignment_id: str
    finding_id: str


def _last_drift() -> tuple[Drifted, ...]:
    beat = heartbeats.last_beat(heartbeats.RECONCILE)
    return tuple(_drifted(**one) for one in (beat.detail.get(heartbeats.DRIFT, []) if beat else []))


def _drifted(*, drift: str, claims: Sequence[str], finding_id: str = "", **key: str) -> Drifted:
    found = AssignmentKey(**{**key, "principal_type": PrincipalType(key["principal_type"])})  # type: ignore[arg-type]
    return Drifted(drift, found, tuple(claims), "" if drift in _UNRECORDED else queries.id_of(key=found), finding_id)


def _drift_by_id() -> dict[str, str]:
    return {one.assignment_id: one.drift for one in _last_drift() if one.assignment_id}


def _count_drift(ask: Ask) -> Count:
    """The job keeps the first hundred."""
    found = len(_last_drift())
    return Count(found, is_more=found >= _KEPT)


def names_of(assignment: Assignment | Drifted) -> Names:
    key = assignment.key
    principal = catalog.find_principal(principal_id=key.principal_id)
    account = catalog.find_account(account=key.account_id)
    permission_set = catalog.find_permission_set_by_arn(arn=key.permission_set_arn)
    return Names(
        principal=principal.label if principal else key.principal_id,
        account=account.name if account else key.account_id,
        ou_path=account.ou_path if account else "",
        permission_set=permission_set.name if permission_set else key.permission_set_arn,
    )


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
        *_KEY,
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
        Pattern(
            name="drift",
            label="Drift",
            fetch=lambda _ask: Page(_last_drift()),
            columns=(
                Column("Who", "console/cells/assignment_who.html", "col-who"),
                Column("Has", "console/cells/assignment_what.html", "col-what"),
                Column("Held by", "console/cells/assignment_claims.html", "col-context"),
                Column("What differs", "console/cells/assignment_drift.html", "col-state"),
            ),
            file_columns=exported("drift", "finding_id", *_KEY, "claims"),
            tally=_count_drift,
            empty_title="Nothing differs",
            empty_hint="When IAM Identity Center holds something else than the claims say, the next comparison puts it here.",
        ),
    )
    sections = (
        Section("Held by", "console/assignments/claims.html"),
        Section("Facts", "console/assignments/facts.html", is_aside=True),
    )
    headline_template = "console/assignments/headline.html"
    notice_template = "console/assignments/compared.html"

    def load(self, key: str, actor: Actor, now: datetime) -> Assignment:
        self.right.require(actor)
        found = queries.get(assignment_id=key)
        if found is None:
            raise NotFound("There is no such assignment.", code="assignment_unknown")
        return found

    def title(self, record: Assignment) -> str:
        names = names_of(record)
        return f"{names.account} · {names.permission_set} for {names.principal}"

    def entity(self, record: Assignment) -> str:
        return f"assignment#{record.assignment_id}"

    def rows(self, items: Sequence[Assignment | Drifted], ask: Ask) -> list[Row]:
        drift = _drift_by_id() if items else {}
        return [Row(one.assignment_id, one, replace(names_of(one), drift=drift.get(one.assignment_id, ""))) for one in items]

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        return {"compared": queries.comparisons()}

    def details(self, record: Assignment, ask: Ask) -> dict[str, Any]:
        return {
            "compared": queries.comparisons().last,
            "drift": _drift_by_id().get(record.assignment_id, ""),
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
