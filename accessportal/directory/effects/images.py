"""What the table wants of one person or group, and what Cognito has, both read anew."""

from __future__ import annotations

from datetime import datetime

from accessportal.aws import cognito
from accessportal.aws.errors import Gone
from accessportal.directory import store
from accessportal.directory.policy import mirror as policy
from accessportal.directory.policy.mirror import UserImage


def wanted_user(key: str, now: datetime) -> UserImage | None:
    """What the table says, strongly read; ``None`` when nobody has this address.

    :raises Unavailable: when our store did not answer, or an item can't be read.
    """
    person, memberships = store.get_person_with_memberships(key)
    if person is None:
        return None
    groups = store.get_groups(membership.group_id for membership in memberships)
    return policy.wanted_user(person, memberships, groups=groups, now=now)


def wanted_groups(group_id: str) -> frozenset[str]:
    """The names of the groups that Cognito is to have for this one, strongly read: three or none."""
    group = store.get_group(group_id)
    return policy.wanted_groups(group) if group else frozenset()


def present_groups(pool_id: str, group_id: str) -> frozenset[str]:
    """Those of the three that Cognito has.

    :raises OutsideError: when Cognito did not say.
    """
    return frozenset(name for name in sorted(policy.cognito_groups(group_id)) if cognito.find_group(pool_id, name))


def present_user(pool_id: str, key: str) -> UserImage | None:
    """The user as the pool has it, with the groups that are ours; ``None`` when there is none, or when it is somebody's who comes
    from another identity provider: such a user is not ours, whatever its name looks like.

    :raises OutsideError: when Cognito did not say.
    """
    user = cognito.get_user(pool_id, key)
    if user is None or user.is_federated:
        return None
    try:
        names = cognito.groups_of_user(pool_id, key)
    except Gone:
        return None
    return UserImage(user.is_enabled, user.name, frozenset(name for name in names if policy.group_of(name) is not None))
