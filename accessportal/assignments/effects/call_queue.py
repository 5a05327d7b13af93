"""Whose call to IAM Identity Center is sent next: what takes access away goes before everything else, for all workers together."""

from __future__ import annotations

import random
from datetime import timedelta

from accessportal.assignments.config import current
from accessportal.kernel.clock import Clock
from accessportal.store.coordination import reserve_slot

_LONGEST_QUEUE_SECONDS = 8.0
# Calls that take nothing away queue up no further than this, so that a deletion finds at most so much before it.
_LONGEST_QUEUE_OF_OTHERS_SECONDS = 0.5
_ASK_AGAIN_SECONDS = (0.3, 0.6)


class SharedPace:
    """One queue of call slots for all workers, in the Coordination table. Deletions go before everything else: whose time is
    up must not wait until others have looked how their jobs are doing."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def wait_for_turn(self, *, is_urgent: bool = False) -> bool:
        if is_urgent:
            return self._take_slot(_LONGEST_QUEUE_SECONDS)
        give_up_at = self._clock.now() + timedelta(seconds=_LONGEST_QUEUE_SECONDS)
        while not self._take_slot(_LONGEST_QUEUE_OF_OTHERS_SECONDS):
            if self._clock.now() > give_up_at:
                return False
            self._clock.sleep(random.uniform(*_ASK_AGAIN_SECONDS))
        return True

    def _take_slot(self, longest_wait_seconds: float) -> bool:
        now = self._clock.now()
        slot = reserve_slot(
            "identity-center.calls", gap_seconds=1 / current().calls_per_second, longest_wait_seconds=longest_wait_seconds, now=now
        )
        if slot is None:
            return False
        self._clock.sleep((slot - now).total_seconds())
        return True


class ShareOfPace:
    """The shared pace, for thousands of calls that nobody waits for: all of them together take their share of it and no more."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pace = SharedPace(clock)

    def wait_for_turn(self, *, is_urgent: bool = False) -> bool:
        now = self._clock.now()
        gap = 1 / (current().calls_per_second * current().comparing_share)
        slot = reserve_slot("identity-center.comparing", gap_seconds=gap, longest_wait_seconds=_LONGEST_QUEUE_SECONDS, now=now)
        if slot is None:
            return False
        self._clock.sleep((slot - now).total_seconds())
        return self._pace.wait_for_turn(is_urgent=is_urgent)
