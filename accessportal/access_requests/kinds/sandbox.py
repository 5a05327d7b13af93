"""Kind ``sandbox``: one of the pool's sandboxes for a person, held by a claim under the key of the first request.

Asking for longer is a further request that continues the first: a second claim under the same key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from accessportal.access_requests import store
from accessportal.access_requests.kinds.base import Resolved, text_of
from accessportal.access_requests.kinds.persons import made_anew
from accessportal.access_requests.states import AccessRequest, Described, Status, Subject, Work
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.durations import format_duration
from accessportal.kernel.errors import InvalidRequest, NotAllowed
from accessportal.kernel.moments import is_recent
from accessportal.kernel.pages import every
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.rules import queries as rules
from accessportal.rules.states import SANDBOX, Question, Rule
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes import queries as pool
from accessportal.sandboxes.states import PEOPLES_KEYS, PEOPLES_TRACKS, Sandbox
from accessportal.store.transactions import Guard

_LONGEST_PREFIX = 64
# A client that found the pool empty so lately counts as one who waits.
_DEMAND_LASTS = timedelta(minutes=5)
_PAGE = 100


class PoolSandbox:
    """Targets are given as ``{"name_prefix": how its name begins, or empty}``, and ``continues`` (the id of the first request)
    where a sandbox that is held is asked for longer. The subject is a person."""

    name = SANDBOX

    def resolve(
        self, *, target: Mapping[str, str], subject: Subject, duration_seconds: int | None, ticket_id: str | None, now: datetime
    ) -> Resolved:
        if subject.subject_id.startswith("/"):
            text = "A sandbox is for a person: ask for yourself. Whoever else needs one asks for themselves."
            raise InvalidRequest(text, code="subject_is_group", field="subject")
        prefix = _prefix(target.get("name_prefix", ""))
        continues = target.get("continues", "").strip()
        held = _continued(continues, subject, now) if continues else None
        longest = _longest_seconds(held, now)
        _require_within(duration_seconds, longest, held)
        facts = {"name_prefix": prefix}
        if held is not None:
            facts |= {"sandbox_id": held.sandbox_id, "sandbox_name": held.name}
        return Resolved(
            stored={"name_prefix": prefix, "continues": continues},
            scope="sandboxes",
            evidence=facts | {"longest_seconds": longest},
            facts=facts,
            question=Question(
                kind=self.name,
                subject=subject.subject_id,
                subject_groups=subject.groups,
                subject_direct=subject.direct,
                name_prefix=prefix,
                duration_seconds=duration_seconds,
                ticket_id=ticket_id,
            ),
            longest_seconds=longest,
        )

    def require_free(self, *, resolved: Resolved, subject: Subject, rule: Rule, now: datetime) -> None:
        if resolved.stored["continues"]:
            held_by = [one for one in _open_of(subject) if one.status is Status.ACTIVE and self.gives(one, resolved.stored)]
            _require_extendable(str(resolved.facts.get("sandbox_name", "")), held_by, subject, rule, now)
            return
        # Requests that go on with one sandbox count once, whether or not the first of them is over.
        if len({_key(one) for one in _open_of(subject)}) >= rule.most_per_person:
            most = "one sandbox" if rule.most_per_person == 1 else f"{rule.most_per_person} sandboxes"
            text = f"One person has or waits for at most {most} at a time (rule {rule.name}). Give one back, or cancel a request, first."
            raise NotAllowed(text, code="too_many_held")

    def asked(self, request: AccessRequest) -> dict[str, str]:
        """Of what is held, that it goes on; of what is not decided yet or over, the same thing anew."""
        continues = str(request.target.get("continues", ""))
        if request.status is Status.ACTIVE:
            continues = continues or request.request_id
        elif request.status is not Status.PENDING:
            continues = ""
        asked = {"name_prefix": str(request.target["name_prefix"])}
        return asked | {"continues": continues} if continues else asked

    def describe(self, request: AccessRequest) -> Described:
        prefix, evidence = str(request.target["name_prefix"]), request.evidence
        named = f"{prefix}…" if prefix else ""
        facts = (("Names", named or "any"), ("Goes on with", text_of(evidence, "sandbox_name", "")))
        return Described(
            title=f"Sandbox · {named}" if named else "Sandbox",
            subject_name=text_of(evidence, "subject_name", request.subject_id),
            requested_by_name=text_of(evidence, "requested_by_name", request.requested_by),
            facts=tuple((label, value) for label, value in facts if value),
        )

    def group_of(self, stored: Mapping[str, Any]) -> str:
        return ""

    def made_anew(self, request: AccessRequest, *, now: datetime) -> Waiting | None:
        return made_anew(request, now=now)

    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        return self.made_anew(request, now=clock.now()) or sandboxes.hold(
            claim=request.request_id,
            key=_key(request),
            track=_track(request.subject_id),
            name_prefix=str(request.target["name_prefix"]),
            ends_at=request.expires_at,
            most_held=int(request.evidence.get("most_per_person") or 1),
            is_first=not request.target.get("continues"),
            guards=guards,
            actor=actor,
            clock=clock,
        )

    def revoke(self, *, request: AccessRequest, actor: Actor, clock: Clock) -> Proof | Waiting:
        return sandboxes.let_go(claim=request.request_id, key=_key(request), track=_track(request.subject_id), actor=actor, clock=clock)

    def ends_together(self, one: AccessRequest, other: AccessRequest) -> bool:
        """Giving a sandbox back ends all that extend it, or it would stay lent; who waits for one holds nothing yet."""
        return one.granted_at is not None and other.kind == SANDBOX and chain_of(other) == chain_of(one)

    def gives(self, request: AccessRequest, stored: Mapping[str, Any]) -> bool:
        """Whoever asks for a new one gets another than they hold."""
        return bool(stored["continues"]) and _key(request) == key_of(str(stored["continues"]))

    def same_target(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        return all(one[name] == other[name] for name in ("name_prefix", "continues"))


def chain_of(request: AccessRequest) -> str:
    """The request with which it began: all that extend it hold the same sandbox."""
    return str(request.target.get("continues") or request.request_id)


def _key(request: AccessRequest) -> str:
    return key_of(chain_of(request))


def key_of(first_request_id: str) -> str:
    """What the pool knows the sandbox of a request by."""
    return f"{PEOPLES_KEYS}{first_request_id}"


def _track(subject_id: str) -> str:
    return f"{PEOPLES_TRACKS}{subject_id}"


def _prefix(text: str) -> str:
    wanted = text.strip()
    if len(wanted) > _LONGEST_PREFIX or not wanted.isprintable():
        text = f"The beginning of a name has at most {_LONGEST_PREFIX} printable characters. Choose one, or leave it empty."
        raise InvalidRequest(text, code="name_prefix_unusable", field="name_prefix")
    return wanted


def _continued(first_request_id: str, subject: Subject, now: datetime) -> Sandbox:
    held = pool.find_by_key(key=key_of(first_request_id)) if len(first_request_id) <= 100 and first_request_id.isprintable() else None
    if held is None or held.track != _track(subject.subject_id) or held.is_over(now):
        text = "The sandbox that this goes on with is not held, or no longer. Ask for a new one."
        raise InvalidRequest(text, code="allocation_over", field="continues")
    return held


def _longest_seconds(held: Sandbox | None, now: datetime) -> int:
    """For how long a sandbox could be had from now on: the lab's time, which an extension does not begin anew."""
    if held is None or held.allocated_at is None:
        return pool.shortest_lab_seconds()
    ends_at = held.allocated_at + timedelta(hours=held.lab_duration_hours)
    return max(int((ends_at - now).total_seconds()), 0)


