"""What an assignment waits for, in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from accessportal.assignments.policy import Step
from accessportal.aws.errors import Busy, OutsideError, Throttled
from accessportal.kernel.proofs import Waiting

# What is told of an assignment that can't be looked at.
WITHOUT_PROOF = {
    Step.POLL_CREATION: "It was asked for, but can't be proved to be there: ",
    Step.POLL_DELETION: "Its deletion was sent, but it can't be proved to be gone: ",
}


def wait(code: str, reason: str, now: datetime, *, seconds: float = 0, is_error: bool = False) -> Waiting:
    return Waiting(code=code, reason=reason, retry_at=now + timedelta(seconds=seconds), is_error=is_error)


def out_of_time(now: datetime) -> Waiting:
    return wait("out_of_time", "This attempt used up its time; the next one goes on", now, seconds=1)


def never(reason: str, now: datetime) -> Waiting:
    return replace(wait("gone", reason, now, is_error=True), is_final=True)


def no_seat(now: datetime, *, seats: int) -> Waiting:
    reason = f"{seats} creations are open, as many as IAM Identity Center allows"
    return replace(wait("creations_full", reason, now, seconds=2), is_queued=True)


def sorted_wait(error: OutsideError, now: datetime, *, without_proof: str) -> Waiting:
    """Conflict, throttling and everything else are three different things: the first two pass by themselves."""
    if isinstance(error, Throttled):
        return wait("throttled", f"IAM Identity Center asks for fewer calls ({error.code})", now, seconds=2)
    if isinstance(error, Busy):
        return wait("conflict", "Another job is running for this account and permission set", now, seconds=2)
    return wait(f"aws_{error.code}", f"{without_proof}IAM Identity Center answered {error.code}: {error.message}", now, is_error=True)
