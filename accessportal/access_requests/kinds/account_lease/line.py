"""Who waits for an account, and when a turn is expected to come."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice

from accessportal.access_requests.states import AccessRequest, PlaceInLine
from accessportal.kernel.pages import every
from accessportal.leases import queries as leases
from accessportal.leases.policy import fits
from accessportal.leases.states import AccountState
from accessportal.waiting import queries as line
from accessportal.waiting.states import ACCOUNTS, Place

# Of so many leases and of so many accounts that are being cleaned an expected time is told.
_MOST_ENDS = 500
_PAGE = 100


def place_in_line(request: AccessRequest, *, now: datetime) -> PlaceInLine | None:
    """Where the request stands; ``None``: in no line."""
    standing = line.find(line=ACCOUNTS, claim=request.request_id)
    if standing is None:
        return None
    ends = list(islice(_ends_in(str(request.target["pool"])), _MOST_ENDS))
    expected = line.expected(standing=standing, ends=ends, now=now)
    return PlaceInLine(standing.before, standing.place.lapses_at, (expected.earliest, expected.latest) if expected else None)


def is_waited_for(account_id: str, *, now: datetime) -> bool:
    """Whether somebody waits for an account like this one."""
    account = leases.get_account(account_id=account_id)

    def would_take_it(place: Place) -> bool:
        return fits(account, pool=place.wants["pool"], size=place.wants["size"], tags=place.wants["tags"])

    return line.first_that_fits(line=ACCOUNTS, fits=would_take_it, now=now)[1] is not None


def _ends_in(pool: str) -> Iterator[datetime]:
    """When what is lent is given back, and when cleaning began of what was."""
    for lease in every(lambda cursor: leases.list_leases(pool=pool, cursor=cursor, limit=_PAGE)):
        yield lease.ends_at or lease.taken_at + timedelta(seconds=lease.duration_seconds)
    yield from _since(pool, AccountState.DIRTY)
    yield from _since(pool, AccountState.INITIAL)


def _since(pool: str, state: AccountState) -> Iterator[datetime]:
    found = every(lambda cursor: leases.list_accounts(pool=pool, state=state, cursor=cursor, limit=_PAGE))
    return (account.since for account in found)
