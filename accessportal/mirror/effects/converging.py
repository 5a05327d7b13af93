"""Making Cognito follow the table, one person or group at a time.

Level-triggered: the table is read strongly, then Cognito; what differs is changed, and both are read again until they agree. Only
then does the work item go, and only if no change was written since. So it is the same whether a call was lost, came twice, or
the process died in between: whoever takes the work next sees what is there.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Concatenate, ParamSpec

from accessportal.aws import cognito
from accessportal.aws.errors import Gone, OutsideError, Refused, Transient
from accessportal.directory.states import Mirrored, group_entity, person_entity
from accessportal.directory.store.reading import every_member, get_group, get_groups, get_person_with_memberships
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Unavailable
from accessportal.mirror import policy, store
from accessportal.mirror.config import current
from accessportal.mirror.effects.pool import present_groups, present_user
from accessportal.mirror.policy import UserImage
from accessportal.mirror.states import MirrorWork
from accessportal.store.restores import HELD, held_restore

P = ParamSpec("P")
# No call is begun with less of the lease left: the longest that one call may take (connect 3 s, read 10 s), and some.
_RESERVE = timedelta(seconds=20)
_ROUNDS = 5
# A page waits no longer for the attempt that follows its change.
_PATIENCE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of one. ``is_error`` is false while another worker is at it, or time alone is lacking. ``called_at`` is when the
    first call was sent that changed something; ``None`` when none was needed."""

    is_done: bool
    reason: str = ""
    is_error: bool = False
    called_at: datetime | None = None


def converge_after(*, entity: str, now: datetime) -> Mirrored:
    """Make one attempt to have Cognito follow a change of ``entity`` that was just written. It never raises for trouble outside: the change
    stands, and the sweep goes on."""
    try:
        attempt = converge(entity=entity, clock=_ClockFrom(now), patience=_PATIENCE)
    except Unavailable as error:
        return Mirrored(is_done=False, reason=error.message)
    return Mirrored(is_done=attempt.is_done, reason=attempt.reason)


def wanted_user(key: str, now: datetime) -> UserImage | None:
    """Read strongly what the table wants of a person; ``None`` when nobody has this address."""
    person, memberships = get_person_with_memberships(key)
    if person is None:
        return None
    groups = get_groups(membership.group_id for membership in memberships)
    return policy.wanted_user(person, memberships, groups=groups, now=now)


def converge(*, entity: str, clock: Clock, patience: timedelta | None = None) -> Attempt:
    """Make Cognito follow ``entity`` and take its work item away, if there is one and nobody else is at it. After an error the work
    stays."""
    if not current().user_pool_id:
        return Attempt(is_done=True)
    now = clock.now()
    work = store.take(entity, now=now, until=now + policy.LEASE)
    if work is None:
        return _seen_from_outside(entity)
    return _Worker(work, clock, give_up_at=now + patience if patience else None).drive()


def _seen_from_outside(entity: str, called_at: datetime | None = None) -> Attempt:
    """Without the lease: done if the work is gone, because it goes only when Cognito was proved equal."""
    if store.find_pending(entity) is None:
        return Attempt(is_done=True, called_at=called_at)
    return Attempt(is_done=False, reason="Another worker is bringing Cognito up to date.", called_at=called_at)


class _LeaseLost(Exception):
    """Another worker may be at it: nothing more may be called."""


