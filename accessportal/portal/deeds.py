"""One question before every deed, and the deed itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from accessportal.access_requests.states import AccessRequest
from accessportal.identity.drafts import take
from accessportal.identity.middleware import PortalRequest, actor_of
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.portal.directory.waiting_for_cognito import tell
from accessportal.web.addresses import way_back
from accessportal.web.deeds import Deed
from accessportal.web.forms import DeedForm

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Page:
    """The page that a deed belongs to. ``summary`` is a template that tells what the deed is about; ``context`` is for it."""

    url: str
    label: str
    context: Mapping[str, Any]
    summary: str = ""


def ask_or_do(request: HttpRequest, deed: Deed[R], record: R, page: Page) -> HttpResponse:
    """Ask on GET (for htmx as a sheet); on POST do it and go where it leads, or back to the list that it came from. Whether it may be done
    the caller looks before asking, and the operation decides."""
    if request.method == "POST":
        return _do(request, deed, record, page)
    typed = take(request).dict()
    given = {name: request.GET[name] for name in (*deed.form().fields, "next") if name in request.GET} | typed
    return _ask(request, deed, record, page, deed.form(initial={**deed.starts_with(record, given), **typed}), given)


def _do(request: HttpRequest, deed: Deed[R], record: R, page: Page) -> HttpResponse:
    form = deed.form(request.POST)
    if not form.is_valid():
        return _ask(request, deed, record, page, form, request.POST, status=422)
    try:
        told = deed.run(record, form.cleaned_data, actor_of(request), SystemClock().now())
    except (InvalidRequest, NotAllowed, Conflict) as error:
        if isinstance(error, Conflict) and isinstance(error.present, AccessRequest):
            # There is nothing to mend in the form: the page of the error says how the request stands.
            raise
        form.add_refusal(error)
        return _ask(request, deed, record, page, form, request.POST, status=_status(error))
    leads_to = way_back(request, request.POST) or told.url
    tell(request, replace(told, links=tuple((words, url) for words, url in told.links if url != leads_to)))
    return redirect(leads_to)


def _status(error: InvalidRequest | NotAllowed | Conflict) -> int:
    if isinstance(error, InvalidRequest):
        return 422
    return 403 if isinstance(error, NotAllowed) else 409


def _ask(
    request: HttpRequest, deed: Deed[R], record: R, page: Page, form: DeedForm, given: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    template = "portal/deed_sheet.html" if cast(PortalRequest, request).htmx else "portal/deed.html"
    context = {
        "deed": deed,
        "form": form,
        "page": page,
        "question": deed.question(record),
        "explanation": deed.explain(record),
        "about": given.get("email", "") if "email" in form.fields and form.fields["email"].widget.is_hidden else "",
        "next": way_back(request, given),
        "is_stale": status == 409,
        **page.context,
    }
    return render(request, template, context, status=status)
