"""Pure decisions of the workflow: who may do what to a request, and when to try again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from accessportal.access_requests.stand_in import StandIn
from accessportal.access_requests.states import AccessRequest, Approvers, Presence, Search, Status, Work
from accessportal.access_requests.thread import CommentKind
from accessportal.kernel.actors import Actor, part_of_the_portal
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.durations import format_duration
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.moments import is_recent
from accessportal.kernel.texts import LONGEST_REASON, check_reason, check_text, clean_text, fold_key
from accessportal.rules.matching import includes
from accessportal.rules.states import LONGEST_TICKET

SHORTEST_SECONDS = 60
LONGEST_SECONDS = 366 * 86_400
MOST_STOOD_IN_FOR = 5
NOT_EXTENDED = "Only access that is active can be extended; ask for it anew."
EXTENSION_TOO_SHORT = "That would end no later than what you already hold. Ask for longer than the time that is left."
# One transaction ends a request and its thread, and DynamoDB takes no more than a hundred items in it.
MOST_COMMENTS = 50
# What somebody asks about a decision or an end comes within days; later the thread is a record, which stays as others have read it.
COMMENTED_FOR = timedelta(days=7)
# Access that ends sooner than the next tick surely looks (a minute, and half of one more) is watched from its start.
WATCH_WITHIN_SECONDS = 150

_FIRST_GAP_SECONDS = 4.0
# No work is put off for longer: the longest gap after a failure, with its jitter.
LONGEST_WAIT = timedelta(seconds=1.25 * 900)
_LONGEST_GAP_SECONDS = {Work.GRANT: 900.0, Work.REVOKE: 300.0}


@dataclass(frozen=True, slots=True)
class Standing:
    """What an actor is to one request, as far as rights need it, made by ``queries`` from live facts; a program that asked is a requester,
    too. Whether they are an approver costs look-ups, and who else is a walk through everybody: asked only where needed. ``identity``:
    which account of the sign-in service they come in with, if known. ``in_place_of``: for which approver they may decide as a stand-in,
    should they be none themselves; ``counted_in_place``: who did, whose approvals count, each with the approver."""

    is_requester: bool
    is_holder: bool
    is_approver: Callable[[], bool]
    in_place_of: Callable[[], str]
    counted_in_place: Callable[[], Mapping[str, str]]
    approvers: Callable[[], Approvers]
    identity: Callable[[], str]

    def decides(self) -> bool:
        """By themselves, or in the place of somebody."""
        return self.is_approver() or bool(self.in_place_of())


def check_input(*, duration_seconds: int | None, reason: str, ticket_id: str, submission_id: str) -> None:
    """Check the limits that hold whatever the rules say. InvalidRequest names field, rule and remedy."""
    if duration_seconds is not None:
        check_duration(duration_seconds)
    check_reason(reason, missing="A reason is needed: say in a sentence what you will do, for those who decide and audit.")
    clean_ticket(ticket_id)
    check_submission(submission_id)


def check_submission(submission_id: str) -> None:
    """:raises InvalidRequest: for what is no once-only token of a form."""
    if not 1 <= len(submission_id) <= 100 or not submission_id.isprintable():
        text = "The form carries no valid submission id; open it anew and send it again."
        raise InvalidRequest(text, code="submission_invalid", field="submission_id")


def is_looked_for(request: AccessRequest, search: Search) -> bool:
    """Whether it is all that is asked, beside the time."""
    is_ticket = not search.ticket_id or fold_key(request.ticket_id.strip()) == fold_key(search.ticket_id.strip())
    wanted = {"group_id": "scope"}
    others = [name for name in search.asked if name != "ticket_id"]
    return is_ticket and all(getattr(request, wanted.get(name, name)) == getattr(search, name) for name in others)


def check_duration(duration_seconds: int) -> None:
    """:raises InvalidRequest: for what no rule may give, and no clock could add to now."""
    if duration_seconds < SHORTEST_SECONDS:
        text = f"Access lasts at least {format_duration(SHORTEST_SECONDS)}; ask for that or more."
        raise InvalidRequest(text, code="duration_too_short", field="duration")
    if duration_seconds > LONGEST_SECONDS:
        text = f"Access lasts at most {format_duration(LONGEST_SECONDS)}; ask for less."
        raise InvalidRequest(text, code="duration_too_long", field="duration")


def clean_ticket(ticket_id: str) -> str:
    """Return the ticket as rules judge it and requests keep it. InvalidRequest when it is too long or can't be shown faithfully."""
    check_text(ticket_id, field="ticket_id", name="The ticket", longest=LONGEST_TICKET, newlines=False)
    return ticket_id.strip()


