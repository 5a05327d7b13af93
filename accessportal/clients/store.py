"""The only user of the ApiTokens item class. Every change of a token is one transaction with its audit event."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from itertools import islice

from accessportal.audit.operations import prepare_event
from accessportal.audit.states import Draft
from accessportal.clients import policy
from accessportal.clients.models import LISTED, TokenItem, rate_key
from accessportal.clients.states import ApiToken, Scope
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.moments import SKEW
from accessportal.kernel.pages import Page
from accessportal.store.listing import Listing
from accessportal.store.reading import get_item, read_item
from accessportal.store.transactions import Change, ConditionFailed, Insert, Upsert, transact, update_one


class Taken(Exception):
    """The id belongs to a token already."""


class Overtaken(Exception):
    """Somebody else changed the token since it was read."""


def get(token_id: str) -> tuple[ApiToken, str] | None:
    """Get a token and the hash of its secret, strongly read. :raises Unavailable: also for a row that can't be read; it is named."""
    return read_item(TokenItem, lambda item: None if item.secret_hash is None else (_record(item), item.secret_hash), token_id)


def page(*, with_revoked: bool, cursor: str | None, limit: int) -> Page[ApiToken]:
    """Newest first."""
    index = TokenItem.list_index if with_revoked else TokenItem.unrevoked_index
    return Listing("tokens", TokenItem, _record, index, newest_first=True)(LISTED, cursor=cursor, limit=limit, bound=with_revoked)


def page_of_maker(maker: str, *, cursor: str | None, limit: int) -> Page[ApiToken]:
    """Newest first, those that are revoked, too."""
    return Listing("tokens.of_maker", TokenItem, _record, TokenItem.maker_index, newest_first=True)(maker, cursor=cursor, limit=limit)


def unrevoked_hashes(*, most: int) -> dict[str, str]:
    """The ids of tokens that nobody revoked, at most so many, each with the hash of its secret. It may lag a moment."""
    hashes = Listing("tokens.hashes", TokenItem, lambda item: (item.token_id, item.secret_hash or ""), TokenItem.unrevoked_index)
    return dict(islice(hashes.every(LISTED, at_once=most), most))


def insert(token: ApiToken, *, secret_hash: str, draft: Draft, actor: Actor, now: datetime) -> ApiToken:
    """Write a new token and its event. :raises Taken: when the id is in use."""
    event = prepare_event(draft, entity=token.entity, sequence=1, prev_hash="", actor=actor, now=now)
    made = dataclasses.replace(token, version=1, audit_head=event.head)
    item = TokenItem(
        made.token_id,
        list=LISTED,
        unrevoked=LISTED,
        name=made.name,
        secret_hash=secret_hash,
        scope=made.scope.value,
        rate_per_minute=made.rate_per_minute,
        tracks=set(made.tracks) or None,
        most_held=made.most_held,
        created_by=made.created_by,
        created_at=to_epoch(made.created_at),
        expires_at=None if made.expires_at is None else to_epoch(made.expires_at),
        version=made.version,
        audit_head=made.audit_head,
    )
    try:
        transact([Insert(item), event.step])
    except ConditionFailed as error:
        raise Taken from error
    return made


def revoke(token: ApiToken, *, at: datetime, draft: Draft, actor: Actor, now: datetime) -> ApiToken:
    """Revoke the token from ``at`` on, and tell it. :raises Overtaken: when somebody else revoked it first."""
    event = prepare_event(draft, entity=token.entity, sequence=token.version + 1, prev_hash=token.audit_head, actor=actor, now=now)
    after = dataclasses.replace(token, revoked_by=actor.name, revoked_at=at, version=token.version + 1, audit_head=event.head)
    actions = [
        TokenItem.unrevoked.remove(),
        TokenItem.revoked_by.set(after.revoked_by),
        TokenItem.revoked_at.set(to_epoch(at)),
        TokenItem.version.set(after.version),
        TokenItem.audit_head.set(after.audit_head),
    ]
    unchanged = (TokenItem.version == token.version) & TokenItem.revoked_at.does_not_exist()
    try:
        transact([Change(TokenItem, token.token_id, actions, unchanged), event.step])
    except ConditionFailed as error:
        raise Overtaken from error
    return after


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


def _record(item: TokenItem) -> ApiToken:
    return ApiToken(
        token_id=item.token_id,
        name=item.name or "",
        scope=Scope(item.scope),
        rate_per_minute=int(item.rate_per_minute or 0),
        created_by=item.created_by or "",
        created_at=from_epoch(item.created_at or 0),
        expires_at=_moment(item.expires_at),
        last_used_at=_moment(item.last_used_at),
        revoked_by=item.revoked_by or "",
        revoked_at=_moment(item.revoked_at),
        version=int(item.version or 0),
        audit_head=item.audit_head or "",
        tracks=tuple(sorted(item.tracks or ())),
        most_held=None if item.most_held is None else int(item.most_held),
    )


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else from_epoch(seconds)
