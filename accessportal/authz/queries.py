"""Checks, lists and counts. What is over is in none of them, whether or not its item still lies there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from accessportal.authz.config import current
from accessportal.authz.models import SHARDS
from accessportal.authz.operations.granting import find_live
from accessportal.authz.policy.checks import Answer, answer_by, answer_by_any, check_pattern, find_chain, matches
from accessportal.authz.policy.ends import is_over
from accessportal.authz.policy.rights import Caller
from accessportal.authz.policy.scopes import reaches
from accessportal.authz.states import Approval, Names, Relationship, Scope
from accessportal.authz.store import APPROVALS, RELATIONSHIPS, Ledger
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.pages import Page, every
from accessportal.store.keys import join_key
from accessportal.store.reading import side_by_side

R = TypeVar("R", Approval, Relationship)
_PAGE = 200


def get_record(ledger: Ledger[R], scope: Scope, names: Names, *, caller: Caller, now: datetime) -> R:
    """:raises NoSuchRecord: when there is none that counts."""
    caller.require(scope, writes=False)
    return find_live(ledger, scope, names, now)


def check(ledger: Ledger[R], scope: Scope, names: Names, *, caller: Caller, clock: Clock) -> Answer:
    """Whether this very record counts now: one strong read.

    :raises UnauthorizedScopeAccess: unless the caller reaches the scope.
    :raises Unavailable: when the store did not answer; that is neither a yes nor a no.
    """
    caller.require(scope, writes=False)
    found = ledger.get(scope, names)
    return answer_by(found, now=clock.now())


def check_chain(scope: Scope, names: Names, *, depth: int | None = None, caller: Caller, clock: Clock) -> Answer:
    """Whether links of trust or membership lead from the subject to the object, all in one scope; one round of reads a level."""
    caller.require(scope, writes=False)
    most = current().chain_depth
    if depth is not None and not 1 <= depth <= most:
        raise InvalidRequest(f"The depth is 1 to {most}.", code="depth_out_of_range", field="depth")
    subject, relation, target = names
    links_of = partial(_links_of, scope, relation)
    found = find_chain(subject, relation, target, links_of=links_of, now=clock.now(), depth=depth or most)
    # What ended while the rest was read carries nothing.
    return found if not any(is_over(one.expires_at, clock.now()) for one in found.by) else answer_by(None, now=clock.now())


def check_set(ledger: Ledger[R], scope: Scope, names: Names, *, caller: Caller, clock: Clock) -> Answer:
    """As :func:`check`, where the second name of an approval or the third of a relationship may end with ``/*``; every match is
    looked at."""
    caller.require(scope, writes=False)
    number = 1 if ledger.word == APPROVALS.word else 2
    pattern = check_pattern(names[number], field=ledger.fields[number])
    if not pattern.endswith("/*"):
        return check(ledger, scope, names, caller=caller, clock=clock)
    below = join_key(*names[1:number], pattern[:-1])
    fits = [
        record
        for record in _held(ledger, scope, names[0], below)
        if matches(pattern, record.names[number]) and all(record.names[i] == names[i] for i in range(3) if i != number)
    ]
    return answer_by_any(fits, now=clock.now())


def list_of_holder(
    ledger: Ledger[R], scope: Scope, holder: str, *, cursor: str | None, limit: int, caller: Caller, now: datetime
) -> Page[R]:
    """What an identity or a subject has in a scope."""
    caller.require(scope, writes=False)
    return _live(ledger.page_of_holder(scope, holder, cursor=cursor, limit=limit), now)


def list_of_target(
    ledger: Ledger[R], scope: Scope, target: Sequence[str], *, cursor: str | None, limit: int, caller: Caller, now: datetime
) -> Page[R]:
    """Who may do an action on a resource, or stands in a relation to an object, in a scope."""
    caller.require(scope, writes=False)
    return _live(ledger.page_of_target(scope, target, cursor=cursor, limit=limit), now)


def list_in_scope(
    ledger: Ledger[R], scope: Scope, *, is_wide: bool = False, cursor: str | None, limit: int, caller: Caller, now: datetime
) -> Page[R]:
    """All of a scope, with those below it where ``is_wide``; share by share."""
    caller.require(scope, writes=False)
    return _over_shards(lambda shard, inner: ledger.page_of_shard(scope, shard, is_wide=is_wide, cursor=inner, limit=limit), cursor, now)


def list_ending(ledger: Ledger[R], *, until: datetime, cursor: str | None, limit: int, caller: Caller, now: datetime) -> Page[R]:
    """What ends until then, in every scope that the caller reaches; share by share."""
    page = _over_shards(lambda shard, inner: ledger.page_ending(shard, until=until, cursor=inner, limit=limit), cursor, now)
    return replace(page, items=tuple(record for record in page.items if reaches(caller.scope, record.scope)))


def count_in_scope(ledger: Ledger[R], scope: Scope, *, is_wide: bool = False, caller: Caller, now: datetime) -> int:
    """How many records of a scope count now; the shares are counted side by side."""
    caller.require(scope, writes=False)
    return sum(side_by_side([partial(ledger.count_shard, scope, shard, is_wide=is_wide, now=now) for shard in range(SHARDS)]))


def _links_of(scope: Scope, relation: str, subjects: Sequence[str]) -> Mapping[str, Sequence[Relationship]]:
    reads: list[Callable[[], list[Relationship]]] = [
        partial(_held, RELATIONSHIPS, scope, one, join_key(relation) + "#") for one in subjects
    ]
    return dict(zip(subjects, side_by_side(reads), strict=True))


def _held(ledger: Ledger[R], scope: Scope, holder: str, below: str) -> list[R]:
    return list(every(lambda cursor: ledger.page_of_holder(scope, holder, below=below, cursor=cursor, limit=_PAGE)))


def _live(page: Page[R], now: datetime) -> Page[R]:
    return replace(page, items=tuple(record for record in page.items if not is_over(record.expires_at, now)))


def _over_shards(page_of: Callable[[int, str | None], Page[R]], cursor: str | None, now: datetime) -> Page[R]:
    """A page of the shard that the cursor names; the last page of one goes on with the next."""
    number, _, inner = (cursor or "0:").partition(":")
    if not number.isdigit() or len(number) > 2 or int(number) >= SHARDS:
        raise InvalidRequest("This cursor is not of this list. Begin anew.", code="cursor_invalid", field="cursor")
    shard = int(number)
    page = _live(page_of(shard, inner or None), now)
    if page.next_cursor is not None:
        return replace(page, next_cursor=f"{shard}:{page.next_cursor}")
    return replace(page, next_cursor=f"{shard + 1}:" if shard + 1 < SHARDS else None)
