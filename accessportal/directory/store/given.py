"""What was given with a right that has an end: noted beside it, so that it is found when the right ends."""

from __future__ import annotations

from contextlib import suppress

from accessportal.directory import models
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import GivenRole
from accessportal.store.listing import Listing
from accessportal.store.transactions import ConditionFailed, Guard, Remove, Step, Upsert, transact


def note_steps(claim_id: str, given: GivenRole, *, giver: str, right_on: str) -> tuple[Guard, Step]:
    """The guard that ``giver`` still has the right ``claim_id`` in the group ``right_on``, and the step that notes ``given``."""
    pk, sk = models.membership_key(giver, right_on)
    held = Guard(DirectoryItem, pk, DirectoryItem.claims[claim_id].exists(), sk)
    pk, sk = models.given_key(claim_id, given.person, given.group_id)
    actions = [DirectoryItem.email.set(given.person), DirectoryItem.id.set(given.group_id)]
    return held, Upsert(DirectoryItem, pk, actions, models.ALWAYS, sk)


def list_given(claim_id: str) -> tuple[GivenRole, ...]:
    """What was given with the right ``claim_id`` and is still noted; strongly read."""
    return tuple(Listing("directory.given", DirectoryItem, _record, consistent=True).every(models.given_pk(claim_id)))


def forget_given(claim_id: str, given: GivenRole) -> None:
    """It is noted no longer."""
    pk, sk = models.given_key(claim_id, given.person, given.group_id)
    # Another worker may have been first.
    with suppress(ConditionFailed):
        transact([Remove(DirectoryItem, pk, DirectoryItem.pk.exists(), sk)])


def _record(item: DirectoryItem) -> GivenRole:
    return GivenRole(*models.given_in(item))
