"""Asking: choose a kind, fill in a form that tells beforehand what will happen, send it once."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from accessportal.access_requests import operations, queries
from accessportal.access_requests.states import AccessRequest, Preview, Status
from accessportal.catalog import queries as catalog
from accessportal.directory import queries as directory
from accessportal.identity.middleware import actor_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.durations import parse_duration
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, PortalError
from accessportal.portal.forms import MAX_DURATION, MAX_NAME, MAX_REASON, MAX_TICKET, AwsAccountForm, ExtendForm, PlainForm
from accessportal.portal.presenting import Tone, typed_duration

_CHOICES = 20
_CHIPS = (("30m", "30 min", 1800), ("1h", "1 h", 3600), ("4h", "4 h", 14_400), ("8h", "8 h", 28_800))
_PREFILLED = {
    "subject": MAX_NAME,
    "account": MAX_NAME,
    "permission_set": MAX_NAME,
    "duration": MAX_DURATION,
    "ticket_id": MAX_TICKET,
    "reason": MAX_REASON,
    "extends": MAX_NAME,
}
_STATUS = {InvalidRequest: 422, NotAllowed: 403, Conflict: 409}


@require_safe
def choose_kind(request: HttpRequest) -> HttpResponse:
    """What can be asked for."""
    return render(request, "portal/kinds.html")


@require_http_methods(["GET", "HEAD", "POST"])
def aws_account(request: HttpRequest) -> HttpResponse:
    """The form for an AWS account. A GET may fill it in by its query (``Ask again``), or extend (``?extends=<id>``)."""
    if extends := request.GET.get("extends", ""):
        return _to_extension(extends)
    actor = actor_of(request)
    groups = sorted(directory.groups_of(email=actor.name, now=SystemClock().now()))
    if request.method != "POST":
        given = {name: value[: _PREFILLED[name]] for name, value in request.GET.items() if name in _PREFILLED}
        return _new_page(request, AwsAccountForm(initial=given, groups=groups), given)
    form = AwsAccountForm(request.POST, groups=groups)
    status = 422
    if form.is_valid() and "preview" not in request.POST:
        try:
            return _sent(request, _submit(form.cleaned_data, actor))
        except (InvalidRequest, NotAllowed, Conflict) as error:
            form.add_refusal(error)
            status = _STATUS[type(error)]
    return _new_page(request, form, request.POST, status=200 if "preview" in request.POST else status)


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
        given = {"reason": held.reason, "ticket_id": held.ticket_id, "duration": typed_duration(held.duration_seconds)}
        return _extend_page(request, ExtendForm(initial=given), held, given)
    form = ExtendForm(request.POST)
    status = 422
    if form.is_valid() and "preview" not in request.POST:
        try:
            return _sent(request, _extend(held, form.cleaned_data, actor))
        except (InvalidRequest, NotAllowed) as error:
            form.add_refusal(error)
            status = _STATUS[type(error)]
    return _extend_page(request, form, held, request.POST, status=200 if "preview" in request.POST else status)


@require_safe
def preview(request: HttpRequest) -> HttpResponse:
    """The panel that says what would happen if the form were sent as it stands."""
    return render(request, "portal/preview.html", _foresee(request.GET, actor_of(request)) | {"is_swapped": True})


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


def _submit(data: Mapping[str, Any], actor: Actor) -> AccessRequest:
    return operations.submit(
        kind="aws_account",
        subject_id=data["subject"] or None,
        target={"account": data["account"], "permission_set": data["permission_set"]},
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
    messages.success(request, "Sent. It waits for approval." if waits else "Approved by rule. The access is being created now.")
    return redirect("request", request_id=made.request_id)


def _to_extension(request_id: str) -> HttpResponse:
    try:
        return redirect("extend", request_id=uuid.UUID(request_id))
    except ValueError as error:
        raise InvalidRequest("That is not the id of a request.", code="request_id_unreadable", field="extends") from error


def _new_page(request: HttpRequest, form: AwsAccountForm, given: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
    context = {"form": form, "chips": _CHIPS, **_foresee({"duration": "1h", **_plain(given)}, actor_of(request))}
    return render(request, "portal/new_aws_account.html", context, status=status)


def _extend_page(
    request: HttpRequest, form: PlainForm, held: AccessRequest, given: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    target = {"account": held.account_id, "permission_set": held.permission_set, "subject": _group(held), "extends": held.request_id}
    context = {
        "form": form,
        "chips": _CHIPS,
        "access_request": held,
        "target": target,
        "described": queries.describe(request=held),
        **_foresee({**_plain(given), **target}, actor_of(request)),
    }
    return render(request, "portal/extend.html", context, status=status)


def _group(held: AccessRequest) -> str:
    return held.subject_id if held.subject_id.startswith("/") else ""


def _plain(given: Mapping[str, Any]) -> dict[str, str]:
    """One value a name, cut to what the form takes: a preview never judges more than that."""
    return {name: str(given[name])[:limit] for name, limit in _PREFILLED.items() if name in given}


def _foresee(given: Mapping[str, Any], actor: Actor) -> dict[str, Any]:
    """The preview, or why there is none yet: ``hint`` (nothing chosen) or ``trouble`` (something can't be read)."""
    text = {name: value.replace("\0", "").strip() for name, value in _plain(given).items()}
    now = SystemClock().now()
    if not text.get("account") or not text.get("permission_set"):
        return {"hint": "Choose an account and a permission set to see who decides, and how long it may last."}
    seconds, trouble = _seconds(text.get("duration", ""))
    impossible = {"tone": Tone.STOP, "headline": "Not possible like this"}
    try:
        foreseen = _ask_preview(text, seconds, actor, now)
    except Conflict as error:  # several accounts carry the name
        return impossible | {"trouble": error.message}
    verdict = impossible if trouble else _verdict(foreseen)
    ends_at = now + timedelta(seconds=seconds) if seconds is not None and seconds <= foreseen.max_duration_seconds else None
    return verdict | {"preview": foreseen, "typed_account": text["account"], "trouble": trouble, "ends_at": ends_at, "now": now}


def _verdict(preview: Preview) -> dict[str, Any]:
    if preview.outcome == "at_once":
        return {"tone": Tone.LIVE, "headline": "Approved at once"}
    if preview.outcome == "needs_approval":
        return {"tone": Tone.WAIT, "headline": "Needs one approval" if preview.quorum == 1 else f"Needs {preview.quorum} approvals"}
    return {"tone": Tone.STOP, "headline": "Not possible like this"}


def _ask_preview(text: Mapping[str, str], seconds: int | None, actor: Actor, now: datetime) -> Preview:
    return queries.preview(
        kind="aws_account",
        subject_id=text.get("subject") or None,
        target={"account": text["account"], "permission_set": text["permission_set"]},
        duration_seconds=seconds,
        ticket_id=text.get("ticket_id") or None,
        extends=queries.get(request_id=text["extends"], actor=actor, now=now) if text.get("extends") else None,
        actor=actor,
        now=now,
    )


def _seconds(text: str) -> tuple[int | None, str]:
    try:
        return (parse_duration(text), "") if text else (None, "")
    except PortalError as error:
        return None, error.message
