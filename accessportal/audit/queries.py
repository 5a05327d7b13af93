"""Reading the audit log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from accessportal.audit import policy, store
from accessportal.audit.states import AuditEvent, ChainBreak, Unpublished
from accessportal.kernel.pages import Page, every

# More than this many is the same alarm; counting on would read for ever when it is worst.
UNPUBLISHED_COUNTED_TO = 200


def history(entity: str, *, cursor: str | None = None, limit: int = 100, newest_first: bool = True) -> Page[AuditEvent]:
    """One page of the events of ``entity`` (for example ``request#<id>``), strongly read."""
    return store.page_of_entity(entity, cursor=cursor, limit=limit, newest_first=newest_first)


def by_actor(actor: str, *, cursor: str | None = None, limit: int = 50) -> Page[AuditEvent]:
    """What one actor did, newest first."""
    return store.page_of_actor(actor, cursor=cursor, limit=limit)


def list_day(*, day: date, cursor: str | None = None, limit: int = 50) -> Page[AuditEvent]:
    """What happened on a UTC ``day``, newest first; one request a shard for each page."""
    return store.page_of_day(day.isoformat(), cursor=cursor, limit=limit)


def find_breaks(entity: str) -> list[ChainBreak]:
    """Every break in the chain of ``entity``; empty when the chain is whole."""
    return list(policy.find_breaks(every(lambda cursor: store.page_of_entity(entity, cursor=cursor, limit=200, newest_first=False))))


def check_head(entity: str, *, version: int, audit_head: str) -> list[ChainBreak]:
    """The breaks of ``entity``'s chain, and whether it ends where the item says (a cut-off tail is a break too)."""
    events = every(lambda cursor: store.page_of_entity(entity, cursor=cursor, limit=200, newest_first=False))
    return policy.check_chain(entity, list(events), version=version, audit_head=audit_head)


def every_entity() -> Iterator[str]:
    """Every entity that ever had an event, those that are gone too. Reads the whole table: for checks, not for pages."""
    return store.every_entity()


def breaks_in(events: Sequence[AuditEvent]) -> list[ChainBreak]:
    """Every break in a chain that was read."""
    return list(policy.find_breaks(events))


def check_chain(entity: str, events: Sequence[AuditEvent], *, version: int, audit_head: str) -> list[ChainBreak]:
    """As :func:`check_head`, of a chain that was read."""
    return policy.check_chain(entity, events, version=version, audit_head=audit_head)


def every_chain(*, segment: int, segments: int) -> Iterator[tuple[str, list[AuditEvent]]]:
    """Everything that ever had an event, also what is gone, with its events in order: one of the ``segments`` that the table is cut
    into. Reads the whole table: for checks, not for pages."""
    return store.every_chain(segment=segment, segments=segments)


def count_unpublished(*, counted_to: int = UNPUBLISHED_COUNTED_TO) -> Unpublished:
    """How many events wait for the topic, counted to about ``counted_to``; one request a shard. The index behind it may lag."""
    shards = store.outbox_shards()
    pages = [store.unpublished_page(shard, cursor=None, limit=-(-counted_to // len(shards))) for shard in shards]
    oldest = min((event.at for page in pages for event in page.items), default=None)
    return Unpublished(count=sum(len(page.items) for page in pages), is_more=any(page.next_cursor for page in pages), oldest_at=oldest)
