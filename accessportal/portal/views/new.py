"""Asking: choose a kind, fill in a form that tells beforehand what will happen, send it once."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from accessportal.access_requests import operations, queries
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.catalog import queries as catalog
from accessportal.directory import queries as directory
from accessportal.directory.states import ROOT
from accessportal.identity.drafts import take
from accessportal.identity.middleware import actor_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, PortalError
from accessportal.portal.asking import FORMS, FormOf, foresee
from accessportal.portal.directory_forms import GroupForm
from accessportal.portal.forms import AwsAccountForm, ExtendForm
from accessportal.portal.lent import offered_prefixes
from accessportal.portal.sandbox_forms import SandboxForm
from accessportal.portal.verbs import SHOWS_ITSELF
from accessportal.sandboxes import queries as sandboxes
from accessportal.sandboxes.states import Status as SandboxStatus
from accessportal.upstream import client as upstream
from accessportal.web.forms import MAX_NAME, PlainForm
from accessportal.web.presenting import typed_duration

_CHOICES = 20
_STATUS = {InvalidRequest: 422, NotAllowed: 403, Conflict: 409}
_ACCOUNT, _GROUP, _SANDBOX = FORMS["aws_account"], FORMS["group"], FORMS["sandbox"]


@require_safe
def choose_kind(request: HttpRequest) -> HttpResponse:
    """What can be asked for."""
    return render(request, "portal/kinds.html", {"has_pool": upstream.is_set()})


@require_http_methods(["GET", "HEAD", "POST"])
def aws_account(request: HttpRequest) -> HttpResponse:
    """The form for an AWS account. A GET may fill it in by its query (``Ask again``), or extend (``?extends=<id>``)."""
    if extends := request.GET.get("extends", ""):
        return _to_extension(extends)
    groups = sorted(directory.groups_of(email=actor_of(request).name, now=SystemClock().now()) - {ROOT})
    if request.method != "POST":
        given = {**_ACCOUNT.plain(request.GET), **take(request).dict()}
        return _new_page(request, _ACCOUNT, AwsAccountForm(initial=given, groups=groups), given)
    return _receive(request, _ACCOUNT, AwsAccountForm(request.POST, groups=groups))


@require_http_methods(["GET", "HEAD", "POST"])
def group(request: HttpRequest) -> HttpResponse:
    """The form for membership in a group. A GET may fill it in by its query."""
    if request.method != "POST":
        given = {"role": "reader", **_GROUP.plain(request.GET), **take(request).dict()}
        return _new_page(request, _GROUP, GroupForm(initial=given), given)
    return _receive(request, _GROUP, GroupForm(request.POST))


@require_http_methods(["GET", "HEAD", "POST"])
def sandbox(request: HttpRequest) -> HttpResponse:
    """The form for a sandbox of the pool. A GET may fill it in by its query."""
    prefixes = offered_prefixes(actor_of(request), SystemClock().now())
    if request.method != "POST":
        given = {"name_prefix": prefixes[0], **_SANDBOX.plain(request.GET), **take(request).dict()}
        return _new_page(request, _SANDBOX, SandboxForm(initial=given, prefixes=prefixes), given)
    return _receive(request, _SANDBOX, SandboxForm(request.POST, prefixes=prefixes))


@require_http_methods(["GET", "HEAD", "POST"])
def extend(request: HttpRequest, request_id: uuid.UUID) -> HttpResponse:
    """The form that asks for more of what is already held."""
    actor, now = actor_of(request), SystemClock().now()
    held = queries.get(request_id=str(request_id), actor=actor, now=now)
    decision = queries.can(verb="extend", request=held, actor=actor, now=now)
    if request.method != "POST":
        if not decision.allowed:
            messages.warning(request, decision.reason)
            return redirect("request", request_id=request_id)
        held_now = {"reason": held.reason, "ticket_id": held.ticket_id, "duration": typed_duration(held.duration_seconds)}
        given = {**held_now, **take(request).dict()}
        return _extend_page(request, ExtendForm(initial=given), held, given)
    form = ExtendForm(request.POST)
    status, sent_before = 422, None
    if form.is_valid() and "preview" not in request.POST:
        try:
            return _sent(request, _extend(held, form.cleaned_data, actor))
        except (InvalidRequest, NotAllowed, Conflict) as error:
            sent_before = _sent_before(form, error)
            if isinstance(error, Conflict) and sent_before is None:
                raise
            form.add_refusal(error)
            status = _STATUS[type(error)]
    return _extend_page(request, form, held, request.POST, status=200 if "preview" in request.POST else status, sent_before=sent_before)


@require_safe
def preview(request: HttpRequest, kind: str) -> HttpResponse:
    """The panel that says what would happen if the form were sent as it stands."""
    foreseen = foresee(FORMS[kind], request.GET, actor_of(request))
    # The form of an extension has no place for the facts of its target.
    around = {"is_swapped": "extends" not in request.GET, "kind": kind, **_facts(kind)}
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


def _receive(request: HttpRequest, kind: FormOf, form: PlainForm) -> HttpResponse:
    """What was sent becomes a request, or comes back with the reason; without scripts a button only asks for the preview."""
    if "preview" in request.POST:
        form.is_valid()
        return _new_page(request, kind, form, request.POST)
    status, sent_before = 422, None
    if form.is_valid():
        try:
            return _sent(request, _submit(kind, form.cleaned_data, actor_of(request)))
        except (InvalidRequest, NotAllowed, Conflict) as error:
            form.add_refusal(error)
            sent_before = _sent_before(form, error)
            status = _STATUS[type(error)]
    return _new_page(request, kind, form, request.POST, status=status, sent_before=sent_before)


def _sent_before(form: PlainForm, error: PortalError) -> AccessRequest | None:
    """The request that this form became when it was sent with other values. From now on the form is for another one."""
    if error.code != "submission_reused" or not isinstance(error, Conflict) or not isinstance(error.present, AccessRequest):
        return None
    form.begin_anew()
    return error.present


def _submit(kind: FormOf, data: Mapping[str, Any], actor: Actor) -> AccessRequest:
    return operations.submit(
        kind=kind.kind,
        subject_id=data.get("subject") or None,
        target={name: data[name] for name in kind.target},
        duration_seconds=data["duration"],
        reason=data["reason"],
        ticket_id=data["ticket_id"],
        submission_id=data["submission_id"],
        actor=actor,
        now=SystemClock().now(),
    )


def _extend(held: AccessRequest, data: Mapping[str, Any], actor: Actor) -> AccessRequest:
    return operations.extend(
        request_id=held.request_id,
        duration_seconds=data["duration"],
        reason=data["reason"],
        ticket_id=data["ticket_id"],
        submission_id=data["submission_id"],
        actor=actor,
        now=SystemClock().now(),
    )


def _sent(request: HttpRequest, made: AccessRequest) -> HttpResponse:
    waits = made.status is Status.PENDING
    at_once = (
        "Approved by rule. It gets a sandbox now, or as soon as one is free."
        if made.kind == "sandbox"
        else f"Approved by rule. {SHOWS_ITSELF}"
    )
    messages.success(request, "Sent. It waits for approval." if waits else at_once)
    return redirect("request", request_id=made.request_id)


def _to_extension(request_id: str) -> HttpResponse:
    try:
        return redirect("extend", request_id=uuid.UUID(request_id))
    except ValueError as error:
        raise InvalidRequest("That is not the id of a request.", code="request_id_unreadable", field="extends") from error


def _new_page(
    request: HttpRequest,
    kind: FormOf,
    form: PlainForm,
    given: Mapping[str, Any],
    *,
    status: int = 200,
    sent_before: AccessRequest | None = None,
) -> HttpResponse:
    foreseen = foresee(kind, kind.plain(given), actor_of(request))
    if not form.is_bound and "duration" not in given:
        form.offer_duration(foreseen.get("usual", kind.usual))
    context = {"form": form, "sent_before": sent_before, **_around(kind, *kind.names), **foreseen}
    return render(request, f"portal/new_{kind.kind}.html", context, status=status)


def _around(kind: FormOf, *names: str) -> dict[str, Any]:
    """What stands around the fields; the preview is asked about those in ``names``, and how long and by which ticket."""
    params = ",".join((*names, "duration", "ticket_id"))
    around = {"chips": kind.chips, "kind": kind.kind, "preview_url": kind.preview_url, "preview_params": params}
    return around | _facts(kind.kind)


def _facts(kind: str) -> dict[str, Any]:
    """What a form tells of its kind as a whole."""
    if kind != "sandbox":
        return {}
    stats = sandboxes.stats()
    return {"pool": stats, "free": stats.counts.get(SandboxStatus.AVAILABLE, 0) if stats is not None else 0}


def _extend_page(
    request: HttpRequest,
    form: PlainForm,
    held: AccessRequest,
    given: Mapping[str, Any],
    *,
    status: int = 200,
    sent_before: AccessRequest | None = None,
) -> HttpResponse:
    kind = FORMS[held.kind]
    target = {**kind.target_of(held), "extends": held.request_id}
    context = {
        "form": form,
        "sent_before": sent_before,
        **_around(kind, *target),
        "access_request": held,
        "target": target,
        "described": queries.describe(request=held),
        **foresee(kind, {**kind.plain(given), **target}, actor_of(request)),
    }
    return render(request, "portal/extend.html", context, status=status)
