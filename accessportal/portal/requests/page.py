"""One request: the whole story on one page, which keeps itself up to date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import HttpResponseClientRedirect

from accessportal.access_requests import queries
from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.queries import ApproverBook
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.access_requests.thread import Comment, CommentKind
from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent
from accessportal.identity.middleware import PortalRequest, actor_of, book_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.pages import Unreadable, UnreadableItem
from accessportal.portal.deeds import Page, ask_or_do
from accessportal.portal.requests.asking import again_url
from accessportal.portal.requests.kept import Kept, kept_by_another
from accessportal.portal.requests.lent import Lent, is_gone, lent_to, mark_with, without_senseless
from accessportal.portal.requests.rows import aws_url, why_ended
from accessportal.web.events import tell
from accessportal.web.facts import facts_of
from accessportal.web.names import Names
from accessportal.web.past_requests import context_of, is_same_thing
from accessportal.web.presenting import cli_profile, phase_of, seconds_to_next_look
from accessportal.web.request_deeds import ANSWER, REQUEST_DEEDS, deed_of, offered

_PAST_REQUESTS = 50
# What a request keeps as evidence and its page tells in words, besides what was asked for itself.
_TOLD_IN_WORDS = (
    *("subject_name", "requested_by_name", "program_name", "asked_through"),
    *("account_name", "ou_path", "tags", "group_name", "session_seconds", "max_duration_seconds"),
)
_CALLED = {
    "group_ancestors": "groups above",
    "most_per_person": "most for each person",
    "rule_version": "version of the rule",
    "served_by": "served as a member of",
    "subject_groups": "groups of whom it is for",
    "takes_back": "takes back request",
}


@require_safe
def show(request: HttpRequest, request_id: str) -> HttpResponse:
    """The page."""
    actor, book = actor_of(request), book_of(request)
    found = queries.get(request_id=request_id, actor=actor, now=book.now, book=book)
    kept = kept_by_another(found, actor=actor, book=book)
    return render(request, "portal/request.html", _context(found, lent_to(found, book.now), kept, actor, book))


@require_safe
def live(request: HttpRequest, request_id: str) -> HttpResponse:
    """The part that changes; 204 while the page that asks (``mark``) still shows how it stands."""
    actor, book = actor_of(request), book_of(request)
    found = queries.get(request_id=request_id, actor=actor, now=book.now, book=book)
    lent, kept = lent_to(found, book.now), kept_by_another(found, actor=actor, book=book)
    if request.GET.get("mark") == _mark(found, lent, kept, book.now):
        return HttpResponse(status=204)
    return render(request, "portal/request_live.html", _context(found, lent, kept, actor, book))


@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, request_id: str, deed: str) -> HttpResponse:
    """A deed: GET asks, or leads to the request where it can't be done any more; POST does it."""
    if deed not in REQUEST_DEEDS:
        raise Http404(f"Nothing called “{deed}” can be done to a request.")
    actor, book = actor_of(request), book_of(request)
    found = queries.get(request_id=request_id, actor=actor, now=book.now, book=book)
    chosen, url = deed_of(deed, request=found), reverse("request", args=[found.request_id])
    if request.method != "POST" and not (decision := chosen.may(found, actor, book.now)).allowed:
        messages.warning(request, decision.reason)
        return HttpResponseClientRedirect(url) if cast(PortalRequest, request).htmx else redirect(url)
    told = {"access_request": found, "described": queries.describe(request=found)}
    if chosen is ANSWER:
        told["questions"] = [one for one in _thread_of(found)[0] if one.kind is CommentKind.QUESTION]
    return ask_or_do(request, chosen, found, Page(url, queries.title_of(request=found), told, summary="portal/request_summary.html"))


def _mark(found: AccessRequest, lent: Lent, kept: Kept | None, now: datetime) -> str:
    return f"{mark_with(lent, found, now)}{kept.mark if kept else ''}"


