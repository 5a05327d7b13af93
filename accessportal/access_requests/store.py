"""The only user of the items of the room. Every change of a request, or of a stand-in, is one transaction with its audit event."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from pynamodb.expressions.condition import Condition

from accessportal.access_requests.kind import KINDS
from accessportal.access_requests.models import STAND_INS, CommentItem, RequestItem, StandInItem
from accessportal.access_requests.stand_in import StandIn
from accessportal.access_requests.states import ALLOWED_MOVES, AccessRequest, Search, Status, Work
from accessportal.access_requests.thread import Comment
from accessportal.audit import operations as audit
from accessportal.audit.actions import ACTIONS
from accessportal.audit.queries import check_of, mark_of
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import precise, to_epoch
from accessportal.kernel.errors import Conflict
from accessportal.kernel.pages import Page, Unreadable
from accessportal.store.coordination import is_unspent
from accessportal.store.listing import Listing
from accessportal.store.newer_versions import NewerItem
from accessportal.store.reading import Sift, count_items, scan_records, side_by_side
from accessportal.store.records import Records
from accessportal.store.transactions import Change, ConditionFailed, Guard, Overtaken, Step, update_one

Past = Callable[[Unreadable], object]
# More seconds than this, from any moment that is one, would be past the last year that a clock knows.
_MOST = 10**9


def _indexed(request: AccessRequest) -> dict[str, Any]:
    return {
        "approval_required": request.approval.required,
        "open_subject": None if request.status.is_terminal else request.subject_id,
        "ticket_key": _ticket_key(request.ticket_id) or None,
    }


def _check(request: AccessRequest) -> None:
    """What everybody who has a request relies on, beside what the annotations tell."""
    kind = KINDS.get(request.kind)
    if kind is None:
        raise NewerItem(f"its kind {request.kind[:40]!r} is not known here")
    evidence = request.evidence
    wrong = [name for name in kind.target.parts if not isinstance(request.target.get(name), str)]
    wrong += [] if isinstance(evidence.get("tags") or {}, dict) else ["tags"]
    wrong += [name for name in ("session_seconds", "most_per_person") if not _is_number(evidence.get(name) or 0)]
    if wrong:
        raise ValueError(f"{', '.join(wrong)} makes no sense")


def _is_number(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= _MOST


def _ticket_key(ticket_id: str) -> str:
    return ticket_id.strip().casefold()


_requests = Records(
    RequestItem,
    AccessRequest,
    also=_indexed,
    check=_check,
    unchanged=("version", "status"),
    # A worker's notes have no version; and the accounts of the approvers are those of this moment.
    together=(("work", "work_due_at", "work_attempts", "work_error"), ("approvals", "identities", "in_place_of")),
)
_comments = Records(CommentItem, Comment)
_thread = Listing("requests.thread", CommentItem, _comments.record, consistent=True)
COMMENTS = CommentItem.base_table_name
get = _requests.get
get_many = _requests.get_many


every_request = partial(scan_records, RequestItem, _requests.record)
"""The whole table, for checks."""
every_comment = partial(scan_records, CommentItem, _comments.record)
"""As :data:`every_request`."""


# What decides something about a request, or tells how it went, and stands in no event as it is.
CHECKED = (
    "account_id",
    "permission_set",
    "approval",
    "evidence",
    "held_since",
    "granted_at",
    "end_code",
    "was_to_end_at",
    "revoked_at",
    "receipts",
)


def checked(request: AccessRequest) -> dict[str, Any]:
    """By name, what events tell a check of."""
    values = _requests.values(request)
    # For pages alone, and erased with the people.
    evidence = {name: value for name, value in request.evidence.items() if name not in ("subject_name", "requested_by_name")}
    return {name: values[name] for name in CHECKED} | {"evidence": evidence}


def _with_checks(draft: Draft, before: AccessRequest | None, after: AccessRequest) -> Draft:
    """The event also tells what the change makes of what is checked, also that it makes nothing of it, where it could. Of accounts of the
    sign-in service there are marks alone, and none without a key of pseudonyms."""
    old, new = dict.fromkeys(CHECKED) if before is None else checked(before), checked(after)
    told: dict[str, Any] = {"checks": {name: check_of(value) for name, value in new.items() if value != old[name]}}
    marks = {name: mark_of(identity) for name, identity in after.identities.items()}
    if all(marks.values()):
        told["identities"] = marks
    fields = ACTIONS[draft.action].fields
    return replace(draft, data=draft.data | {name: value for name, value in told.items() if name in fields or (value and name == "checks")})


def insert(request: AccessRequest, *, draft: Draft, guards: Sequence[Guard] = (), actor: Actor, now: datetime) -> AccessRequest:
    """A new request and its first event.

    :raises Overtaken: when the id exists already, or was a request's whose events were removed.
    :raises ConditionFailed: when one of ``guards`` does not hold.
    """
    draft = _with_checks(draft, None, request)
    try:
        return audit.insert(_requests, request, draft=draft, actor=actor, now=now, further=[is_unspent(request.entity), *guards])
    except ConditionFailed as error:
        if any(error.step is one for one in guards):
            raise
        raise Overtaken from error


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of a request as it was read, and what its event tells."""

    before: AccessRequest
    after: AccessRequest
    action: str
    data: dict[str, Any]

    @property
    def steps_needed(self) -> int:
        """In a transaction: the request, its event, and its thread."""
        return 2 + self.before.comments


