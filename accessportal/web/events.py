"""Audit events as people read them: the one table of what each action's line shows. Titles are the registry's (``audit.actions``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from accessportal.access_requests.kind import Fields, kind_named
from accessportal.access_requests.states import AccessRequest
from accessportal.audit import queries as audit
from accessportal.audit.actions import ACTIONS
from accessportal.audit.states import AuditEvent, Chained
from accessportal.kernel.ids import is_request_id
from accessportal.web.facts import Fact, facts_of
from accessportal.web.names import Names
from accessportal.web.presenting import Tone, holder, seconds_after_end, words_for_lateness, words_for_length

_LATEST = 20

_CALLED = {
    "addressee": "for",
    "before_at": "of what was over before",
    "checks": "check values",
    "comment_kind": "kind",
    "error_code": "kind of error",
    "extends": "extends request",
    "fallback": "operators stood in",
    "fence": "hand-over",
    "group_id": "group",
    "identities": "accounts that signed in",
    "is_outside": "held from outside",
    "job_id": "job",
    "keep_days": "days that events stay",
    "kept_by": "still held for",
    "most_held": "most at once",
    "old_parent_id": "group above before",
    "parent_id": "group above",
    "purge_at": "kept until",
    "quorum": "approvals needed",
    "run_id": "run",
    "ticket_id": "ticket",
    "token_scope": "token may",
    "track": "holder",
    "work": "what was to be done",
    "work_due_at": "next attempt",
}

Notes = Callable[[Mapping[str, Any], Fields], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Line:
    """One event. ``by`` is empty where it goes without saying; ``notes`` are sentences, ``quote`` is in somebody's own words, ``facts``
    are values. ``hides_data``: the event holds more than that."""

    event: AuditEvent
    title: str
    tone: Tone | str
    by: str
    notes: tuple[str, ...] = ()
    quote: str = ""
    code: str = ""
    facts: tuple[Fact, ...] = ()
    hides_data: bool = True

    @property
    def data(self) -> Iterable[Fact]:
        """All that the event holds."""
        return _in_words(self.event.data)


def latest_of(record: Chained) -> dict[str, Any]:
    """The newest events of a record, and whether its chain is whole, for ``web/latest_events.html``."""
    events = audit.chain_of(record.entity)
    breaks = audit.check_chain(record.entity, events, version=record.version, audit_head=record.audit_head) if record.version else []
    return {"events": events[: -_LATEST - 1 : -1], "breaks": breaks}


def _in_words(data: Mapping[str, Any]) -> Iterable[Fact]:
    """The words of the tables become people's."""
    words = {"track": holder, "comment_kind": str.lower}
    return facts_of({key: words[key](str(value)) if key in words else value for key, value in data.items()}, called=_CALLED)


def line_of(event: AuditEvent) -> Line:
    """The event with the few values that say what it was about."""
    brief = _shown(event).facts
    facts = tuple(fact for key in brief if key in event.data for fact in _in_words({key: event.data[key]}))
    return Line(event, _title(event), _shown(event).tone, event.actor, facts=facts, hides_data=bool(event.data.keys() - set(brief)))


def tell(events: Iterable[AuditEvent], names: Names, *, request: AccessRequest, together: str) -> tuple[Line, ...]:
    """The story of a request in sentences, newest first: where it was proved, and how long after its end it was gone. ``together``: with
    what it ended in the same moment, if with anything."""
    fields = kind_named(request.kind).fields
    gone = seconds_after_end(request.receipts[-1].proved_at, request) if request.revoked_at and request.receipts else None
    known = {"gone_seconds": gone, "together": together}
    return tuple(_sentence(event, names, fields, known) for event in sorted(events, key=lambda event: event.sequence, reverse=True))