def _require_within(duration_seconds: int | None, longest: int, held: Sandbox | None) -> None:
    if duration_seconds is None or duration_seconds <= longest:
        return
    if held is None:
        text = f"A sandbox is lent for at most {format_duration(longest)}. Ask for that or less."
    elif longest >= 60:
        left = format_duration(longest - longest % 60)
        text = f"This sandbox can be had for {left} more, then it has been lent as long as it may be. Ask for that or less."
    else:
        text = "This sandbox has been lent as long as it may be. Ask for a new one when it is over."
    raise InvalidRequest(text, code="duration_over_lab", field="duration")


def _open_of(subject: Subject) -> list[AccessRequest]:
    return [one for one in every(partial(_open_page, subject.subject_id)) if one.kind == SANDBOX]


def _open_page(subject_id: str, cursor: str | None) -> Any:
    return store.page_open(subject_id, cursor=cursor, limit=_PAGE)


def _require_extendable(held_name: str, held_by: Sequence[AccessRequest], subject: Subject, rule: Rule, now: datetime) -> None:
    """Both the rules by which it is held and the one that would give more have a say."""
    against = [rule.name] if not rule.extend else [one.rule_name for one in held_by if not _was_extendable(one)]
    if against:
        raise NotAllowed(f"By rule {against[0]} a sandbox is not extended. Give it back, and ask for a new one.", code="not_extendable")
    told_at = pool.none_told_at()
    is_wanted = told_at is not None and is_recent(told_at, now=now, within=_DEMAND_LASTS)
    if is_wanted or any(_waits_for(held_name, one, subject, now) for one in every(_granting_page)):
        raise NotAllowed("Others wait for a sandbox, so this one is not extended. Try again when the pool has some.", code="others_wait")


def _was_extendable(request: AccessRequest) -> bool:
    """By its rule as it is now; by the request's own copy when the rule is gone."""
    rule = rules.find_rule(name=request.rule_name)
    return bool(request.evidence.get("extend", True)) if rule is None else rule.extend


def _granting_page(cursor: str | None) -> Any:
    return store.page_work(Work.GRANT.value, cursor=cursor, limit=_PAGE)


def _waits_for(held_name: str, one: AccessRequest, subject: Subject, now: datetime) -> bool:
    """Somebody else's that was tried, found none free, and would take this one; what failed otherwise is not helped by a sandbox."""
    if one.kind != SANDBOX or not one.work_error or one.work_attempts or one.is_over(now):
        return False
    return one.subject_id != subject.subject_id and held_name.startswith(str(one.target["name_prefix"]))