def change(
    before: AccessRequest,
    after: AccessRequest,
    action: str,
    data: dict[str, Any],
    *,
    guards: Sequence[Guard] = (),
    besides: Sequence[Move] = (),
    actor: Actor,
    now: datetime,
) -> AccessRequest:
    """Make ``after`` of the request as it was read, along the transition table, with the event ``action``, and the moves ``besides`` in the
    same transaction. When it is over, its thread is kept as long as it is.

    :raises Overtaken: when somebody else changed one of them first, or one of ``guards`` does not hold any more.
    """
    draft, further = _prepared(Move(before, after, action, data))
    for move in besides:
        its_draft, thread = _prepared(move)
        changed, event = audit.told(move.after, its_draft, actor=actor, now=now)
        further += [_requests.change(move.before, changed), event, *thread]
    try:
        return audit.change(_requests, before, after, draft=draft, actor=actor, now=now, further=[*further, *guards])
    except ConditionFailed as error:
        raise Overtaken from error


def _prepared(move: Move) -> tuple[Draft, list[Step]]:
    """Its event, and what becomes of its thread."""
    before, after, data = move.before, move.after, move.data
    thread: list[Step] = []
    if before.status is not after.status and after.status not in ALLOWED_MOVES[before.status]:
        raise ValueError(f"a request does not go from {before.status} to {after.status}")
    if after.purge_at is not None and after.purge_at != before.purge_at:
        data = {**data, "purge_at": to_epoch(after.purge_at)}
        thread += _kept_until(after.purge_at, before) if before.comments else []
    return _with_checks(Draft(move.action, before.subject_id, data, scope=before.scope), before, after), thread


def add_comment(
    before: AccessRequest, after: AccessRequest, comment: Comment, data: dict[str, Any], *, actor: Actor, now: datetime
) -> AccessRequest:
    """Write the comment, and ``after`` of the request as it was read, with the event.

    :raises Overtaken: when somebody else changed the request first.
    :raises Conflict: when another program has put a comment there.
    """
    draft = Draft("request.commented", before.subject_id, data, scope=before.scope)
    try:
        return audit.change(_requests, before, after, draft=draft, actor=actor, now=now, further=[_comments.insertion(comment)])
    except ConditionFailed as error:
        text = f"Another program has written comment {comment.number} of this request. Ask an operator to look at it (verify_audit)."
        raise Conflict(text, code="comment_unexpected") from error


def _kept_until(purge_at: datetime, request: AccessRequest) -> list[Step]:
    """What can't be read stays as it is: somebody looks at it."""
    actions, is_there = [CommentItem.purge_at.set(to_epoch(purge_at))], CommentItem.request_id.exists()
    return [
        Change(CommentItem, request.request_id, actions, is_there, one.number)
        for one in thread_of(request.request_id, past=lambda _unreadable: None)
    ]


def thread_of(request_id: str, *, past: Past) -> tuple[Comment, ...]:
    """The comments in order, strongly read; ``past`` is told of what can't be read."""
    return tuple(_thread.every(request_id, past=past))


def claim_work(request: AccessRequest, *, until: datetime) -> bool:
    """Whether the caller alone may carry the work out until ``until``: pushes the due time that was read, if it is still so.

    Bookkeeping: no version, no event.
    """
    assert request.work is not None
    assert request.work_due_at is not None
    condition = (RequestItem.work == request.work.value) & (RequestItem.work_due_at == precise(request.work_due_at))
    try:
        update_one(Change(RequestItem, request.request_id, [RequestItem.work_due_at.set(precise(until))], condition))
    except ConditionFailed:
        return False
    return True