def _context(found: AccessRequest, lent: Lent, kept: Kept | None, actor: Actor, book: ApproverBook) -> dict[str, Any]:
    described = queries.describe(request=found)
    address = aws_url(found, book.now) if found.subject_id == actor.name and not lent.is_frozen else ""
    names, now = Names(book.directory), book.now
    thread, thread_unreadable = _thread_of(found)
    verbs = without_senseless(queries.verbs_for(request=found, actor=actor, now=now, book=book), found, lent)
    is_pending = found.status is Status.PENDING
    sees_evidence = actor.reads_everything or book.decides(actor)
    events = queries.history(request=found)
    phase = phase_of(found, now)
    book.directory.people([*(event.actor for event in events), *found.approvals, *found.in_place_of.values()])
    return {
        "access_request": found,
        "described": described,
        "title": queries.title_of(request=found),
        "phase": replace(phase, sentence=kept.sentence) if kept else phase,
        "mark": _mark(found, lent, kept, now),
        "kept": kept,
        "extended_by": queries.extensions_of(request=found) if found.granted_at else (),
        "lent": lent,
        "is_gone": is_gone(found, lent),
        "lost": _lost(found, now),
        "look_seconds": seconds_to_next_look(kept.by if kept and kept.is_ending else found, now),
        "verbs": verbs,
        "undo_until": _undo_until(found, verbs),
        "deeds": offered(verbs, request=found),
        "approvers": book.of_request(found) if is_pending else None,
        "tally": book.tally(found) if is_pending else None,
        "approved_by": [names.of_decider(one, in_place_of=found.in_place_of.get(one, "")) for one in sorted(found.approvals)],
        "ended_why": why_ended(found, actor=actor, names=names),
        "thread": [(one, "" if one.is_erased else names(one.written_by)) for one in thread],
        "thread_unreadable": thread_unreadable,
        "story": tell(
            (event for event in events if event.action != "request.commented"),
            names,
            request=found,
            together=kept.together if kept else "",
        ),
        "event_count": len(events),
        "session_until": _session_until(found, described.session_seconds),
        "aws_url": address,
        "profile": cli_profile(settings.AWS_START_URL, settings.AWS_REGION, found, described.title.partition(" · ")[0]) if address else "",
        "again_url": again_url(found) if found.status.is_terminal and found.requested_by == actor.name else "",
        "sees_evidence": sees_evidence,
        "is_deciding": sees_evidence and "approve" in verbs,
        **(_evidence(found, events, actor, book) if sees_evidence else {}),
        "now": now,
    }


def _thread_of(found: AccessRequest) -> tuple[Sequence[Comment], list[Unreadable]]:
    unreadable: list[Unreadable] = []
    return queries.thread_of(request=found, past=unreadable.append), unreadable


def _undo_until(found: AccessRequest, verbs: frozenset[str]) -> datetime | None:
    """Until when what was given back can be taken back: never beyond the end that it had."""
    if "take_back" not in verbs or found.revoked_at is None or found.was_to_end_at is None:
        return None
    return min(found.revoked_at + timedelta(seconds=queries.undo_seconds()), found.was_to_end_at)


def _evidence(found: AccessRequest, events: Sequence[AuditEvent], actor: Actor, book: ApproverBook) -> dict[str, Any]:
    """For those who decide, operate and audit: what the same person had before, and whether the story is whole."""
    subject = found.subject_id
    others = queries.recent_of(subject_ids=[subject], actor=actor, limit=_PAST_REQUESTS, book=book)[subject]
    past = context_of(found, others, now=book.now)
    told, longest = {*_TOLD_IN_WORDS, *found.target}, found.evidence.get("max_duration_seconds")
    return {
        "past": past,
        "holds": [(one, queries.describe(request=one).title, is_same_thing(one, found)) for one in past.holds],
        "longest_seconds": int(longest) if isinstance(longest, int | float) else None,
        "recorded": tuple(facts_of({key: value for key, value in found.evidence.items() if key not in told}, called=_CALLED)),
        "breaks": audit.check_chain(found.entity, events, version=found.version, audit_head=found.audit_head),
    }


def _lost(found: AccessRequest, now: datetime) -> str:
    """What became of what is granted, when somebody took it away; the comparison ends the request."""
    if not found.is_granted or found.is_over(now):
        return ""
    try:
        decision = kind_named(found.kind).grant.is_there(found, now=now)
    except UnreadableItem as error:
        return error.message
    return "" if decision.allowed else f"{decision.reason} The request is ended within an hour. Ask again if you need it."


def _session_until(found: AccessRequest, session_seconds: int) -> datetime | None:
    """An open console session may outlive the grant by this much; worth saying only once there is a grant."""
    if not session_seconds or found.granted_at is None:
        return None
    return (found.revoked_at or found.expires_at) + timedelta(seconds=session_seconds)
