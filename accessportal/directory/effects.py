"""Making Cognito follow the table."""

from __future__ import annotations

from datetime import datetime

from accessportal.directory.config import current
from accessportal.directory.states import Mirrored


def converge_after(*, entity: str, now: datetime) -> Mirrored:
    """One attempt to make Cognito follow a change of ``entity`` (a person or group by its audit name) that was just written.

    Never raises for trouble outside: the change stands, and the sweep goes on. Without a pool it is done at once.
    """
    if not current().user_pool_id:
        return Mirrored(is_done=True)
    return Mirrored(is_done=False, reason="Cognito has not followed yet.")
