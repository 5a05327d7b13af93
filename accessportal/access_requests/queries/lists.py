"""Lists of requests: each is a pattern that the table or an index really answers, paged to its end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from accessportal.access_requests import policy, store
from accessportal.access_requests.kind import kind_named
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
from accessportal.store.reading import Sift, side_by_side
from accessportal.store.restores import HELD
from accessportal.waiting import queries as waiting

_ANY = Search()
_MOST_OF_OPERATOR = 100
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

    return store.page_mine(actor.name, search, cursor=cursor, limit=limit, sift=Sift(looked_for))


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

    return store.page_by_subject(subject_id, cursor=cursor, limit=limit, sift=Sift(mine))


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
    def looked_for(found: Sequence[AccessRequest]) -> Iterable[AccessRequest]:
        return (one for one in found if policy.is_looked_for(one, search))

    return store.page_found(search, cursor=cursor, limit=limit, sift=Sift(looked_for))


def list_asked_by_rule(*, rule_name: str, actor: Actor, limit: int, book: ApproverBook) -> Page[AccessRequest]:
    """The newest requests on which this rule decided, as :func:`search`."""
    _may_list(actor, book.now, book)
    return store.page_found(Search(rule_name=rule_name), cursor=None, limit=limit)


def list_decided_by(*, actor: Actor, cursor: str | None = None, limit: int = 25) -> Page[AccessRequest]:
    """What the actor approved or denied, last decision first, as it stands now: by the audit log, so without what was purged. A page may be
    short and still have a next one."""
    page = audit.by_actor(actor.name, cursor=cursor, limit=limit, sift=Sift(_decisions_among))
    found = dict.fromkeys(event.entity.partition("#")[2] for event in page.items)
    unreadable: list[Unreadable] = []
    requests = store.get_many(found, past=unreadable.append)
    return Page(tuple(requests[one] for one in found if one in requests), page.next_cursor, tuple(unreadable))


def _decisions_among(events: Sequence[AuditEvent]) -> Iterable[AuditEvent]:
    return (event for event in events if event.action in _DECIDED)


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
    _may_list(actor, now)
    return _pending_page(cursor=cursor, limit=limit, sift=Sift(partial(filter, wanted)) if wanted else None)


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
    """Work that is late by a minute or has failed at least twice, revocations first (they are the dangerous ones); not who waits for
    their turn in a line."""
    _may_list(actor, now)
    work, inner = (Work.REVOKE, cursor) if cursor is None or not cursor.startswith("g.") else (Work.GRANT, cursor[2:] or None)
    page = store.page_work(work.value, cursor=inner, limit=limit, sift=Sift(partial(_stuck_among, now=now)))
    if work is Work.GRANT:
        return replace(page, next_cursor=None if page.next_cursor is None else f"g.{page.next_cursor}")
    if page.next_cursor is not None:
        return page
    if len(page.items) >= limit:
        return replace(page, next_cursor="g.")
    rest = list_stuck(actor=actor, now=now, cursor="g.", limit=limit)
    return Page(page.items + rest.items, rest.next_cursor, page.unreadable + rest.unreadable)


def _stuck_among(requests: Iterable[AccessRequest], *, now: datetime) -> Iterable[AccessRequest]:
    stuck = [request for request in requests if _is_stuck(request, now)]
    in_line = _waiting_their_turn(stuck, now)
    return (request for request in stuck if request.request_id not in in_line)


def _is_stuck(request: AccessRequest, now: datetime) -> bool:
    """Overdue, or failing again and again."""
    if request.work is None or request.work_due_at is None:
        return False
    # Waiting for a job or a conflict pushes the due time on and on without counting as a failure: what is late is late.
    wanted_at = request.expires_at if request.work is Work.REVOKE else request.decided_at or request.work_due_at
    return request.work_attempts >= STUCK_ATTEMPTS or _is_late(min(request.work_due_at, wanted_at), now)


def _is_late(due_at: datetime, now: datetime) -> bool:
    return now - due_at > timedelta(seconds=STUCK_AFTER_SECONDS)


def _waiting_their_turn(requests: Iterable[AccessRequest], now: datetime) -> set[str]:
    """The ids of those that have a place in a line, were looked at a moment ago without a failure, and may be served."""
    claims = [
        (line, one.request_id)
        for one in requests
        if one.work is Work.GRANT and (line := kind_named(one.kind).grant.line) and _is_looked_after(one, now)
    ]
    return {place.claim for place in waiting.find_places(claims=claims) if place.lapses_at > now}


def _is_looked_after(request: AccessRequest, now: datetime) -> bool:
    is_seen = request.work_due_at is not None and not _is_late(request.work_due_at, now)
    return is_seen and request.work_attempts < STUCK_ATTEMPTS and request.work_error != HELD


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
    book = book or ApproverBook(now=now)
    return _pending_page(cursor=cursor, limit=limit, sift=_decided_by(actor, book, wanted))


_pending_page = partial(store.page_by_status, Status.PENDING)


def _decided_by(actor: Actor, book: ApproverBook, wanted: Callable[[AccessRequest], bool] | None = None) -> Sift[AccessRequest]:
    """Those that the actor may decide, and that are ``wanted``."""

    def mine(found: Sequence[AccessRequest]) -> Iterable[AccessRequest]:
        requests = list(filter(wanted, found)) if wanted else found
        book.expect_standings(requests, actor)
        # Whoever is no approver is refused with the names of those who are, which costs looking them up.
        # An operator sees what they decide in somebody's place among all that is pending: a further look is one request too many here.
        in_place = not actor.is_operator
        decidable = (one for one in requests if book.is_approver(one, actor.name) or (in_place and book.in_place_of(one, actor)))
        return (one for one in decidable if policy.may_approve(one, actor, book.standing(one, actor), book.now).allowed)

    # Whether an operator stands in for missing approvers costs reads for each group that is asked for, or asked for by.
    return Sift(mine, most=_MOST_OF_OPERATOR) if actor.is_operator else Sift(mine)


def first_waiting_for(*, actor: Actor, now: datetime, limit: int = 25, book: ApproverBook | None = None) -> Found:
    """The first page of :func:`list_waiting_for`, and where that is not full at the end of its look, also what lies further on by the rules
    by which the actor approves. ``total`` is counted to about ``limit``."""
    book = book or ApproverBook(now=now)
    page = list_waiting_for(actor=actor, now=now, limit=limit, book=book)
    if page.next_cursor is None or len(page.items) >= limit:
        total = Count(len(page.items), is_more=bool(page.next_cursor or page.unreadable))
        return Found(page.items, page.next_cursor, page.unreadable, total=total)
    found, unreadable, is_more = _waiting_by_rules(actor, book, limit)
    found |= {one.request_id: one for one in page.items}
    # Where an operator stands in for approvers who are missing, no rule tells.
    total = Count(len(found), is_more=is_more or actor.is_operator or bool(page.unreadable))
    items = tuple(sorted(found.values(), key=lambda one: one.expires_at))
    return Found(items, page.next_cursor, tuple(dict.fromkeys((*page.unreadable, *unreadable))), total=total)


def count_waiting_for(*, actor: Actor, now: datetime, up_to: int = 25, book: ApproverBook | None = None) -> Count:
    """How many requests wait for the actor, counted to about ``up_to``: those of each rule by which they approve, however many
    others wait. Where an operator stands in, only a look at those with the nearest deadlines tells: first, as it may have been all."""
    book = book or ApproverBook(now=now)
    if actor.is_operator:
        return first_waiting_for(actor=actor, now=now, limit=up_to, book=book).total or Count(0)
    found, _, is_more = _waiting_by_rules(actor, book, up_to)
    return Count(len(found), is_more=is_more)


def _waiting_by_rules(actor: Actor, book: ApproverBook, limit: int) -> tuple[dict[str, AccessRequest], list[Unreadable], bool]:
    """What waits by each rule by which they approve, about ``limit``; what can't be read; and whether there may be more."""
    found: dict[str, AccessRequest] = {}
    unreadable: list[Unreadable] = []
    is_more = False
    rules = book.rules_of_approver(actor.name) if actor.is_operator else book.approved_rules(actor)
    for name in rules:
        if len(found) >= limit:
            return found, unreadable, True
        page = store.page_by_rule(name, Status.PENDING, cursor=None, limit=limit, sift=_decided_by(actor, book))
        found |= {one.request_id: one for one in page.items}
        unreadable += page.unreadable
        is_more |= page.next_cursor is not None or bool(page.unreadable)
    return found, unreadable, is_more


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

    # A short part alone: to know who decides costs reads, and time, for each.
    page = _pending_page(cursor=cursor, limit=limit)
    return replace(page, items=tuple(orphans(page.items)))


