"""Calls to Cognito, which follows the table."""

from __future__ import annotations

from accessportal.directory.effects.comparing import PoolImage, difference_of, groups_difference, read_pool, user_difference
from accessportal.directory.effects.converging import Attempt, converge, converge_after
from accessportal.directory.effects.later import mirroring_later
from accessportal.directory.effects.pool import ensure_user_pool

__all__ = [
    "Attempt",
    "PoolImage",
    "converge",
    "converge_after",
    "difference_of",
    "ensure_user_pool",
    "groups_difference",
    "mirroring_later",
    "read_pool",
    "user_difference",
]
