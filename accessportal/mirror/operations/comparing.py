"""The comparison of the whole table with the whole user pool."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from accessportal.directory.states import person_entity
from accessportal.directory.store.reading import get_group
from accessportal.directory.store.whole import TableImage, read_table
from accessportal.kernel.actors import Actor
from accessportal.kernel.brakes import MOST_SHARE, brake, check_share
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import InvalidRequest, Unavailable
from accessportal.kernel.runs import Failure
from accessportal.mirror import policy, store
from accessportal.mirror.config import current
from accessportal.mirror.effects.converging import wanted_user
from accessportal.mirror.effects.pool import PoolImage, present_groups, present_user, read_whole, reading
from accessportal.mirror.operations.sweeping import WORKERS, Following, is_person
from accessportal.mirror.states import MirrorDifference, PoolComparison

Progress = Callable[[int, int], None]


def compare_mirror(
    *, apply: bool, most_share: float = MOST_SHARE, progress: Progress | None = None, actor: Actor, clock: Clock
) -> PoolComparison:
    """Hold the whole table against the whole pool and, with ``apply``, make the pool equal. The lists only find candidates, each is read
    again in both, and nothing goes because of a list; more than ``most_share`` unknown to the table stops every removal."""
    policy.may_keep_pool(actor).require()
    _check(most_share)
    unread: dict[str, str] = {}
    table = read_table(past=lambda key, error: unread.setdefault(person_entity(key), error.message))
    pool = read_whole(progress=progress)
    found, unseen = _looked_at([one for one in _listed(table, pool, clock) if one.entity not in unread], clock)
    going = sum(one.removes for one in [*found, *(one.listed for one in unseen)])
    would = "users, groups and members of groups in the pool are unknown to the table"
    stopped = brake(going, pool.size, most_share, would=would, remedy="Nothing is removed. Look at them")

    def may_mend(one: MirrorDifference) -> bool:
        return apply and not (stopped and one.removes)

    wanted = [one.entity for one in found if may_mend(one)]
    left = {one.listed.entity for one in unseen if may_mend(one.listed) and _is_known(one.listed.entity, table)}
    store.ask([*wanted, *left], now=clock.now())
    run = Following(clock, until=None)
    run.bring_up(wanted, workers=WORKERS)
    broken = [Failure(entity, error) for entity, error in sorted(unread.items())]
    again = [one.told(is_asked=one.listed.entity in left) for one in unseen]
    failures = (*broken, *run.failures, *run.errors, *run.waiting, *again)
    return PoolComparison(listed=pool.size, differences=tuple(found), mended=len(run.done), failures=failures, stopped=stopped)


@dataclass(frozen=True, slots=True)
class _Unseen:
    """What the lists have differently, and why it could not be read again."""

    listed: MirrorDifference
    error: str

    def told(self, *, is_asked: bool) -> Failure:
        remedy = "The sweep goes on with it." if is_asked else "The next comparison looks again."
        return Failure(self.listed.entity, f"It could not be looked at again ({self.error}). {remedy}")


def _listed(table: TableImage, pool: PoolImage, clock: Clock) -> list[MirrorDifference]:
    """Everybody and every group that the two lists have differently; groups first, because people go into them."""
    now = clock.now()
    wanted = {
        key: policy.wanted_user(person, table.memberships.get(key, ()), groups=table.groups, now=now)
        for key, person in table.people.items()
    }
    groups = (
        policy.group_difference(group_id, table.groups.get(group_id), pool.groups & policy.cognito_groups(group_id))
        for group_id in sorted(table.groups.keys() | pool.group_ids)
    )
    people = (policy.user_difference(key, wanted.get(key), pool.users.get(key)) for key in sorted(wanted.keys() | pool.users.keys()))
    return [one for one in (*groups, *people) if one is not None]


def _looked_at(listed: Collection[MirrorDifference], clock: Clock) -> tuple[list[MirrorDifference], list[_Unseen]]:
    """What still differs when it is read again, and what could not be read."""

    def look(one: MirrorDifference) -> MirrorDifference | _Unseen | None:
        try:
            return _difference_of(one.entity, clock)
        except Unavailable as error:
            return _Unseen(one, error.message)

    with ThreadPoolExecutor(WORKERS, thread_name_prefix="compare") as executor:
        looks = list(executor.map(look, listed))
    return [one for one in looks if isinstance(one, MirrorDifference)], [one for one in looks if isinstance(one, _Unseen)]


def _difference_of(entity: str, clock: Clock) -> MirrorDifference | None:
    """What table and pool disagree about, both read anew."""
    name = entity.partition("#")[2]
    with reading():
        if is_person(entity):
            return policy.user_difference(name, wanted_user(name, clock.now()), present_user(name))
        return policy.group_difference(name, get_group(name), present_groups(name))


def _is_known(entity: str, table: TableImage) -> bool:
    name = entity.partition("#")[2]
    return name in table.people if is_person(entity) else name in table.groups


def _check(most_share: float) -> None:
    if not current().user_pool_id:
        text = "No user pool is set. Make one with create_user_pool and set PORTAL_USER_POOL_ID."
        raise InvalidRequest(text, code="no_user_pool", field="PORTAL_USER_POOL_ID")
    check_share(most_share)
