"""Holding everything that IAM Identity Center has against our records, in steps that are each written down: whoever is stopped
loses one of them, and the next one goes on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from accessportal.assignments import comparison_store, policy, store
from accessportal.assignments.effects.call_queue import ShareOfPace
from accessportal.assignments.effects.driving import target_of
from accessportal.assignments.states import Assignment, AssignmentKey, AssignmentState, Comparison, Drift, Finding, Found, Unread
from accessportal.aws.errors import Gone, OutsideError, Refused, Transient
from accessportal.aws.identity_center import AssignmentTarget, IdentityCenter
from accessportal.catalog.states import PrincipalType
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.kernel.pages import Unreadable
from accessportal.store.transactions import Overtaken

T = TypeVar("T")
Tell = Callable[[Comparison], object]
_GAPS_SECONDS = (1.0, 2.0, 4.0, 8.0)
_PAIRS_IN_A_STEP = 20
_LONGEST_STEP = timedelta(seconds=30)
# More than a step and the last of its lists, with all its tries, can take.
_HELD_FOR = timedelta(minutes=4)
# So many lists one after the other without an answer are an outage, and no list is named for that.
_OUTAGE = 3
# After every account.
_END = "~"
_LIVE = (AssignmentState.PRESENT, AssignmentState.CREATING, AssignmentState.DELETING)


def compare(*, granted: Collection[str], until: datetime | None, tell: Tell, clock: Clock) -> Comparison:
    """Go on with the open comparison, or begin one, until it is finished or no step can be begun before ``until``. Sets of rules
    (``granted``) and of records are read in every account. Each difference is looked at twice; a list that can't be had is named; ``tell``
    hears of every step. Conflict ``comparison_busy`` while another worker is at it."""
    try:
        comparison = _take(clock)
        try:
            reading = _Reading(granted, clock)
            while comparison.finished_at is None and (until is None or clock.now() < until):
                comparison = reading.go_on(comparison)
                tell(comparison)
        except Unavailable:
            comparison_store.let_go(comparison)
            raise
        if comparison.finished_at is None:
            comparison_store.let_go(comparison)
    except Overtaken:
        raise Conflict("Another worker is comparing the assignments.", code="comparison_busy") from None
    return comparison


def _take(clock: Clock) -> Comparison:
    now = clock.now()
    found = comparison_store.comparisons().open
    if found is None:
        return comparison_store.begin(now=now, until=now + _HELD_FOR)
    return comparison_store.take(found, now=now, until=now + _HELD_FOR)


@dataclass
class _Records:
    """Our records of what is or may be there, by permission set and account, as they were when a worker began."""

    by_pair: dict[tuple[str, str], list[Assignment]] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)

    @classmethod
    def read(cls) -> _Records:
        records = cls()
        for state in _LIVE:
            for one in store.every_in(state, past=records.pass_over):
                records.by_pair.setdefault((one.key.permission_set_arn, one.key.account_id), []).append(one)
        return records

    @property
    def permission_set_arns(self) -> set[str]:
        return {arn for arn, _ in self.by_pair}

    def accounts_of(self, arn: str) -> set[str]:
        return {account_id for other, account_id in self.by_pair if other == arn}

    def pass_over(self, one: Unreadable) -> None:
        # Whoever reports names it; what nobody can read is no difference.
        self.unreadable.add(one.key)


class _Reading:
    """What one worker reads in its steps."""

    def __init__(self, granted: Collection[str], clock: Clock) -> None:
        self._clock = clock
        self._center = IdentityCenter(pace=ShareOfPace(clock))
        self._granted = frozenset(granted)
        self._records = _Records.read()
        self._arns = sorted(self._granted | self._records.permission_set_arns)
        self._provisioned: dict[str, frozenset[str]] = {}
        self._has_principal: dict[tuple[str, str], bool] = {}
        self._unanswered = 0

    def go_on(self, comparison: Comparison) -> Comparison:
        """Do one step. Overtaken when another worker was faster, Unavailable when nothing answers."""
        after, found = self._read(comparison) if comparison.is_counted else (self._count(comparison), Found())
        now = self._clock.now()
        if after is None:
            return comparison_store.finish(comparison, now=now)
        return comparison_store.write(comparison, after, found, until=now + _HELD_FOR)

    def _count(self, comparison: Comparison) -> Comparison:
        """How many pairs the next permission set has: so that somebody can see how far it is."""
        arn = next((arn for arn in self._arns if arn > comparison.permission_set_arn), None)
        if arn is None:
            return replace(comparison, is_counted=True, permission_set_arn="", account_id="")
        try:
            pairs = comparison.pairs + len(self._accounts_of(arn))
        except OutsideError:
            # Named when it is read.
            pairs = comparison.pairs
        return replace(comparison, permission_set_arn=arn, pairs=pairs)

    def _read(self, comparison: Comparison) -> tuple[Comparison | None, Found]:
        """Some pairs of the permission set at hand, or of the next one; ``None`` when there is none."""
        at, after = comparison.permission_set_arn, comparison.account_id
        if after == _END or at not in self._arns:
            at, after = next((arn for arn in self._arns if arn > at), ""), ""
        if not at:
            return None, Found()
        try:
            left = [account_id for account_id in self._accounts_of(at) if account_id > after]
        except OutsideError as error:
            return replace(comparison, permission_set_arn=at, account_id=_END), Found(unread=(Unread(at, "", str(error)),))
        found, done = self._read_pairs(at, left)
        place = left[done - 1] if done < len(left) else _END
        return replace(comparison, permission_set_arn=at, account_id=place, pairs_read=comparison.pairs_read + done), found

    def _read_pairs(self, arn: str, accounts: Iterable[str]) -> tuple[Found, int]:
        """What was found, and in how many of ``accounts``: a step does not take long. It does not end while it may be an outage."""
        stop_at, done, listed = self._clock.now() + _LONGEST_STEP, 0, 0
        findings: list[Finding] = []
        unread: list[Unread] = []
        for account_id in accounts:
            if done and not self._unanswered and (done >= _PAIRS_IN_A_STEP or self._clock.now() > stop_at):
                break
            try:
                there = self._patiently(partial(self._list, arn, account_id))
                findings += self._judged(arn, account_id, there)
                listed += len(there)
            except OutsideError as error:
                unread.append(Unread(arn, account_id, str(error)))
            done += 1
        return Found(listed, tuple(findings), tuple(unread)), done

    def _accounts_of(self, arn: str) -> list[str]:
        """Where the permission set is provisioned to, or was by our records, in order."""
        if arn not in self._provisioned:
            try:
                accounts = self._patiently(lambda: frozenset(self._center.list_accounts_of(permission_set_arn=arn)))
            except Gone:
                # The permission set was deleted, and with it every assignment of it.
                accounts = frozenset()
            self._provisioned[arn] = accounts
        return sorted(self._provisioned[arn] | self._records.accounts_of(arn))

    def _judged(self, arn: str, account_id: str, there: frozenset[AssignmentKey]) -> list[Finding]:
        """The differences of one pair, those that have to be looked at again once more read."""
        found = self._differences(arn, account_id, there, self._records.by_pair.get((arn, account_id), []))
        if all(one.drift is Drift.NOT_OURS for one in found):
            return found
        again = self._patiently(partial(self._list_again, arn, account_id))
        now_known = [one for one in self._known({one.key for one in found}).values() if one.state in _LIVE]
        same = self._differences(arn, account_id, again, now_known)
        return [one for one in same if one in found and (one.drift in (Drift.MISSING, Drift.NOT_OURS) or self._gives_access(one.key))]

    def _differences(self, arn: str, account_id: str, there: frozenset[AssignmentKey], live: Collection[Assignment]) -> list[Finding]:
        now = self._clock.now()
        records = {one.key: one for one in live}
        records |= self._known(there - records.keys())
        found = [policy.judge(key, records.get(key), is_given=arn in self._granted, now=now) for key in self._readable(there)]
        missing = [one for one in records.values() if one.key not in there and policy.is_held(one, now)]
        found += [Finding(Drift.MISSING, one.key, claims=tuple(sorted(one.claims))) for one in missing]
        return sorted((one for one in found if one is not None), key=lambda one: store.id_of(one.key))

    def _readable(self, keys: Iterable[AssignmentKey]) -> list[AssignmentKey]:
        return [key for key in keys if store.id_of(key) not in self._records.unreadable]

    def _known(self, keys: Iterable[AssignmentKey]) -> dict[AssignmentKey, Assignment]:
        found = store.get_many(map(store.id_of, keys), past=self._records.pass_over)
        return {one.key: one for one in found.values()}

    def _list(self, arn: str, account_id: str) -> frozenset[AssignmentKey]:
        if account_id not in self._provisioned[arn]:
            return frozenset()
        return frozenset(map(_key_of, self._center.list_assignments(account_id=account_id, permission_set_arn=arn)))

    def _list_again(self, arn: str, account_id: str) -> frozenset[AssignmentKey]:
        try:
            return frozenset(map(_key_of, self._center.list_assignments(account_id=account_id, permission_set_arn=arn)))
        except Gone:
            return frozenset()

    def _gives_access(self, key: AssignmentKey) -> bool:
        """Of a user or group that was deleted it may stay listed for ever; it gives nobody access."""
        who = (key.principal_type.value, key.principal_id)
        if who not in self._has_principal:
            self._has_principal[who] = self._patiently(lambda: self._center.has_principal(target_of(key)))
        return self._has_principal[who]

    def _patiently(self, read: Callable[[], T]) -> T:
        """Read once more after a throttled call or a lost answer: among thousands some always are; so many in a row are an outage, which is
        raised as Unavailable."""
        for gap in _GAPS_SECONDS:
            try:
                return self._answered(read())
            except Transient:
                self._clock.sleep(gap)
            except (Gone, Refused):
                self._unanswered = 0
                raise
        try:
            return self._answered(read())
        except Transient as error:
            self._unanswered += 1
            if self._unanswered >= _OUTAGE:
                raise Unavailable(f"IAM Identity Center could not be read: {error}", code="identity_center_unavailable") from error
            raise

    def _answered(self, answer: T) -> T:
        self._unanswered = 0
        return answer


def _key_of(target: AssignmentTarget) -> AssignmentKey:
    return AssignmentKey(PrincipalType(target.principal_type), target.principal_id, target.account_id, target.permission_set_arn)