class _NotYet(Exception):
    """It can't go on now: the work is given back with this reason."""

    def __init__(self, reason: str, *, is_error: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_error = is_error


class _Worker:
    """One lease on the work of one person or group, from taking it to finishing it or giving it back."""

    def __init__(self, work: MirrorWork, clock: Clock, *, give_up_at: datetime | None) -> None:
        self._work = work
        self._clock = clock
        self._give_up_at = give_up_at
        self._called_at: datetime | None = None
        self._pool = current().user_pool_id

    def drive(self) -> Attempt:
        entity = self._work.entity
        kind, _, name = entity.partition("#")
        follow = self._follow_person if kind == "person" else self._follow_group
        try:
            for _ in range(_ROUNDS):
                follow(name)
                if store.finish(self._work):
                    return Attempt(is_done=True, called_at=self._called_at)
                # Changed meanwhile: what was proved is not what is wanted now.
                self._keep_lease()
            return self._give_back("It changes faster than Cognito can follow.", is_error=False)
        except _LeaseLost:
            return _seen_from_outside(entity, self._called_at)
        except _NotYet as stop:
            return self._give_back(stop.reason, is_error=stop.is_error)
        except OutsideError as error:
            return self._give_back(f"Cognito has not followed: {error}", is_error=True)
        except Unavailable as error:
            with contextlib.suppress(Unavailable):
                self._give_back(error.message, is_error=True)
            raise

    # The lease

    def _turn(self, *, is_change: bool = False) -> None:
        """Before every call to Cognito."""
        now = self._clock.now()
        if self._give_up_at is not None and now > self._give_up_at:
            raise _NotYet("Cognito has not followed everything yet; it goes on in the background.")
        if self._work.lease_until is None or self._work.lease_until - now < _RESERVE:
            self._keep_lease()
        if is_change and self._called_at is None:
            self._called_at = now

    def _change(self, call: Callable[Concatenate[str, P], object], *given: P.args, **named: P.kwargs) -> None:
        """One call that changes the pool."""
        self._turn(is_change=True)
        call(self._pool, *given, **named)

    def _keep_lease(self) -> None:
        # Later than the last one even on a clock that stands still: the end of a lease says whose it is.
        assert self._work.lease_until is not None
        until = max(self._clock.now() + policy.LEASE, self._work.lease_until + timedelta(milliseconds=1))
        kept = store.keep(self._work, until=until)
        if kept is None:
            raise _LeaseLost
        self._work = kept

    def _give_back(self, reason: str, *, is_error: bool) -> Attempt:
        now = self._clock.now()
        attempts = self._work.attempts + 1 if is_error else self._work.attempts
        due_at = now + policy.retry_gap(attempts, jitter=random.random()) if is_error else now
        store.postpone(self._work, due_at=due_at, attempts=attempts, error=reason)
        return Attempt(is_done=False, reason=reason, is_error=is_error, called_at=self._called_at)

    # A person

    def _follow_person(self, key: str) -> None:
        if self._work.forgets:
            self._turn()
            if present_user(key) is not None:
                self._delete_user(key)
            if not store.mark_forgotten(self._work):
                raise _LeaseLost
        for _ in range(_ROUNDS):
            wanted = wanted_user(key, self._clock.now())
            self._turn()
            present = present_user(key)
            less = policy.without_gains(wanted, present)
            # Asked only where something would be given: taking away waits for nothing.
            if less != wanted and held_restore() is not None:
                if less == present:
                    raise _NotYet(f"{HELD}. Cognito gives {key} less than the directory.")
                wanted = less
            if wanted == present:
                if wanted is not None and not wanted.is_enabled:
                    # Whether it was done can't be read, so it is done again.
                    self._turn()
                    cognito.sign_out_user(self._pool, key)
                return
            self._change_user(key, wanted, present)
        raise Transient("NotSettled", "it does not show what it was told")

    def _change_user(self, key: str, wanted: UserImage | None, present: UserImage | None) -> None:
        if wanted is None:
            self._delete_user(key)
            return
        if present is None:
            # Who is disabled must not be told of an account. Somebody who is enabled later is invited by hand (README).
            invites = current().user_pool_invites and wanted.is_enabled
            self._change(cognito.create_user, username=key, email=key, name=wanted.name, invites=invites)
            present = UserImage(is_enabled=True, name=wanted.name, groups=frozenset())
        if present.is_enabled and not wanted.is_enabled:
            self._change(cognito.disable_user, key)
        self._change_groups(key, wanted.groups - present.groups, present.groups - wanted.groups)
        if wanted.name != present.name:
            self._change(cognito.rename_user, username=key, name=wanted.name)
        if wanted.is_enabled and not present.is_enabled:
            # Last: nobody comes back with groups that they are not in any more.
            self._change(cognito.enable_user, key)

    def _delete_user(self, key: str) -> None:
        self._change(cognito.sign_out_user, key)
        self._change(cognito.delete_user, key)

    def _change_groups(self, key: str, missing: frozenset[str], surplus: frozenset[str]) -> None:
        """Into the new groups before out of the old ones: a change of role leaves no moment without one."""
        refused: list[str] = []
        for name in sorted(missing):
            try:
                self._add(key, name)
            except Refused:
                # At the limit of groups for a user there is room only after a removal.
                if not surplus:
                    raise
                refused.append(name)
        for name in sorted(surplus):
            self._change(cognito.remove_from_group, username=key, group=name)
        for name in refused:
            self._add(key, name)

    def _add(self, key: str, name: str) -> None:
        try:
            self._change(cognito.add_to_group, username=key, group=name)
        except Gone as error:
            if error.code == "UserNotFoundException":
                # Gone since it was read: the next round makes it anew.
                return
            self._make_group(name)
            with contextlib.suppress(Gone):
                # Deleted again: the next round reads what is wanted now.
                self._change(cognito.add_to_group, username=key, group=name)

    def _make_group(self, name: str) -> None:
        """Only the group's own work makes and deletes its groups in Cognito, so that two workers can't be of two minds."""
        group_id = policy.group_of(name)
        assert group_id is not None, "wanted groups have names of ours"
        entity = group_entity(group_id)
        store.ask([entity], now=self._clock.now())
        made = converge(entity=entity, clock=self._clock)
        if not made.is_done:
            raise _NotYet(f"The group {name} is not in Cognito yet. {made.reason}", is_error=made.is_error)

    # A group

    def _follow_group(self, group_id: str) -> None:
        for _ in range(_ROUNDS):
            wanted = policy.wanted_groups(get_group(group_id))
            self._turn()
            present = present_groups(group_id)
            if wanted == present:
                return
            missing = wanted - present
            if missing:
                # A group that was made has nobody in it. Its members are asked for first: after a crash in between, the
                # group is still missing, and they are asked for again.
                store.ask([person_entity(one.person) for one in every_member(group_id)], now=self._clock.now())
            for name in sorted(missing):
                self._change(cognito.create_group, name=name, description=group_id)
            for name in sorted(present - wanted):
                self._change(cognito.delete_group, name)
        raise Transient("NotSettled", "it does not show what it was told")


class _ClockFrom:
    """The machine's time, set to ``now`` at the start."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._began = time.monotonic()

    def now(self) -> datetime:
        return self._now + timedelta(seconds=time.monotonic() - self._began)

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))
