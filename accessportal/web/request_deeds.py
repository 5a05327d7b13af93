"""What can be done to a request, and the words for it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from functools import partial

from django.urls import reverse
from django.utils.html import format_html

from accessportal.access_requests import operations, queries
from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.queries import ApproverBook
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.access_requests.thread import CommentKind
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.counts import counted
from accessportal.kernel.decisions import Decision
from accessportal.kernel.durations import format_duration
from accessportal.web.deeds import Data, Deed, Told
from accessportal.web.forms import CommentForm, ReasonForm
from accessportal.web.templatetags.web import moment

SHOWS_ITSELF = "Its page shows when the access is there."
"""Said of what may be done already when it is read."""


def _may(name: str, request: AccessRequest, actor: Actor, now: datetime, *, book: ApproverBook | None = None) -> Decision:
    return queries.can(verb=name, request=request, actor=actor, now=now, book=book)


def _decides_somewhere(actor: Actor, book: ApproverBook) -> bool:
    """Operators decide where a rule's approvers are too few."""
    return actor.is_operator or book.decides(actor)


def _told(request: AccessRequest, words: str) -> Told:
    return Told(words, reverse("request", args=[request.request_id]))


def _what(request: AccessRequest) -> str:
    return f"{queries.describe(request=request).title} for {request.subject_id}"


def _in_place(approver: str) -> str:
    return f" in place of {approver}" if approver else ""


def _approve(request: AccessRequest, data: Data, actor: Actor, now: datetime) -> Told:
    after = operations.approve(request_id=request.request_id, reason=data["reason"], actor=actor, now=now)
    if after.status is not Status.PENDING:
        view, end = (reverse(name, args=[after.request_id, *rest]) for name, *rest in (("request",), ("request_deed", "end")))
        # Whoever approves by a rule may end what it gave, too; their stand-in may not.
        links = (("View", view),) if after.decided_in_place_of else (("View", view), ("End it", end))
        return replace(_told(after, f"Approved{_in_place(after.decided_in_place_of)}: {_what(after)}. {SHOWS_ITSELF}"), links=links)
    tally = ApproverBook(now=now).tally(after)
    more = f"{tally.missing} more {'is' if tally.missing == 1 else 'are'} needed"
    place = _in_place(after.in_place_of.get(actor.name, ""))
    return _told(after, f"Your approval{place} counts: {tally.given} of {tally.quorum}. {more} for {_what(after)}.")


def _deny(request: AccessRequest, data: Data, actor: Actor, now: datetime) -> Told:
    after = operations.deny(request_id=request.request_id, reason=data["reason"], actor=actor, now=now)
    return _told(after, f"Denied{_in_place(after.decided_in_place_of)}: {_what(after)}. The person who asked sees your reason.")


def _retry(request: AccessRequest, _data: Data, actor: Actor, now: datetime) -> Told:
    after = operations.retry(request_id=request.request_id, actor=actor, now=now)
    return _told(after, f"Due again now: {_what(after)}. Its page shows what comes of it.")


def _cancel(request: AccessRequest, _data: Data, actor: Actor, now: datetime) -> Told:
    return _told(operations.cancel(request_id=request.request_id, actor=actor, now=now), "Cancelled.")


def _end(done: str, request: AccessRequest, data: Data, actor: Actor, now: datetime) -> Told:
    ends, book = queries.what_ends_beside(request=request), ApproverBook(now=now)
    kept = [one for one in ends.together if not _may("end", one, actor, now, book=book).allowed]
    after = operations.end(request_id=request.request_id, reason=data["reason"], actor=actor, now=now)
    more = f" What you may not end goes on: {counted(len(kept), 'request', 'requests')} for the same." if kept else ""
    return _told(after, f"{done}{more}")


def _take_back(request: AccessRequest, _data: Data, actor: Actor, now: datetime) -> Told:
    after = operations.take_back(request_id=request.request_id, actor=actor, now=now)
    return _told(after, "It is yours again until it was to end, as soon as that is proved.")


def _comment(kind: CommentKind, done: str, request: AccessRequest, data: Data, actor: Actor, now: datetime) -> Told:
    text, submission_id = data["text"], data["submission_id"]
    after = operations.comment(request_id=request.request_id, kind=kind, text=text, submission_id=submission_id, actor=actor, now=now)
    return _told(after, done)


