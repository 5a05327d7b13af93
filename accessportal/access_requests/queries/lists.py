"""Lists of requests: each is a pattern that the table or an index really answers, paged to its end."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from accessportal.access_requests import policy, store
from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.states import AccessRequest, Found, Search, Status, Work
from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent
from accessportal.directory import queries as directory
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.counts import Count
from accessportal.kernel.errors import NotAllowed
from accessportal.kernel.pages import Page, Unreadable
from accessportal.store.cursors import read_cursor, sign_cursor
from accessportal.store.reading import side_by_side

T = TypeVar("T")
# A filtered page reads at most this many pages of the index before it hands out a cursor: a page stays fast however few match.
_MOST_INDEX_PAGES = 8
_COUNTED_AT_ONCE = 100
_MOST_LOOKED_AT = 200
_Fetch = Callable[[str | None], Page[AccessRequest]]
_Keep = Callable[[Sequence[AccessRequest]], Iterable[AccessRequest]]
_ANY = Search()
# Of the queue each page of the index may need one or two reads more, of the groups that are asked for.
_MOST_PAGES_OF_QUEUE = 4
_DECIDED = frozenset({"request.approved", "request.approval_given", "request.denied"})
STUCK_AFTER_SECONDS = 60
STUCK_ATTEMPTS = 2
ACCESS_ENDS = "What they hold by requests ends within a minute, and what they still wait for is cancelled."
ACCESS_OF_GROUP_ENDS = (
    "Access that a rule gave for being in it ends within a minute, unless the rule says otherwise or another group still gives it."
)


def list_open(*, subject_id: str, past: Callable[[Unreadable], object] | None = None) -> tuple[AccessRequest, ...]:
    """Everything that a subject holds or waits for, nearest end first; ``past`` as in :func:`every`."""
    return tuple(store.page_open.every(subject_id, past=past))


@dataclass(frozen=True, slots=True)
class OpenPart:
    """What is held or waited for, with whom it is for, nearest end first. ``end`` groups were looked at by now, and ``rest`` were not."""

    found: tuple[tuple[str, AccessRequest], ...]
    end: int
    rest: int


def list_open_through(*, email: str, start: int = 0, most: int, book: ApproverBook, past: Callable[[Unreadable], object]) -> OpenPart:
    """What a person holds or waits for by themselves, and by ``most`` of their groups from ``start`` on, those that they are directly in
    first. Each is one request to the table, read side by side. ``past`` as in :func:`every`."""
    _, groups, direct = directory.find_person_with_groups(email=email, now=book.now, book=book.directory)
    ordered = sorted(groups, key=lambda group_id: (group_id not in direct, group_id))
    shown = ordered[start : start + most]
    subject_ids = shown if start else [fold_email(email), *shown]
    found = []
    for subject_id, (requests, unreadable) in zip(subject_ids, side_by_side([partial(_open_of, one) for one in subject_ids]), strict=True):
        found += [(subject_id, request) for request in requests]
        for one in unreadable:
            past(one)
    end = min(start + most, len(ordered))
    return OpenPart(tuple(sorted(found, key=lambda one: one[1].expires_at)), end, len(ordered) - end)


def _open_of(subject_id: str) -> tuple[tuple[AccessRequest, ...], list[Unreadable]]:
    unreadable: list[Unreadable] = []
    return list_open(subject_id=subject_id, past=unreadable.append), unreadable


@dataclass(frozen=True, slots=True)
class Ending:
    """What ends with a person (docs/decisions/0043-departures.md), nearest end first."""

    active: tuple[AccessRequest, ...]
    waiting: tuple[AccessRequest, ...]
    unreadable: tuple[Unreadable, ...]

    @property
    def words(self) -> str:
        """:data:`ACCESS_ENDS`, and how much that is now."""
        return " ".join([f"{ACCESS_ENDS} Active now: {len(self.active)}, waiting: {len(self.waiting)}.", *map(str, self.unreadable)])


def what_ends_with(*, subject_id: str) -> Ending:
    """What a person holds and waits for by themselves: no choice of whoever disables or deletes them."""
    requests, unreadable = _open_of(subject_id)
    active = tuple(one for one in requests if one.status is Status.ACTIVE)
    return Ending(active, tuple(one for one in requests if one.status is Status.PENDING), tuple(unreadable))


def list_mine(*, actor: Actor, kind: str = "", search: Search = _ANY, cursor: str | None = None, limit: int = 25) -> Page[AccessRequest]:
    """What the actor asked for, for themselves or for a group, newest first; of a ``kind``, and as ``search`` narrows it. A page may be
    short and still have a next one."""

    def looked_for(found: Sequence[AccessRequest]) -> Iterable[AccessRequest]:
        return (one for one in found if kind in {"", one.kind} and policy.is_looked_for(one, search))

    return _filtered(_more_each_time(partial(store.page_mine, actor.name, search), limit), looked_for, cursor, limit)


def list_ended(*, requested_by: str, cursor: str | None = None, limit: int = 25) -> Page[AccessRequest]:
    """Of what somebody asked for, what is over, last ended first."""
    return store.page_ended(requested_by, cursor=cursor, limit=limit)


def list_unproved(*, before: datetime) -> tuple[AccessRequest, ...]:
    """Active access that was asked for ``before`` and has not been proved to be granted yet; the index behind it may lag."""
    grants = store.page_work.every(Work.GRANT.value)
    return tuple(request for request in grants if request.status is Status.ACTIVE and request.requested_at < before)


def list_by_subject(*, subject_id: str, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 50) -> Page[AccessRequest]:
    """Requests for a person or group, newest first."""
    _may_list(actor, now)
    return store.page_by_subject(subject_id, cursor=cursor, limit=limit)


def list_asked_through(*, subject_id: str, program: Actor, cursor: str | None = None, limit: int = 50) -> Page[AccessRequest]:
    """What the program asked for in a person's name, newest first. A page may be short and still have a next one."""

    def mine(requests: Sequence[AccessRequest]) -> Iterable[AccessRequest]:
        return (one for one in requests if one.asked_through == program.name)

    return _filtered(lambda at: store.page_by_subject(subject_id, cursor=at, limit=limit), mine, cursor, limit)


