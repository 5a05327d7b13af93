"""When a record ends: the limits of its scope's policy, and whether it is over. The one place that compares an end with now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accessportal.authz.states import Scope, TtlPolicy
from accessportal.kernel.durations import LONGEST_SECONDS, format_duration
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.moments import is_recent

REFRESH_EVERY = timedelta(minutes=1)


def is_over(expires_at: datetime | None, now: datetime) -> bool:
    """At ``expires_at`` itself it is over."""
    return expires_at is not None and expires_at <= now


@dataclass(frozen=True, slots=True)
class GoverningPolicy:
    """The nearest policy up a scope's line, and whose it is; ``scope`` ``None``: the seed's default, which nobody set."""

    policy: TtlPolicy
    scope: Scope | None = None

    @property
    def words(self) -> str:
        return "the default policy" if self.scope is None else f"the policy of {self.scope}"


def governing(line: Sequence[Scope], policies: Mapping[Scope, TtlPolicy]) -> GoverningPolicy:
    """Of the ``policies`` that were set, the one of the nearest scope in ``line``."""
    for scope in line:
        if scope in policies:
            return GoverningPolicy(policies[scope], scope)
    return GoverningPolicy(TtlPolicy())


@dataclass(frozen=True, slots=True)
class End:
    """``warning`` is empty unless the length is outside a policy that only advises, or was chosen by it."""

    expires_at: datetime | None
    ttl_seconds: int | None
    warning: str = ""


def end_of(ttl_seconds: int | None, *, governed: GoverningPolicy, started_at: datetime, now: datetime) -> End:
    """The end of what is granted or extended now for ``ttl_seconds`` (``None``: as the policy says) and began at ``started_at``.

    :raises InvalidRequest: for a length outside an enforced policy, naming the limit and whose policy it is.
    """
    policy = governed.policy
    # From the beginning, so that extending again and again doesn't pass the maximum.
    elapsed_seconds = max(0, int((now - started_at).total_seconds()))
    if ttl_seconds is None:
        if policy.default_seconds is None and not policy.is_enforced:
            return End(None, None)
        left_seconds = policy.max_seconds - elapsed_seconds
        usual_seconds = policy.max_seconds if policy.default_seconds is None else policy.default_seconds
        # What the policy chooses is what it allows, as long as it allows any.
        ttl_seconds = min(usual_seconds, left_seconds) if left_seconds >= policy.min_seconds else usual_seconds
    if not 1 <= ttl_seconds <= LONGEST_SECONDS:
        message = f"A length is 1 s to {format_duration(LONGEST_SECONDS)}; {ttl_seconds:,} s is not."
        raise InvalidRequest(message, code="ttl_out_of_range", field="ttl_seconds")
    broken = _broken(ttl_seconds, ttl_seconds + elapsed_seconds, governed)
    if broken and policy.is_enforced:
        raise InvalidRequest(f"{broken} Choose another length.", code="ttl_outside_policy", field="ttl_seconds")
    return End(now + timedelta(seconds=ttl_seconds), ttl_seconds, broken)


def _broken(ttl_seconds: int, whole_seconds: int, governed: GoverningPolicy) -> str:
    if ttl_seconds < governed.policy.min_seconds:
        return f"The shortest time is {format_duration(governed.policy.min_seconds)}, by {governed.words}."
    if whole_seconds > governed.policy.max_seconds:
        return f"The longest time is {format_duration(governed.policy.max_seconds)} from the first grant, by {governed.words}."
    return ""


def refreshed_end(
    expires_at: datetime | None, *, policy: TtlPolicy, started_at: datetime, refreshed_at: datetime | None, now: datetime
) -> datetime | None:
    """Where a check that says yes moves the end to; ``None``: it stays. Never earlier, never past the maximum, once a minute at most."""
    # What is over stays so, also while a request holds the record.
    if policy.refresh_seconds is None or expires_at is None or is_over(expires_at, now):
        return None
    if refreshed_at is not None and is_recent(refreshed_at, now=now, within=REFRESH_EVERY):
        return None
    moved = min(now + timedelta(seconds=policy.refresh_seconds), started_at + timedelta(seconds=policy.max_seconds))
    return moved if moved > expires_at else None


def check_policy(policy: TtlPolicy) -> TtlPolicy:
    """:raises InvalidRequest: unless 1 s ≤ minimum ≤ default, refresh ≤ maximum ≤ 3,650 days; names the field."""
    if not 1 <= policy.min_seconds <= policy.max_seconds <= LONGEST_SECONDS:
        message = f"The minimum is at least 1 s and at most the maximum, which is at most {format_duration(LONGEST_SECONDS)}."
        raise InvalidRequest(message, code="policy_unusable", field="min_seconds")
    for name in ("default_seconds", "refresh_seconds"):
        seconds = getattr(policy, name)
        if seconds is not None and not policy.min_seconds <= seconds <= policy.max_seconds:
            message = f"{name} must lie between the minimum and the maximum."
            raise InvalidRequest(message, code="policy_unusable", field=name)
    return policy
