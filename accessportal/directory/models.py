"""The AccessManagement item (seed 001) and its keys. Key strings of this table are built here and nowhere else."""

from __future__ import annotations

from typing import Any

from pynamodb.attributes import BooleanAttribute, ListAttribute, MapAttribute, NumberAttribute, UnicodeAttribute, UnicodeSetAttribute

from accessportal.store.base import PortalModel, global_index, register

PEOPLE = "U"
GROUPS = "G"
HIERARCHY = "GH"
MIRROR_WORK = "W"
DEPARTURES = "D"
_MEMBERS = "M"
_ACCOUNT = "I"
_ADDRESS = "A"


@register
class DirectoryItem(PortalModel):
    """Any item of the table: the keys tell which kind it is. Times are ISO, as in the seed. One class for all kinds, because a subclass for
    each would hide items of a kind whose module was not imported."""

    base_table_name = "AccessManagement"

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    si_key1 = UnicodeAttribute(null=True, attr_name="siKey1")
    state = UnicodeAttribute(null=True)
    created_at = UnicodeAttribute(null=True, attr_name="createdAt")
    created_by = UnicodeAttribute(null=True, attr_name="createdBy")
    updated_at = UnicodeAttribute(null=True, attr_name="updatedAt")
    updated_by = UnicodeAttribute(null=True, attr_name="updatedBy")
    # a person
    email = UnicodeAttribute(null=True)
    display_name = UnicodeAttribute(null=True, attr_name="displayName")
    deleting = BooleanAttribute(null=True)
    outlasts_groups = BooleanAttribute(null=True, attr_name="outlastsGroups")
    identity = UnicodeAttribute(null=True)
    signed_in_at = UnicodeAttribute(null=True, attr_name="signedInAt")
    # a membership: ``role`` is the highest at the last write; ``claims`` (claim id to role and end) says why and until when
    role = UnicodeAttribute(null=True)
    claims: Any = MapAttribute(null=True)
    # a group
    id = UnicodeAttribute(null=True)
    name = UnicodeAttribute(null=True)
    description = UnicodeAttribute(null=True)
    # How many memberships and groups directly below: the only strong answer to "is it empty" (an index lags).
    member_count = NumberAttribute(null=True, attr_name="memberCount")
    child_count = NumberAttribute(null=True, attr_name="childCount")
    ancestors: Any = ListAttribute(null=True)
    tree_version = NumberAttribute(null=True, attr_name="treeVersion")
    admins = UnicodeSetAttribute(null=True)
    # the root alone: enabled people with a permanent admin claim; never empty once it was filled
    standing_admins = UnicodeSetAttribute(null=True, attr_name="standingAdmins")
    # the counter
    group_count = NumberAttribute(null=True, attr_name="groupCount")
    # mirror work
    token = UnicodeAttribute(null=True)
    forget = BooleanAttribute(null=True)
    due_at = NumberAttribute(null=True, attr_name="dueAt")
    lease_until = NumberAttribute(null=True, attr_name="leaseUntil")
    attempts = NumberAttribute(null=True)
    error = UnicodeAttribute(null=True)
    # a departure (with ``token``)
    lost = UnicodeSetAttribute(null=True)
    # a person or a group
    version = NumberAttribute(null=True)
    audit_head = UnicodeAttribute(null=True)

    kind_index = global_index(
        "siKey1-pk-index", si_key1=UnicodeAttribute(hash_key=True, attr_name="siKey1"), pk=UnicodeAttribute(range_key=True)
    )
    """The seed's only index: every person, every group, every branch of the tree, and (our additions) a group's members and
    what Cognito must still follow, and who may have lost something."""


ALWAYS = DirectoryItem.pk.exists() | DirectoryItem.pk.does_not_exist()
"""The condition of what is written whether or not it is there."""
Key = tuple[str, str]
_PERSON_PREFIX = "U:"
_GROUP_PREFIX = "G:"
_GIVEN_PREFIX = "R:"


def person_pk(person: str) -> str:
    """The partition of a person and their memberships; also the start of every ``pk`` whose address starts so."""
    return _PERSON_PREFIX + person


def group_pk(group_id: str) -> str:
    """The partition of a group and its branches; also the start of every ``pk`` of a group whose path starts so."""
    return _GROUP_PREFIX + group_id


def person_key(person: str) -> Key:
    return person_pk(person), person_pk(person)


def membership_key(person: str, group_id: str) -> Key:
    return person_pk(person), group_pk(group_id)


def group_key(group_id: str) -> Key:
    return group_pk(group_id), group_pk(group_id)


def branch_key(parent_id: str, group_id: str) -> Key:
    return group_pk(parent_id), group_pk(group_id)


def counter_key() -> Key:
    """How many groups there are: the only strong answer (an index lags)."""
    return "C:groups", "C:groups"


def account_key(identity: str) -> Key:
    """Whose the account of the sign-in service is (``<issuer>#<subject>``). In no index: no list of the seed finds it."""
    return f"{_ACCOUNT}:{identity}", _ACCOUNT


def address_key(person: str) -> Key:
    """Which account comes in at an address. Beside the person's own partition, which goes with them."""
    return f"{_ADDRESS}:{person}", _ADDRESS


def work_key(item_pk: str) -> Key:
    """The mirror work of the person or group whose own partition is ``item_pk``."""
    return f"{MIRROR_WORK}:{item_pk}", f"{MIRROR_WORK}:{item_pk}"


def given_pk(claim_id: str) -> str:
    """The partition of what somebody gave whose own right is the claim ``claim_id``."""
    return f"{_GIVEN_PREFIX}{claim_id}"


def given_key(claim_id: str, person: str, group_id: str) -> Key:
    # No address holds a blank.
    return given_pk(claim_id), f"{person_pk(person)} {group_pk(group_id)}"


def given_in(item: DirectoryItem) -> tuple[str, str]:
    """The person and the group in the sort key of what was given: what else the item says may be gone."""
    person, _, group = item.sk.partition(" ")
    return person.removeprefix(_PERSON_PREFIX), group.removeprefix(_GROUP_PREFIX)


def departure_key(item_pk: str) -> Key:
    """The departure of the person or group whose own partition is ``item_pk``."""
    return f"{DEPARTURES}:{item_pk}", f"{DEPARTURES}:{item_pk}"


def item_pk_in(item: DirectoryItem) -> str:
    """The partition of the person or group that mirror work or a departure is about."""
    return item.pk.partition(":")[2]


def members_of(group_id: str) -> str:
    """``siKey1`` of the memberships of one group."""
    return f"{_MEMBERS}:{group_id}"


def is_person_pk(pk: str) -> bool:
    return pk.startswith(_PERSON_PREFIX)


def is_group_pk(pk: str) -> bool:
    return pk.startswith(_GROUP_PREFIX)


def person_in(item: DirectoryItem) -> str:
    """The folded address in the partition key of a person or a membership."""
    return item.pk.removeprefix(_PERSON_PREFIX)


def group_in(item: DirectoryItem) -> str:
    """The group in the sort key of a membership or a group."""
    return item.sk.removeprefix(_GROUP_PREFIX)
