"""Granting: a claim on a sandbox, under the key of the first request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from accessportal.access_requests import store
from accessportal.access_requests.kind import Grant, Resolved
from accessportal.access_requests.kinds.sandbox.target import SandboxTarget, chain_of, key_in_pool, track_of
from accessportal.access_requests.kinds.sandbox.terms import SandboxTerms
from accessportal.access_requests.states import AccessRequest, Status, Subject, Work
from accessportal.directory.queries import Book
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import NotAllowed
from accessportal.kernel.moments import is_recent
from accessportal.kernel.pages import every
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.rules import queries as rules
from accessportal.rules.states import Rule
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes import queries as pool
from accessportal.store.transactions import Guard

# A client that found the pool empty so lately counts as one who waits.
_DEMAND_LASTS = timedelta(minutes=5)
_PAGE = 100


class SandboxGrant(Grant):
    def require_free(
        self, *, resolved: Resolved, subject: Subject, rule: Rule, open_now: Sequence[AccessRequest], book: Book, now: datetime
    ) -> None:
        held = [one for one in open_now if one.kind == SandboxTerms.kind]
        if resolved.stored["continues"]:
            held_by = [one for one in held if one.status is Status.ACTIVE and SandboxTarget().gives(one, resolved.stored)]
            _require_extendable(str(resolved.facts.get("sandbox_name", "")), held_by, subject, rule, now)
            return
        # Requests that go on with one sandbox count once, whether or not the first of them is over.
        if len({key_in_pool(one) for one in held}) >= _terms_of(rule).most_per_person:
            limit = _terms_of(rule).most_per_person
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


def _require_extendable(held_name: str, held_by: Sequence[AccessRequest], subject: Subject, rule: Rule, now: datetime) -> None:
    """Both the rules by which it is held and the one that would give more have a say."""
    against = [rule.name] if not _terms_of(rule).extend else [one.rule_name for one in held_by if not _was_extendable(one)]
    if against:
        raise NotAllowed(f"By rule {against[0]} a sandbox is not extended. Give it back, and ask for a new one.", code="not_extendable")
    told_at = pool.none_told_at()
    is_wanted = told_at is not None and is_recent(told_at, now=now, within=_DEMAND_LASTS)
    if is_wanted or any(_waits_for(held_name, one, subject, now) for one in every(_granting_page)):
        raise NotAllowed("Others wait for a sandbox, so this one is not extended. Try again when the pool has some.", code="others_wait")


def _was_extendable(request: AccessRequest) -> bool:
    """By its rule as it is now; by the request's own copy when the rule is gone."""
    rule = rules.find_rule(name=request.rule_name)
    return bool(request.evidence.get("extend", True)) if rule is None else not isinstance(rule.terms, SandboxTerms) or rule.terms.extend


def _terms_of(rule: Rule) -> SandboxTerms:
    assert isinstance(rule.terms, SandboxTerms), "a rule decides on its own kind alone"
    return rule.terms


def _granting_page(cursor: str | None) -> Any:
    return store.page_work(Work.GRANT.value, cursor=cursor, limit=_PAGE)


def _waits_for(held_name: str, one: AccessRequest, subject: Subject, now: datetime) -> bool:
    """Somebody else's that was tried, found none free, and would take this one; what failed otherwise is not helped by a sandbox."""
    if one.kind != SandboxTerms.kind or not one.work_error or one.work_attempts or one.is_over(now):
        return False
    return one.subject_id != subject.subject_id and held_name.startswith(str(one.target["name_prefix"]))
