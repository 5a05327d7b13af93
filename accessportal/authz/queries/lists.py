"""Lists and counts. What is over is in none of them, whether or not its item still lies there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from accessportal.authz import store
from accessportal.authz.policy.ends import GoverningPolicy, governing, is_over
from accessportal.authz.policy.names import check_name, check_names
from accessportal.authz.policy.rights import Caller
from accessportal.authz.policy.scopes import line_of
from accessportal.authz.states import GLOBAL, SHARDS, Approval, Names, Relationship, Scope, ScopeFacts, ScopeState
from accessportal.authz.store import Ledger
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.pages import Page
from accessportal.store.reading import side_by_side

R = TypeVar("R", Approval, Relationship)


def get_record(ledger: Ledger[R], scope: Scope, names: Names, *, caller: Caller, now: datetime) -> R:
    """:raises NoSuchRecord: when there is none that counts."""
    caller.require(scope, writes=False)
    return ledger.get_live(scope, check_names(names, ledger.fields), now)


def list_of_holder(
    ledger: Ledger[R], scope: Scope, holder: str, *, cursor: str | None, limit: int, caller: Caller, now: datetime
) -> Page[R]:
    """What an identity or a subject has in a scope."""
    caller.require(scope, writes=False)
    check_name(holder, ledger.fields[0])
    return _live(ledger.page_of_holder(scope, holder, cursor=cursor, limit=limit), now)


def list_of_target(
    ledger: Ledger[R], scope: Scope, target: Sequence[str], *, cursor: str | None, limit: int, caller: Caller, now: datetime
) -> Page[R]:
    """Who may do an action on a resource, or stands in a relation to an object, in a scope."""
    caller.require(scope, writes=False)
    for name, field in zip(target, ledger.kind.target_fields, strict=True):
        check_name(name, field)
    return _live(ledger.page_of_target(scope, target, cursor=cursor, limit=limit), now)


def list_in_scope(
    ledger: Ledger[R], scope: Scope, *, is_wide: bool = False, cursor: str | None, limit: int, caller: Caller, now: datetime
) -> Page[R]:
    """All of a scope, with those below it where ``is_wide``; share by share."""
    caller.require(scope, writes=False)
    return _over_shards(lambda shard, inner: ledger.page_of_shard(scope, shard, is_wide=is_wide, cursor=inner, limit=limit), cursor, now)


def list_ending(ledger: Ledger[R], *, until: datetime, cursor: str | None, limit: int, caller: Caller, now: datetime) -> Page[R]:
    """What ends until then, in every scope; share by share. For callers of the global scope alone."""
    caller.require(GLOBAL, writes=False)
    return _over_shards(lambda shard, inner: ledger.page_ending(shard, until=until, cursor=inner, limit=limit), cursor, now)


def count_in_scope(ledger: Ledger[R], scope: Scope, *, is_wide: bool = False, caller: Caller, now: datetime) -> int:
    """How many records of a scope count now; the shares are counted side by side."""
    caller.require(scope, writes=False)
    return sum(side_by_side([partial(ledger.count_shard, scope, shard, is_wide=is_wide, now=now) for shard in range(SHARDS)]))


def find_scope(scope: Scope, *, caller: Caller) -> ScopeFacts:
    """What is known of a scope, strongly read; while it is being deleted, with how many of its records are removed."""
    caller.require(scope, writes=False)
    facts = store.get_scope(scope) or ScopeFacts(scope)
    return replace(facts, removed=store.count_removed(scope)) if facts.state is ScopeState.DELETING else facts


def governing_policy(scope: Scope, *, caller: Caller) -> GoverningPolicy:
    """The nearest policy up the scope's line, and whose it is; strongly read, in one request."""
    caller.require(scope, writes=False)
    known = store.get_scopes(line_of(scope))
    return governing(line_of(scope), {one.scope: one.policy for one in known.values() if one.policy is not None})


def list_scopes(*, cursor: str | None, limit: int, caller: Caller) -> Page[ScopeFacts]:
    """The scopes that something was granted in or a policy was set for, by name. For callers of the global scope alone."""
    caller.require(GLOBAL, writes=False)
    return store.page_of_scopes(cursor=cursor, limit=limit)


def _live(page: Page[R], now: datetime) -> Page[R]:
    return replace(page, items=tuple(record for record in page.items if not is_over(record.expires_at, now)))


def _over_shards(page_of: Callable[[int, str | None], Page[R]], cursor: str | None, now: datetime) -> Page[R]:
    """A page of the shard that the cursor names; the last page of one goes on with the next."""
    number, _, inner = (cursor or "0:").partition(":")
    if not number.isdecimal() or len(number) > 2 or int(number) >= SHARDS:
        raise InvalidRequest("This cursor is not of this list. Begin anew.", code="cursor_forged", field="cursor")
    shard = int(number)
    page = _live(page_of(shard, inner or None), now)
    if page.next_cursor is not None:
        return replace(page, next_cursor=f"{shard}:{page.next_cursor}")
    return replace(page, next_cursor=f"{shard + 1}:" if shard + 1 < SHARDS else None)
