"""Who waits for an account, and when a turn is expected to come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from accessportal.access_requests.config import current
from accessportal.access_requests.states import AccessRequest, PlaceInLine
from accessportal.kernel.pages import UnreadableItem, every
from accessportal.leases import queries as leases
from accessportal.leases.operations import Asked, asked_at
from accessportal.leases.states import Account, AccountState, Lease
from accessportal.waiting import queries as line
from accessportal.waiting.states import ACCOUNTS, Place

# Of so many leases and of so many accounts that are being cleaned an expected time is told.
_MOST_ENDS = 500
_PAGE = 100


def places_in_line(requests: Iterable[AccessRequest], *, now: datetime) -> dict[str, PlaceInLine]:
    """Where those stand that are in the line, by id. The ends are read once for all who wait for the same."""
    found: dict[str, PlaceInLine] = {}
    ends: dict[tuple[Any, ...], list[datetime]] = {}
    for request in requests:
        try:
            standing = line.find(line=ACCOUNTS, claim=request.request_id, compete=_compete)
            asked = None if standing is None else asked_at(standing.place)
        except UnreadableItem as error:
            line.pass_over(error.item)
            continue
        if standing is None or asked is None:
            continue
        same = (asked.pool, asked.size, *sorted(asked.tags.items()))
        if same not in ends:
            ends[same] = _ends_for(asked)
        # What is given back may be taken back for a while; of new accounts, which may be the last that were cleaned, nothing may.
        expected = line.expected(standing=standing, ends=ends[same], grace_seconds=current().undo_seconds, now=now)
        turn = (expected.earliest, expected.latest) if expected else None
        found[request.request_id] = PlaceInLine(standing.before, standing.place.lapses_at, turn)
    return found


def is_waited_for(lease: Lease, *, now: datetime) -> bool:
    """Whether somebody else waits for an account like the one that is lent."""
    account = leases.get_account(account_id=lease.account_id)

    def would_take_it(place: Place) -> bool:
        asked = asked_at(place)
        return asked.user != lease.user and asked.is_met_by(account)

    return line.first_that_fits(line=ACCOUNTS, fits=would_take_it, now=now)[1] is not None


def _compete(own: Place, other: Place) -> bool:
    """Whether one account can be what both wait for."""
    mine, theirs = asked_at(own), asked_at(other)
    if mine.pool != theirs.pool or (mine.size and theirs.size not in ("", mine.size)):
        return False
    return all(theirs.tags.get(name, value) == value for name, value in mine.tags.items())


def _ends_for(asked: Asked) -> list[datetime]:
    """Of what fits: when that which is lent is given back, and when cleaning began of what was."""
    lent = leases.find_leases(lease_ids=[account.lease_id for account in _fitting(asked, AccountState.LEASED)])
    ends = [lease.expected_end for lease in lent.values()]
    return ends + [account.since for state in (AccountState.DIRTY, AccountState.INITIAL) for account in _fitting(asked, state)]


def _fitting(asked: Asked, state: AccountState) -> Iterator[Account]:
    """The first of the accounts in this state that would be what is waited for."""
    found = every(lambda cursor: leases.list_accounts(pool=asked.pool, state=state, cursor=cursor, limit=_PAGE))
    return islice((account for account in found if asked.is_met_by(account)), _MOST_ENDS)
