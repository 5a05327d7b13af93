"""What Cognito is to hold: users named by address, and one group for each group and role, ``<groupId>:<role>``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from accessportal.directory.policy.tree import is_live
from accessportal.directory.policy.words import key_of
from accessportal.directory.states import Group, GroupRole, Membership, Person, group_entity, person_entity
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.mirror.states import MirrorDifference

# A worker that died gives its lease back after this.
LEASE = timedelta(seconds=60)
LONGEST_GAP = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class UserImage:
    """A user as the pool is to have it, or has it. ``groups`` are Cognito's, ours alone."""

    is_enabled: bool
    name: str
    groups: frozenset[str]


def wanted_user(person: Person, memberships: Iterable[Membership], *, groups: Mapping[str, Group], now: datetime) -> UserImage:
    """Say what the pool is to have of a person at ``now``: in no group while disabled, in no disabled group, by no claim past its end.
    Inherited roles are not spelled out: who reads Cognito's groups knows the tree, or asks the portal."""
    if not person.is_enabled or person.is_deleting:
        return UserImage(is_enabled=False, name=person.name, groups=frozenset())
    live = ((membership, membership.role_at(now)) for membership in memberships if is_live(membership, groups))
    names = frozenset(cognito_group(one.group_id, role) for one, role in live if role is not None)
    return UserImage(is_enabled=True, name=person.name, groups=names)


def without_gains(wanted: UserImage | None, present: UserImage | None) -> UserImage | None:
    """What is to be of ``present`` now, where ``wanted`` takes away and gives nothing."""
    if wanted is None or present is None:
        return None
    return UserImage(wanted.is_enabled and present.is_enabled, wanted.name, wanted.groups & present.groups)


def wanted_groups(group: Group | None) -> frozenset[str]:
    """All three or, when it is disabled or gone, none: whoever reads Cognito must see nobody in it."""
    return cognito_groups(group.group_id) if group is not None and group.is_enabled else frozenset()


def cognito_group(group_id: str, role: GroupRole) -> str:
    return f"{group_id}:{role.value}"


def cognito_groups(group_id: str) -> frozenset[str]:
    return frozenset(cognito_group(group_id, role) for role in GroupRole)


def group_of(cognito_name: str) -> str | None:
    """The group that a group of Cognito stands for. ``None`` for those that are not ours, for instance the one that Cognito
    itself makes for every identity provider: those are left alone."""
    group_id, _, role = cognito_name.rpartition(":")
    return group_id if group_id.startswith("/") and role in {one.value for one in GroupRole} else None


def person_of(username: str) -> str | None:
    """The key of the person that a user of Cognito stands for; ``None`` for names that are no address: not ours either."""
    return key_of(username)


def retry_gap(attempts: int, *, jitter: float) -> timedelta:
    """How long to wait after this many failures: 5 seconds, doubled up to 5 minutes, less up to a fifth (``jitter`` 0 to 1)."""
    return min(LONGEST_GAP, timedelta(seconds=5.0 * 2 ** min(attempts - 1, 10))) * (1 - 0.2 * jitter)


def may_keep_pool(actor: Actor) -> Decision:
    """Whether ``actor`` may make the user pool, compare it with the table, and mend it."""
    if actor.is_system or actor.is_operator:
        return allow("operators and the portal itself keep Cognito equal to the directory")
    return refuse("Only operators may keep the user pool. Ask an operator.", code="operators_only")


def user_difference(key: str, wanted: UserImage | None, present: UserImage | None) -> MirrorDifference | None:
    """What differs between the user that the table wants and the one that the pool has; ``None`` for nothing."""
    if wanted == present:
        return None
    entity = person_entity(key)
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


def group_difference(group_id: str, group: Group | None, present: frozenset[str]) -> MirrorDifference | None:
    """What differs between the groups that the table wants of ``group`` (``None``: it has none) and the ones that the pool has."""
    wanted = wanted_groups(group)
    if wanted == present:
        return None
    found = [f"{name} is missing" for name in sorted(wanted - present)] + [f"{name} is still there" for name in sorted(present - wanted)]
    return MirrorDifference(group_entity(group_id), tuple(found), removes=0 if group else len(present - wanted))
