"""The pool as it is, whole; and what table and pool disagree about in one person or group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from accessportal.aws import cognito
from accessportal.aws.errors import Gone, OutsideError
from accessportal.directory import store
from accessportal.directory.config import current
from accessportal.directory.effects.images import present_groups, present_user, wanted_user
from accessportal.directory.policy import mirror as policy
from accessportal.directory.policy.mirror import UserImage
from accessportal.directory.states import MirrorDifference
from accessportal.kernel.errors import Unavailable

_READERS = 4


@dataclass(frozen=True, slots=True)
class PoolImage:
    """Users by the key of the person, and the names of the groups: those alone that are ours."""

    users: Mapping[str, UserImage]
    groups: frozenset[str]

    @property
    def group_ids(self) -> frozenset[str]:
        """The groups of the directory that those of the pool stand for."""
        return frozenset(group_id for name in self.groups if (group_id := policy.group_of(name)) is not None)

    @property
    def size(self) -> int:
        """Users, groups and members of groups."""
        return len(self.users) + len(self.groups) + sum(len(user.groups) for user in self.users.values())


def read_pool(*, progress: Callable[[int, int], None] | None = None) -> PoolImage:
    """The whole pool. ``progress`` is told how many of how many groups have been read.

    :raises Unavailable: when a list can't be read to its end; half a list is never compared.
    """
    pool = current().user_pool_id
    try:
        cognito.require_one_case(pool)
        names = frozenset(name for name in cognito.list_groups(pool) if policy.group_of(name) is not None)
        groups_of: dict[str, set[str]] = {}
        for done, (name, usernames) in enumerate(_members(pool, names), start=1):
            for username in usernames:
                groups_of.setdefault(policy.person_of(username) or "", set()).add(name)
            if progress is not None:
                progress(done, len(names))
        users: dict[str, UserImage] = {}
        for user in cognito.list_users(pool):
            key = policy.person_of(user.username)
            if key is not None and not user.is_federated:
                users[key] = UserImage(user.is_enabled, user.name, frozenset(groups_of.get(key, ())))
    except OutsideError as error:
        raise Unavailable(f"The user pool could not be read: {error}", code="cognito_unavailable") from error
    return PoolImage(users, names)


def difference_of(*, entity: str, now: datetime) -> MirrorDifference | None:
    """What table and pool disagree about, both read anew; ``None`` when they agree.

    :raises Unavailable: when one of the two did not answer.
    """
    pool = current().user_pool_id
    kind, _, name = entity.partition("#")
    try:
        if kind == "person":
            return user_difference(entity, wanted_user(name, now), present_user(pool, name))
        group = store.get_group(name)
        wanted = policy.wanted_groups(group) if group else frozenset()
        return groups_difference(entity, wanted, present_groups(pool, name), is_known=group is not None)
    except OutsideError as error:
        raise Unavailable(f"The user pool could not be read: {error}", code="cognito_unavailable") from error


def user_difference(entity: str, wanted: UserImage | None, present: UserImage | None) -> MirrorDifference | None:
    """What differs between the user that the table wants and the one that the pool has; ``None`` for nothing."""
    if wanted == present:
        return None
    if wanted is None:
        assert present is not None
        return MirrorDifference(entity, ("the table does not know this user",), removes=1 + len(present.groups))
    if present is None:
        return MirrorDifference(entity, ("the user is missing",))
    surplus = sorted(present.groups - wanted.groups)
    found = [f"not in {name}" for name in sorted(wanted.groups - present.groups)] + [f"still in {name}" for name in surplus]
    if wanted.is_enabled != present.is_enabled:
        found.append("still enabled" if present.is_enabled else "still disabled")
    if wanted.name != present.name:
        found.append(f"named “{present.name}”, not “{wanted.name}”")
    # Of a disabled person the table knows that they are in no group; of the others it does not know these memberships.
    return MirrorDifference(entity, tuple(found), removes=len(surplus) if wanted.is_enabled else 0)


def groups_difference(entity: str, wanted: frozenset[str], present: frozenset[str], *, is_known: bool) -> MirrorDifference | None:
    """The same of the groups of one group, of which ``is_known`` says whether the table has it."""
    if wanted == present:
        return None
    found = [f"{name} is missing" for name in sorted(wanted - present)] + [f"{name} is still there" for name in sorted(present - wanted)]
    return MirrorDifference(entity, tuple(found), removes=0 if is_known else len(present - wanted))


def _members(pool: str, names: frozenset[str]) -> Iterator[tuple[str, list[str]]]:
    def read(name: str) -> tuple[str, list[str]]:
        try:
            return name, list(cognito.list_users_in_group(pool, name))
        except Gone:
            return name, []

    with ThreadPoolExecutor(_READERS, thread_name_prefix="pool") as executor:
        yield from executor.map(read, sorted(names))