def recent_of(*, subject_ids: Collection[str], actor: Actor, limit: int, book: ApproverBook) -> Mapping[str, Page[AccessRequest]]:
    """The newest requests of each subject, one query a subject, side by side: the context of a page of other people's requests."""
    _may_list(actor, book.now, book)
    wanted = sorted(set(subject_ids))
    return dict(zip(wanted, store.pages_by_subjects(wanted, limit=limit), strict=True))


def search(*, search: Search, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 50, count_to: int = 0) -> Found:
    """What is looked for, newest first. By one thing and the time an index answers; what else is asked is looked for among what that finds,
    a part at a time. Requests that were made before ``TicketIndex`` existed are not found by their ticket. Where one index tells it, also
    how many there are, counted ``count_to`` so many with the first page, and carried by the cursors."""
    _may_list(actor, now)
    is_simple = len(search.asked) < 2 and not search.ticket_id
    if not (count_to and is_simple and search.asked):
        page = store.page_found(search, cursor=cursor, limit=limit) if is_simple else _sifted(search, cursor, limit)
        return Found(page.items, page.next_cursor, page.unreadable)
    bound = f"requests.counted:{count_to}:{search}"
    carried = read_cursor(bound, cursor)
    page = store.page_found(search, cursor=carried["cursor"] if carried else None, limit=limit)
    found = carried["found"] if carried else store.count_found(search, up_to=count_to + 1)
    after = {"cursor": page.next_cursor, "found": found} if page.next_cursor else None
    total = Count(min(found, count_to), is_more=found > count_to)
    return Found(page.items, sign_cursor(bound, after), page.unreadable, total=total)


def _sifted(search: Search, cursor: str | None, limit: int) -> Page[AccessRequest]:
    fetch = _more_each_time(partial(store.page_found, search), limit)
    return _filtered(fetch, lambda found: (one for one in found if policy.is_looked_for(one, search)), cursor, limit)


def _more_each_time(fetch: Callable[..., Page[T]], limit: int) -> Callable[[str | None], Page[T]]:
    """``fetch``, whose pages grow: the fewer were among the last ones, the more are looked at next."""
    reads = itertools.count()
    return lambda at: fetch(cursor=at, limit=min(limit * 2 ** next(reads), _MOST_LOOKED_AT))


def list_asked_by_rule(*, rule_name: str, actor: Actor, limit: int, book: ApproverBook) -> Page[AccessRequest]:
    """The newest requests on which this rule decided, as :func:`search`."""
    _may_list(actor, book.now, book)
    return store.page_found(Search(rule_name=rule_name), cursor=None, limit=limit)


