"""Setting the mirror up: the user pool, and that it follows the directory."""

from __future__ import annotations

import re

from accessportal.directory.following import set_follower
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import InvalidRequest
from accessportal.mirror import config, policy
from accessportal.mirror.config import MirrorSettings
from accessportal.mirror.effects import pool
from accessportal.mirror.effects.converging import converge_after
from accessportal.mirror.states import UserPool

POOL_NAME = "accessportal"


def configure(settings: MirrorSettings) -> None:
    """Called once at start-up: with a user pool, it follows the directory from now on."""
    config.configure(settings)
    set_follower(converge_after if settings.user_pool_id else None)


def ensure_user_pool(*, name: str = POOL_NAME, actor: Actor) -> UserPool:
    """Find or make the user pool of that name. The directory is mirrored to it once its id is set."""
    policy.may_keep_pool(actor).require()
    if not re.fullmatch(r"[\w\s+=,.@-]{1,128}", name):
        text = "A pool's name has 1 to 128 letters, digits, spaces and + = , . @ - _ characters."
        raise InvalidRequest(text, code="pool_name_invalid", field="name")
    return pool.ensure(name)
