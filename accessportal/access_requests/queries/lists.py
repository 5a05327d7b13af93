"""Lists of requests: each is a pattern that the table or an index really answers, paged to its end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta

from accessportal.access_requests import policy, store
from accessportal.access_requests.queries.rights import ApproverBook, is_approver_anywhere, standing_of
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import NotAllowed
from accessportal.kernel.pages import Page, every

# A filtered page reads at most this many pages of the index before it hands out a cursor: a page stays fast however few match.
_MOST_INDEX_PAGES = 8
STUCK_AFTER_SECONDS = 60
STUCK_ATTEMPTS = 2


def list_open(*, subject_id: str) -> tuple[AccessRequest, ...]:
    """Everything that a subject holds or waits for, nearest end first."""
    return tuple(every(lambda cursor: store.page_open(subject_id, cursor=cursor, limit=100)))


def list_mine(*, actor: Actor, cursor: str | None = None, limit: int = 25) -> Page[AccessRequest]:
    """The actor's own requests, newest first."""
    return store.page_by_subject(actor.name, cursor=cursor, limit=limit)


def list_by_subject(*, subject_id: str, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 50) -> Page[AccessRequest]:
    """Requests for a person or group, newest first."""
    _may_list(actor, now)
    return store.page_by_subject(subject_id, cursor=cursor, limit=limit)


def recent_of(*, subject_ids: Collection[str], actor: Actor, now: datetime, limit: int) -> Mapping[str, Page[AccessRequest]]:
    """The newest requests of each subject, one query a subject: the context of a page of other people's requests."""
    _may_list(actor, now)
    return {subject_id: store.page_by_subject(subject_id, cursor=None, limit=limit) for subject_id in set(subject_ids)}


def list_by_account(*, account_id: str, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 50) -> Page[AccessRequest]:
    """Requests for an AWS account, newest first."""
    _may_list(actor, now)
    return store.page_by_account(account_id, cursor=cursor, limit=limit)


def list_by_ticket(*, ticket_id: str, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 50) -> Page[AccessRequest]:
    """Requests with a ticket, newest first; those that were made before ``TicketIndex`` existed are not in it."""
    _may_list(actor, now)
    return store.page_by_ticket(ticket_id, cursor=cursor, limit=limit)


def list_by_status(
    *, status: Status, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 50, newest_first: bool = False
) -> Page[AccessRequest]:
    """Requests in a status by end or deadline."""
    _may_list(actor, now)
    return store.page_by_status(status, cursor=cursor, limit=limit, newest_first=newest_first)


def list_pending(*, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 50) -> Page[AccessRequest]:
    """Everything that waits for a decision, nearest deadline first."""
    return list_by_status(status=Status.PENDING, actor=actor, now=now, cursor=cursor, limit=limit)


def list_active(*, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 50) -> Page[AccessRequest]:
    """Everything that the portal answers for, nearest end first."""
    return list_by_status(status=Status.ACTIVE, actor=actor, now=now, cursor=cursor, limit=limit)


def list_ending_soon(
    *, actor: Actor, now: datetime, within_seconds: int = 3600, cursor: str | None = None, limit: int = 50
) -> Page[AccessRequest]:
    """Active access that ends within ``within_seconds``, nearest end first."""
    _may_list(actor, now)
    until = now + timedelta(seconds=within_seconds)
    return store.page_by_status(Status.ACTIVE, cursor=cursor, limit=limit, between=(now, until))


def list_stuck(*, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 50) -> Page[AccessRequest]:
    """Work that is late by a minute or has failed at least twice, revocations first (they are the dangerous ones)."""
    _may_list(actor, now)
    work, inner = (Work.REVOKE, cursor) if cursor is None or not cursor.startswith("g.") else (Work.GRANT, cursor[2:] or None)
    page = _filtered(lambda at: store.page_work(work, cursor=at, limit=limit), lambda request: is_stuck(request, now), inner, limit)
    if work is Work.GRANT:
        return Page(page.items, None if page.next_cursor is None else f"g.{page.next_cursor}")
    if page.next_cursor is not None:
        return page
    if len(page.items) >= limit:
        return Page(page.items, "g.")
    rest = list_stuck(actor=actor, now=now, cursor="g.", limit=limit)
    return Page(page.items + rest.items, rest.next_cursor)


def is_stuck(request: AccessRequest, now: datetime) -> bool:
    """Overdue, or failing again and again."""
    if request.work is None or request.work_due_at is None:
        return False
    # Waiting for a job or a conflict pushes the due time on and on without counting as a failure: what is late is late.
    wanted_at = request.expires_at if request.work is Work.REVOKE else request.decided_at or request.work_due_at
    overdue_since = min(request.work_due_at, wanted_at)
    return request.work_attempts >= STUCK_ATTEMPTS or now - overdue_since > timedelta(seconds=STUCK_AFTER_SECONDS)


def list_waiting_for(*, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 25) -> Page[AccessRequest]:
    """Pending requests that the actor may decide, nearest deadline first. A page may be short and still have a next one."""
    book = ApproverBook(now=now)

    def is_mine(request: AccessRequest) -> bool:
        return policy.may_approve(request, actor, standing_of(request, actor, now=now, book=book), now).allowed

    return _filtered(lambda at: store.page_by_status(Status.PENDING, cursor=at, limit=limit), is_mine, cursor, limit)


def count_waiting_for(*, actor: Actor, now: datetime, up_to: int = 25) -> int:
    """How many requests wait for the actor, counted up to ``up_to``."""
    return len(list_waiting_for(actor=actor, now=now, limit=up_to).items)


def list_undecidable(*, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 25) -> Page[AccessRequest]:
    """Pending requests whose rule has too few approvers left: operators stand in, and the rule wants mending."""
    _may_list(actor, now)
    book = ApproverBook(now=now)

    def is_orphan(request: AccessRequest) -> bool:
        approvers = book.of_request(request)
        return approvers.is_fallback or not approvers.can_decide

    return _filtered(lambda at: store.page_by_status(Status.PENDING, cursor=at, limit=limit), is_orphan, cursor, limit)


def history(*, request: AccessRequest) -> tuple[AuditEvent, ...]:
    """Every event of the request, oldest first. Whoever got the request may read its history."""
    return tuple(every(lambda cursor: audit.history(request.entity, cursor=cursor, newest_first=False)))


def _filtered(
    fetch: Callable[[str | None], Page[AccessRequest]], keep: Callable[[AccessRequest], bool], cursor: str | None, limit: int
) -> Page[AccessRequest]:
    found: list[AccessRequest] = []
    for _ in range(_MOST_INDEX_PAGES):
        page = fetch(cursor)
        found.extend(request for request in page.items if keep(request))
        cursor = page.next_cursor
        # Whole index pages only: the cursor stands between pages, so a page may hold a few more than the limit.
        if cursor is None or len(found) >= limit:
            break
    return Page(tuple(found), cursor)


def _may_list(actor: Actor, now: datetime) -> None:
    """Others' requests are for operators, auditors and approvers.

    :raises NotAllowed: for everybody else.
    """
    if not (actor.reads_everything or is_approver_anywhere(actor=actor, now=now)):
        raise NotAllowed("Only operators, auditors and approvers may list other people's requests.", code="not_a_reader")
