"""Policies of scopes, and the order to delete one."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from accessportal.authz import store
from accessportal.authz.operations.repeating import CONTENDED
from accessportal.authz.policy.ends import check_policy
from accessportal.authz.policy.rights import Caller
from accessportal.authz.states import Scope, ScopeDeleting, ScopeFacts, ScopeState, TtlPolicy
from accessportal.kernel.errors import Conflict, InvalidRequest
from accessportal.store.transactions import until_written


def set_policy(*, scope: Scope, policy: TtlPolicy | None, caller: Caller, now: datetime) -> ScopeFacts:
    """Let ``policy`` count for the scope and what lies below it; ``None``: that of the scope above. What was granted stays.

    :raises NotAllowed: unless the caller is an operator for good.
    :raises InvalidRequest: for a policy that contradicts itself.
    :raises ScopeDeleting: while the scope is being deleted.
    """
    caller.require(scope, writes=True)
    caller.require_operator()
    wanted = None if policy is None else check_policy(policy)

    def attempt() -> ScopeFacts:
        before = store.get_scope(scope) or ScopeFacts(scope)
        if before.state is ScopeState.DELETING:
            raise ScopeDeleting(scope)
        data = {"policy": _told(wanted), "old_policy": _told(before.policy)}
        after = replace(before.opened, policy=wanted)
        return store.keep_scope(before, after, "policy_set", data=data, actor=caller.actor, now=now)

    return until_written(attempt, contended=CONTENDED)


def begin_deletion(*, scope: Scope, typed: str, caller: Caller, now: datetime) -> ScopeFacts:
    """Let nothing new come into the scope, and what is in it be removed by the next runs. Again: nothing changes.

    Scopes below it stay. ``typed``: its name, typed by whoever asks.

    :raises NotAllowed: unless the caller is an operator for good.
    :raises InvalidRequest: unless ``typed`` is the scope's name.
    :raises Conflict: for a scope in which nothing ever was.
    """
    caller.require(scope, writes=True)
    caller.require_operator()
    if typed != scope:
        raise InvalidRequest(f"Type the name of the scope, {scope}, to delete what is in it.", code="scope_not_typed", field="typed")

    def attempt() -> ScopeFacts:
        before = store.get_scope(scope)
        if before is None:
            raise Conflict(f"Nothing was ever granted in {scope}.", code="scope_unknown")
        if before.state is ScopeState.DELETING:
            return before
        after = replace(before, state=ScopeState.DELETING, deleting_since=now, removed=0)
        return store.keep_scope(before, after, "deletion_begun", data={}, actor=caller.actor, now=now)

    return until_written(attempt, contended=CONTENDED)


def _told(policy: TtlPolicy | None) -> dict[str, object] | None:
    if policy is None:
        return None
    return {name: value for name in TtlPolicy.__slots__ if (value := getattr(policy, name)) is not None}
