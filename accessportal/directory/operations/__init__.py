"""Changing the directory: each function decides on strong reads and writes one transaction with its events, then has Cognito
follow."""

from accessportal.directory.following import following_later
from accessportal.directory.operations.deleting import continue_deleting, delete_person
from accessportal.directory.operations.founding import found_directory
from accessportal.directory.operations.groups import create_group, delete_group, rename_group, set_group_state
from accessportal.directory.operations.memberships import grant_membership, leave_group, revoke_membership
from accessportal.directory.operations.moving import move_group
from accessportal.directory.operations.people import create_person, rename_person, set_person_state
from accessportal.directory.operations.signing import forget_identity, letting_go, record_sign_in, record_sign_out
from accessportal.directory.store.departures import settle_departure

__all__ = [
    "continue_deleting",
    "create_group",
    "create_person",
    "delete_group",
    "delete_person",
    "following_later",
    "forget_identity",
    "found_directory",
    "grant_membership",
    "leave_group",
    "letting_go",
    "move_group",
    "record_sign_in",
    "record_sign_out",
    "rename_group",
    "rename_person",
    "revoke_membership",
    "set_group_state",
    "set_person_state",
    "settle_departure",
]