def postpone_work(request: AccessRequest, *, until: datetime, note: str) -> None:
    """Look again at ``until``; ``note`` says what is waited for. Bookkeeping of ordinary waiting: no version, no event.

    :raises Overtaken: when the request changed meanwhile.
    """
    assert request.work is not None
    condition = (RequestItem.work == request.work.value) & (RequestItem.version == request.version)
    actions = [RequestItem.work_due_at.set(precise(until)), RequestItem.work_error.set(note)]
    try:
        update_one(Change(RequestItem, request.request_id, actions, condition))
    except ConditionFailed as error:
        raise Overtaken from error


def still_to_be_granted(request_id: str) -> Guard:
    """The guard under which a claim may be taken for this request."""
    return Guard(RequestItem, request_id, (RequestItem.status == Status.ACTIVE.value) & (RequestItem.work == Work.GRANT.value))


def still_wanted(request_id: str) -> Guard:
    """The guard under which what this request gives may be given anew: it is active, and is not being taken back."""
    item = RequestItem
    return Guard(item, request_id, (item.status == Status.ACTIVE.value) & (item.work.does_not_exist() | (item.work != Work.REVOKE.value)))


def not_ended_early(request_id: str) -> Guard:
    """The guard that nobody ended this request early. It may be over, and forgotten."""
    return Guard(RequestItem, request_id, RequestItem.ended_by.does_not_exist(), may_be_missing=True)


# Lists, each by one of the table's indexes.

_list = partial(Listing, model=RequestItem, record=_requests.record)
_by_status = _list("requests.by_status", index=RequestItem.expiration_index)
_by_status_backwards = replace(_by_status, newest_first=True)
_by_ticket = _list("requests.by_ticket", index=RequestItem.ticket_index, newest_first=True)
_by_rule = _list("requests.by_rule", index=RequestItem.rule_index)

page_by_subject = _list("requests.by_subject", index=RequestItem.subject_index, newest_first=True)
_by_requester = _list("requests.by_requester", index=RequestItem.requester_index, newest_first=True)
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
    sift: Sift[AccessRequest] | None = None,
) -> Page[AccessRequest]:
    """By end or deadline; ``between`` two moments, both included, where given. ``sift``, here and below, as in :func:`query_page`."""
    where = RequestItem.expires_at.between(*map(to_epoch, between)) if between is not None else None
    listing = _by_status_backwards if newest_first else _by_status
    return listing(status.value, cursor=cursor, limit=limit, where=where, bound=newest_first, sift=sift)


def every_in(status: Status, *, until: datetime | None = None, past: Past) -> Iterator[AccessRequest]:
    """All in ``status``, or those whose end or deadline is not after ``until``; ``past`` as in :func:`every`."""
    return _by_status.every(status.value, where=None if until is None else RequestItem.expires_at <= to_epoch(until), past=past)


def pages_by_subjects(subject_ids: Sequence[str], *, limit: int) -> list[Page[AccessRequest]]:
    """The first :func:`page_by_subject` of each, in their order, read side by side."""
    return side_by_side([partial(page_by_subject, subject_id, cursor=None, limit=limit) for subject_id in subject_ids])


_SEARCHED: dict[str, Listing[RequestItem, AccessRequest]] = {
    "ticket_id": _by_ticket,
    "subject_id": page_by_subject,
    "account_id": page_by_account,
    "group_id": _list("requests.by_scope", index=RequestItem.scope_index, newest_first=True),
    "rule_name": _list("requests.asked_by_rule", index=RequestItem.rule_asked_index, newest_first=True),
    "status": _list("requests.asked", index=RequestItem.asked_index, newest_first=True),
}


def page_mine(
    requested_by: str, search: Search, *, cursor: str | None, limit: int, sift: Sift[AccessRequest] | None = None
) -> Page[AccessRequest]:
    """One page of what somebody asked for in the time of ``search``, newest first; what else it asks is not looked at."""
    where, bound = _asked_between(search), f"{search.since}:{search.until}"
    return _by_requester(requested_by, cursor=cursor, limit=limit, where=where, bound=bound, sift=sift)


def page_found(search: Search, *, cursor: str | None, limit: int, sift: Sift[AccessRequest] | None = None) -> Page[AccessRequest]:
    """One page of what lies under the first thing that is ``asked``, newest first; what else is asked is not looked at. ``sift`` where
    something is asked."""
    where = _asked_between(search)
    bound = f"{search.since}:{search.until}"
    if not search.asked:
        return _SEARCHED["status"].merged([status.value for status in Status], cursor=cursor, limit=limit, where=where, bound=bound)
    name = search.asked[0]
    return _SEARCHED[name](_key_of(search), cursor=cursor, limit=limit, where=where, bound=bound, sift=sift)


