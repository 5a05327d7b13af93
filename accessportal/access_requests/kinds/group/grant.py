"""Granting: a claim on the membership."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from accessportal.access_requests.kind import Grant, Resolved, group_made_anew
from accessportal.access_requests.states import AccessRequest, Subject
from accessportal.directory import queries as directory
from accessportal.directory.queries import Book
from accessportal.directory.states import GroupRole, lasts
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.durations import format_duration
from accessportal.kernel.errors import NotAllowed
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.mirror.operations import hold_membership, release_membership
from accessportal.rules.states import EVERYBODY, Rule
from accessportal.store.transactions import Guard


class MembershipGrant(Grant):
    def require_free(
        self, *, resolved: Resolved, subject: Subject, rule: Rule, open_now: Sequence[AccessRequest], book: Book, now: datetime
    ) -> None:
        """Refuse, without anybody's approval, what lasts longer than what admits them: else an hour in a group whose members let themselves
        in would never end."""
        seconds, until = resolved.question.duration_seconds, None if rule.approval.required else _admitted_until(subject, rule, book, now)
        if until is not None and seconds is not None and now + timedelta(seconds=seconds) > until:
            text = (
                f"The rule {rule.name} admits you only until {until:%Y-%m-%d %H:%M} UTC, when your own membership ends. "
                f"Ask for at most {format_duration(int((until - now).total_seconds()))}, or have the membership made longer first."
            )
            raise NotAllowed(text, code="outlasts_membership")

    def made_anew(self, request: AccessRequest, *, book: Book, now: datetime) -> Waiting | None:
        return super().made_anew(request, book=book, now=now) or group_made_anew(request.target["group_id"], request, book=book, now=now)

    def is_given_directly(self, request: AccessRequest, *, now: datetime) -> bool:
        return directory.find_lasting_role(email=request.subject_id, group_id=request.target["group_id"]) is not None

    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        return hold_membership(
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


def _admitted_until(subject: Subject, rule: Rule, book: Book, now: datetime) -> datetime | None:
    """When the last membership ends by which ``rule`` admits the subject; ``None`` for never, ``now`` when none is left."""
    who = rule.subjects
    if EVERYBODY in who.groups or subject.subject_id in who.users:
        return None
    _, ends = directory.find_person_with_ends(email=subject.subject_id, now=now, book=book)
    found = [ends[group_id] for group_id in who.groups if group_id in ends]
    direct = [one for one in book.held_by(subject.subject_id)[1] if one.group_id in subject.direct & frozenset(who.groups_only)]
    found += [claim.ends_at for membership in direct for claim in membership.claims if claim.counts_at(now)]
    return max(found, key=lasts, default=now)