def list_unreadable(*, actor: Actor, now: datetime, cursor: str | None = None, limit: int = 50) -> Page[AccessRequest]:
    """A page without items, whose ``unreadable`` are of what waits or is active; a page may have none and still have a next one."""
    _may_list(actor, now)
    is_second, inner = cursor is not None and cursor.startswith("p."), None if cursor is None else cursor[2:] or None
    status = Status.PENDING if is_second else Status.ACTIVE
    page = store.page_by_status(status, cursor=inner, limit=limit, sift=Sift(lambda _requests: ()))
    if page.next_cursor is not None:
        return replace(page, next_cursor=f"{'p' if is_second else 'a'}.{page.next_cursor}")
    return page if is_second else replace(page, next_cursor="p.")


def history(*, request: AccessRequest) -> tuple[AuditEvent, ...]:
    """Every event of the request, oldest first. Whoever got the request may read its history."""
    return audit.chain_of(request.entity)


def _may_list(actor: Actor, now: datetime, book: ApproverBook | None = None) -> None:
    """Raise NotAllowed for whoever is no operator, auditor or approver: these may list others' requests."""
    if not (actor.reads_everything or (book or ApproverBook(now=now)).decides(actor)):
        raise NotAllowed("Only operators, auditors and approvers may list other people's requests.", code="not_a_reader")