def _decided_with(deed: Deed[AccessRequest], book: ApproverBook) -> Deed[AccessRequest]:
    explain = partial(_will_approve, book=book) if deed.name == "approve" else deed.explain
    return replace(deed, may=partial(_may, deed.name, book=book), explain=explain)


def _will_approve(request: AccessRequest, *, book: ApproverBook | None = None) -> str:
    tally = (book or ApproverBook(now=SystemClock().now())).tally(request)
    if tally.given + 1 < tally.quorum:
        return f"Records approval {tally.given + 1} of {tally.quorum}; nothing is granted yet."
    length, grant = format_duration(request.duration_seconds), kind_named(request.kind).grant
    begins = "from when it is handed over" if grant.longest_wait_seconds(request.target) else "starting now"
    return f"Grants {queries.describe(request=request).title} to {request.subject_id} for {length}, {begins}. It ends by itself."


def _will_end(request: AccessRequest) -> str:
    session = queries.describe(request=request).session_seconds
    open_session = f" A console session that is open may live up to {format_duration(session)} longer." if session else ""
    return format_html("{}{}", _what_ends(request), open_session)


def _what_ends(request: AccessRequest) -> str:
    ends = queries.what_ends_beside(request=request)
    if ends.kept:
        return format_html(
            'This request ends at once, and the access itself stays: <a href="{}">another request</a> holds the same until {}.{}',
            reverse("request", args=[ends.kept[0].request_id]),
            moment(ends.kept[0].expires_at),
            _ends_for(ends),
        )
    kind = kind_named(request.kind)
    if kind.grant.is_given_directly(request, now=SystemClock().now()):
        return f"This request ends at once. The {kind.fields.thing} that {kind.fields.giver} gave directly stays.{_ends_for(ends)}"
    return f"It is taken back at once. To have it again, a new request is needed.{_ends_for(ends)}"


def _ends_for(ends: queries.Ends) -> str:
    chain = f" It ends for {len(ends.together) + 1} requests: what was extended ends together with its extensions." if ends.together else ""
    is_one, are_more = "extension that waits for approval is cancelled", "extensions that wait for approval are cancelled"
    return f"{chain} {counted(len(ends.waiting), is_one, are_more)}." if ends.waiting else chain


def _will_give_back(request: AccessRequest) -> str:
    chain = _ends_for(queries.what_ends_beside(request=request))
    seconds = 0 if kind_named(request.kind).grant.ends_for_good(request) else queries.undo_seconds()
    undo = f" Whoever gives it back can take it back for {format_duration(seconds)} from when it shows as ended." if seconds else ""
    return f"It is cleaned, and everything in it is gone for good. To have one again, a new request is needed.{undo}{chain}"


def _thing(request: AccessRequest) -> str:
    return kind_named(request.kind).fields.thing


def _a(thing: str) -> str:
    return f"an {thing}" if thing[0] in "aeiou" else f"a {thing}"


# Refusals of access_requests.policy that tell of the request's state and not of the actor.
_STALE = frozenset({"already_decided", "already_approved", "already_ending", "lapsed", "no_work", "not_active"})