def count_found(search: Search, *, up_to: int) -> int:
    """How many lie under the first thing that is ``asked``, counted to ``up_to``."""
    index = _SEARCHED[search.asked[0]].index
    assert index is not None
    return count_items(RequestItem, _key_of(search), index, where=_asked_between(search), up_to=up_to)


def _key_of(search: Search) -> str:
    key = str(getattr(search, search.asked[0]))
    return _ticket_key(key) if search.asked[0] == "ticket_id" else key


def _asked_between(search: Search) -> Condition | None:
    at = RequestItem.requested_at
    if search.since and search.until:
        return at.between(to_epoch(search.since), to_epoch(search.until) - 1)
    if search.since:
        return at >= to_epoch(search.since)
    return at < to_epoch(search.until) if search.until else None


def page_by_rule(
    rule_name: str, status: Status, *, cursor: str | None, limit: int, sift: Sift[AccessRequest] | None = None
) -> Page[AccessRequest]:
    """In no order."""
    return _by_rule(rule_name, cursor=cursor, limit=limit, where=RequestItem.status == status.value, bound=status, sift=sift)


def every_work(work: Work, *, until: datetime, past: Past) -> Iterator[AccessRequest]:
    """Work that is due by ``until``; ``past`` as in :func:`every`."""
    return page_work.every(work.value, where=RequestItem.work_due_at <= precise(until), past=past)


def every_work_ahead(work: Work, *, beyond: datetime, past: Past) -> Iterator[AccessRequest]:
    """Work whose due time lies after ``beyond``; ``past`` as in :func:`every`."""
    return page_work.every(work.value, where=RequestItem.work_due_at > precise(beyond), past=past)


# Stand-ins.


def _check_stand_in(one: StandIn) -> None:
    """The end that counts is the one that the key tells, by which those that are over are not even read."""
    if not one.stand_in_id.startswith(id_after(one.ends_at)):
        raise ValueError("ends_at is not the end in its key")


def id_after(moment: datetime) -> str:
    """Less than the ids of all stand-ins that end after ``moment``, and the beginning of those that end then."""
    return f"{to_epoch(moment):010d}"


_stand_ins = Records(StandInItem, StandIn, also=lambda _one: {"list": STAND_INS}, check=_check_stand_in)
_list_stand_ins = partial(Listing, model=StandInItem, record=_stand_ins.record)
_of_somebody = _list_stand_ins("stand_ins.of_somebody", consistent=True)
page_of_approver = _list_stand_ins("stand_ins.of_approver", index=StandInItem.approver_index, newest_first=True)
"""Those whom somebody named, last end first."""
_all_stand_ins = _list_stand_ins("stand_ins", index=StandInItem.end_index, newest_first=True)

every_stand_in = partial(scan_records, StandInItem, _stand_ins.record)
"""The whole table, for checks."""
find_stand_in = _stand_ins.get
"""By the address of who stands in, and the id; strongly read."""


def stand_ins_of(email: str, *, now: datetime, past: Past) -> tuple[StandIn, ...]:
    """For whom somebody stands in, now or later, strongly read; ``past`` as in :func:`every`."""
    return tuple(_of_somebody.every(email, where=StandInItem.stand_in_id > id_after(now), past=past))


def page_of_stand_ins(*, ends_after: datetime | None, cursor: str | None, limit: int) -> Page[StandIn]:
    """All that end after a moment, or all that there are, last end first."""
    where = None if ends_after is None else StandInItem.ends_at > to_epoch(ends_after)
    return _all_stand_ins(STAND_INS, cursor=cursor, limit=limit, where=where, bound=ends_after is not None)


def insert_stand_in(one: StandIn, *, draft: Draft, actor: Actor, now: datetime) -> StandIn:
    """:raises Overtaken: when its id is in use."""
    return audit.insert(_stand_ins, one, draft=draft, actor=actor, now=now)


def end_stand_in(before: StandIn, *, draft: Draft, actor: Actor, now: datetime) -> StandIn:
    """:raises Overtaken: when somebody else ended it first."""
    after = replace(before, ended_by=actor.name, ended_at=now)
    return audit.change(_stand_ins, before, after, draft=draft, actor=actor, now=now)


def still_stands_in(one: StandIn) -> Guard:
    """The guard that nobody has taken it back."""
    return Guard(StandInItem, one.stand_in, StandInItem.ended_at.does_not_exist(), one.stand_in_id)