def may_see(request: AccessRequest, actor: Actor, standing: Standing) -> Decision:
    """Holders, the requester, whoever may decide, and those who read everything."""
    if actor.reads_everything or standing.is_requester or standing.is_holder:
        return allow("May see it")
    if actor.name in request.approvals or actor.name == request.decided_by:
        return allow("Took part in deciding it")
    if standing.decides():
        return allow("May decide it")
    return refuse("There is no such request.", code="request_not_found")


def clean_comment(text: str) -> str:
    """Return the comment as it is kept. :raises InvalidRequest: naming the rule and the remedy."""
    cleaned = clean_text(text, field="text", name="The comment", longest=LONGEST_REASON, newlines=True)
    if not cleaned:
        raise InvalidRequest("The comment is empty. Write what you want to ask or say.", code="text_missing", field="text")
    return cleaned


def may_comment(request: AccessRequest, actor: Actor, standing: Standing, now: datetime) -> Decision:
    """Whoever asked, whom it is for, who decides or has decided, and operators, while it is open and for a while after. Not while work
    outside is under way: taking access away waits for nobody's words."""
    involved = standing.is_requester or standing.is_holder or actor.is_operator
    if not (involved or actor.name in request.approvals or actor.name == request.decided_by or standing.decides()):
        return refuse("Only those who asked, whom it is for, who decide, and operators may write here.", code="not_involved")
    if request.work is not None:
        return refuse("The access is being created or taken back right now. Write when that is done.", code="work_under_way")
    if request.over_at is not None and now >= request.over_at + COMMENTED_FOR:
        return refuse(f"It was over more than {COMMENTED_FOR.days} days ago; its comments are closed.", code="comments_closed")
    return _has_room(request, further=1)


def _has_room(request: AccessRequest, *, further: int) -> Decision:
    if request.comments + further > MOST_COMMENTS:
        return refuse(f"It has as many comments as it can take ({MOST_COMMENTS}). Talk to each other, or decide.", code="comments_full")
    return allow("There is room")


def may_ask_back(request: AccessRequest, actor: Actor, standing: Standing, now: datetime) -> Decision:
    """For those who decide, while it waits for them."""
    if request.status is not Status.PENDING:
        return refuse(decided_text(request), code="already_decided")
    if standing.is_requester or standing.is_holder:
        return refuse("Nobody asks back on their own request.", code="own_request")
    decision = may_comment(request, actor, standing, now)
    # A question leaves room for its answer.
    return _has_room(request, further=2) if decision.allowed else decision


def may_answer(request: AccessRequest, actor: Actor, standing: Standing, now: datetime) -> Decision:
    """For those whom it is for, while somebody waits for it."""
    if not request.needs_answer:
        return refuse("Nobody waits for an answer.", code="not_asked_back")
    if not (standing.is_requester or standing.is_holder):
        return refuse("Whoever asked for it answers.", code="not_the_requester")
    return may_comment(request, actor, standing, now)


def may_remark(request: AccessRequest, actor: Actor, standing: Standing, now: datetime) -> Decision:
    """A comment that is neither question nor answer: by those whom it is for, and by everybody when it is decided."""
    is_theirs = standing.is_requester or standing.is_holder
    if request.status is Status.PENDING and (request.awaits_answer or not is_theirs):
        return refuse("It waits for a decision: ask back, or answer.", code="not_decided")
    return may_comment(request, actor, standing, now)