def list_decided_by(*, actor: Actor, cursor: str | None = None, limit: int = 25) -> Page[AccessRequest]:
    """What the actor approved or denied, last decision first, as it stands now: by the audit log, so without what was purged. A page may be
    short and still have a next one."""
    found: dict[str, None] = {}
    fetch = _more_each_time(partial(audit.by_actor, actor.name), limit)
    for _ in range(_MOST_PAGES_OF_QUEUE):
        page = fetch(cursor)
        found |= dict.fromkeys(event.entity.partition("#")[2] for event in page.items if event.action in _DECIDED)
        cursor = page.next_cursor
        if cursor is None or len(found) >= limit:
            break
    unreadable: list[Unreadable] = []
    requests = store.get_many(found, past=unreadable.append)
    return Page(tuple(requests[one] for one in found if one in requests), cursor, tuple(unreadable))


def list_by_status(
    *, status: Status, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 50, newest_first: bool = False
) -> Page[AccessRequest]:
    """Requests in a status by end or deadline."""
    _may_list(actor, now)
    return store.page_by_status(status, cursor=cursor, limit=limit, newest_first=newest_first)


def list_pending(
    *, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 50, wanted: Callable[[AccessRequest], bool] | None = None
) -> Page[AccessRequest]:
    """Everything that waits for a decision and is ``wanted``, nearest deadline first."""
    if wanted is None:
        return list_by_status(status=Status.PENDING, actor=actor, now=now, cursor=cursor, limit=limit)
    _may_list(actor, now)
    return _filtered(_more_each_time(_pending_page, limit), partial(filter, wanted), cursor, limit)


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
    page = _filtered(lambda at: store.page_work(work.value, cursor=at, limit=limit), partial(_stuck_among, now=now), inner, limit)
    if work is Work.GRANT:
        return replace(page, next_cursor=None if page.next_cursor is None else f"g.{page.next_cursor}")
    if page.next_cursor is not None:
        return page
    if len(page.items) >= limit:
        return replace(page, next_cursor="g.")
    rest = list_stuck(actor=actor, now=now, cursor="g.", limit=limit)
    return Page(page.items + rest.items, rest.next_cursor, page.unreadable + rest.unreadable)


def _stuck_among(requests: Iterable[AccessRequest], *, now: datetime) -> Iterable[AccessRequest]:
    return (request for request in requests if is_stuck(request, now))


def is_stuck(request: AccessRequest, now: datetime) -> bool:
    """Overdue, or failing again and again."""
    if request.work is None or request.work_due_at is None:
        return False
    # Waiting for a job or a conflict pushes the due time on and on without counting as a failure: what is late is late.
    wanted_at = request.expires_at if request.work is Work.REVOKE else request.decided_at or request.work_due_at
    overdue_since = min(request.work_due_at, wanted_at)
    return request.work_attempts >= STUCK_ATTEMPTS or now - overdue_since > timedelta(seconds=STUCK_AFTER_SECONDS)


def count_stuck(*, actor: Actor, now: datetime, up_to: int = 100) -> Count:
    """How many :func:`list_stuck` has, counted to about ``up_to``."""
    page = list_stuck(actor=actor, now=now, limit=up_to)
    return Count(len(page.items), is_more=page.next_cursor is not None)


def list_waiting_for(
    *,
    actor: Actor,
    now: datetime,
    cursor: str | None = None,
    limit: int = 25,
    book: ApproverBook | None = None,
    wanted: Callable[[AccessRequest], bool] | None = None,
) -> Page[AccessRequest]:
    """Pending requests that the actor may decide, and that are ``wanted``, nearest deadline first. A page may be short and still have a
    next one. One ``book`` serves a whole page."""
    fetch = _more_each_time(_pending_page, limit)
    book = book or ApproverBook(now=now)
    return _waiting_for(actor, fetch, book=book, now=now, cursor=cursor, limit=limit, wanted=wanted, most_pages=_MOST_PAGES_OF_QUEUE)


def _pending_page(*, cursor: str | None, limit: int) -> Page[AccessRequest]:
    return store.page_by_status(Status.PENDING, cursor=cursor, limit=limit)


def _waiting_for(
    actor: Actor,
    fetch: _Fetch,
    *,
    book: ApproverBook,
    now: datetime,
    cursor: str | None = None,
    limit: int,
    wanted: Callable[[AccessRequest], bool] | None = None,
    most_pages: int = _MOST_INDEX_PAGES,
) -> Page[AccessRequest]:
    def mine(found: Sequence[AccessRequest]) -> Iterable[AccessRequest]:
        requests = list(filter(wanted, found)) if wanted else found
        book.expect_standings(requests, actor)
        # Whoever is no approver is refused with the names of those who are, which costs looking them up.
        # An operator sees what they decide in somebody's place among all that is pending: a further look is one request too many here.
        in_place = not actor.is_operator
        decidable = (one for one in requests if book.is_approver(one, actor.name) or (in_place and book.in_place_of(one, actor)))
        return (one for one in decidable if policy.may_approve(one, actor, book.standing(one, actor), now).allowed)

    return _filtered(fetch, mine, cursor, limit, most_pages=most_pages)


