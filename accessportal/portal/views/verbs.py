"""Everything that is done to a request with one question first."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest
from accessportal.directory import queries as directory
from accessportal.identity.drafts import take
from accessportal.identity.middleware import PortalRequest, actor_of
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import InvalidRequest
from accessportal.portal.verbs import VERBS, Reason, Verb, verb_of
from accessportal.web.forms import ReasonForm


@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, request_id: uuid.UUID, verb: str) -> HttpResponse:
    """GET asks the question (for htmx as a sheet over the page it came from), POST does it and goes to the request."""
    if verb not in VERBS:
        raise Http404(f"Nothing called “{verb}” can be done to a request.")
    actor, now = actor_of(request), SystemClock().now()
    access_request = queries.get(request_id=str(request_id), actor=actor, now=now)
    chosen = verb_of(verb, request=access_request)
    if request.method == "POST":
        return _carry_out(request, chosen, access_request, now)
    decision = queries.can(verb=chosen.name, request=access_request, actor=actor, now=now)
    if not decision.allowed:
        messages.warning(request, decision.reason)
        return _go_to(request, access_request)
    return _ask(request, chosen, _form(chosen, None, typed=take(request)), access_request, now)


def _carry_out(request: HttpRequest, verb: Verb, access_request: AccessRequest, now: datetime) -> HttpResponse:
    form = _form(verb, request.POST)
    if not form.is_valid():
        return _ask(request, verb, form, access_request, now, status=422)
    try:
        after = verb.run(access_request=access_request, reason=form.cleaned_data["reason"], actor=actor_of(request), now=now)
    except InvalidRequest as error:
        form.add_refusal(error)
        return _ask(request, verb, form, access_request, now, status=422)
    messages.success(request, verb.done(after))
    return _go_to(request, access_request)


def _form(verb: Verb, data: QueryDict | None, *, typed: QueryDict | None = None) -> ReasonForm:
    initial = typed.dict() if typed else None
    return ReasonForm(data, initial=initial, is_required=verb.reason is Reason.MUST, help_text=verb.reason_help)


def _ask(
    request: HttpRequest, verb: Verb, form: ReasonForm, access_request: AccessRequest, now: datetime, *, status: int = 200
) -> HttpResponse:
    template = "portal/verb_sheet.html" if cast(PortalRequest, request).htmx else "portal/verb.html"
    context = {
        "verb": verb,
        "form": form,
        "kept_by": queries.others_holding(request=access_request) if verb.name == "end" else (),
        "is_given": verb.name == "end" and _is_given_directly(access_request),
        "takes_reason": verb.reason is not Reason.NONE,
        "access_request": access_request,
        "described": queries.describe(request=access_request),
        "title": queries.title_of(request=access_request),
        "now": now,
    }
    return render(request, template, context, status=status)


def _is_given_directly(access_request: AccessRequest) -> bool:
    """Whether an admin gave the membership without an end, too: then it stays."""
    if access_request.kind != "group":
        return False
    return directory.find_lasting_role(email=access_request.subject_id, group_id=access_request.target["group_id"]) is not None


def _go_to(request: HttpRequest, access_request: AccessRequest) -> HttpResponse:
    url = reverse("request", args=[access_request.request_id])
    return HttpResponseClientRedirect(url) if cast(PortalRequest, request).htmx else redirect(url)
