"""One request: the whole story on one page, which keeps itself up to date."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.identity.middleware import actor_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.portal.asking import again_url
from accessportal.portal.lent import mark_with, offered, sandbox_of
from accessportal.portal.rows import aws_url
from accessportal.portal.verbs import allowed
from accessportal.sandboxes.states import Sandbox
from accessportal.web.events import tell
from accessportal.web.names import Names
from accessportal.web.presenting import phase_of, seconds_to_next_look


@require_safe
def show(request: HttpRequest, request_id: uuid.UUID) -> HttpResponse:
    """The page."""
    actor, now = actor_of(request), SystemClock().now()
    found = queries.get(request_id=str(request_id), actor=actor, now=now)
    return render(request, "portal/request.html", _context(found, sandbox_of(found), actor, now))


@require_safe
def live(request: HttpRequest, request_id: uuid.UUID) -> HttpResponse:
    """The part that changes; 204 while the page that asks (``mark``) still shows how it stands."""
    actor, now = actor_of(request), SystemClock().now()
    found = queries.get(request_id=str(request_id), actor=actor, now=now)
    sandbox = sandbox_of(found)
    if request.GET.get("mark") == mark_with(sandbox, found, now):
        return HttpResponse(status=204)
    return render(request, "portal/request_live.html", _context(found, sandbox, actor, now))


def _context(found: AccessRequest, sandbox: Sandbox | None, actor: Actor, now: datetime) -> dict[str, Any]:
    described = queries.describe(request=found)
    names, book = Names(), queries.ApproverBook(now=now)
    verbs = offered(queries.verbs_for(request=found, actor=actor, now=now, book=book), found, sandbox)
    is_pending = found.status is Status.PENDING
    return {
        "access_request": found,
        "described": described,
        "title": queries.title_of(request=found),
        "phase": phase_of(found, now),
        "mark": mark_with(sandbox, found, now),
        "sandbox": sandbox,
        "look_seconds": seconds_to_next_look(found, now),
        "verbs": verbs,
        "buttons": allowed(verbs, request=found),
        "approvers": queries.approvers_of(request=found, now=now, book=book) if is_pending else None,
        "tally": queries.tally_of(request=found, now=now, book=book) if is_pending else None,
        "approved_by": [names(email) for email in sorted(found.approvals)],
        "ended_by": names(found.ended_by),
        "story": tell(queries.history(request=found), names, request=found),
        "session_until": _session_until(found, described.session_seconds),
        "aws_url": aws_url(found, now) if found.subject_id == actor.name else "",
        "again_url": again_url(found) if found.status.is_terminal and found.requested_by == actor.name else "",
        "now": now,
    }


def _session_until(found: AccessRequest, session_seconds: int) -> datetime | None:
    """An open console session may outlive the grant by this much; worth saying only once there is a grant."""
    if not session_seconds or found.granted_at is None:
        return None
    return (found.revoked_at or found.expires_at) + timedelta(seconds=session_seconds)