MAY_WRITE: Mapping[CommentKind, Callable[[AccessRequest, Actor, Standing, datetime], Decision]] = {
    CommentKind.QUESTION: may_ask_back,
    CommentKind.ANSWER: may_answer,
    CommentKind.COMMENT: may_comment,
}


def kind_as_written(wanted: CommentKind, request: AccessRequest) -> CommentKind:
    """What a comment is that was begun as ``wanted``: what was decided or answered meanwhile leaves a plain comment."""
    is_needed = request.needs_answer if wanted is CommentKind.ANSWER else request.status is Status.PENDING
    return wanted if is_needed else CommentKind.COMMENT


def may_decide(request: AccessRequest, actor: Actor, standing: Standing, now: datetime) -> Decision:
    """Approve or deny. Nobody decides on their own request, by whatever address they asked, nor on one whose subject is a group
    that serves them."""
    if request.status is not Status.PENDING:
        return refuse(decided_text(request), code="already_decided")
    if request.is_undecided_past_deadline(now):
        return refuse("Nobody decided before the deadline; the request has lapsed. It can be asked again.", code="lapsed")
    if standing.is_requester:
        return refuse("Nobody decides on their own request.", code="own_request")
    identity = standing.identity()
    if identity and identity == request.identities.get(request.requested_by):
        text = f"Nobody decides on their own request: {request.requested_by} came in with the same account of the sign-in service."
        return refuse(text, code="own_request")
    if standing.is_holder:
        return refuse("You would get this access yourself, through the group; somebody outside it decides.", code="own_group")
    if not standing.decides():
        names = ", ".join(person.name for person in standing.approvers().people[:5]) or "nobody at the moment"
        return refuse(f"Only an approver of the rule {request.rule_name} decides: {names}.", code="not_an_approver")
    return allow("May decide")


def may_approve(request: AccessRequest, actor: Actor, standing: Standing, now: datetime) -> Decision:
    decision = may_decide(request, actor, standing, now)
    if decision.allowed and actor.name in request.approvals:
        return refuse("You have approved it already; the quorum needs another person.", code="already_approved")
    if decision.allowed and standing.identity() in {request.identities.get(one) for one in request.approvals}:
        text = "Your account of the sign-in service has approved it already, by another address; the quorum needs another person."
        return refuse(text, code="already_approved")
    return _may_add_approval(request, actor, standing) if decision.allowed else decision


def _may_add_approval(request: AccessRequest, actor: Actor, standing: Standing) -> Decision:
    """An approver and whoever stands in for them count once."""
    approver = actor.name if standing.is_approver() else standing.in_place_of()
    if approver != actor.name and approver in request.approvals:
        text = f"{approver}, in whose place you decide, has approved it already; the quorum needs another person."
        return refuse(text, code="already_approved")
    stood_in = next((one for one, whose in standing.counted_in_place().items() if whose == approver), "")
    if stood_in:
        whose = "your" if approver == actor.name else f"{approver}'s"
        return refuse(f"{stood_in} has approved it in {whose} place already; the quorum needs another person.", code="already_approved")
    return allow("May approve")


def count_apart(humans: Iterable[frozenset[str]]) -> int:
    """How many approvals count, each given with the help of these humans: those that share one count once."""
    apart: list[frozenset[str]] = []
    for one in humans:
        shared = [other for other in apart if one & other]
        apart = [other for other in apart if not one & other] + [one.union(*shared)]
    return len(apart)


def may_cancel(request: AccessRequest, standing: Standing) -> Decision:
    if request.status is not Status.PENDING:
        return refuse(decided_text(request), code="already_decided")
    if not standing.is_requester:
        return refuse("Only the person who asked may cancel a request.", code="not_the_requester")
    return allow("May cancel")


