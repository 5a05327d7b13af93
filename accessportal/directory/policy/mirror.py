"""What Cognito is to hold: users named by address, and one group for each group and role, ``<groupId>:<role>``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from accessportal.directory.policy.tree import is_live
from accessportal.directory.policy.words import key_of
from accessportal.directory.states import Group, GroupRole, Membership, Person
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, allow, refuse


@dataclass(frozen=True, slots=True)
class UserImage:
    """A user as the pool is to have it, or has it. ``groups`` are Cognito's, ours alone."""

    is_enabled: bool
    name: str
    groups: frozenset[str]


def wanted_user(person: Person, memberships: Iterable[Membership], *, groups: Mapping[str, Group], now: datetime) -> UserImage:
    """What the table says of a person at ``now``. ``groups`` are those that exist, at least those of the memberships.

    As everywhere in the directory, a disabled person is in no group, nobody is in a disabled one, and a claim past its end
    gives nothing. Inherited roles are not spelled out: who reads Cognito's groups knows the tree, or asks the portal.
    """
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


def wanted_groups(group: Group) -> frozenset[str]:
    """All three or, while it is disabled, none: whoever reads Cognito must see nobody in it."""
    return cognito_groups(group.group_id) if group.is_enabled else frozenset()


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


# A worker that died gives its lease back after this.
LEASE = timedelta(seconds=60)
LONGEST_GAP = timedelta(minutes=5)


def retry_gap(attempts: int, *, jitter: float) -> timedelta:
    """How long to wait after this many failures: 5 seconds, doubled up to 5 minutes, less up to a fifth (``jitter`` 0 to 1)."""
    return min(LONGEST_GAP, timedelta(seconds=5.0 * 2 ** min(attempts - 1, 10))) * (1 - 0.2 * jitter)


def may_keep_pool(actor: Actor) -> Decision:
    """Whether ``actor`` may make the user pool, compare it with the table, and mend it."""
    if actor.is_system or actor.is_operator:
        return allow("operators and the portal itself keep Cognito equal to the directory")
    return refuse("Only operators may keep the user pool. Ask an operator.", code="operators_only")