def count_waiting_for(*, actor: Actor, now: datetime, up_to: int = 25, book: ApproverBook | None = None) -> Count:
    """How many requests wait for the actor, counted to about ``up_to``: those of each rule by which they approve, however many
    others wait. Where an operator stands in, only a look at those with the nearest deadlines tells: first, as it may have been all."""
    book = book or ApproverBook(now=now)
    rules = book.rules_of_approver(actor.name) if actor.is_operator else book.approved_rules(actor)
    looks: list[_Fetch] = [partial(_waiting_by_rule, name) for name in rules]
    if actor.is_operator:
        looks.insert(0, lambda at: _pending_page(cursor=at, limit=_COUNTED_AT_ONCE))
    found: set[str] = set()
    is_more = False
    for look in looks:
        page = _waiting_for(actor, look, book=book, now=now, limit=up_to)
        found.update(request.request_id for request in page.items)
        is_more |= page.next_cursor is not None or bool(page.unreadable)
        if len(found) >= up_to:
            return Count(len(found), is_more=is_more or look is not looks[-1])
        if actor.is_operator and look is looks[0] and page.next_cursor is None:
            break
    return Count(len(found), is_more=is_more)


def _waiting_by_rule(rule_name: str, cursor: str | None) -> Page[AccessRequest]:
    return store.page_by_rule(rule_name, Status.PENDING, cursor=cursor, limit=_COUNTED_AT_ONCE)


def list_undecidable(
    *, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 25, book: ApproverBook | None = None
) -> Page[AccessRequest]:
    """Pending requests whose rule has too few approvers left: operators decide, and the rule wants mending."""
    book = book or ApproverBook(now=now)
    _may_list(actor, now, book)

    def orphans(requests: Sequence[AccessRequest]) -> Iterable[AccessRequest]:
        book.expect_approvers(requests)
        found = [(request, book.of_request(request)) for request in requests]
        return (request for request, approvers in found if approvers.is_fallback or not approvers.can_decide)

    # One part alone: each further one costs two or three reads more, to know who decides.
    return _filtered(lambda at: _pending_page(cursor=at, limit=limit), orphans, cursor, limit, most_pages=1)


def list_unreadable(*, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 50) -> Page[AccessRequest]:
    """A page without items, whose ``unreadable`` are of what waits or is active; a page may have none and still have a next one."""
    _may_list(actor, now)
    is_second, inner = cursor is not None and cursor.startswith("p."), None if cursor is None else cursor[2:] or None
    status = Status.PENDING if is_second else Status.ACTIVE
    page = _filtered(lambda at: store.page_by_status(status, cursor=at, limit=limit), lambda _requests: (), inner, limit)
    if page.next_cursor is not None:
        return replace(page, next_cursor=f"{'p' if is_second else 'a'}.{page.next_cursor}")
    return page if is_second else replace(page, next_cursor="p.")


def history(*, request: AccessRequest) -> tuple[AuditEvent, ...]:
    """Every event of the request, oldest first. Whoever got the request may read its history."""
    return audit.chain_of(request.entity)


def _filtered(fetch: _Fetch, keep: _Keep, cursor: str | None, limit: int, *, most_pages: int = _MOST_INDEX_PAGES) -> Page[AccessRequest]:
    found: list[AccessRequest] = []
    unreadable: list[Unreadable] = []
    for _ in range(most_pages):
        page = fetch(cursor)
        found.extend(keep(page.items))
        unreadable.extend(page.unreadable)
        cursor = page.next_cursor
        # Whole index pages only: the cursor stands between pages, so a page may hold a few more than the limit.
        if cursor is None or len(found) >= limit:
            break
    return Page(tuple(found), cursor, tuple(unreadable))


def _may_list(actor: Actor, now: datetime, book: ApproverBook | None = None) -> None:
    """Raise NotAllowed for whoever is no operator, auditor or approver: these may list others' requests."""
    if not (actor.reads_everything or (book or ApproverBook(now=now)).decides(actor)):
        raise NotAllowed("Only operators, auditors and approvers may list other people's requests.", code="not_a_reader")
