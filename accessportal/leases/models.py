"""The items of ``AccountPool`` (seed 004) and their keys, which are built here alone.

Other programs read ``pk`` and ``data``. The attributes beside them are ours; those of the indexes are sparse and in shares.
"""

from __future__ import annotations

import zlib
from datetime import datetime
from typing import Any

from pynamodb.attributes import BooleanAttribute, ListAttribute, MapAttribute, NumberAttribute, UnicodeAttribute

from accessportal.leases.states import SHARDS, AccountState
from accessportal.store.attributes import FreeMapAttribute
from accessportal.store.base import PortalModel, global_index, register
from accessportal.store.keys import join_key

ACCOUNT, LEASE, PERSON = "account_id", "lease_id", "user_id"
ACTIVE = "lease_status#active"
ALL = "account_status#all"
LAST_COUNT = "account_count#last"


class PoolItem(PortalModel):
    """What the items have in common. All classes know the indexes, because they are those of one table."""

    base_table_name = "AccountPool"

    pk = UnicodeAttribute(hash_key=True)
    state_share = UnicodeAttribute(null=True)
    listed = UnicodeAttribute(null=True)
    place = UnicodeAttribute(null=True)
    due = UnicodeAttribute(null=True)
    due_at = NumberAttribute(null=True)
    version = NumberAttribute(null=True)
    audit_head = UnicodeAttribute(null=True)

    state_index = global_index("StateIndex", state_share=UnicodeAttribute(hash_key=True), pk=UnicodeAttribute(range_key=True))
    """A share of the accounts of a pool that are in one state, by id."""
    list_index = global_index("ListIndex", listed=UnicodeAttribute(hash_key=True), place=UnicodeAttribute(range_key=True))
    """A share of all accounts, or of all leases, by pool and id."""
    due_index = global_index("DueIndex", due=UnicodeAttribute(hash_key=True), due_at=NumberAttribute(range_key=True))
    """Sparse: a share of the accounts that are to be cleaned, or of the leases that are to be frozen or unfrozen, by when."""


@register
class AccountItem(PoolItem):
    """``account_id#<12 digits>``. Times are epoch seconds; ``since`` and ``due_at`` have milliseconds."""

    state = UnicodeAttribute(attr_name="data")
    # ours
    account_id = UnicodeAttribute()
    pool = UnicodeAttribute()
    name = UnicodeAttribute(null=True)
    size = UnicodeAttribute(null=True)
    tags: Any = FreeMapAttribute(null=True)
    added_at = NumberAttribute()
    since = NumberAttribute()
    fence = NumberAttribute(null=True)
    lease_id = UnicodeAttribute(null=True)
    user = UnicodeAttribute(null=True)
    attempts = NumberAttribute(null=True)
    error = UnicodeAttribute(null=True)
    run = UnicodeAttribute(null=True)
    certificate: Any = FreeMapAttribute(null=True)
    cleaned_at = NumberAttribute(null=True)
    reason = UnicodeAttribute(null=True)
    is_retiring = BooleanAttribute(null=True)
    costs_since = NumberAttribute(null=True)


@register
class LeaseItem(PoolItem):
    """``lease_id#<uuid>``."""

    data: Any = MapAttribute()
    # ours
    lease_id = UnicodeAttribute()
    pool = UnicodeAttribute()
    permission_set = UnicodeAttribute()
    fence = NumberAttribute()
    duration_seconds = NumberAttribute()
    taken_at = NumberAttribute()
    claims: Any = MapAttribute(null=True)
    started_at = NumberAttribute(null=True)
    ends_at = NumberAttribute(null=True)
    wanted = UnicodeAttribute(null=True)
    freeze_reason = UnicodeAttribute(null=True)
    attempts = NumberAttribute(null=True)
    error = UnicodeAttribute(null=True)
    spent = NumberAttribute(null=True)
    spent_unit = UnicodeAttribute(null=True)
    spent_as_of = NumberAttribute(null=True)
    reached = UnicodeAttribute(null=True)
    costs_since = NumberAttribute(null=True)


@register
class PersonItem(PoolItem):
    """``user_id#<e-mail>``: the newest lease in ``data``, all of them in ``leases``."""

    data: Any = MapAttribute()
    user = UnicodeAttribute()
    leases: Any = ListAttribute()


@register
class ListItem(PoolItem):
    """One of the seed's lists of ids."""

    data: Any = ListAttribute(of=UnicodeAttribute, null=True)


@register
class CountItem(PoolItem):
    """How the pool stood in one day: a text of numbers for each count, in ``data``; or the ``last`` count."""

    data: Any = ListAttribute(of=UnicodeAttribute, null=True)
    counted_at = NumberAttribute(null=True)
    last = UnicodeAttribute(null=True)


def account_key(account_id: str) -> str:
    return f"{ACCOUNT}#{account_id}"


def lease_key(lease_id: str) -> str:
    return f"{LEASE}#{lease_id}"


def person_key(user: str) -> str:
    return f"{PERSON}#{user}"


def list_of_state(state: AccountState) -> str:
    return f"account_status#{state.value}"


def counts_key(moment: datetime) -> str:
    """The item of a day."""
    return f"account_count#{moment:%Y-%m-%d}"


def share_of(name: str) -> int:
    """In which share something lies: the same in every process and version."""
    return zlib.crc32(name.encode()) % SHARDS


def state_share(pool: str, state: AccountState, share: int) -> str:
    return join_key(pool, state.value, str(share))


def listed_share(word: str, share: int) -> str:
    """``word``: ``accounts`` or ``leases``."""
    return f"{word}#{share}"


def place_of(pool: str, name: str) -> str:
    return join_key(pool, name)


def behind_pool(pool: str) -> str:
    """After every place of the pool, before those of any other: no name holds a ``$`` unescaped."""
    return f"{join_key(pool)}$"