def _sentence(event: AuditEvent, names: Names, fields: Fields, known: Mapping[str, Any]) -> Line:
    receipt = event.data.get("receipt")
    return Line(
        event,
        _title(event),
        _shown(event).tone,
        by="" if event.actor.startswith("system:") else names.of_decider(event.actor, in_place_of=str(event.data.get("in_place_of", ""))),
        notes=_notes(event, fields, known),
        # The reason for asking is among the facts; here are the words that others added.
        quote="" if event.sequence == 1 else str(event.data.get("reason") or ""),
        code=str(receipt.get("job_id") or "") if isinstance(receipt, dict) else "",
    )


def _title(event: AuditEvent) -> str:
    """The bare name for an action that this version of the code does not know."""
    spec = ACTIONS.get(event.action)
    return spec.title if spec else event.action


def _notes(event: AuditEvent, fields: Fields, known: Mapping[str, Any]) -> tuple[str, ...]:
    describe = _shown(event).notes
    if describe is None:
        return ()
    try:
        return tuple(describe({**event.data, **known}, fields))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # One event that was changed after it was written does not take the page of the request away.
        return ("what it told can't be read any more: somebody has changed it",)


def _asked(data: Mapping[str, Any], fields: Fields) -> Iterable[str]:
    yield f"for {words_for_length(int(data['duration_seconds']))}"
    if data.get("rule_name"):
        yield f"rule {data['rule_name']}"
    if data.get("ticket_id"):
        yield str(data["ticket_id"])
    if data.get("extends"):
        yield "extends an earlier request"


def _approved(data: Mapping[str, Any], fields: Fields) -> Iterable[str]:
    quorum, approvals = data.get("quorum"), data.get("approvals")
    if isinstance(quorum, int) and quorum > 1 and approvals is not None:
        count = len(approvals) if isinstance(approvals, list | tuple) else int(approvals)
        yield f"{count} of {quorum} approvals"
    if data.get("fallback"):
        yield "as an operator, because the rule's own approvers can't decide"


def _granted(data: Mapping[str, Any], fields: Fields) -> Iterable[str]:
    yield f"proved present in {fields.place}"
    yield from _also_held(data, fields)


def _revoked(data: Mapping[str, Any], fields: Fields) -> Iterable[str]:
    receipt = data.get("receipt") or {}
    kept, gone = receipt.get("kept_by") or (), data["gone_seconds"]
    when = "" if gone is None else f" {words_for_lateness(gone)} after the end"
    if not all(map(is_request_id, kept)):
        yield f"claim given back{when}; the {fields.thing} itself stays, given directly by {fields.giver}"
    elif kept and data["together"]:
        yield f"given back{when}, together with {data['together']}"
    elif kept:
        yield f"claim given back{when}; the access itself stayed for another request"
    else:
        yield f"proved gone from {fields.place}{when}"
    sent = receipt.get("lateness_seconds")
    if sent is not None and not kept:
        yield f"deletion sent {words_for_lateness(float(sent))} after the end"


def _also_held(data: Mapping[str, Any], fields: Fields) -> Iterable[str]:
    kept = (data.get("receipt") or {}).get("kept_by") or ()
    others = list(filter(is_request_id, kept))
    if others:
        yield f"also held by {len(others)} other request{'' if len(others) == 1 else 's'}"
    if len(others) < len(kept):
        yield f"also given directly by {fields.giver}"


def _delayed(data: Mapping[str, Any], fields: Fields) -> Iterable[str]:
    yield str(data.get("error") or data.get("error_code") or "the outside world did not answer")
    if data.get("attempts"):
        yield f"attempt {data['attempts']}"


_COMMENTED = {"QUESTION": "asked back; it waits for an answer", "ANSWER": "answered", "COMMENT": "added a comment"}


def _comment(data: Mapping[str, Any], fields: Fields) -> Iterable[str]:
    yield _COMMENTED[data["comment_kind"]]


_FOLLOWS = {"warn": "this is a warning", "freeze": "its access goes off", "end": "it ends"}


