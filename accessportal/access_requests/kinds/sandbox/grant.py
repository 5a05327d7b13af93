"""Granting: a claim on a sandbox, under the key of the first request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from accessportal.access_requests.kind import Grant, Resolved
from accessportal.access_requests.kinds.sandbox.extending import require_extendable
from accessportal.access_requests.kinds.sandbox.target import SandboxTarget, chain_of, key_in_pool, track_of
from accessportal.access_requests.kinds.sandbox.terms import SandboxTerms, terms_of
from accessportal.access_requests.states import AccessRequest, Status, Subject
from accessportal.directory.queries import Book
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import NotAllowed
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.rules.states import Rule
from accessportal.sandboxes import operations as sandboxes
from accessportal.store.transactions import Guard


class SandboxGrant(Grant):
    def require_free(
        self, *, resolved: Resolved, subject: Subject, rule: Rule, open_now: Sequence[AccessRequest], book: Book, now: datetime
    ) -> None:
        held = [one for one in open_now if one.kind == SandboxTerms.kind]
        if resolved.stored["continues"]:
            held_by = [one for one in held if one.status is Status.ACTIVE and SandboxTarget().gives(one, resolved.stored)]
            require_extendable(str(resolved.facts.get("sandbox_name", "")), held_by, subject, rule, now)
            return
        # Requests that go on with one sandbox count once, whether or not the first of them is over.
        if len({key_in_pool(one) for one in held}) >= terms_of(rule).most_per_person:
            limit = terms_of(rule).most_per_person
            most = "one sandbox" if limit == 1 else f"{limit} sandboxes"
            text = f"One person has or waits for at most {most} at a time (rule {rule.name}). Give one back, or cancel a request, first."
            raise NotAllowed(text, code="too_many_held")

    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        return sandboxes.hold(
            claim=request.request_id,
            key=key_in_pool(request),
            track=track_of(request.subject_id),
            name_prefix=str(request.target["name_prefix"]),
            ends_at=request.expires_at,
            most_held=int(request.evidence.get("most_per_person") or 1),
            is_first=not request.target.get("continues"),
            guards=guards,
            actor=actor,
            clock=clock,
        )

    def revoke(self, *, request: AccessRequest, actor: Actor, clock: Clock) -> Proof | Waiting:
        return sandboxes.let_go(
            claim=request.request_id, key=key_in_pool(request), track=track_of(request.subject_id), actor=actor, clock=clock
        )

    def ends_together(self, one: AccessRequest, other: AccessRequest) -> bool:
        """Giving a sandbox back ends all that extend it, or it would stay lent; who waits for one holds nothing yet."""
        return one.granted_at is not None and other.kind == SandboxTerms.kind and chain_of(other) == chain_of(one)
