"""Whether an account that is held may be had for longer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from accessportal.access_requests.kind import Resolved
from accessportal.access_requests.kinds.account_lease.line import is_waited_for
from accessportal.access_requests.kinds.account_lease.terms import Extend, LeaseTerms, terms_of
from accessportal.access_requests.states import AccessRequest
from accessportal.kernel.errors import NotAllowed
from accessportal.leases import queries as leases
from accessportal.leases.states import LeaseState
from accessportal.rules import queries as rules
from accessportal.rules.states import Rule


def require_extendable(resolved: Resolved, held_by: Sequence[AccessRequest], rule: Rule, now: datetime) -> None:
    """Both the rules by which it is held and the one that would give more have a say."""
    wishes = [(rule.name, terms_of(rule).extending), *((one.rule_name, _extend_of(one)) for one in held_by)]
    against = [name for name, extend in wishes if extend == Extend.NEVER]
    if against:
        raise NotAllowed(f"By rule {against[0]} an account is not extended. Give it back, and ask for a new one.", code="not_extendable")
    lease = leases.get_lease(lease_id=str(resolved.stored["continues"]))
    if LeaseState.FROZEN in (lease.state, lease.wanted):
        raise NotAllowed("This account is frozen, so it is not extended. Ask an operator.", code="lease_frozen")
    if any(extend != Extend.ALWAYS for _, extend in wishes) and is_waited_for(lease, now=now):
        raise NotAllowed("Others wait for an account like this one, so it is not extended. Give it back in time.", code="others_wait")


def _extend_of(request: AccessRequest) -> str:
    """By its rule as it is now; by the request's own copy when the rule is gone."""
    rule = rules.find_rule(name=request.rule_name)
    kept = str(request.evidence.get("extending") or Extend.WHILE_NOBODY_WAITS)
    return rule.terms.extending if rule is not None and isinstance(rule.terms, LeaseTerms) else kept
