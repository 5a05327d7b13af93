"""The only user of the ApiTokens item class. Every change of a token is one transaction with its audit event."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice

from accessportal.audit import operations as audit
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.moments import SKEW
from accessportal.kernel.pages import Page, UnreadableItem
from accessportal.store.listing import Listing
from accessportal.store.reading import Beside, get_item, get_together, read_as, read_item, scan_records
from accessportal.store.records import Records
from accessportal.store.transactions import Change, ConditionFailed, Upsert, update_one
from accessportal.tokens import policy
from accessportal.tokens.models import LISTED, TokenItem, is_rate_key, rate_key
from accessportal.tokens.states import ApiToken, StoredToken

_tokens = Records(TokenItem, ApiToken, also=lambda token: {"list": LISTED, "unrevoked": LISTED if token.revoked_at is None else None})


def get(token_id: str) -> tuple[ApiToken, str] | None:
    """Get a token and the hash of its secret, strongly read. :raises Unavailable: also for a row that can't be read; it is named."""
    return read_item(TokenItem, _with_hash, token_id)


def get_with(token_id: str, beside: Beside) -> tuple[ApiToken, str] | None:
    """As :func:`get`, with the items ``beside`` in the same request. Where one of them can't be read, none is: that is for who needs it."""
    keys = beside.keys(token_id)
    if not keys:
        return get(token_id)
    try:
        item, *others = get_together([(TokenItem, token_id), *keys])
    except UnreadableItem:
        return get(token_id)
    beside.found.update(zip(keys, others, strict=True))
    return None if item is None else read_as(_with_hash, item)


def _with_hash(item: TokenItem) -> tuple[ApiToken, str] | None:
    return None if item.secret_hash is None else (_tokens.record(item), item.secret_hash)


def _stored(item: TokenItem) -> StoredToken | None:
    return None if is_rate_key(item.token_id) else StoredToken(_tokens.record(item), policy.check_of(item.secret_hash or ""))


every_token = partial(scan_records, TokenItem, _stored)
"""The whole table, for checks: also what no list shows."""
find_stored = partial(read_item, TokenItem, _stored)
"""One of them, strongly read."""


def page(*, with_revoked: bool, cursor: str | None, limit: int) -> Page[ApiToken]:
    """Newest first."""
    index = TokenItem.list_index if with_revoked else TokenItem.unrevoked_index
    return Listing("tokens", TokenItem, _tokens.record, index, newest_first=True)(LISTED, cursor=cursor, limit=limit, bound=with_revoked)


def page_of_maker(maker: str, *, cursor: str | None, limit: int) -> Page[ApiToken]:
    """Newest first, those that are revoked, too."""
    return Listing("tokens.of_maker", TokenItem, _tokens.record, TokenItem.maker_index, newest_first=True)(
        maker, cursor=cursor, limit=limit
    )


def unrevoked_hashes(*, most: int) -> dict[str, str]:
    """The ids of tokens that nobody revoked, at most so many, each with the hash of its secret. It may lag a moment."""
    hashes = Listing("tokens.hashes", TokenItem, lambda item: (item.token_id, item.secret_hash or ""), TokenItem.unrevoked_index)
    return dict(islice(hashes.every(LISTED, at_once=most), most))


def insert(token: ApiToken, *, secret_hash: str, draft: Draft, actor: Actor, now: datetime) -> ApiToken:
    """Write a new token and its event. :raises Overtaken: when the id is in use."""
    return audit.insert(_tokens, token, secret_hash=secret_hash, draft=draft, actor=actor, now=now)


def revoke(token: ApiToken, *, at: datetime, draft: Draft, actor: Actor, now: datetime) -> ApiToken:
    """Revoke the token from ``at`` on, and tell it. :raises Overtaken: when somebody else revoked it first."""
    after = replace(token, revoked_by=actor.name, revoked_at=at)
    return audit.change(_tokens, token, after, draft=draft, actor=actor, now=now)


def note_use(token_id: str, *, now: datetime) -> bool:
    """Whether the last use was written: not when somebody wrote it less than a minute ago."""
    used, now_at = TokenItem.last_used_at, to_epoch(now)
    is_old = used.does_not_exist() | (used <= now_at - policy.USE_NOTED_EVERY_SECONDS) | (used > to_epoch(now + SKEW))
    try:
        update_one(Change(TokenItem, token_id, [used.set(now_at)], is_old))
    except ConditionFailed:
        return False
    return True


def reserve(token_id: str, *, block: int, most: int, window_at: int) -> int:
    """Reserve at most ``block`` requests of the minute ``window_at``, of which all processes together get ``most``; 0: they are used up.
    One write, at the beginning of a minute two or three."""
    window, used = TokenItem.window_at, TokenItem.used
    # A process whose clock is a little ahead has begun the next minute: it is the one that counts then, for all.
    next_at = window_at + policy.WINDOW_SECONDS
    more = Change(TokenItem, rate_key(token_id), [used.add(block)], window.between(window_at, next_at) & (used < most))
    # A count from further ahead was left by a clock that was wrong, and must not lock the client out until then.
    is_other = window.does_not_exist() | (window < window_at) | (window > next_at)
    first = Upsert(TokenItem, rate_key(token_id), [window.set(window_at), used.set(block)], is_other)
    for step in (more, first, more):
        try:
            item = update_one(step)
        except ConditionFailed:
            continue
        assert isinstance(item, TokenItem)
        return block - max(0, int(item.used or 0) - most)
    return 0


def used_in(token_id: str, *, window_at: int) -> int:
    """How many requests of a minute the processes have reserved; strongly read."""
    item = get_item(TokenItem, rate_key(token_id))
    return 0 if item is None or (item.window_at or 0) < window_at else int(item.used or 0)