def _cost(data: Mapping[str, Any], fields: Fields) -> Iterable[str]:
    cost = data["cost"]
    yield f"{cost['spent'] / 100:.2f} {cost['unit']}: {_FOLLOWS[data['verdict']]}"


@dataclass(frozen=True, slots=True)
class _Shown:
    """``facts`` are the data worth a line in a list, the rest unfolds. ``notes`` says the same in sentences, on a request's own page."""

    tone: Tone | str = ""
    facts: tuple[str, ...] = ()
    notes: Notes | None = None


_PLAIN = _Shown()
_SHOWN = {
    "audit_log.removal_ordered": _Shown(facts=("before_at", "keep_days")),
    "request.submitted": _Shown(facts=("reason", "ticket_id", "duration_seconds", "rule_name"), notes=_asked),
    "request.auto_approved": _Shown(Tone.LIVE, facts=("reason", "ticket_id", "duration_seconds", "rule_name"), notes=_asked),
    "request.taken_back": _Shown(Tone.LIVE, facts=("duration_seconds", "rule_name", "extends"), notes=_asked),
    "request.approval_given": _Shown(facts=("reason", "in_place_of"), notes=_approved),
    "request.approved": _Shown(Tone.LIVE, facts=("reason", "in_place_of", "expires_at"), notes=_approved),
    "request.denied": _Shown(Tone.STOP, facts=("reason", "in_place_of")),
    "request.cancelled": _Shown(facts=("reason",)),
    "request.commented": _Shown(facts=("comment_kind", "number"), notes=_comment),
    "request.end_asked": _Shown(facts=("reason",)),
    "request.work_delayed": _Shown(Tone.WAIT, facts=("error", "attempts", "work_due_at"), notes=_delayed),
    "request.granted": _Shown(Tone.LIVE, facts=("expires_at",), notes=_granted),
    "request.budget_reached": _Shown(Tone.WAIT, facts=("verdict", "cost"), notes=_cost),
    "request.lapsed": _Shown(Tone.STOP),
    "request.revoked": _Shown(notes=_revoked),
    "stand_in.named": _Shown(facts=("starts_at", "ends_at", "note")),
    "stand_in.ended": _Shown(Tone.STOP, facts=("approver", "reason")),
    "assignment.claimed": _Shown(facts=("claim",)),
    "assignment.released": _Shown(facts=("claim",)),
    "assignment.present": _Shown(Tone.LIVE),
    "assignment.job_forgotten": _Shown(Tone.WAIT),
    "rule.added": _Shown(facts=("version",)),
    "rule.changed": _Shown(facts=("version",)),
    "rule.removed": _Shown(Tone.STOP, facts=("version",)),
    "rules.applied": _Shown(facts=("version", "added", "changed", "removed")),
    "user.created": _Shown(facts=("name",)),
    "user.renamed": _Shown(facts=("name", "old_name")),
    "user.deleted": _Shown(Tone.STOP, facts=("reason",)),
    "user.granted": _Shown(Tone.LIVE, facts=("group_id", "role", "ends_at")),
    "user.revoked": _Shown(Tone.STOP, facts=("group_id", "role", "reason")),
    "user.role_changed": _Shown(facts=("group_id", "old_role", "role")),
    "user.signed_in": _Shown(facts=("method", "issuer")),
    "user.disabled": _Shown(Tone.STOP),
    "sign_in.refused": _Shown(Tone.STOP, facts=("reason", "email")),
    "group.created": _Shown(facts=("name", "parent_id")),
    "group.renamed": _Shown(facts=("name", "old_name")),
    "group.moved": _Shown(facts=("old_parent_id", "parent_id", "groups_moved")),
    "group.disabled": _Shown(Tone.STOP),
    "group.deleted": _Shown(Tone.STOP),
    "token.created": _Shown(Tone.LIVE, facts=("token_scope", "home_scope", "rate_per_minute", "expires_at")),
    "token.revoked": _Shown(Tone.STOP, facts=("reason",)),
    "sandbox.taken": _Shown(Tone.LIVE, facts=("track", "fence", "expires_at")),
    "sandbox.adopted": _Shown(facts=("track", "fence", "expires_at")),
    "sandbox.released": _Shown(facts=("track", "reason")),
    "sandbox.revived": _Shown(Tone.LIVE, facts=("track", "fence", "expires_at")),
    "sandbox.expired": _Shown(facts=("track",)),
    "sandbox.clean_failed": _Shown(Tone.WAIT, facts=("error", "attempts")),
    "sandbox.quarantined": _Shown(Tone.STOP, facts=("track", "reason")),
    "sandbox.run_ordered": _Shown(facts=("run_kind",)),
    "sandbox.sync_stopped": _Shown(Tone.STOP, facts=("reason",)),
    "sandbox.stale": _Shown(Tone.WAIT),
    "line.joined": _Shown(Tone.WAIT, facts=("place", "waiting")),
    "line.left": _Shown(facts=("place", "waiting")),
    "line.served": _Shown(Tone.LIVE, facts=("place", "thing")),
    "account.leased": _Shown(Tone.LIVE, facts=("user", "fence")),
    "account.given_back": _Shown(facts=("user", "fence")),
    "account.taken_back": _Shown(Tone.LIVE, facts=("user", "fence")),
    "account.set_aside": _Shown(Tone.STOP, facts=("reason",)),
    "account.quarantined": _Shown(Tone.STOP, facts=("reason",)),
    "account.cleaning_begun": _Shown(Tone.WAIT, facts=("run",)),
    "account.clean_failed": _Shown(Tone.STOP, facts=("error", "attempts")),
    "account.clean_refused": _Shown(Tone.STOP, facts=("error", "attempts")),
    "account.result_dropped": _Shown(Tone.STOP, facts=("reason", "run")),
    "account.retiring": _Shown(Tone.WAIT, facts=("reason",)),
    "account.retired": _Shown(Tone.STOP, facts=("reason",)),
    "lease.taken": _Shown(facts=("account", "fence")),
    "lease.started": _Shown(Tone.LIVE, facts=("account", "ends_at")),
    "lease.prolonged": _Shown(facts=("ends_at",)),
    "lease.shortened": _Shown(facts=("ends_at",)),
    "lease.freeze_asked": _Shown(Tone.WAIT, facts=("reason",)),
    "lease.unfreeze_asked": _Shown(Tone.WAIT),
    "lease.frozen": _Shown(Tone.STOP, facts=("reason",)),
    "lease.unfrozen": _Shown(Tone.LIVE),
    "lease.freeze_delayed": _Shown(Tone.WAIT, facts=("error", "attempts")),
    "lease.budget_reached": _Shown(Tone.WAIT, facts=("verdict", "cost")),
    "lease.ended": _Shown(Tone.STOP, facts=("account", "fence")),
    **{
        f"{word}.{verb}": shown
        for word in ("approval", "relationship")
        for verb, shown in {
            "granted": _Shown(Tone.LIVE, facts=("expires_at",)),
            "extended": _Shown(facts=("old_expires_at", "expires_at")),
            "replaced": _Shown(Tone.LIVE, facts=("old_expires_at", "expires_at")),
            "held": _Shown(Tone.LIVE, facts=("claim", "expires_at")),
            "released": _Shown(facts=("claim", "expires_at")),
            "revoked": _Shown(Tone.STOP, facts=("claim",)),
            "deleted": _Shown(Tone.STOP),
        }.items()
    },
    "authz_scope.policy_set": _Shown(facts=("policy",)),
    "authz_scope.deletion_begun": _Shown(Tone.WAIT),
    "authz_scope.deleted": _Shown(Tone.STOP, facts=("records", "removed", "proved_by")),
}


def _shown(event: AuditEvent) -> _Shown:
    return _SHOWN.get(event.action, _PLAIN)
