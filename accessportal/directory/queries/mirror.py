"""What Cognito must still follow."""

from __future__ import annotations

from collections.abc import Collection

from accessportal.directory.config import current
from accessportal.directory.states import MirrorWork
from accessportal.directory.store import mirror as store
from accessportal.kernel.pages import Page


def is_mirrored() -> bool:
    """Whether a user pool is set that follows the directory."""
    return bool(current().user_pool_id)


def mirror_pending(*, cursor: str | None = None, limit: int = 50) -> Page[MirrorWork]:
    """The people and groups that Cognito has not followed yet, groups first. It may lag a moment behind a change.

    :raises Unavailable: when the store did not answer.
    """
    return store.page(cursor=cursor, limit=limit)


def mirror_state_of(*, entity: str) -> MirrorWork | None:
    """What Cognito must still follow of a person or group (by its audit name); ``None`` when it has followed everything.

    Strongly read: a page that says "removed" may stand on it.

    :raises Unavailable: when the store did not answer.
    """
    return store.find(entity)


def mirror_states_of(*, entities: Collection[str]) -> dict[str, MirrorWork]:
    """:func:`mirror_state_of` for a page of people and groups at once: those that Cognito has not followed, by audit name.

    :raises Unavailable: when the store did not answer.
    """
    return {work.entity: work for work in store.find_among(entities)}
