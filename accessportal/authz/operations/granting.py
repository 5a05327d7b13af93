"""Granting, extending and revoking: one conditional write each, with its event."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from accessportal.authz import store
from accessportal.authz.config import current
from accessportal.authz.operations.repeating import RequestKey, once
from accessportal.authz.policy.ends import End, GoverningPolicy, end_of, governing, is_over, refreshed_end
from accessportal.authz.policy.names import check_metadata, check_names
from accessportal.authz.policy.rights import Caller, check_phase
from accessportal.authz.policy.scopes import line_of
from accessportal.authz.states import (
    DIRECT,
    Approval,
    Names,
    NoSuchRecord,
    Relationship,
    Scope,
    ScopeDeleting,
    ScopeFacts,
    ScopeState,
    end_of_holders,
)
from accessportal.authz.store import Ledger
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import epoch_of, from_epoch, to_epoch, whole_second
from accessportal.kernel.errors import Conflict
from accessportal.store.transactions import Overtaken, Step

R = TypeVar("R", Approval, Relationship)


class IfExists(enum.StrEnum):
    """What granting again does with a record that counts still."""

    REFUSE = "refuse"
    EXTEND = "extend"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Granted(Generic[R]):
    """The record as it is written, and what its caller should know. ``is_repeat``: the same request wrote it before."""

    record: R
    warnings: tuple[str, ...] = ()
    is_repeat: bool = False


def grant(
    ledger: Ledger[R],
    wanted: R,
    *,
    ttl_seconds: int | None = None,
    if_exists: IfExists = IfExists.REFUSE,
    key: RequestKey | None = None,
    caller: Caller,
    now: datetime,
) -> Granted[R]:
    """Let ``wanted`` count from now on, for ``ttl_seconds`` or as long as the nearest policy says. Once for each ``key``.

    :raises UnauthorizedScopeAccess: unless the caller reaches its scope.
    :raises InvalidRequest: for names, metadata, and a length outside an enforced policy.
    :raises Conflict: when it counts already and ``if_exists`` refuses, for a scope that is being deleted, and for a relation of another
        type that would be extended, or that a request holds.
    """
    caller.require(wanted.scope, writes=True)
    check_names(wanted.names, ledger.fields)
    check_metadata(wanted.metadata)
    advice = check_phase(wanted.scope, current().global_scope)

    def attempt(further: Sequence[Step]) -> Granted[R]:
        return _granted(ledger, wanted, ttl_seconds, if_exists, advice, further, caller, now)

    return once(key, attempt, again=lambda: _as_it_stands(ledger, wanted.scope, wanted.names, now), caller=caller, now=now)


def _granted(
    ledger: Ledger[R],
    wanted: R,
    ttl_seconds: int | None,
    if_exists: IfExists,
    advice: str,
    further: Sequence[Step],
    caller: Caller,
    now: datetime,
) -> Granted[R]:
    governed, own = read_open_scope(wanted.scope)
    present = ledger.get(wanted.scope, wanted.names)
    is_live = present is not None and not is_over(present.expires_at, now)
    if is_live and if_exists is IfExists.REFUSE:
        message = f"This {ledger.word} is there already. Extend or replace it, or say so with if_exists."
        raise Conflict(message, code="exists", present=present)
    if present is not None and is_live and (if_exists is IfExists.EXTEND or _is_held_by_request(present, now)):
        require_same_type(present, wanted)
    began_at = present.began_at if present is not None and is_live and if_exists is IfExists.EXTEND else now
    end = end_of(ttl_seconds, governed=governed, started_at=began_at, now=now)
    until, given = _bounded(end, caller), _given(end, governed, caller)
    if present is None:
        made = held(replace(wanted, **given), DIRECT, until)
        return _told(insert_in_open_scope(ledger, made, own, further=further, actor=caller.actor, now=now), end, advice)
    if is_live and if_exists is IfExists.EXTEND:
        until = _later(present.held_until.get(DIRECT, -1), until)
        after, verb = held(replace(present, **given), DIRECT, until), "extended"
    else:
        kept = present.held_until if is_live else {}
        after = held(replace(wanted, **given, held_until=kept, version=present.version), DIRECT, until)
        after, verb = replace(after, audit_head=present.audit_head), "replaced" if is_live else "granted"
    return _told(_change(ledger, present, after, verb, further=further, caller=caller, now=now), end, advice)


def require_same_type(present: Approval | Relationship, wanted: Approval | Relationship) -> None:
    """:raises Conflict: when it is there as a relation of another type, which its holders did not ask for."""
    if isinstance(present, Relationship) and isinstance(wanted, Relationship) and present.relation_type is not wanted.relation_type:
        message = f"It is there already as a relation of the type {present.relation_type}, and can't be of two. Ask for that type."
        raise Conflict(message, code="other_relation_type")


def _is_held_by_request(record: Approval | Relationship, now: datetime) -> bool:
    return any(until == 0 or until > to_epoch(now) for holder, until in record.held_until.items() if holder != DIRECT)


def extend(
    ledger: Ledger[R],
    scope: Scope,
    names: Names,
    *,
    ttl_seconds: int | None,
    key: RequestKey | None = None,
    caller: Caller,
    now: datetime,
) -> Granted[R]:
    """Let a record that counts end ``ttl_seconds`` from now, or as the policy says. May be sooner than before. Once for each ``key``.

    :raises UnauthorizedScopeAccess: unless the caller reaches the scope.
    :raises NoSuchRecord: when there is none that counts.
    :raises InvalidRequest: for names, and a length outside an enforced policy, counted from the first grant.
    """
    caller.require(scope, writes=True)
    check_names(names, ledger.fields)

    def attempt(further: Sequence[Step]) -> Granted[R]:
        present = ledger.get_live(scope, names, now)
        governed, _ = read_open_scope(scope)
        end = end_of(ttl_seconds, governed=governed, started_at=present.began_at, now=now)
        after = held(replace(present, **_given(end, governed, caller)), DIRECT, _bounded(end, caller))
        return _told(_change(ledger, present, after, "extended", further=further, caller=caller, now=now), end)

    return once(key, attempt, again=lambda: _as_it_stands(ledger, scope, names, now), caller=caller, now=now)


def refresh(ledger: Ledger[R], record: R, *, caller: Caller, now: datetime) -> R:
    """Move the end of ``record``, which was used now, as the policy of its scope says; as it is then. What requests hold stays.

    :raises Overtaken: when somebody else changed it first.
    :raises ScopeDeleting: while its scope is being deleted.
    """
    governed, _ = read_open_scope(record.scope)
    until = record.held_until.get(DIRECT) or None
    moved = refreshed_end(
        None if until is None else from_epoch(until),
        policy=governed.policy,
        started_at=record.began_at,
        refreshed_at=record.refreshed_at,
        now=now,
    )
    if moved is None:
        return record
    after = held(replace(record, refreshed_at=whole_second(now)), DIRECT, whole_second(moved))
    return _change(ledger, record, after, "extended", caller=caller, now=now)


def revoke(ledger: Ledger[R], scope: Scope, names: Names, *, key: RequestKey | None = None, caller: Caller, now: datetime) -> None:
    """Let a record count no longer, for whomever it is held. Once for each ``key``.

    :raises UnauthorizedScopeAccess: unless the caller reaches the scope.
    :raises NoSuchRecord: when there is none.
    :raises InvalidRequest: for names.
    """
    caller.require(scope, writes=True)
    check_names(names, ledger.fields)

    def attempt(further: Sequence[Step]) -> None:
        present = ledger.get_live(scope, names, now)
        data = {"expires_at": epoch_of(present.expires_at)}
        ledger.remove(present, "revoked", data=data, further=further, actor=caller.actor, now=now)

    once(key, attempt, again=lambda: None, caller=caller, now=now)


def _as_it_stands(ledger: Ledger[R], scope: Scope, names: Names, now: datetime) -> Granted[R]:
    try:
        return Granted(ledger.get_live(scope, names, now), is_repeat=True)
    except NoSuchRecord as error:
        message = f"This key was used before, and what it wrote has ended since. Use a new key to grant the {ledger.word} again."
        raise Conflict(message, code="ended_since") from error


def held(record: R, holder: str, until: datetime | None) -> R:
    """The record as it is when ``holder`` has it until then (``None``: without an end)."""
    return with_holders(record, {**record.held_until, holder: 0 if until is None else to_epoch(until)})


def with_holders(record: R, holders: Mapping[str, Any]) -> R:
    """The record as it is when these hold it: the latest of their ends is its own."""
    return replace(record, held_until=holders, expires_at=end_of_holders(holders))


def insert_in_open_scope(
    ledger: Ledger[R],
    record: R,
    own: ScopeFacts | None,
    *,
    claim: str | None = None,
    further: Sequence[Step] = (),
    actor: Actor,
    now: datetime,
) -> R:
    """Write a new record, and open its scope first where that must be.

    :raises Overtaken: when somebody else was first.
    :raises ScopeDeleting: while the scope is being deleted.
    """
    try:
        data = {"claim": claim, "expires_at": epoch_of(record.expires_at)}
        return ledger.insert(record, data=data, further=further, actor=actor, now=now)
    except store.ScopeClosed as error:
        open_scope(record.scope, own, actor=actor, now=now)
        raise Overtaken from error


def open_scope(scope: Scope, own: ScopeFacts | None, *, actor: Actor, now: datetime) -> None:
    """Open a scope that was never open, or was deleted.

    :raises Overtaken: when somebody else was first.
    :raises ScopeDeleting: while it is being deleted.
    """
    if own is not None and own.state is ScopeState.DELETING:
        raise ScopeDeleting(scope)
    before = own or ScopeFacts(scope)
    store.keep_scope(before, before.opened, "opened", data={}, actor=actor, now=now)


def read_open_scope(scope: Scope) -> tuple[GoverningPolicy, ScopeFacts | None]:
    """The nearest policy, and what is known of the scope itself; strongly read, in one request.

    :raises ScopeDeleting: while the scope is being deleted.
    """
    line = line_of(scope)
    known = store.get_scopes(line)
    own = known.get(scope)
    if own is not None and own.state is ScopeState.DELETING:
        raise ScopeDeleting(scope)
    policies = {one.scope: one.policy for one in known.values() if one.policy is not None}
    return governing(line, policies), own


def _change(ledger: Ledger[R], before: R, after: R, verb: str, *, further: Sequence[Step] = (), caller: Caller, now: datetime) -> R:
    data = {"old_expires_at": epoch_of(before.expires_at), "expires_at": epoch_of(after.expires_at)}
    return ledger.change(before, after, verb, data=data, further=further, actor=caller.actor, now=now)


def _given(end: End, governed: GoverningPolicy, caller: Caller) -> dict[str, Any]:
    # What ends with its giver's right must not go on by being used.
    is_lasting = caller.right.ends_at is None
    return {"ttl_seconds": end.ttl_seconds, "refreshes": governed.policy.refresh_seconds is not None and is_lasting}


def _told(record: R, end: End, advice: str = "") -> Granted[R]:
    cut = ""
    if record.expires_at is not None and (end.expires_at is None or record.expires_at < whole_second(end.expires_at)):
        cut = f"It ends sooner, at {record.expires_at:%Y-%m-%d %H:%M} UTC: what you give ends with your own right."
    return Granted(record, tuple(text for text in (end.warning, advice, cut) if text))


def _bounded(end: End, caller: Caller) -> datetime | None:
    until = caller.end_of(end.expires_at)
    return None if until is None else whole_second(until)


def _later(present: Any, until: datetime | None) -> datetime | None:
    if until is None or present == 0:
        return None
    return until if present < to_epoch(until) else from_epoch(present)
