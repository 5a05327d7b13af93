"""Granting: a claim on a sandbox, under the key of the first request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from accessportal.access_requests import store
from accessportal.access_requests.config import current
from accessportal.access_requests.kind import Resolved
from accessportal.access_requests.kinds.lending import LentGrant, require_fewer
from accessportal.access_requests.kinds.sandbox.extending import require_extendable
from accessportal.access_requests.kinds.sandbox.target import SandboxTarget, key_in_pool, track_of
from accessportal.access_requests.kinds.sandbox.terms import SandboxTerms, terms_of
from accessportal.access_requests.states import AccessRequest, PlaceInLine, Status, Subject
from accessportal.directory.queries import Book
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.decisions import Decision
from accessportal.kernel.pages import UnreadableItem
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.rules.states import Rule
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes import queries as pool
from accessportal.store.transactions import Guard
from accessportal.upstream import client as upstream
from accessportal.waiting import queries as line
from accessportal.waiting.states import SANDBOXES


class SandboxGrant(LentGrant):
    line = SANDBOXES

    def require_free(
        self, *, resolved: Resolved, subject: Subject, rule: Rule, open_now: Sequence[AccessRequest], book: Book, now: datetime
    ) -> None:
        held = [one for one in open_now if one.kind == SandboxTerms.kind]
        if resolved.stored["continues"]:
            held_by = [one for one in held if one.status is Status.ACTIVE and SandboxTarget().gives(one, resolved.stored)]
            require_extendable(str(resolved.facts.get("sandbox_name", "")), held_by, subject, rule, now)
            return
        require_fewer(held, than=terms_of(rule).most_per_person, one="sandbox", many="sandboxes", rule=rule)

    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        most_held = int(request.evidence.get("most_per_person") or 1)
        if request.takes_back:
            return _revive(request, most_held, guards, actor, clock)
        is_first = not request.target.get("continues")
        return sandboxes.hold(
            claim=request.request_id,
            key=key_in_pool(request),
            track=track_of(request.subject_id),
            name_prefix=str(request.target["name_prefix"]),
            ends_at=request.expires_at,
            duration_seconds=request.duration_seconds if is_first else None,
            most_held=most_held,
            is_first=is_first,
            provider=upstream.provider() if upstream.is_set() else None,
            guards=guards,
            actor=actor,
            clock=clock,
        )

    def revoke(self, *, request: AccessRequest, actor: Actor, clock: Clock) -> Proof | Waiting:
        is_given_back = request.ended_by in {request.requested_by, request.subject_id}
        return sandboxes.let_go(
            claim=request.request_id,
            key=key_in_pool(request),
            track=track_of(request.subject_id),
            undo_seconds=current().undo_seconds if is_given_back else 0,
            actor=actor,
            clock=clock,
        )

    def places_in_line(self, requests: Sequence[AccessRequest], *, now: datetime) -> dict[str, PlaceInLine]:
        found: dict[str, PlaceInLine] = {}
        for request in requests:
            try:
                standing = pool.find_in_line(claim=request.request_id)
                expected = None if standing is None else pool.expected_turn(standing=standing, now=now)
            except UnreadableItem as error:
                line.pass_over(error.item)
                continue
            if standing is not None:
                turn = None if expected is None else (expected.earliest, expected.latest)
                found[request.request_id] = PlaceInLine(before=standing.before, lapses_at=standing.place.lapses_at, expected=turn)
        return found

    def may_take_back(self, request: AccessRequest, *, now: datetime) -> Decision:
        return pool.may_revive(key=key_in_pool(request), track=track_of(request.subject_id), now=now)


def _revive(request: AccessRequest, most_held: int, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
    """The sandbox that the former request gave back, which may have gone on with that of an earlier one."""
    given_back = store.get(request.takes_back)
    return sandboxes.revive(
        claim=request.request_id,
        key=key_in_pool(request),
        former_key=key_in_pool(given_back) if given_back is not None else "",
        track=track_of(request.subject_id),
        ends_at=request.expires_at,
        most_held=most_held,
        guards=guards,
        actor=actor,
        clock=clock,
    )
