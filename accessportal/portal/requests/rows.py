"""What one line of a list says about a request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.conf import settings

from accessportal.access_requests import queries
from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.queries import ApproverBook
from accessportal.access_requests.states import AccessRequest, Approvers, Status, Tally, Work
from accessportal.kernel.actors import Actor
from accessportal.portal.requests.asking import again_url
from accessportal.portal.requests.kept import Kept, kept_by_others
from accessportal.portal.requests.lent import Lent, is_gone, without_senseless
from accessportal.web.names import Names
from accessportal.web.presenting import Phase, Tone, aws_address, phase_of, seconds_to_next_look
from accessportal.web.request_deeds import deed_of

_CALM_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Row:
    """``verbs`` are what the actor may do with it now; ``aws_url`` and ``again_url`` are empty where they make no sense. ``others`` are
    active requests that hold the same thing. ``lent`` is what the request has of a pool. ``ended_why``: what ended it, after “Ended”."""

    request: AccessRequest
    phase: Phase
    title: str
    subject: str
    decided_by: str
    approvers: Approvers | None
    verbs: frozenset[str]
    aws_url: str
    again_url: str
    others: tuple[AccessRequest, ...] = ()
    lent: Lent = field(default_factory=Lent)
    tally: Tally | None = None
    asked_back_by: str = ""
    ended_why: str = ""

    @property
    def end_label(self) -> str:
        return deed_of("end", request=self.request).label

    @property
    def is_gone(self) -> bool:
        """What was lent was given back or taken away by another way than the request's."""
        return self.phase.code == "active" and is_gone(self.request, self.lent)


def open_list(current: Sequence[AccessRequest], lent: Mapping[str, Lent], actor: Actor, book: ApproverBook) -> dict[str, Any]:
    """What a part of a page shows of requests that are ``active`` or ``waiting``, and in how many seconds it looks again. ``lent``: what
    each has of a pool, by its id."""
    names, now = Names(book.directory), book.now
    book.expect_approvers([one for one in current if one.status is Status.PENDING])
    book.directory.people(email for one in current for email in (one.decided_by, one.decided_in_place_of, one.asked_back_by))
    held = _by_thing([one for one in current if one.status is Status.ACTIVE], now)
    waiting = ([one] for one in current if one.status is Status.PENDING)
    rows = [
        open_row(first, lent=lent[first.request_id], actor=actor, names=names, book=book, others=tuple(others))
        for first, *others in (*held, *waiting)
    ]
    looks = [seconds for one in current if (seconds := seconds_to_next_look(one, now)) is not None]
    return {
        "active": [row for row in rows if row.request.status is Status.ACTIVE],
        "waiting": [row for row in rows if row.request.status is Status.PENDING],
        "look_seconds": min([*looks, _CALM_SECONDS]),
        "now": now,
    }


def _by_thing(active: Sequence[AccessRequest], now: datetime) -> list[list[AccessRequest]]:
    """The requests that hold one thing together: first the one that decides how long it is held."""
    things: defaultdict[tuple[str, ...], list[AccessRequest]] = defaultdict(list)
    for one in active:
        things[one.subject_id, *kind_named(one.kind).target.holding(one)].append(one)
    for held in things.values():
        held.sort(key=lambda one: (phase_of(one, now).tone is Tone.LIVE, one.expires_at), reverse=True)
    return list(things.values())


def open_row(
    request: AccessRequest,
    *,
    lent: Lent,
    actor: Actor,
    names: Names,
    book: ApproverBook,
    others: tuple[AccessRequest, ...] = (),
) -> Row:
    """A request that is waiting or active, what is ``lent`` to it, and the ``others`` that hold the same thing."""
    is_pending, now = request.status is Status.PENDING, book.now
    return Row(
        request=request,
        phase=phase_of(request, now),
        title=lent.title or queries.title_of(request=request),
        subject=_foreign_subject(request, actor),
        decided_by=names.of_decider(request.decided_by, in_place_of=request.decided_in_place_of),
        approvers=book.of_request(request) if is_pending else None,
        verbs=without_senseless(queries.verbs_for(request=request, actor=actor, now=now, book=book), request, lent),
        aws_url="" if lent.is_frozen else aws_url(request, now),
        again_url="",
        others=others,
        lent=lent,
        tally=book.tally(request) if is_pending else None,
        asked_back_by=names(request.asked_back_by),
    )


def ended_rows(found: Sequence[AccessRequest], *, actor: Actor, book: ApproverBook) -> list[Row]:
    """What was asked for, without its approvers, with names that are read together."""
    names = Names(book.directory)
    book.directory.people(email for one in found for email in (one.decided_by, one.decided_in_place_of, one.ended_by))
    kept = kept_by_others(found, actor=actor, book=book)
    return [_ended_row(one, kept.get(one.request_id), actor=actor, names=names, book=book) for one in found]


def _ended_row(request: AccessRequest, kept: Kept | None, *, actor: Actor, names: Names, book: ApproverBook) -> Row:
    may_undo = queries.can(verb="take_back", request=request, actor=actor, now=book.now, book=book).allowed
    phase = phase_of(request, book.now)
    return Row(
        request=request,
        phase=replace(phase, sentence=kept.sentence) if kept else phase,
        title=queries.title_of(request=request),
        subject=_foreign_subject(request, actor),
        decided_by=names.of_decider(request.decided_by, in_place_of=request.decided_in_place_of),
        approvers=None,
        verbs=frozenset({"take_back"} if may_undo else ()),
        aws_url="",
        again_url=again_url(request),
        ended_why=why_ended(request, actor=actor, names=names),
    )


# What the portal ends early by itself, by the code of the refusal that says why: for whoever it was for, and for everybody else.
_ENDED_FOR = {
    "subject_disabled": ("you were disabled", "{} was disabled"),
    "subject_gone": ("you were gone from the directory", "{} was gone from the directory"),
    "subject_made_anew": ("you were deleted and made anew", "{} was deleted and made anew"),
    "subject_not_served": ("you are no longer in a group that its rule serves", "{} is no longer in a group that its rule serves"),
    "taken_away": ("it was taken away",) * 2,
    "account_gone": ("the account is gone",) * 2,
    "over_budget": ("its budget was reached",) * 2,
    "restored": ("the portal’s tables were restored from an earlier day",) * 2,
}
_ENDED_FOR["person_made_anew"] = _ENDED_FOR["group_made_anew"] = _ENDED_FOR["subject_made_anew"]


def why_ended(request: AccessRequest, *, actor: Actor, names: Names) -> str:
    """Who or what ended access that was approved, to be read after “Ended”; empty of everything else."""
    if request.status is not Status.REVOKED and request.work is not Work.REVOKE:
        return ""
    if not request.ended_by:
        return "when its time was up"
    if request.end_code in _ENDED_FOR:
        own, others = _ENDED_FOR[request.end_code]
        return f"because {own if request.subject_id == actor.name else others.format(request.subject_id)}"
    return "by you" if request.ended_by == actor.name else f"by {names(request.ended_by)}"


def aws_url(request: AccessRequest, now: datetime) -> str:
    """Where the access can be used; empty while it can't, and where no address of AWS is configured."""
    usable = phase_of(request, now).tone is Tone.LIVE and bool(request.account_id)
    return aws_address(settings.AWS_START_URL, request) if usable and settings.AWS_START_URL else ""


def _foreign_subject(request: AccessRequest, actor: Actor) -> str:
    return "" if request.subject_id == actor.name else request.subject_id
