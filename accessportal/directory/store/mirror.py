"""Mirror work: one item for each person or group that Cognito must still follow, written with the change itself."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from accessportal.directory import models
from accessportal.directory.config import current
from accessportal.directory.models import DirectoryItem
from accessportal.store.transactions import Step, Upsert


def work_step(*, item_pk: str, now: datetime) -> list[Step]:
    """The step that asks for the mirroring of the person or group whose own partition is ``item_pk``; none without a pool.

    It belongs in the transaction of every change that Cognito must follow. A worker that is at it already sees the new
    token when it ends, and looks again.
    """
    if not current().user_pool_id:
        return []
    pk, sk = models.work_key(item_pk)
    moment = round(now.timestamp(), 3)
    actions = [
        DirectoryItem.si_key1.set(models.MIRROR_WORK),
        DirectoryItem.token.set(secrets.token_hex(8)),
        DirectoryItem.due_at.set(moment),
        DirectoryItem.attempts.set(0),
        DirectoryItem.created_at.set(DirectoryItem.created_at | now.astimezone(UTC).isoformat(timespec="milliseconds")),
    ]
    return [Upsert(DirectoryItem, pk, actions, DirectoryItem.pk.exists() | DirectoryItem.pk.does_not_exist(), sk)]
