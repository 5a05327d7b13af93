"""What is asked for: a role in a group of the directory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from accessportal.access_requests.kind import Resolved, Target, named, require_person, text_of
from accessportal.access_requests.kinds.group.terms import MembershipAsked
from accessportal.access_requests.states import AccessRequest, Subject
from accessportal.directory.queries import Book
from accessportal.directory.states import PERMANENT, Group, GroupRole
from accessportal.kernel.errors import InvalidRequest


class MembershipTarget(Target):
    """Given as ``{"group": id, "role": reader, contributor or admin}``. The subject is a person."""

    parts = ("group_id", "role")

    def resolve(
        self, *, target: Mapping[str, str], subject: Subject, duration_seconds: int | None, ticket_id: str | None, book: Book, now: datetime
    ) -> Resolved:
        require_person(subject, "Membership is for a person: ask for yourself. Whoever else needs it asks for themselves.")
        group = named(
            target,
            "group",
            lambda wanted: book.groups([wanted]).get(wanted),
            missing="A group is needed: choose one by its path.",
            remedy="Search by name, or give its path, like /engineering/payments.",
        )
        if not group.is_enabled:
            raise InvalidRequest(f"The group {group.name} is disabled and takes no new members.", code="group_disabled", field="group")
        role = _role(target.get("role", ""))
        _require_gain(subject, group, role, book)
        stored = {"group_id": group.group_id, "group_name": group.name, "role": role.value}
        asked = MembershipAsked(group.group_id, group.name, frozenset((*group.ancestors, group.group_id)), role.value)
        return Resolved(
            stored=stored,
            scope=group.group_id,
            evidence={"group_name": group.name, "group_ancestors": list(group.ancestors)},
            facts=stored,
            question=subject.question(asked, duration_seconds=duration_seconds, ticket_id=ticket_id),
        )

    def asked(self, request: AccessRequest) -> dict[str, str]:
        return {"group": request.target["group_id"], "role": request.target["role"]}

    def title(self, request: AccessRequest) -> str:
        return f"{_name_in(request)} · {request.target['role']}"

    def facts(self, request: AccessRequest) -> tuple[tuple[str, str], ...]:
        return (("Group", _name_in(request)), ("Path", request.target["group_id"]), ("Role", request.target["role"]))

    def membership(self, stored: Mapping[str, Any]) -> tuple[str, str]:
        return str(stored["group_id"]), str(stored["role"])


def _name_in(request: AccessRequest) -> str:
    return text_of(request.target, "group_name", request.target["group_id"])


def _role(text: str) -> GroupRole:
    wanted = text.strip()
    if wanted not in tuple(GroupRole):
        names = ", ".join(role.value for role in sorted(GroupRole, key=lambda one: one.rank))
        said = f"“{wanted[:40]}” is no role" if wanted else "A role is needed"
        raise InvalidRequest(f"{said}: choose one of {names}.", code="role_unknown" if wanted else "role_missing", field="role")
    return GroupRole(wanted)


def _require_gain(subject: Subject, group: Group, role: GroupRole, book: Book) -> None:
    """What ends is not asked for by somebody who has as much for good."""
    membership = next((one for one in book.held_by(subject.subject_id)[1] if one.group_id == group.group_id), None)
    permanent = membership.claim(PERMANENT) if membership else None
    if permanent is not None and permanent.role.rank >= role.rank:
        held = f"{subject.name} is in {group.name} already, as {permanent.role.value} and without an end."
        remedy = "Choose another group." if permanent.role is GroupRole.ADMIN else "Ask for a higher role, or choose another group."
        text = f"{held} {remedy}"
        raise InvalidRequest(text, code="member_already", field="group")