APPROVE: Deed[AccessRequest] = Deed(
    name="approve",
    label="Approve",
    question=lambda _request: "Approve this request?",
    explain=_will_approve,
    may=partial(_may, "approve"),
    run=_approve,
    form=partial(ReasonForm, is_required=False, help_text="The person who asked reads it."),
    is_for=_decides_somewhere,
    stale_codes=_STALE,
    with_book=_decided_with,
    is_bulk=True,
)
DENY: Deed[AccessRequest] = Deed(
    name="deny",
    label="Deny",
    question=lambda _request: "Deny this request?",
    explain=lambda request: f"Nothing is granted. {request.requested_by} is told your reason and can ask again.",
    may=partial(_may, "deny"),
    run=_deny,
    form=partial(
        ReasonForm,
        is_required=True,
        help_text="The person who asked reads it: say what would have to change.",
        missing="Give a reason. The person who asked reads it.",
    ),
    is_for=_decides_somewhere,
    stale_codes=_STALE,
    with_book=_decided_with,
    is_destructive=True,
    is_bulk=True,
)
ASK_BACK: Deed[AccessRequest] = Deed(
    name="ask_back",
    label="Ask back",
    question=lambda _request: "Ask a question?",
    explain=lambda request: f"The request stays as it is, and its deadline too. {request.requested_by} is asked to answer.",
    button="Ask",
    may=partial(_may, "ask_back"),
    run=partial(_comment, CommentKind.QUESTION, "It is on the page, and the answer will be. The request stays as it is."),
    form=partial(CommentForm, label="Your question", help_text="Everybody who has to do with this request reads it."),
    is_for=_decides_somewhere,
    stale_codes=_STALE,
)
ANSWER: Deed[AccessRequest] = Deed(
    name="answer",
    label="Answer",
    question=lambda _request: "Answer the question?",
    explain=lambda _request: "Whoever decides reads it. The request stays as it is.",
    button="Send answer",
    may=partial(_may, "answer"),
    run=partial(_comment, CommentKind.ANSWER, "It is on the page, for those who decide."),
    form=partial(CommentForm, label="Your answer"),
)
COMMENT: Deed[AccessRequest] = Deed(
    name="comment",
    label="Comment",
    question=lambda _request: "Add a comment?",
    explain=lambda _request: "Everybody who has to do with this request reads it. Nothing else changes.",
    button="Add comment",
    may=partial(_may, "comment"),
    run=partial(_comment, CommentKind.COMMENT, "Your comment is on the page."),
    form=CommentForm,
)
RETRY: Deed[AccessRequest] = Deed(
    name="retry",
    label="Try again now",
    question=lambda _request: "Try again now?",
    explain=lambda _request: "What is still to be done for it is tried at once instead of at its next time.",
    may=partial(_may, "retry"),
    run=_retry,
    is_for=lambda actor, _book: actor.is_operator,
    stale_codes=_STALE,
)
CANCEL: Deed[AccessRequest] = Deed(
    name="cancel",
    label="Cancel",
    question=lambda _request: "Cancel this request?",
    explain=lambda _request: "It is withdrawn and nobody needs to decide it any more. You can ask again at any time.",
    button="Cancel request",
    keep="Keep it",
    may=partial(_may, "cancel"),
    run=_cancel,
    is_destructive=True,
)
END: Deed[AccessRequest] = Deed(
    name="end",
    label="End now",
    question=lambda _request: "End this access now?",
    explain=_will_end,
    keep="Keep it",
    may=partial(_may, "end"),
    run=partial(_end, "Its end is now. It shows as ended when that is proved."),
    form=partial(ReasonForm, is_required=False),
    is_destructive=True,
)
_GIVE_BACK = replace(
    END,
    label="Give back",
    question=lambda request: f"Give this {_thing(request)} back now?",
    explain=_will_give_back,
    run=partial(_end, "Its end is now. It shows as ended when it is proved to be yours no longer."),
)
_STOP_WAITING = replace(
    END,
    label="Stop waiting",
    question=lambda request: f"Stop waiting for {_a(_thing(request))}?",
    explain=lambda request: f"The request is over, and gets no {_thing(request)}. You can ask again at any time.",
    keep="Go on waiting",
    run=partial(_end, "You wait no longer. It shows as ended when that is proved."),
)
TAKE_BACK: Deed[AccessRequest] = Deed(
    name="take_back",
    label="Take it back",
    question=lambda request: f"Take this {_thing(request)} back?",
    explain=lambda _request: "What you gave back is yours again, as it was, until it was to end. That works until its cleaning begins.",
    may=partial(_may, "take_back"),
    run=_take_back,
)
REQUEST_DEEDS = {deed.name: deed for deed in (APPROVE, DENY, ASK_BACK, ANSWER, COMMENT, RETRY, CANCEL, END, TAKE_BACK)}
"""In the order in which a page shows them."""


def deed_of(name: str, *, request: AccessRequest) -> Deed[AccessRequest]:
    """The deed of that name (one of ``REQUEST_DEEDS``) in the words for this request."""
    if name == "end" and kind_named(request.kind).fields.queued:
        return _GIVE_BACK if request.granted_at else _STOP_WAITING
    return REQUEST_DEEDS[name]


def offered(names: Collection[str], *, request: AccessRequest) -> list[Deed[AccessRequest]]:
    """The deeds with these names."""
    return [deed_of(name, request=request) for name in REQUEST_DEEDS if name in names]