def may_end(request: AccessRequest, actor: Actor, standing: Standing) -> Decision:
    """The holder, an approver of that rule or an operator ends early."""
    if request.status is not Status.ACTIVE:
        return refuse(decided_text(request), code="not_active")
    if request.work is Work.REVOKE:
        return refuse("It is being taken back already.", code="already_ending")
    if standing.is_requester or standing.is_holder or actor.is_operator or standing.is_approver():
        return allow("May end")
    return refuse("Only the holder, an approver of the rule or an operator may end access early.", code="not_a_holder")


def may_extend(request: AccessRequest, standing: Standing, now: datetime) -> Decision:
    if request.status is not Status.ACTIVE or request.work is Work.REVOKE or request.is_over(now):
        return refuse(NOT_EXTENDED, code="not_active")
    if not (standing.is_requester or standing.is_holder):
        return refuse("Only the holder may extend access.", code="not_a_holder")
    return allow("May extend")


def may_be_continued(held: AccessRequest) -> Decision:
    """Whether an extension that waits may still give what ``held`` gave: when its time was up, and not when it was ended early."""
    if held.ended_by:
        return refuse("What this would extend was ended early.", code="base_ended")
    return allow("May go on")


def ends_no_later(held: AccessRequest, duration_seconds: int, now: datetime) -> bool:
    """Whether an extension of this length, approved now, would end no later than what is held."""
    return duration_seconds <= (held.expires_at - now).total_seconds()


def may_stay(request: AccessRequest, present: Presence) -> Decision:
    """Whether the access, or the request for it, may stay until its time: its subject is there as it was asked for."""
    who, served_by = request.subject_id, request.served_by
    still = is_still_there(who, request, present)
    if not still.allowed:
        return still
    if served_by is None or includes(served_by, subject=who, groups=present.groups, direct=present.direct):
        return allow("Its subject is there")
    groups = ", ".join(served_by.names)
    return refuse(f"{who} is no longer in a group that rule {request.rule_name} serves ({groups}).", code="subject_not_served")


def is_still_there(who: str, request: AccessRequest, present: Presence) -> Decision:
    """Whether ``who``, the subject or the requester, is there, enabled, and the one who it was when this was asked for."""
    if not present.exists:
        return refuse(f"{who} is gone from the directory.", code="subject_gone")
    if not present.is_enabled:
        return refuse(f"{who} is disabled in the directory.", code="subject_disabled")
    if present.created_at is not None and to_epoch(present.created_at) > to_epoch(request.requested_at):
        return refuse(f"{who} was deleted and made anew after this was asked for.", code="subject_made_anew")
    return allow("There as before")


def may_take_back(request: AccessRequest, actor: Actor, standing: Standing, now: datetime, *, undo_seconds: int) -> Decision:
    """Undo what the holder gave back: for a short while, and as far as there is time left."""
    ended_at, until = request.revoked_at, request.was_to_end_at
    if request.status is not Status.REVOKED or ended_at is None or until is None or request.granted_at is None:
        return refuse("Only what was given back before its end can be taken back.", code="not_given_back")
    if request.ended_by != actor.name or not (standing.is_requester or standing.is_holder):
        return refuse("Only the holder who gave it back may take it back.", code="not_the_giver_back")
    if not is_recent(ended_at, now=now, within=timedelta(seconds=undo_seconds)):
        return refuse("It was given back too long ago to be taken back. Ask anew.", code="undo_over")
    if (until - now).total_seconds() < SHORTEST_SECONDS:
        return refuse("Its time is over. Ask anew.", code="undo_over")
    return allow("May take it back")


def may_retry(request: AccessRequest, actor: Actor) -> Decision:
    if request.work is None:
        return refuse("Nothing has to be carried out.", code="no_work")
    if not actor.is_operator:
        return refuse("Only an operator may ask for a retry.", code="not_an_operator")
    return allow("May retry")


