"""How the pool stood over time: an item for each day, and the last count with each pool by itself."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from pynamodb.expressions.update import Action

from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.moments import SKEW
from accessportal.leases import models
from accessportal.leases.models import CountItem
from accessportal.leases.states import AccountState, Count
from accessportal.store.reading import get_item, get_together, read_as
from accessportal.store.transactions import ConditionFailed, Remove, Upsert, transact, update_one

_SLOT_SECONDS = 300
_DAY = timedelta(days=1)
# A day longer than pages look back.
_KEPT_DAYS = 8
# An item must stay small.
_MOST_ENDS = 1_000


def keep(count: Count) -> None:
    """The newest count wins as the last one; of those of the same five minutes the first is kept, for about a week."""
    at = to_epoch(count.counted_at)
    numbers = [at, count.handed_out, *(count.counts.get(state, 0) for state in AccountState)]
    pools = {pool: {state.value: number for state, number in counts.items()} for pool, counts in count.pools.items()}
    ends = [to_epoch(end) for end in count.ends[:_MOST_ENDS]]
    told = json.dumps({"numbers": numbers, "pools": pools, "ends": ends, "unreadable": count.unreadable}, sort_keys=True)
    # The list of a day is one item, so it holds texts, which are short.
    grown = (CountItem.data | []).append([" ".join(map(str, numbers))])
    _write(models.counts_key(count.counted_at), CountItem.data.set(grown), at=at, after=at - at % _SLOT_SECONDS)
    _write(models.LAST_COUNT, CountItem.last.set(told), at=at, after=at)
    if not count.counted_at.hour:
        with contextlib.suppress(ConditionFailed):
            transact([Remove(CountItem, models.counts_key(count.counted_at - _KEPT_DAYS * _DAY), CountItem.pk.exists())])


def _write(key: str, action: Action, *, at: int, after: int) -> None:
    """Write it if what is there was counted before ``after``, or was left by a clock that was wrong."""
    is_due = CountItem.counted_at.does_not_exist() | (CountItem.counted_at < after)
    is_wrong = CountItem.counted_at > at + int(SKEW.total_seconds())
    with contextlib.suppress(ConditionFailed):
        update_one(Upsert(CountItem, key, [action, CountItem.counted_at.set(at)], is_due | is_wrong))


def last_count() -> Count | None:
    """How the accounts stood when they were last counted; ``None``: nobody has counted yet."""
    item = get_item(CountItem, models.LAST_COUNT)
    return None if item is None else read_as(_last_of, item)


def between(since: datetime, until: datetime) -> Iterator[Count]:
    """The counts of a time, oldest first: one request for up to a hundred days."""
    days = [since + number * _DAY for number in range((until.date() - since.date()).days + 1)]
    for item in get_together([(CountItem, models.counts_key(day)) for day in days]):
        counts = [] if item is None else read_as(_counts_of, item)
        yield from (count for count in counts if since <= count.counted_at <= until)


def _last_of(item: CountItem) -> Count:
    told = json.loads(item.last or "")
    pools = {pool: {AccountState(name): int(number) for name, number in counts.items()} for pool, counts in told["pools"].items()}
    return replace(_count(told["numbers"]), pools=pools, ends=tuple(map(from_epoch, told["ends"])), unreadable=int(told["unreadable"]))


def _counts_of(item: CountItem) -> list[Count]:
    return [_count(numbers.split()) for numbers in item.data]


def _count(numbers: Sequence[str | int]) -> Count:
    at, handed_out, *counts = map(int, numbers)
    return Count(from_epoch(at), dict(zip(AccountState, counts, strict=False)), handed_out)
