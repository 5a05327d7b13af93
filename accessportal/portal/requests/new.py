"""Asking: choose a kind, fill in a form that tells beforehand what will happen, send it once."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from accessportal.access_requests import operations, queries
from accessportal.access_requests.kind import KINDS, Kind, kind_named
from accessportal.access_requests.queries import ApproverBook
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.identity.drafts import take
from accessportal.identity.middleware import PortalRequest, actor_of, book_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, PortalError
from accessportal.portal.requests.asking import LATELY, again, foresee, helpers, offered_kinds, plain, target_of
from accessportal.portal.requests.extending import seconds_for, steps_of
from accessportal.portal.requests.forms import ExtendForm, RequestForm, target_fields
from accessportal.web.forms import MAX_NAME, PlainForm
from accessportal.web.presenting import typed_duration

# So many requests of one kind, and the page begins with it.
_A_HABIT = 3
_STATUS = {InvalidRequest: 422, NotAllowed: 403, Conflict: 409}


@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """The form of the kind that is asked for most often, or else of the first that some rule offers."""
    actor, book = actor_of(request), book_of(request)
    possible = offered_kinds(book)
    lately = queries.list_mine(actor=actor, limit=LATELY).items
    asked = Counter(one.kind for one in lately)
    served = queries.kinds_served(kinds=possible, actor=actor, book=book)
    habits = {name: asked[name] if asked[name] >= _A_HABIT else 0 for name in possible if name in served or not served}
    return _first_look(request, possible[max(habits, key=lambda name: habits[name])], lately)


@require_http_methods(["GET", "HEAD", "POST"])
def ask(request: HttpRequest, kind: str) -> HttpResponse:
    """The form of a kind. A GET may fill it in by its query (``Ask again``, or a link in a runbook: docs/asking.md), or extend
    (``?extends=<id>``)."""
    asked = _kind_or_404(kind)
    if extends := request.GET.get("extends", ""):
        return _to_extension(extends)
    if request.method != "POST":
        return _first_look(request, asked)
    target = target_fields(asked, actor_of(request), book_of(request))
    form = RequestForm(request.POST, target=target)
    return _answer(request, form, partial(_submit, asked, actor_of(request)), partial(_page, kind=asked), shows_conflicts=True)


@require_http_methods(["GET", "HEAD", "POST"])
def extend(request: HttpRequest, request_id: str) -> HttpResponse:
    """The form that asks for more of what is already held."""
    actor, book = actor_of(request), book_of(request)
    held = queries.get(request_id=request_id, actor=actor, now=book.now, book=book)
    decision = queries.can(verb="extend", request=held, actor=actor, now=book.now, book=book)
    page = partial(_page, kind=kind_named(held.kind), held=held)
    if "step" in request.POST:
        return _extend_by_step(request, held)
    if request.method != "POST":
        if not decision.allowed:
            messages.warning(request, decision.reason)
            return redirect("request", request_id=request_id)
        if cast(PortalRequest, request).htmx:
            return render(request, "portal/extend_sheet.html", _longer(held, actor, book))
        held_now = {"reason": held.reason, "ticket_id": held.ticket_id, "duration": typed_duration(held.duration_seconds)}
        given = {**held_now, **take(request).dict()}
        return page(request, ExtendForm(initial=given), given)
    return _answer(request, ExtendForm(request.POST), partial(_extend, held, actor), page, shows_conflicts=False)


def _longer(held: AccessRequest, actor: Actor, book: ApproverBook) -> dict[str, Any]:
    """What the short way to an extension shows: steps, each with the end that it leads to."""
    form = ExtendForm()
    told = {"access_request": held, "described": queries.describe(request=held), "kind": kind_named(held.kind), "form": form}
    return {**told, **steps_of(held, actor, book), "now": book.now}


def _extend_by_step(request: HttpRequest, held: AccessRequest) -> HttpResponse:
    """Counted from the end of what is held, with the reason and the ticket of then."""
    step = request.POST["step"]
    if step not in kind_named(held.kind).fields.lengths:
        raise InvalidRequest("Choose one of the lengths of the page.", code="step_unknown", field="duration")
    form = ExtendForm({"duration": step, **request.POST.dict()})
    form.full_clean()
    now = SystemClock().now()
    typed = {"reason": "", "ticket_id": "", "submission_id": form.cleaned_data["submission_id"], "duration": seconds_for(step, held, now)}
    try:
        return _sent(request, _extend(held, actor_of(request), typed))
    except (InvalidRequest, NotAllowed, Conflict) as error:
        sent = error.present if isinstance(error, Conflict) and error.code == "submission_reused" else None
        if isinstance(sent, AccessRequest) and sent.extends == held.request_id:
            # Pressed twice: a moment later the same end is another length.
            return redirect("request", request_id=sent.request_id)
        messages.warning(request, error.message)
        return redirect("extend", request_id=held.request_id)


@require_safe
def preview(request: HttpRequest, kind: str) -> HttpResponse:
    """The panel that says what would happen if the form were sent as it stands."""
    asked = _kind_or_404(kind)
    foreseen = foresee(asked, request.GET, actor_of(request), book_of(request))
    # The form of an extension has no place for the facts of its target.
    around = {"is_refresh": True, "is_swapped": "extends" not in request.GET, "kind": asked, **asked.fields.around()}
    return render(request, "portal/preview.html", foreseen | around)


@require_safe
def choices(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """What fits what is typed into a field: what may be asked for, first what was asked for lately, and the rest with the reason."""
    asked, actor, book = _kind_or_404(kind), actor_of(request), book_of(request)
    field = next((one for one in asked.fields.target if one.name == name and one.search is not None), None)
    if field is None or field.search is None:
        raise Http404("There is nothing to choose by that name.")
    text = request.GET.get(name, "")[:MAX_NAME].replace("\0", "").strip()
    lately = queries.list_mine(actor=actor, limit=LATELY).items
    seeker = queries.seeker_of(kind=kind, given=plain(asked, request.GET), actor=actor, book=book, lately=lately)
    return render(request, "portal/choices.html", {"found": field.search(text, seeker), "field": field, "text": text})


def _first_look(request: HttpRequest, kind: Kind, lately: Sequence[AccessRequest] | None = None) -> HttpResponse:
    """``lately``: what the actor asked for, where it was read already."""
    target = target_fields(kind, actor_of(request), book_of(request))
    first = {name: field.initial for name, field in target.items() if field.initial is not None}
    typed = {**plain(kind, request.GET), **take(request).dict()}
    if lately is None:
        # Whoever typed something already, or follows a link, is offered nothing else.
        lately = () if typed else queries.list_mine(actor=actor_of(request), limit=LATELY).items
    given = {**first, **typed}
    given |= {field.name: field.spell(given[field.name]) for field in kind.fields.target if field.spell and given.get(field.name)}
    return _page(request, RequestForm(initial=given, target=target), given, kind=kind, lately=lately)


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
    if error.code != "submission_reused" or not isinstance(error, Conflict):
        return None
    form.begin_anew()
    return error.present if isinstance(error.present, AccessRequest) else None


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
    lately: Sequence[AccessRequest] = (),
) -> HttpResponse:
    """The form for something new, or for more of what is ``held``, with what would happen if it were sent."""
    target = {**target_of(held), "extends": held.request_id} if held is not None else {}
    foreseen = foresee(kind, {**plain(kind, given), **target}, actor_of(request), book_of(request))
    if not form.is_bound and "duration" not in given:
        form.offer_duration(foreseen.get("usual", kind.fields.usual))
    context = {"form": form, "sent_before": sent_before, **_around(kind, *(target or kind.fields.names)), **foreseen}
    if held is None:
        names = (*(field.name for field in kind.fields.target), "duration", "reason", *(("subject",) if kind.fields.has_subject else ()))
        context |= {"action": reverse("new_request", args=[kind.name]), "link_names": ",".join(names)}
        context |= _beside(kind, lately, actor_of(request), book_of(request))
        context["inputs"] = [(field, form[field.name]) for field in kind.fields.target]
        # What the form chose by itself is no less to be looked at than what is empty.
        typed = {name: value for name, value in given.items() if name in request.GET or form.is_bound}
        open_fields = [field.name for field in kind.fields.target if not field.is_radio and (field.missing or not typed)]
        ticket = ["ticket_id"] if "preview" in foreseen and foreseen["preview"].ticket_required else []
        context["is_whole"] = not form.focus_first_empty((*open_fields, *ticket, "reason"), typed)
        return render(request, "portal/new.html", context, status=status)
    context |= {**_longer(held, actor_of(request), book_of(request)), "form": form, "action": request.path, "target": target}
    return render(request, "portal/extend.html", context, status=status)


def _around(kind: Kind, *names: str) -> dict[str, Any]:
    """What stands around the fields; the preview is asked about those in ``names``, and how long and by which ticket."""
    params = ",".join((*names, "duration", "zone", "ticket_id"))
    preview_url = reverse("preview_request", args=[kind.name])
    return {"kind": kind, "preview_url": preview_url, "preview_params": params, **kind.fields.around()}


def _beside(kind: Kind, lately: Sequence[AccessRequest], actor: Actor, book: ApproverBook) -> dict[str, Any]:
    """The other kinds, those of no use to them apart; what was asked for lately; and where no rule serves them, what would help."""
    possible = offered_kinds(book)
    served = queries.kinds_served(kinds=possible, actor=actor, book=book)
    context: dict[str, Any] = {
        "kinds": [one for name, one in possible.items() if name in served or one is kind],
        "other_kinds": [one for name, one in possible.items() if name not in served and one is not kind],
        "again": again(lately),
    }
    return context if kind.name in served else context | {"helpers": helpers(kind, actor, book)}
