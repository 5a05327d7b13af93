"""The work of who follows the directory: one item for each person or group, written with the change itself."""

from __future__ import annotations

import secrets
from datetime import datetime

from pynamodb.expressions.update import Action

from accessportal.directory import models
from accessportal.directory.following import is_followed
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import group_entity, person_entity
from accessportal.directory.store.conversion import iso
from accessportal.store.transactions import Remove, Step, Upsert


def work_step(*, item_pk: str, now: datetime, forgets: bool = False) -> list[Step]:
    """Make the step that asks to follow the person or group ``item_pk``, for the transaction of every change that must be followed; none
    where nobody follows. ``forgets``: who was there must be forgotten, whoever has the address by then."""
    return [ask_step(item_pk, now, forgets=forgets)] if is_followed() else []


def deletion_step(*, item_pk: str, now: datetime, is_over: bool) -> list[Step]:
    """Make the step of a deletion in several parts: the sweep finds what was begun by it, also where nobody follows. ``is_over``: the
    person is gone."""
    if is_followed() or not is_over:
        return [ask_step(item_pk, now, forgets=is_over)]
    pk, sk = models.work_key(item_pk)
    return [Remove(DirectoryItem, pk, DirectoryItem.pk.exists(), sk)]


def ask_step(item_pk: str, now: datetime, *, forgets: bool = False) -> Upsert:
    """The step itself. A worker that is at it already sees the new token when it ends, and looks again."""
    pk, sk = models.work_key(item_pk)
    at = round(now.timestamp(), 3)
    actions: list[Action] = [
        DirectoryItem.si_key1.set(models.MIRROR_WORK),
        DirectoryItem.token.set(secrets.token_hex(8)),
        DirectoryItem.due_at.set(at),
        DirectoryItem.attempts.set(0),
        DirectoryItem.error.remove(),
        DirectoryItem.created_at.set(DirectoryItem.created_at | iso(now)),
    ]
    if forgets:
        actions.append(DirectoryItem.forget.set(True))
    return Upsert(DirectoryItem, pk, actions, models.ALWAYS, sk)


def item_pk_of(entity: str) -> str:
    """The partition of a person or a group that is named as in the audit log."""
    kind, _, name = entity.partition("#")
    return models.person_pk(name) if kind == "person" else models.group_pk(name)


def entity_of(item_pk: str) -> str:
    """The person or group of a partition, named as in the audit log."""
    kind = person_entity if models.is_person_pk(item_pk) else group_entity
    return kind(item_pk.partition(":")[2])
