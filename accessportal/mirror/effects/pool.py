"""The user pool: making it, and reading what it holds of ours."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from accessportal.aws import cognito
from accessportal.aws.errors import Gone, OutsideError, Refused
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.mirror import policy
from accessportal.mirror.config import current
from accessportal.mirror.policy import UserImage
from accessportal.mirror.states import UserPool

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


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Turn whatever keeps Cognito from telling into ``Unavailable``."""
    try:
        yield
    except OutsideError as error:
        raise Unavailable(f"The user pool could not be read: {error}", code="cognito_unavailable") from error


def ensure(name: str) -> UserPool:
    """Find the pool of that name, or make one; tried again after no answer, it finds what was made. :raises Conflict: when Cognito refuses,
    or has several of that name."""
    try:
        found = cognito.find_user_pool(name)
        pool_id = found or cognito.create_user_pool(name)
        cognito.require_one_case(pool_id)
    except Refused as error:
        raise Conflict(f"Cognito refused: {error}", code="cognito_refused") from error
    except OutsideError as error:
        raise Unavailable(f"Cognito did not answer: {error}", code="cognito_unavailable") from error
    return UserPool(pool_id, is_new=found is None, is_set=pool_id == current().user_pool_id)


def read_whole(*, progress: Callable[[int, int], None] | None = None) -> PoolImage:
    """Read the whole pool. ``progress`` is told how many of how many groups have been read. Half a list is never compared: it is an
    error."""
    pool = current().user_pool_id
    with reading():
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
    return PoolImage(users, names)


def present_groups(group_id: str) -> frozenset[str]:
    """Return those of a group's three that Cognito has."""
    pool = current().user_pool_id
    return frozenset(name for name in sorted(policy.cognito_groups(group_id)) if cognito.find_group(pool, name))


def present_user(key: str) -> UserImage | None:
    """Return the user as the pool has it, with the groups that are ours. Somebody from another identity provider is none of ours, whatever
    the name looks like."""
    pool = current().user_pool_id
    user = cognito.get_user(pool, key)
    if user is None or user.is_federated:
        return None
    try:
        names = cognito.groups_of_user(pool, key)
    except Gone:
        return None
    return UserImage(user.is_enabled, user.name, frozenset(name for name in names if policy.group_of(name) is not None))


def _members(pool: str, names: frozenset[str]) -> Iterator[tuple[str, list[str]]]:
    def read(name: str) -> tuple[str, list[str]]:
        try:
            return name, list(cognito.list_users_in_group(pool, name))
        except Gone:
            return name, []

    with ThreadPoolExecutor(_READERS, thread_name_prefix="pool") as executor:
        yield from executor.map(read, sorted(names))
