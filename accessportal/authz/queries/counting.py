"""How much is in a scope, counted in parts: a page asks for one part after the other, and none costs more than the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from accessportal.authz.policy.rights import Caller
from accessportal.authz.states import SHARDS, Scope
from accessportal.authz.store import Ledger
from accessportal.kernel.counts import Count
from accessportal.store.cursors import read_cursor, sign_cursor
from accessportal.store.reading import side_by_side

SHARES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Counting:
    """What was counted so far, for each kind of records; ``next_cursor`` goes on with it (``None``: all shares were looked at)."""

    counts: tuple[Count, ...]
    next_cursor: str | None


def count_further(
    ledgers: Sequence[Ledger[Any]], scope: Scope, *, is_wide: bool, cursor: str | None, caller: Caller, now: datetime
) -> Counting:
    """Count the next shares of a scope, each by one request: where that does not reach the end of one, there may be more.

    :raises InvalidRequest: for a cursor that is not of this count.
    """
    caller.require(scope, writes=False)
    pattern = f"authz.count:{','.join(ledger.word for ledger in ledgers)}:{scope}:{is_wide}"
    so_far = read_cursor(pattern, cursor) or {"from": 0, "seen": [0] * len(ledgers), "more": [False] * len(ledgers)}
    shares = [(place, shard) for place in range(len(ledgers)) for shard in range(SHARDS)]
    end = so_far["from"] + SHARES_AT_ONCE
    part = shares[so_far["from"] : end]
    seen, more = [*so_far["seen"]], [*so_far["more"]]
    reads = [partial(ledgers[place].count_shard_once, scope, shard, is_wide=is_wide, now=now) for place, shard in part]
    for (place, _), count in zip(part, side_by_side(reads), strict=True):
        seen[place] += count.seen
        more[place] |= count.is_more
    following = {"from": end, "seen": seen, "more": more} if end < len(shares) else None
    counts = tuple(Count(number, is_more=is_more) for number, is_more in zip(seen, more, strict=True))
    return Counting(counts, sign_cursor(pattern, following))
