"""Keeping Cognito equal to the directory, and proving it for whoever gives things by its groups."""

from accessportal.mirror.config import MirrorSettings
from accessportal.mirror.operations.comparing import compare_mirror
from accessportal.mirror.operations.holding import hold_membership, release_membership
from accessportal.mirror.operations.restoring import disable_as_mirrored
from accessportal.mirror.operations.setting_up import POOL_NAME, configure, ensure_user_pool
from accessportal.mirror.operations.sweeping import sweep_mirror

__all__ = [
    "POOL_NAME",
    "MirrorSettings",
    "compare_mirror",
    "configure",
    "disable_as_mirrored",
    "ensure_user_pool",
    "hold_membership",
    "release_membership",
    "sweep_mirror",
]
