"""Asking: choose a kind, fill in a form that tells beforehand what will happen, send it once."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from accessportal.access_requests import operations, queries
from accessportal.access_requests.kind import KINDS, Kind, kind_named
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.catalog import queries as catalog
from accessportal.identity.drafts import take
from accessportal.identity.middleware import actor_of, book_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.durations import format_duration, parse_duration
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, PortalError
from accessportal.portal.requests.asking import foresee, plain, target_of
from accessportal.portal.requests.forms import ExtendForm, RequestForm, target_fields
from accessportal.web.forms import MAX_NAME, PlainForm
from accessportal.web.presenting import typed_duration

_CHOICES = 20
_STATUS = {InvalidRequest: 422, NotAllowed: 403, Conflict: 409}


@require_safe
def choose_kind(request: HttpRequest) -> HttpResponse:
    """What can be asked for."""
    rules = book_of(request).rules.values()
    return render(request, "portal/kinds.html", {"kinds": [kind for kind in KINDS.values() if kind.fields.is_offered(rules)]})


@require_http_methods(["GET", "HEAD", "POST"])
def ask(request: HttpRequest, kind: str) -> HttpResponse:
    """The form of a kind. A GET may fill it in by its query (``Ask again``), or extend (``?extends=<id>``)."""
    asked = _kind_or_404(kind)
    if extends := request.GET.get("extends", ""):
        return _to_extension(extends)
    target = target_fields(asked, actor_of(request), book_of(request))
    if request.method != "POST":
        first = {name: field.initial for name, field in target.items() if field.initial is not None}
        given = {**first, **plain(asked, request.GET), **take(request).dict()}
        return _page(request, RequestForm(initial=given, target=target), given, kind=asked)
    form = RequestForm(request.POST, target=target)
    return _answer(request, form, partial(_submit, asked, actor_of(request)), partial(_page, kind=asked), shows_conflicts=True)


@require_http_methods(["GET", "HEAD", "POST"])
def extend(request: HttpRequest, request_id: str) -> HttpResponse:
    """The form that asks for more of what is already held."""
    actor, book = actor_of(request), book_of(request)
    held = queries.get(request_id=request_id, actor=actor, now=book.now, book=book)
    decision = queries.can(verb="extend", request=held, actor=actor, now=book.now, book=book)
    page = partial(_page, kind=kind_named(held.kind), held=held)
    if request.method != "POST":
        if not decision.allowed:
            messages.warning(request, decision.reason)
            return redirect("request", request_id=request_id)
        held_now = {"reason": held.reason, "ticket_id": held.ticket_id, "duration": typed_duration(held.duration_seconds)}
        given = {**held_now, **take(request).dict()}
        return page(request, ExtendForm(initial=given), given)
    return _answer(request, ExtendForm(request.POST), partial(_extend, held, actor), page, shows_conflicts=False)


@require_safe
def preview(request: HttpRequest, kind: str) -> HttpResponse:
    """The panel that says what would happen if the form were sent as it stands."""
    asked = _kind_or_404(kind)
    foreseen = foresee(asked, request.GET, actor_of(request), book_of(request))
    # The form of an extension has no place for the facts of its target.
    around = {"is_swapped": "extends" not in request.GET, "kind": asked, **asked.fields.around()}
    return render(request, "portal/preview.html", foreseen | around)


@require_safe
def accounts(request: HttpRequest) -> HttpResponse:
    """The accounts that fit what is typed, best first."""
    text = request.GET.get("account", "")[:MAX_NAME]
    found = catalog.search_accounts(text=text, limit=_CHOICES + 1)
    names = Counter(account.name.casefold() for account in found)
    # The name is what people know; where two accounts share one, only the id says which is meant.
    choices = [(account, account.name if names[account.name.casefold()] == 1 else account.account_id) for account in found[:_CHOICES]]
    return render(request, "portal/choices_accounts.html", {"choices": choices, "is_more": len(found) > _CHOICES, "text": text})


@require_safe
def permission_sets(request: HttpRequest) -> HttpResponse:
    """The permission sets that fit what is typed."""
    text = request.GET.get("permission_set", "")[:MAX_NAME]
    found = catalog.search_permission_sets(text=text, limit=_CHOICES + 1)
    context = {"permission_sets": found[:_CHOICES], "is_more": len(found) > _CHOICES, "text": text}
    return render(request, "portal/choices_permission_sets.html", context)


def _answer(
    request: HttpRequest,
    form: PlainForm,
    send: Callable[[Mapping[str, Any]], AccessRequest],
    page: Callable[..., HttpResponse],
    *,
    shows_conflicts: bool,
) -> HttpResponse:
    """Make a request of what was sent, or show the ``page`` again with the reason; without scripts a button only asks for the preview. Of
    an extension a conflict is about what is held by now: then the form has no sense any more."""
    is_preview, sent_before = "preview" in request.POST, None
    status = 200 if is_preview else 422
    if form.is_valid() and not is_preview:
        try:
            return _sent(request, send(form.cleaned_data))
        except (InvalidRequest, NotAllowed, Conflict) as error:
            sent_before = _sent_before(form, error)
            if isinstance(error, Conflict) and sent_before is None and not shows_conflicts:
                raise
            form.add_refusal(error)
            status = _STATUS[type(error)]
    return page(request, form, request.POST, status=status, sent_before=sent_before)


def _sent_before(form: PlainForm, error: PortalError) -> AccessRequest | None:
    """The request that this form became when it was sent with other values. From now on the form is for another one."""
    if error.code != "submission_reused" or not isinstance(error, Conflict) or not isinstance(error.present, AccessRequest):
        return None
    form.begin_anew()
    return error.present


def _submit(kind: Kind, actor: Actor, data: Mapping[str, Any]) -> AccessRequest:
    target = {field.name: data[field.name] for field in kind.fields.target}
    return operations.submit(kind=kind.name, subject_id=data.get("subject") or None, target=target, **_typed(data, actor))


def _extend(held: AccessRequest, actor: Actor, data: Mapping[str, Any]) -> AccessRequest:
    return operations.extend(request_id=held.request_id, **_typed(data, actor))


def _typed(data: Mapping[str, Any], actor: Actor) -> dict[str, Any]:
    """What every request says beside its target, and who asks when."""
    same = {name: data[name] for name in ("reason", "ticket_id", "submission_id")}
    return {**same, "duration_seconds": data["duration"], "actor": actor, "now": SystemClock().now()}


def _sent(request: HttpRequest, made: AccessRequest) -> HttpResponse:
    waits = made.status is Status.PENDING
    messages.success(request, "Sent. It waits for approval." if waits else kind_named(made.kind).fields.at_once)
    return redirect("request", request_id=made.request_id)


def _kind_or_404(name: str) -> Kind:
    if name not in KINDS:
        raise Http404("There is no such kind of access.")
    return KINDS[name]


def _to_extension(request_id: str) -> HttpResponse:
    try:
        return redirect("extend", request_id=str(uuid.UUID(request_id)))
    except ValueError as error:
        raise InvalidRequest("That is not the id of a request.", code="request_id_unreadable", field="extends") from error


def _page(
    request: HttpRequest,
    form: PlainForm,
    given: Mapping[str, Any],
    *,
    kind: Kind,
    held: AccessRequest | None = None,
    status: int = 200,
    sent_before: AccessRequest | None = None,
) -> HttpResponse:
    """The form for something new, or for more of what is ``held``, with what would happen if it were sent."""
    target = {**target_of(held), "extends": held.request_id} if held is not None else {}
    foreseen = foresee(kind, {**plain(kind, given), **target}, actor_of(request), book_of(request))
    if not form.is_bound and "duration" not in given:
        form.offer_duration(foreseen.get("usual", kind.fields.usual))
    context = {"form": form, "sent_before": sent_before, **_around(kind, *(target or kind.fields.names)), **foreseen}
    if held is None:
        context["inputs"] = [(field, form[field.name]) for field in kind.fields.target]
        return render(request, "portal/new.html", context, status=status)
    context |= {"access_request": held, "target": target, "described": queries.describe(request=held)}
    return render(request, "portal/extend.html", context, status=status)


def _around(kind: Kind, *names: str) -> dict[str, Any]:
    """What stands around the fields; the preview is asked about those in ``names``, and how long and by which ticket."""
    params = ",".join((*names, "duration", "zone", "ticket_id"))
    lengths = [(typed, format_duration(parse_duration(typed)), parse_duration(typed)) for typed in kind.fields.lengths]
    preview_url = reverse("preview_request", args=[kind.name])
    return {"kind": kind, "chips": lengths, "preview_url": preview_url, "preview_params": params, **kind.fields.around()}
