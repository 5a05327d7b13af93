"""Pure rules of the directory: what may be written, what counts, and who may do what."""

from __future__ import annotations

from accessportal.directory.policy.accounts import account_taken
from accessportal.directory.policy.rights import (
    may_give,
    may_leave,
    may_move,
    may_see_person,
    may_take,
    may_with_group,
    may_with_people,
)
from accessportal.directory.policy.tree import (
    MAX_ANCESTORS,
    counted_groups,
    effective_roles,
    is_at_or_below,
    path_ancestors,
    right_at,
    role_at,
)
from accessportal.directory.policy.words import (
    clean_description,
    clean_email,
    clean_group_id,
    clean_name,
    is_email,
    is_group_id,
    key_of,
)

__all__ = [
    "MAX_ANCESTORS",
    "account_taken",
    "clean_description",
    "clean_email",
    "clean_group_id",
    "clean_name",
    "counted_groups",
    "effective_roles",
    "is_at_or_below",
    "is_email",
    "is_group_id",
    "key_of",
    "may_give",
    "may_leave",
    "may_move",
    "may_see_person",
    "may_take",
    "may_with_group",
    "may_with_people",
    "path_ancestors",
    "right_at",
    "role_at",
]
