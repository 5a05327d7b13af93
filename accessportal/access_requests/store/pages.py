"""Lists of requests, each by one of the table's indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from accessportal.access_requests.models import RequestItem
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.access_requests.store.converting import precise, record, ticket_key
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.pages import Page
from accessportal.kernel.texts import fold_key
from accessportal.store.listing import Listing
from accessportal.store.reading import side_by_side

_list = partial(Listing, model=RequestItem, record=record)
_by_status = _list("requests.by_status", index=RequestItem.expiration_index)
_by_status_backwards = replace(_by_status, newest_first=True)
_by_ticket = _list("requests.by_ticket", index=RequestItem.ticket_index, newest_first=True)
_by_rule = _list("requests.by_rule", index=RequestItem.rule_index)

page_by_subject = _list("requests.by_subject", index=RequestItem.subject_index, newest_first=True)
page_by_requester = _list("requests.by_requester", index=RequestItem.requester_index, newest_first=True)
page_ended = _list("requests.ended", index=RequestItem.ended_index, newest_first=True)
"""What somebody asked for and is over, last ended first."""
page_by_account = _list("requests.by_account", index=RequestItem.account_index, newest_first=True)
page_open = _list("requests.open", index=RequestItem.open_index)
page_work = _list("requests.work", index=RequestItem.work_index)
"""Work by due time, earliest first."""


def page_by_status(
    status: Status,
    *,
    cursor: str | None,
    limit: int,
    between: tuple[datetime, datetime] | None = None,
    newest_first: bool = False,
) -> Page[AccessRequest]:
    """By end or deadline; ``between`` two moments, both included, where given."""
    where = RequestItem.expires_at.between(*map(to_epoch, between)) if between is not None else None
    listing = _by_status_backwards if newest_first else _by_status
    return listing(status.value, cursor=cursor, limit=limit, where=where, bound=newest_first)


def page_due(status: Status, *, until: datetime, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Those whose end or deadline is not after ``until``, for the sweep."""
    return _by_status(status.value, cursor=cursor, limit=limit, where=RequestItem.expires_at <= to_epoch(until), bound="due")


def pages_by_subjects(subject_ids: Sequence[str], *, limit: int) -> list[Page[AccessRequest]]:
    """The first :func:`page_by_subject` of each, in their order, read side by side."""
    return side_by_side([partial(page_by_subject, subject_id, cursor=None, limit=limit) for subject_id in subject_ids])


def page_by_ticket(ticket_id: str, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Of each ticket alone: the index's key makes one of some that differ (the Kelvin sign is a ``k`` to it)."""
    wanted = fold_key(ticket_id.strip())
    page = _by_ticket(ticket_key(ticket_id), cursor=cursor, limit=limit)
    return replace(page, items=tuple(one for one in page.items if fold_key(one.ticket_id.strip()) == wanted))


def page_by_rule(rule_name: str, status: Status, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """In no order."""
    return _by_rule(rule_name, cursor=cursor, limit=limit, where=RequestItem.status == status.value, bound=status)


def page_due_work(work: Work, *, until: datetime, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Work that is due by ``until``, for the sweep."""
    return page_work(work.value, cursor=cursor, limit=limit, where=RequestItem.work_due_at <= precise(until), bound="due")


def page_work_ahead(work: Work, *, beyond: datetime, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Work whose due time lies after ``beyond``, for the sweep."""
    return page_work(work.value, cursor=cursor, limit=limit, where=RequestItem.work_due_at > precise(beyond), bound="ahead")
