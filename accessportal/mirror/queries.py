"""What Cognito must still follow."""

from __future__ import annotations

from accessportal.mirror.config import current
from accessportal.mirror.store import find_pending, find_pending_among, page_of_pending

__all__ = ["find_pending", "find_pending_among", "is_mirrored", "page_of_pending"]


def is_mirrored() -> bool:
    """Whether a user pool is set that follows the directory."""
    return bool(current().user_pool_id)
