"""Pages of requests, each by one of the table's indexes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pynamodb.expressions.condition import Condition

from accessportal.access_requests.models import RequestItem
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.access_requests.store.converting import precise, record, ticket_key
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.keys import fold_key
from accessportal.kernel.pages import Page
from accessportal.store.reading import query_page


def page_by_status(
    status: Status,
    *,
    cursor: str | None,
    limit: int,
    between: tuple[datetime, datetime] | None = None,
    newest_first: bool = False,
) -> Page[AccessRequest]:
    """By end or deadline; ``between`` two moments, both included, where given."""
    condition = RequestItem.expires_at.between(*map(to_epoch, between)) if between is not None else None
    return query_page(
        RequestItem,
        status.value,
        index=RequestItem.expiration_index,
        pattern=f"requests.by_status:{status}:{newest_first}",
        convert=record,
        cursor=cursor,
        limit=limit,
        range_condition=condition,
        newest_first=newest_first,
    )


def page_due(status: Status, *, until: datetime, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Those whose end or deadline is not after ``until``, for the sweep."""
    return query_page(
        RequestItem,
        status.value,
        index=RequestItem.expiration_index,
        pattern=f"requests.due:{status}",
        convert=record,
        cursor=cursor,
        limit=limit,
        range_condition=RequestItem.expires_at <= to_epoch(until),
    )


def page_by_subject(subject_id: str, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    return query_page(
        RequestItem,
        subject_id,
        index=RequestItem.subject_index,
        pattern=f"requests.by_subject:{subject_id}",
        convert=record,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )


def page_by_ticket(ticket_id: str, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Of each ticket alone: the index's key makes one of some that differ (the Kelvin sign is a ``k`` to it)."""
    key, wanted = ticket_key(ticket_id), fold_key(ticket_id.strip())
    page = query_page(
        RequestItem,
        key,
        index=RequestItem.ticket_index,
        pattern=f"requests.by_ticket:{key}",
        convert=record,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )
    return replace(page, items=tuple(one for one in page.items if fold_key(one.ticket_id.strip()) == wanted))


def page_by_requester(requested_by: str, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Newest first."""
    return query_page(
        RequestItem,
        requested_by,
        index=RequestItem.requester_index,
        pattern=f"requests.by_requester:{requested_by}",
        convert=record,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )


def page_ended(requested_by: str, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """What is over, last ended first."""
    return query_page(
        RequestItem,
        requested_by,
        index=RequestItem.ended_index,
        pattern=f"requests.ended:{requested_by}",
        convert=record,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )


def page_by_rule(rule_name: str, status: Status, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """In no order."""
    return query_page(
        RequestItem,
        rule_name,
        index=RequestItem.rule_index,
        pattern=f"requests.by_rule:{rule_name}:{status}",
        convert=record,
        cursor=cursor,
        limit=limit,
        range_condition=RequestItem.status == status.value,
    )


def page_by_account(account_id: str, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    return query_page(
        RequestItem,
        account_id,
        index=RequestItem.account_index,
        pattern=f"requests.by_account:{account_id}",
        convert=record,
        cursor=cursor,
        limit=limit,
        newest_first=True,
    )


def page_open(subject_id: str, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    return query_page(
        RequestItem,
        subject_id,
        index=RequestItem.open_index,
        pattern=f"requests.open:{subject_id}",
        convert=record,
        cursor=cursor,
        limit=limit,
    )


def page_work(work: Work, *, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Work by due time, earliest first."""
    return query_page(
        RequestItem,
        work.value,
        index=RequestItem.work_index,
        pattern=f"requests.work:{work}",
        convert=record,
        cursor=cursor,
        limit=limit,
    )


def page_due_work(work: Work, *, until: datetime, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Work that is due by ``until``, for the sweep."""
    return _page_of_work(f"requests.due_work:{work}", work, RequestItem.work_due_at <= precise(until), cursor, limit)


def page_work_ahead(work: Work, *, beyond: datetime, cursor: str | None, limit: int) -> Page[AccessRequest]:
    """Work whose due time lies after ``beyond``, for the sweep."""
    return _page_of_work(f"requests.work_ahead:{work}", work, RequestItem.work_due_at > precise(beyond), cursor, limit)


def _page_of_work(pattern: str, work: Work, when: Condition, cursor: str | None, limit: int) -> Page[AccessRequest]:
    return query_page(
        RequestItem,
        work.value,
        index=RequestItem.work_index,
        pattern=pattern,
        convert=record,
        cursor=cursor,
        limit=limit,
        range_condition=when,
    )
