"""What IAM Identity Center holds without us, and what it lacks; and mending each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from accessportal.assignments import queries
from accessportal.assignments.states import Assignment, AssignmentKey, Drift, Remedy
from accessportal.catalog import queries as catalog
from accessportal.catalog.states import PrincipalType
from accessportal.console.resource import Ask, Column, Pattern, Resource, Row, Section
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import from_epoch
from accessportal.kernel.counts import Count
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.errors import NotFound
from accessportal.kernel.pages import Page, Unreadable
from accessportal.kernel.ports import after_commit
from accessportal.observe import heartbeats
from accessportal.web.deeds import Data, Deed, Told
from accessportal.web.exporting import exported

# As many as the job keeps (jobs.tasks).
_KEPT = 100
_UNRECORDED = (Drift.UNKNOWN, Drift.NOT_OURS)

KEY = tuple((name, f"key.{name}") for name in ("principal_type", "principal_id", "account_id", "permission_set_arn"))


@dataclass(frozen=True, slots=True)
class Names:
    """What the catalog calls the parts of the key; the bare ids where it does not know them (any more)."""

    principal: str
    account: str
    ou_path: str
    permission_set: str
    drift: str = ""


@dataclass(frozen=True, slots=True)
class Drifted:
    """What the last comparison, which ended at ``found_at``, found to differ; ``assignment_id`` is empty for what the portal had no record
    of then. ``since``: when a comparison found it first; ``note`` tells of the last order to mend it. ``changed``: our record of it, where
    that was changed after the comparison, and so knows more."""

    drift: str
    key: AssignmentKey
    claims: tuple[str, ...]
    assignment_id: str
    finding_id: str
    since: datetime | None = None
    note: str = ""
    found_at: datetime | None = None
    changed: Assignment | None = None

    @property
    def entity(self) -> str:
        return f"assignment#{queries.id_of(key=self.key)}"

    def beside(self, record: Assignment | None) -> Drifted:
        """As it stands by our ``record`` of now."""
        is_newer = record is not None and self.found_at is not None and record.changed_at > self.found_at
        return replace(self, changed=record if is_newer else None)


def last_drift() -> tuple[Drifted, ...]:
    told, found_at = _told()
    return tuple(replace(_drifted(**one), found_at=found_at) for one in told.get(heartbeats.DRIFT, []))


def _told() -> tuple[Mapping[str, Any], datetime | None]:
    """What the job told last, and when the comparison ended of which it told."""
    beat = heartbeats.last_beat(heartbeats.RECONCILE)
    told = beat.detail if beat else {}
    found_at = told.get(heartbeats.FINISHED_AT)
    return told, from_epoch(found_at) if found_at else None


def compared() -> dict[str, Any]:
    """When the comparison ended of which the pages tell, when one ended of which they don't yet (somebody's in a terminal), and what one
    that is going on has read."""
    found_at, done = _told()[1], queries.comparisons()
    last_at = done.last.finished_at if done.last else None
    return {"found_at": found_at, "newer_at": None if found_at and last_at and last_at <= found_at else last_at, "open": done.open}


def _drift_of_now() -> Page[Drifted]:
    """With what our records, read together, have come to know since."""
    found, unreadable = last_drift(), list[Unreadable]()
    records = queries.get_many({queries.id_of(key=one.key) for one in found}, past=unreadable.append)
    return Page(tuple(one.beside(records.get(queries.id_of(key=one.key))) for one in found), unreadable=tuple(unreadable))


def _drifted(*, drift: str, claims: Sequence[str], finding_id: str = "", since: float | None = None, note: str = "", **key: str) -> Drifted:
    found = AssignmentKey(**{**key, "principal_type": PrincipalType(key["principal_type"])})  # type: ignore[arg-type]
    assignment_id = "" if drift in _UNRECORDED else queries.id_of(key=found)
    return Drifted(drift, found, tuple(claims), assignment_id, finding_id, from_epoch(since) if since else None, note)


def drift_by_id(assignments: Iterable[Assignment]) -> dict[str, str]:
    """What the last comparison found of these and our records have not come to know better since."""
    found = {one.assignment_id: one for one in last_drift()}
    pairs = ((one, found.get(one.assignment_id)) for one in assignments)
    return {one.assignment_id: drift.drift for one, drift in pairs if drift is not None and drift.beside(one).changed is None}


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


# Which remedy mends which difference, and what it does.
_REMEDIES: dict[Remedy, tuple[str, dict[str, str]]] = {
    Remedy.REPAIR: (
        "Repair",
        {
            "missing": "The access is made again in IAM Identity Center, for the request that gives it, until it is proved to be there.",
            "left_over": "The access is removed from IAM Identity Center: the requests that gave it are over.",
            "dead_claim": "The request that is over no longer holds the access. It is removed when no other request holds it.",
        },
    ),
    Remedy.ADOPT: (
        "Adopt",
        {"unknown": "The access stays, and is recorded as given outside the portal. It is no longer drift, and the portal never ends it."},
    ),
    Remedy.REMOVE_UNKNOWN: (
        "Remove",
        {"unknown": "The access is removed from IAM Identity Center. Whoever uses it loses it at once."},
    ),
}


def _mends(remedy: Remedy) -> Collection[str]:
    return _REMEDIES[remedy][1]


def _name(remedy: Remedy) -> str:
    return remedy.value.replace("_", "-")


def _remedies_of(record: Drifted) -> tuple[str, ...]:
    return tuple(_name(remedy) for remedy in Remedy if record.drift in _mends(remedy))


def _may_mend(remedy: Remedy, record: Drifted, actor: Actor, _now: datetime) -> Decision:
    if not actor.is_operator:
        return refuse("Only operators mend what differs.", code="not_an_operator")
    if record.drift not in _mends(remedy):
        return refuse("That is no remedy for this difference.", code="no_remedy")
    return allow("Operators mend what differs.")


def _order(remedy: Remedy, record: Drifted, _data: Data, actor: Actor, now: datetime) -> Told:
    asked_at = f"{now.astimezone(UTC):%H:%M} UTC"
    heartbeats.tell_of_difference(record.finding_id, f"{_REMEDIES[remedy][0]} was asked for at {asked_at}, and has not been done yet.")
    after_commit("mend_difference", finding_id=record.finding_id, remedy=remedy.value, operator=actor.name)
    return Told("Ordered. It leaves this list once it is done; if it can’t be done, the reason is told beside it.")


def _deed(remedy: Remedy) -> Deed[Drifted]:
    label, words = _REMEDIES[remedy]
    return Deed(
        name=_name(remedy),
        label=label,
        question=lambda record: f"{label}?",
        explain=lambda record: (
            f"{words.get(record.drift, '')} It is compared once more first; if too much would be removed at once, nothing is done."
        ),
        may=partial(_may_mend, remedy),
        run=partial(_order, remedy),
        is_for=lambda actor, _book: actor.is_operator,
        stale_codes=frozenset({"no_remedy"}),
        is_destructive=remedy is Remedy.REMOVE_UNKNOWN,
    )


class Differences(Resource):
    name = "drift"
    singular = "difference"
    plural = "Drift"
    icon = "git-compare"
    about = "Where IAM Identity Center and the requests differ, and since when; repair, adopt or remove it."
    columns = (
        Column("Who", "console/cells/drift_who.html", "col-who"),
        Column("Has", "console/cells/assignment_what.html", "col-what"),
        Column("Held by", "console/cells/assignment_claims.html", "col-span"),
        Column("What differs", "console/cells/assignment_drift.html", "col-context"),
    )
    file_columns = exported("drift", "finding_id", "since", *KEY, "claims")
    patterns = (
        Pattern(
            name="all",
            label="Drift",
            fetch=lambda _ask: _drift_of_now(),
            row_deeds=tuple(map(_name, Remedy)),
            empty_title="Nothing differs",
            empty_hint="Access that no request gave, or that a request gave and AWS does not have, stands here after the next comparison.",
        ),
    )
    sections = (Section("What differs", "console/assignments/difference.html"),)
    deeds = tuple(map(_deed, Remedy))
    notice_template = "console/assignments/compared.html"

    def read(self, key: str, actor: Actor, now: datetime) -> Drifted:
        found = next((one for one in last_drift() if one.finding_id == key), None)
        if found is None:
            raise NotFound("That differs no more, or was found by another comparison.", code="finding_unknown")
        return found.beside(queries.find(key=found.key))

    def title(self, record: Drifted) -> str:
        names = names_of(record)
        return f"{names.account} · {names.permission_set} for {names.principal}"

    def head(self, record: Drifted) -> None:
        """What the portal never made has no record that says where its events end."""

    def rows(self, items: Sequence[Drifted], ask: Ask) -> list[Row]:
        return [Row(one.finding_id, one, names_of(one), _remedies_of(one)) for one in items]

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        return compared()

    def details(self, record: Drifted, ask: Ask) -> dict[str, Any]:
        return {"names": names_of(record)}

    def badge(self) -> str:
        """The job keeps the first hundred."""
        found = len(last_drift())
        return Count(found, is_more=found >= _KEPT).words
