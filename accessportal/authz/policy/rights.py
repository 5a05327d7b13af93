"""Who may ask and who may write, within which scope."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from accessportal.authz.policy.scopes import require_reach
from accessportal.authz.states import GLOBAL, Scope
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import InvalidRequest, NotAllowed
from accessportal.kernel.lasting import Right, operators_right, rule_on_effect


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: a person or a program, bound to ``scope`` and what it reaches. What it writes ends with its ``right``."""

    actor: Actor
    scope: Scope
    may_write: bool
    right: Right

    def require(self, scope: Scope, *, writes: bool) -> None:
        """:raises UnauthorizedScopeAccess: unless its scope reaches ``scope``.

        :raises NotAllowed: when it may only ask.
        """
        require_reach(self.scope, scope)
        if writes and not self.may_write:
            raise NotAllowed("You may ask here, and change nothing. Ask an operator.", code="authz_read_only")

    def require_operator(self) -> None:
        """:raises NotAllowed: unless it is an operator for good, or the portal itself: what it does now stays."""
        if not (self.actor.is_operator or self.actor.is_system):
            raise NotAllowed("Only operators may do this.", code="operators_only")
        rule_on_effect(self.right).decision.require()

    def end_of(self, wanted: datetime | None) -> datetime | None:
        """``wanted``, and never later than the caller's own right."""
        return rule_on_effect(self.right, ends_at=wanted, can_end=True).ends_at


def caller_of(actor: Actor) -> Caller:
    """A person as a caller: operators and the portal itself may write everywhere, auditors read.

    :raises NotAllowed: for everybody else.
    """
    if actor.is_operator or actor.is_system:
        return Caller(actor, GLOBAL, may_write=True, right=operators_right(actor))
    if actor.is_auditor:
        return Caller(actor, GLOBAL, may_write=False, right=operators_right(actor))
    raise NotAllowed("Only operators and auditors may look here.", code="operators_and_auditors_only")


def check_phase(scope: Scope, phase: str) -> str:
    """What is said of a grant into the global scope: the seed's three phases are ``allow``, ``warn`` and ``refuse``.

    :raises InvalidRequest: in the phase ``refuse``.
    """
    if scope != GLOBAL or phase == "allow":
        return ""
    if phase == "warn":
        return "This was granted in the global scope, for all tenants. Name a narrower scope."
    message = "Grants in the global scope are refused here. Name a scope: tenant:T, env:E, tenant:T:env:E or custom:A:B."
    raise InvalidRequest(message, code="scope_required", field="scope")
