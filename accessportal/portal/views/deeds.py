"""One question before every deed in the directory, and the deed itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from accessportal.identity.drafts import take
from accessportal.identity.middleware import PortalRequest, actor_of
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.portal.deeds import Deed
from accessportal.portal.directory_forms import DeedForm
from accessportal.portal.mirroring import tell

S = TypeVar("S")


def ask_or_do(request: HttpRequest, deed: Deed[S], subject: S, *, may: Decision, where: dict[str, Any]) -> HttpResponse:
    """GET asks (for htmx as a sheet), POST does it and goes where it leads. ``where`` names the page that it came from.

    :raises NotAllowed: when ``may`` says so; the operation decides anew.
    """
    may.require()
    if request.method == "POST":
        return _do(request, deed, subject, where)
    typed = take(request).dict()
    given = {name: request.GET[name] for name in deed.form.base_fields if name in request.GET} | typed
    return _ask(request, deed, subject, deed.form(initial={**deed.starts_with(subject, given), **typed}), given, where)


def _do(request: HttpRequest, deed: Deed[S], subject: S, where: dict[str, Any]) -> HttpResponse:
    form, now = deed.form(request.POST), SystemClock().now()
    if not form.is_valid():
        return _ask(request, deed, subject, form, request.POST, where, status=422)
    data = form.cleaned_data
    try:
        changed = deed.run(subject, data, actor_of(request), now)
    except InvalidRequest as error:
        form.add_refusal(error)
        return _ask(request, deed, subject, form, request.POST, where, status=422)
    except (NotAllowed, Conflict) as error:
        form.add_refusal(error)
        return _ask(request, deed, subject, form, request.POST, where, status=403 if isinstance(error, NotAllowed) else 409)
    told = deed.told(subject, data, changed)
    tell(request, changed, told)
    return redirect(told.url)


def _ask(
    request: HttpRequest,
    deed: Deed[S],
    subject: S,
    form: DeedForm,
    given: Mapping[str, Any],
    where: dict[str, Any],
    *,
    status: int = 200,
) -> HttpResponse:
    template = "portal/deed_sheet.html" if cast(PortalRequest, request).htmx else "portal/deed.html"
    context = {
        "deed": deed,
        "form": form,
        "question": deed.question(subject, given),
        "explanation": deed.explain(subject, given),
        "about": given.get("email", "") if "email" in form.fields and form.fields["email"].widget.is_hidden else "",
        "is_stale": status == 409,
        **where,
    }
    return render(request, template, context, status=status)
