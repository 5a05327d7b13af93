"""Keeping Cognito equal to the table: the sweep of what is pending, and the comparison of everything with everything."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from accessportal.directory import effects, store
from accessportal.directory.config import current
from accessportal.directory.effects import Attempt, PoolImage
from accessportal.directory.operations.deleting import continue_deleting
from accessportal.directory.policy import mirror as policy
from accessportal.directory.states import (
    Comparison,
    MirrorDifference,
    MirrorFailure,
    MirrorReport,
    MirrorWork,
    UserPool,
    group_entity,
    person_entity,
)
from accessportal.directory.store import mirror as work_store
from accessportal.directory.store.whole import TableImage, read_table
from accessportal.kernel.actors import Actor
from accessportal.kernel.brakes import MOST_SHARE, most_at_once
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import InvalidRequest, NoAnswer, Unavailable
from accessportal.kernel.moments import is_due
from accessportal.kernel.pages import as_far

POOL_NAME = "accessportal"
# The sweep comes every minute.
SWEEP_SECONDS = 50.0
_WORKERS = 4
# A throttled call or a lost answer is nobody's business; what fails so often is.
_FAILURES_TO_TELL = 3

Progress = Callable[[int, int], None]


def ensure_user_pool(*, name: str = POOL_NAME, actor: Actor) -> UserPool:
    """There is a user pool of that name. The directory is mirrored to it once its id is set.

    :raises NotAllowed: for anybody but operators and the portal itself.
    :raises InvalidRequest: for a name that Cognito would not take.
    :raises Conflict: when Cognito refuses, or has several pools of that name.
    :raises Unavailable: when Cognito did not answer.
    """
    policy.may_keep_pool(actor).require()
    if not re.fullmatch(r"[\w\s+=,.@-]{1,128}", name):
        text = "A pool's name has 1 to 128 letters, digits, spaces and + = , . @ - _ characters."
        raise InvalidRequest(text, code="pool_name_invalid", field="name")
    return effects.ensure_user_pool(name)


def sweep_mirror(*, clock: Clock, limit_seconds: float | None = SWEEP_SECONDS, workers: int = _WORKERS) -> MirrorReport:
    """Cognito has followed every change that is due, or the change has a later due time and the reason.

    Nothing new is begun after ``limit_seconds`` (``None``: no limit). One item that fails stops nobody; ``failures`` are those
    that broke or that failed repeatedly. May run at any time, twice, and beside itself.
    """
    run = _Run(clock, until=None if limit_seconds is None else clock.now() + timedelta(seconds=limit_seconds))
    seen: set[tuple[str, str, int]] = set()
    while not run.is_over:
        # Once each as it stands: what failed comes again when it is due, what was asked for meanwhile at once.
        due = [
            work
            for work in run.readable(as_far(work_store.every_work(), told=run.miss))
            if _is_due(work, clock) and _mark(work) not in seen
        ]
        if not due:
            break
        seen.update(map(_mark, due))
        run.bring_up([work.entity for work in due], workers=workers)
    left = sum(1 for _ in as_far(work_store.every_work(), told=run.miss))
    told = {failure.entity: failure for failure in run.failures if failure.entity in run.broken or _fails_often(failure)}
    return MirrorReport(done=len(run.done), waiting=left, failures=tuple(told.values()))


def compare_mirror(
    *, apply: bool, most_share: float = MOST_SHARE, progress: Progress | None = None, actor: Actor, clock: Clock
) -> Comparison:
    """The whole table has been held against the whole pool and, with ``apply``, the pool made equal.

    The lists only find candidates; each is then read again in both, so that a change under way is no difference. One that
    can't be read then is among those that wait. The sweep makes it equal, which reads anew and tries again; but not what the
    pool alone has: nothing goes because of a list. The brake: when more than ``most_share`` of what the pool holds is unknown
    to the table (and more than a handful), nothing that removes is done, and ``stopped`` says so. What is to be mended becomes
    mirror work first: a crash forgets none of it. Of whom an item can't be read is among those that wait, and left as they are.

    :raises NotAllowed: for anybody but operators and the portal itself.
    :raises InvalidRequest: when no user pool is set, or ``most_share`` is not a share.
    :raises Unavailable: when the list of the table or of the pool can't be read to its end, and then nothing was changed; or
        when the mirror work could not be written.
    """
    policy.may_keep_pool(actor).require()
    _check(most_share)
    unread: dict[str, str] = {}
    table = read_table(past=lambda key, error: unread.setdefault(person_entity(key), error.message))
    pool = effects.read_pool(progress=progress)
    found, unseen = _looked_at([one for one in _listed(table, pool, clock) if one.entity not in unread], clock)
    stopped = _brake(sum(one.removes for one in [*found, *(one.listed for one in unseen)]), pool.size, most_share)

    def may_mend(one: MirrorDifference) -> bool:
        return apply and not (stopped and one.removes)

    wanted = [one.entity for one in found if may_mend(one)]
    left = {one.listed.entity for one in unseen if may_mend(one.listed) and _is_known(one.listed.entity, table)}
    work_store.ask([*wanted, *left], now=clock.now())
    run = _Run(clock, until=None)
    run.bring_up(wanted, workers=_WORKERS)
    broken = [MirrorFailure(entity, error) for entity, error in sorted(unread.items())]
    waiting = [*broken, *run.failures, *run.waiting, *(one.told(is_asked=one.listed.entity in left) for one in unseen)]
    return Comparison(listed=pool.size, differences=tuple(found), mended=len(run.done), waiting=tuple(waiting), stopped=stopped)


@dataclass
class _Run:
    """People and groups brought up to date, each by itself. Nothing new is begun after ``until``."""

    clock: Clock
    until: datetime | None
    done: list[str] = field(default_factory=list)
    waiting: list[MirrorFailure] = field(default_factory=list)
    failures: list[MirrorFailure] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        return self.until is not None and self.clock.now() > self.until

    def bring_up(self, entities: Collection[str], *, workers: int) -> None:
        """Groups before people, who would only wait for the groups that they go into."""
        people = [entity for entity in entities if _is_person(entity)]
        for part in ([entity for entity in entities if not _is_person(entity)], people):
            if workers == 1:
                for entity in part:
                    self._unit(entity)
            else:
                with ThreadPoolExecutor(workers, thread_name_prefix="mirror") as executor:
                    for future in [executor.submit(self._unit, entity) for entity in part]:
                        future.result()

    def readable(self, found: Iterable[MirrorWork | MirrorFailure]) -> Iterator[MirrorWork]:
        """The work among what was found; each of the others is a failure, told once."""
        for one in found:
            if isinstance(one, MirrorWork):
                yield one
            elif one.entity not in self.broken:
                self._break(one)

    def _unit(self, entity: str) -> None:
        if self.is_over:
            return
        try:
            attempt = bring_up(entity=entity, clock=self.clock)
        except Exception as error:  # noqa: BLE001 - a poisoned item must not stop the others; it is reported and fails the job
            self._break(MirrorFailure(entity, f"{type(error).__name__}: {error}"))
            return
        if attempt.is_done:
            self.done.append(entity)
        else:
            told = self.failures if attempt.is_error else self.waiting
            told.append(MirrorFailure(entity, attempt.reason))

    def miss(self, error: NoAnswer) -> None:
        self._break(MirrorFailure("the list of what waits", error.message))

    def _break(self, failure: MirrorFailure) -> None:
        self.broken.add(failure.entity)
        self.failures.append(failure)


def bring_up(*, entity: str, clock: Clock) -> Attempt:
    """As :func:`effects.converge`; deleting a person that was begun is finished first.

    :raises Unavailable: when our store did not answer.
    """
    if _is_person(entity):
        key = entity.partition("#")[2]
        person = store.get_person(key)
        if person is not None and person.is_deleting:
            continue_deleting(key=key, now=clock.now())
    return effects.converge(entity=entity, clock=clock)


def _is_person(entity: str) -> bool:
    return entity.startswith(person_entity(""))


def _is_due(work: MirrorWork, clock: Clock) -> bool:
    now = clock.now()
    return is_due(work.due_at, now=now, longest=policy.LONGEST_GAP) and is_due(work.lease_until, now=now, longest=policy.LEASE)


def _mark(work: MirrorWork) -> tuple[str, str, int]:
    return work.entity, work.token, work.attempts


def _fails_often(failure: MirrorFailure) -> bool:
    try:
        work = work_store.find(failure.entity)
    except NoAnswer:
        return True
    return work is not None and work.attempts >= _FAILURES_TO_TELL


@dataclass(frozen=True, slots=True)
class _Unseen:
    """What the lists have differently, and why it could not be read again."""

    listed: MirrorDifference
    error: str

    def told(self, *, is_asked: bool) -> MirrorFailure:
        remedy = "The sweep goes on with it." if is_asked else "The next comparison looks again."
        return MirrorFailure(self.listed.entity, f"It could not be looked at again ({self.error}). {remedy}")


def _listed(table: TableImage, pool: PoolImage, clock: Clock) -> list[MirrorDifference]:
    """Everybody and every group that the two lists have differently; groups first, because people go into them."""
    now = clock.now()
    wanted = {
        key: policy.wanted_user(person, table.memberships.get(key, ()), groups=table.groups, now=now)
        for key, person in table.people.items()
    }
    people = (
        effects.user_difference(person_entity(key), wanted.get(key), pool.users.get(key))
        for key in sorted(wanted.keys() | pool.users.keys())
    )
    found = [_listed_group(group_id, table, pool) for group_id in sorted(table.groups.keys() | pool.group_ids)]
    return [one for one in (*found, *people) if one is not None]


def _listed_group(group_id: str, table: TableImage, pool: PoolImage) -> MirrorDifference | None:
    group = table.groups.get(group_id)
    wanted = policy.wanted_groups(group) if group else frozenset()
    present = pool.groups & policy.cognito_groups(group_id)
    return effects.groups_difference(group_entity(group_id), wanted, present, is_known=group is not None)


def _looked_at(listed: Collection[MirrorDifference], clock: Clock) -> tuple[list[MirrorDifference], list[_Unseen]]:
    """What still differs when it is read again, and what could not be read."""

    def look(one: MirrorDifference) -> MirrorDifference | _Unseen | None:
        try:
            return effects.difference_of(entity=one.entity, now=clock.now())
        except Unavailable as error:
            return _Unseen(one, error.message)

    with ThreadPoolExecutor(_WORKERS, thread_name_prefix="compare") as executor:
        looks = list(executor.map(look, listed))
    return [one for one in looks if isinstance(one, MirrorDifference)], [one for one in looks if isinstance(one, _Unseen)]


def _is_known(entity: str, table: TableImage) -> bool:
    name = entity.partition("#")[2]
    return name in table.people if _is_person(entity) else name in table.groups


def _brake(doomed: int, listed: int, most_share: float) -> str:
    if doomed <= most_at_once(listed, most_share):
        return ""
    return (
        f"{doomed} of {listed} users, groups and members of groups in the pool are unknown to the table, more than the share of "
        f"{most_share:.0%} that may go at once. Nothing is removed. Look at them, then run it again with a larger share."
    )


def _check(most_share: float) -> None:
    if not current().user_pool_id:
        text = "No user pool is set. Make one with create_user_pool and set PORTAL_USER_POOL_ID."
        raise InvalidRequest(text, code="no_user_pool", field="PORTAL_USER_POOL_ID")
    if not 0 <= most_share <= 1:
        raise InvalidRequest("Give a share from 0 to 1, for instance 0.2.", code="share_invalid", field="most_share")
