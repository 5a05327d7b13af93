"""Kind ``group``: membership in a group of the directory, with a role and an end, held by a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from accessportal.access_requests.kinds.base import Resolved, text_of
from accessportal.access_requests.kinds.persons import group_made_anew, made_anew
from accessportal.access_requests.states import AccessRequest, Described, Subject
from accessportal.directory import queries as directory
from accessportal.directory.states import PERMANENT, Group, GroupRole, lasts
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.durations import format_duration
from accessportal.kernel.errors import InvalidRequest, NotAllowed
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.mirror.operations import hold_membership, release_membership
from accessportal.rules.states import EVERYBODY, Question, Rule
from accessportal.store.transactions import Guard


class GroupMembership:
    """Targets are given as ``{"group": id, "role": reader, contributor or admin}``. The subject is a person."""

    name = "group"

    def resolve(
        self, *, target: Mapping[str, str], subject: Subject, duration_seconds: int | None, ticket_id: str | None, now: datetime
    ) -> Resolved:
        if subject.subject_id.startswith("/"):
            text = "Membership is for a person: ask for yourself. Whoever else needs it asks for themselves."
            raise InvalidRequest(text, code="subject_is_group", field="subject")
        group = _group(target.get("group", ""))
        role = _role(target.get("role", ""))
        _require_gain(subject, group, role)
        return Resolved(
            stored={"group_id": group.group_id, "group_name": group.name, "role": role.value},
            scope=group.group_id,
            evidence={"group_name": group.name, "group_ancestors": list(group.ancestors)},
            facts={"group_id": group.group_id, "group_name": group.name, "role": role.value},
            question=Question(
                kind=self.name,
                subject=subject.subject_id,
                subject_groups=subject.groups,
                subject_direct=subject.direct,
                group_id=group.group_id,
                group_name=group.name,
                groups_above=frozenset((*group.ancestors, group.group_id)),
                role=role.value,
                duration_seconds=duration_seconds,
                ticket_id=ticket_id,
            ),
        )

    def require_free(self, *, resolved: Resolved, subject: Subject, rule: Rule, now: datetime) -> None:
        """Whoever a rule admits may be in as many groups as there are; without anybody's approval no longer than what admits them.

        Else an hour in a group whose members let themselves in would never end.
        """
        seconds, until = resolved.question.duration_seconds, None if rule.approval.required else _admitted_until(subject, rule, now)
        if until is not None and seconds is not None and now + timedelta(seconds=seconds) > until:
            text = (
                f"The rule {rule.name} admits you only until {until:%Y-%m-%d %H:%M} UTC, when your own membership ends. "
                f"Ask for at most {format_duration(int((until - now).total_seconds()))}, or have the membership made longer first."
            )
            raise NotAllowed(text, code="outlasts_membership")

    def asked(self, request: AccessRequest) -> dict[str, str]:
        return {"group": request.target["group_id"], "role": request.target["role"]}

    def describe(self, request: AccessRequest) -> Described:
        target, evidence = request.target, request.evidence
        name = text_of(target, "group_name", target["group_id"])
        return Described(
            title=f"{name} · {target['role']}",
            subject_name=text_of(evidence, "subject_name", request.subject_id),
            requested_by_name=text_of(evidence, "requested_by_name", request.requested_by),
            facts=(("Group", name), ("Path", target["group_id"]), ("Role", target["role"])),
        )

    def group_of(self, stored: Mapping[str, Any]) -> str:
        return str(stored["group_id"])

    def made_anew(self, request: AccessRequest, *, now: datetime) -> Waiting | None:
        return made_anew(request, now=now) or group_made_anew(request.target["group_id"], request, now=now)

    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        return self.made_anew(request, now=clock.now()) or hold_membership(
            email=request.subject_id,
            group_id=request.target["group_id"],
            role=GroupRole(request.target["role"]),
            claim=request.request_id,
            ends_at=request.expires_at,
            guards=guards,
            actor=actor,
            clock=clock,
        )

    def revoke(self, *, request: AccessRequest, actor: Actor, clock: Clock) -> Proof | Waiting:
        return release_membership(
            email=request.subject_id, group_id=request.target["group_id"], claim=request.request_id, actor=actor, clock=clock
        )

    def ends_together(self, one: AccessRequest, other: AccessRequest) -> bool:
        """Another request for the same thing keeps it."""
        return False

    def gives(self, request: AccessRequest, stored: Mapping[str, Any]) -> bool:
        return self.same_target(request.target, stored)

    def same_target(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        return all(one[name] == other[name] for name in ("group_id", "role"))


def _admitted_until(subject: Subject, rule: Rule, now: datetime) -> datetime | None:
    """When the last membership ends by which ``rule`` admits the subject; ``None`` for never, ``now`` when none is left."""
    who = rule.subjects
    if EVERYBODY in who.groups or subject.subject_id in who.users:
        return None
    _, ends = directory.find_person_with_ends(email=subject.subject_id, now=now)
    found = [ends[group_id] for group_id in who.groups if group_id in ends]
    for group_id in subject.direct & frozenset(who.groups_only):
        membership = directory.find_membership(email=subject.subject_id, group_id=group_id)
        found += [claim.ends_at for claim in membership.claims if claim.counts_at(now)] if membership is not None else []
    return max(found, key=lasts, default=now)


def _group(text: str) -> Group:
    wanted = text.strip()
    if not wanted:
        raise InvalidRequest("A group is needed: choose one by its path.", code="group_missing", field="group")
    group = directory.find_group(group_id=wanted)
    if group is None:
        shown = wanted if len(wanted) <= 60 else wanted[:60] + "…"
        text = f"There is no group “{shown}”. Search by name, or give its path, like /engineering/payments."
        raise InvalidRequest(text, code="group_unknown", field="group")
    if not group.is_enabled:
        raise InvalidRequest(f"The group {group.name} is disabled and takes no new members.", code="group_disabled", field="group")
    return group


def _role(text: str) -> GroupRole:
    wanted = text.strip()
    if wanted not in tuple(GroupRole):
        names = ", ".join(role.value for role in sorted(GroupRole, key=lambda one: one.rank))
        said = f"“{wanted[:40]}” is no role" if wanted else "A role is needed"
        raise InvalidRequest(f"{said}: choose one of {names}.", code="role_unknown" if wanted else "role_missing", field="role")
    return GroupRole(wanted)


def _require_gain(subject: Subject, group: Group, role: GroupRole) -> None:
    """What ends is not asked for by somebody who has as much for good."""
    membership = directory.find_membership(email=subject.subject_id, group_id=group.group_id)
    permanent = membership.claim(PERMANENT) if membership else None
    if permanent is not None and permanent.role.rank >= role.rank:
        held = f"{subject.name} is in {group.name} already, as {permanent.role.value} and without an end."
        remedy = "Choose another group." if permanent.role is GroupRole.ADMIN else "Ask for a higher role, or choose another group."
        text = f"{held} {remedy}"
        raise InvalidRequest(text, code="member_already", field="group")
