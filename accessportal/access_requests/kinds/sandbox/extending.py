"""Whether a sandbox that is held may be had for longer: never while others wait for one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from accessportal.access_requests.kinds.sandbox.target import track_of
from accessportal.access_requests.kinds.sandbox.terms import SandboxTerms, terms_of
from accessportal.access_requests.states import AccessRequest, Subject
from accessportal.kernel.errors import NotAllowed
from accessportal.kernel.moments import is_recent
from accessportal.rules import queries as rules
from accessportal.rules.states import Rule
from accessportal.sandboxes import queries as pool

# A client that found the pool empty so lately counts as one who waits.
_DEMAND_LASTS = timedelta(minutes=5)


def require_extendable(held_name: str, held_by: Sequence[AccessRequest], subject: Subject, rule: Rule, now: datetime) -> None:
    """Both the rules by which it is held and the one that would give more have a say."""
    against = [rule.name] if not terms_of(rule).extend else [one.rule_name for one in held_by if not _was_extendable(one)]
    if against:
        raise NotAllowed(f"By rule {against[0]} a sandbox is not extended. Give it back, and ask for a new one.", code="not_extendable")
    told_at = pool.none_told_at()
    is_wanted = told_at is not None and is_recent(told_at, now=now, within=_DEMAND_LASTS)
    if is_wanted or pool.is_waited_for(name=held_name, track=track_of(subject.subject_id), now=now):
        raise NotAllowed("Others wait for a sandbox, so this one is not extended. Try again when the pool has some.", code="others_wait")


def _was_extendable(request: AccessRequest) -> bool:
    """By its rule as it is now; by the request's own copy when the rule is gone."""
    rule = rules.find_rule(name=request.rule_name)
    return bool(request.evidence.get("extend", True)) if rule is None else not isinstance(rule.terms, SandboxTerms) or rule.terms.extend