def decided_text(request: AccessRequest) -> str:
    """How a request stands, in a sentence that names who made it so."""
    by = f" by {part_of_the_portal(request.decided_by)}" if request.decided_by else ""
    match request.status:
        case Status.PENDING:
            return "The request waits for a decision."
        case Status.ACTIVE:
            return f"The request was already approved{by}." if request.approval.required else "The request was approved by its rule."
        case Status.DENIED:
            return f"The request was already denied{by}."
        case Status.CANCELLED:
            return f"The request was cancelled{by}."
        case Status.LAPSED:
            return "Nobody decided before the deadline; the request has lapsed."
        case Status.REVOKED:
            return "The access has ended."


def retry_gap(*, work: Work, attempts: int, jitter: float) -> timedelta:
    """The gap after attempt number ``attempts`` (from 1) failed: doubling from 4 s to 15 min (revocations: 5 min), ±25 % by
    ``jitter`` (0 to 1). It never ends: there is no final error while access may exist."""
    gap = min(_FIRST_GAP_SECONDS * 2 ** min(attempts - 1, 20), _LONGEST_GAP_SECONDS[work])
    return timedelta(seconds=gap * (0.75 + 0.5 * jitter))


def may_name_stand_in(*, is_approver: bool) -> Decision:
    """Whoever a rule names as an approver, by themselves: a stand-in names no further one, and operators decide by no rule."""
    if not is_approver:
        return refuse("Only approvers name a stand-in, and no rule names you as one.", code="not_an_approver")
    return allow("May name one")


def may_see_stand_in(one: StandIn, actor: Actor) -> Decision:
    if actor.reads_everything or actor.name in (one.stand_in, one.approver):
        return allow("May see it")
    return refuse("There is no such stand-in.", code="stand_in_not_found")


def may_end_stand_in(one: StandIn, actor: Actor, now: datetime) -> Decision:
    """The approver who named them, whoever stands in, and operators."""
    if one.state(now).is_for_good:
        text = f"{one.ended_by} has taken it back already." if one.ended_by else "It is over."
        return refuse(text, code="stand_in_over")
    if actor.is_operator or actor.name in (one.stand_in, one.approver):
        return allow("May take it back")
    return refuse("Only the approver, their stand-in or an operator may take it back.", code="not_the_approver")


def check_stand_in_period(*, starts_at: datetime, ends_at: datetime, now: datetime, longest: timedelta) -> None:
    """:raises InvalidRequest: when it ends before it begins, lasts too long, or begins too far ahead."""
    days = longest.days
    if ends_at <= starts_at:
        text = "That is over before it begins: choose a last day that is not before the first, and not past."
        raise InvalidRequest(text, code="stand_in_period", field="ends_at")
    if ends_at - starts_at > longest:
        raise InvalidRequest(
            f"A stand-in is named for at most {days} days: choose an earlier last day.", code="stand_in_too_long", field="ends_at"
        )
    if starts_at - now > longest:
        raise InvalidRequest(
            f"It may begin at most {days} days ahead: choose an earlier first day.", code="stand_in_too_far", field="starts_at"
        )


def check_stood_in_for(standing_in: Iterable[StandIn], wanted: StandIn) -> None:
    """How many approvers one person stands in for at a time, and each once.

    :raises InvalidRequest: naming the limit."""
    at_once = [one for one in standing_in if one.ended_at is None and one.starts_at < wanted.ends_at and wanted.starts_at < one.ends_at]
    if any(one.approver == wanted.approver for one in at_once):
        text = f"{wanted.stand_in} stands in for you in that time already. Take that back first, or choose other days."
        raise InvalidRequest(text, code="stand_in_named_already", field="email")
    if len({one.approver for one in at_once}) >= MOST_STOOD_IN_FOR:
        text = f"{wanted.stand_in} stands in for {MOST_STOOD_IN_FOR} approvers in that time, which is the most. Name somebody else."
        raise InvalidRequest(text, code="stand_in_for_too_many", field="email")
