"""The views of every resource: list, detail, history, and deeds on one or many records.

Kernel errors pass through: the error middleware turns them into pages (404, 403, 409, 400, 503 with a reference). Nothing
here catches a failing query, so none can look like an empty table.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import trigger_client_event

from accessportal.audit import queries as audit
from accessportal.console.bulk import AT_ONCE_SECONDS, Batch, carry_out, weigh_many
from accessportal.console.resource import Ask, Parameter, Pattern, Resource, Row
from accessportal.identity.drafts import take
from accessportal.identity.middleware import PortalRequest, actor_of, book_of
from accessportal.identity.sessions import is_kept
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.counts import Count
from accessportal.kernel.errors import InvalidRequest, NotFound
from accessportal.kernel.pages import Page, Unreadable
from accessportal.web.addresses import way_back
from accessportal.web.deeds import Deed
from accessportal.web.exporting import FORMS
from accessportal.web.forms import DeedForm
from accessportal.web.moments import in_utc, to_text

MAX_BULK = 100
_HISTORY_PAGE = 50
_LOOK_SECONDS = 30
_BATCH = "console_batch"
# Cursors lead forwards alone: the address keeps those of the pages before, and this for the first page. Servers take addresses of
# 4,000 characters, of which these may be so many.
_ROOM_FOR_WAY_BACK = 2_000
_FIRST = "-"
_MOST_DIGITS = 4


def _ask(request: HttpRequest, *, parameter: str = "") -> Ask:
    return Ask(
        actor=actor_of(request),
        parameter=parameter,
        cursor=request.GET.get("cursor") or None,
        book=book_of(request),
    )


def render_page(request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200) -> TemplateResponse:
    """A page in the frame of the admin site."""
    frame = admin.site.each_context(request)
    actor = actor_of(request)
    return TemplateResponse(request, template, {**frame, "actor": actor, **context}, status=status)


@require_safe
def show_list(request: HttpRequest, resource: Resource) -> HttpResponse:
    """One page of an access pattern; for htmx the results alone."""
    ask = _ask(request)
    resource.right.require(ask.actor)
    box_error = ""
    if (text := request.GET.get("find", "").strip()) and resource.box is not None:
        try:
            name, inputs = resource.find(text, ask)
        except InvalidRequest as error:
            box_error = error.message
        else:
            return HttpResponseRedirect(list_url(resource, name, more=inputs))
    pattern, ask = asked_list(request, resource)
    is_part = cast(PortalRequest, request).htmx and not cast(PortalRequest, request).htmx.history_restore_request
    shown = _shown_before(request) if is_part else None
    context = _list_context(resource, pattern, ask, _way_back_in(request.GET.getlist("was")), shown)
    context |= {"box_error": box_error, "box_text": text}
    if shown is not None:
        return render_page(request, "console/_more.html", context)
    if is_part and context["mark"] and request.GET.get("mark") == context["mark"]:
        return HttpResponse(status=204)
    context |= {"ticked": take(request).getlist("key"), "is_refresh": is_part and "mark" in request.GET}
    if not is_part or context["is_refresh"]:
        context["tabs"] = _tabs(resource, pattern, ask)
    if is_part:
        return render_page(request, "console/_results.html", context)
    input_error = context["input_error"]
    context["notice"] = resource.notice(pattern, replace(ask, parameter="", more=dict.fromkeys(ask.more, "")) if input_error else ask)
    return render_page(request, "console/list.html", context, status=400 if box_error or input_error else 200)


def asked_list(request: HttpRequest, resource: Resource) -> tuple[Pattern, Ask]:
    """The list that the address names, with its inputs, for whoever may see it. :raises NotFound: :raises NotAllowed:"""
    ask = _ask(request, parameter=request.GET.get("q", "").strip())
    resource.right.require(ask.actor)
    pattern = resource.pattern(request.GET.get("pattern", ""), ask)
    more = {one.name: _given_for(one, request, ask.now) for one in pattern.more}
    # To choose the list it was read without what narrows it.
    return pattern, replace(ask, pattern=pattern.name, more=more, seen={} if ask.parameter or any(more.values()) else ask.seen)


def _given_for(one: Parameter, request: HttpRequest, now: datetime) -> str:
    if request.GET.get(one.unless):
        return ""
    text = request.GET.get(one.name, "").strip()
    if one.ago is None:
        return text
    return in_utc(text, zone=request.GET.get("zone", "")) if text else to_text(now - one.ago)


def _shown_before(request: HttpRequest) -> int | None:
    """How much of a page stands there already, to which the next part is added; ``None``: a page of its own is wanted."""
    text = request.GET.get("shown", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None


def list_url(
    resource: Resource, pattern: str, parameter: str = "", cursor: str = "", more: Mapping[str, str] | None = None, was: Sequence[str] = ()
) -> str:
    """The address of a list. It always keeps the pattern and its inputs; ``was`` are the cursors of the pages before."""
    given = {"pattern": pattern, "q": parameter, **(more or {}), "was": was, "cursor": cursor}
    return f"{reverse(f'admin:console_{resource.name}')}?{urlencode({name: value for name, value in given.items() if value}, doseq=True)}"


def _list_context(resource: Resource, pattern: Pattern, ask: Ask, was: Sequence[str], shown: int | None) -> dict[str, Any]:
    # What is added to a page belongs to where that began.
    *before, begun_at = was if shown is not None and was else (*was, ask.cursor or _FIRST)
    given = {"q": ask.parameter, **ask.more}
    missing = next((one for one in pattern.inputs if one.required and not given[one.name]), None)
    rows, next_url, refused, page = [], "", None, None
    unreadable: tuple[Unreadable, ...] = ()
    try:
        page = Page(()) if missing else ask.seen.get(pattern.name) or pattern.fetch(ask)
    except InvalidRequest as error:
        if error.field not in given:
            raise
        refused = error
    else:
        if ask.cursor is None and not any(given.values()):
            ask.seen[pattern.name] = page
        rows, unreadable = resource.rows(page.items, ask), page.unreadable
        passed = _way_back_in([*before, begun_at])
        next_url = list_url(resource, pattern.name, ask.parameter, page.next_cursor, ask.more, passed) if page.next_cursor else ""
    on_page = (shown or 0) + len(rows) + len(unreadable)
    more_url = f"{next_url}&shown={on_page}" if pattern.goes_on and next_url and on_page < ask.limit else ""
    found = f"{pattern.label}: {ask.parameter}" if pattern.parameter and ask.parameter else pattern.label
    is_one_of_many = pattern.is_tab and len(resource.patterns_for(ask.actor)) > 1
    return {
        "title": f"{resource.plural}, {found[:1].lower()}{found[1:]}" if is_one_of_many and found != resource.plural else found,
        # The tabs below name the list.
        "heading": resource.plural if is_one_of_many and (pattern.more or not ask.parameter) else found,
        "mark": _mark_of_list(rows, next_url) if pattern.is_live and ask.cursor is None else "",
        "look_seconds": _LOOK_SECONDS,
        "resource": resource,
        "pattern": pattern,
        "parameter": ask.parameter,
        "inputs": [(one, given[one.name], refused is not None and refused.field == one.name) for one in pattern.inputs],
        "is_narrowed": any(given.values()),
        "days_ago": [(one, (ask.now - timedelta(days=one.days_ago)).date()) for one in pattern.inputs if one.days_ago],
        "missing": missing,
        "input_error": refused.message if refused else "",
        "columns": pattern.columns or resource.columns,
        "rows": rows,
        "page": None if missing else page,
        "unreadable": unreadable,
        "shown": shown,
        "shown_before": shown or 0,
        "is_bare": not on_page,
        "is_first_page": begun_at == _FIRST,
        "first_url": list_url(resource, pattern.name, ask.parameter, more=ask.more),
        "previous_url": _previous_url(resource, pattern, ask, before) if before else "",
        "next_url": next_url,
        "more_url": more_url,
        "exports": _exports(resource, pattern, ask) if on_page else [],
        "bulk": resource.deeds_for(pattern.bulk, ask) if rows or more_url else [],
        "takes_all": pattern.takes_all and len(rows) <= MAX_BULK,
        "row_deeds": resource.deeds_for(pattern.row_deeds, ask),
        "now": ask.now,
    }


def _exports(resource: Resource, pattern: Pattern, ask: Ask) -> list[tuple[str, str]]:
    """Name and address of each file that the list can be had as."""
    given = {"pattern": pattern.name, **({"q": ask.parameter} if pattern.parameter else {}), **ask.more}
    query = urlencode({name: value for name, value in given.items() if value})
    return [(form.upper(), f"{reverse(f'admin:console_{resource.name}_export', args=[form])}?{query}") for form in FORMS]


def _previous_url(resource: Resource, pattern: Pattern, ask: Ask, was: Sequence[str]) -> str:
    *before, last = was
    return list_url(resource, pattern.name, ask.parameter, "" if last == _FIRST else last, ask.more, before)


def _way_back_in(cursors: Sequence[str]) -> Sequence[str]:
    """The last of them, as many as there is room for."""
    lengths = itertools.accumulate(map(len, reversed(cursors)))
    return cursors[len(cursors) - sum(length <= _ROOM_FOR_WAY_BACK for length in lengths) :]


def _mark_of_list(rows: Sequence[Row], next_url: str) -> str:
    """Changes with every record of the list; what only time changes is ticked by scripts."""
    told = "|".join(f"{row.key}={getattr(row.record, 'version', '')}" for row in rows)
    return hashlib.sha256(f"{told}|{bool(next_url)}".encode()).hexdigest()[:16]


def _tabs(resource: Resource, current: Pattern, ask: Ask) -> list[dict[str, Any]]:
    """The lists to choose from; none when there is only one. What is live is counted beside live lists alone, and not beside a part of
    one: that page reads enough."""
    tabs = [pattern for pattern in resource.patterns_for(ask.actor) if pattern.is_tab]
    counts_live = current.is_live and not (ask.parameter or any(ask.more.values()))
    unbound = Ask(actor=ask.actor, book=ask.book)
    if len(tabs) < 2:
        return []
    return [
        {
            "label": pattern.label,
            "url": list_url(resource, pattern.name),
            "is_current": pattern is current,
            "tally": _tally(pattern, unbound, ask.seen.get(pattern.name)) if counts_live or not pattern.is_live else "",
        }
        for pattern in tabs
    ]


def _tally(pattern: Pattern, ask: Ask, first_page: Page[Any] | None) -> str:
    """What was read already is not counted again."""
    if pattern.tally is None:
        return ""
    # Of a list that goes on the first part tells little, and the bar knows more.
    if pattern.is_in_bar and (first_page is None or (first_page.next_cursor and len(first_page.items) < ask.limit)):
        return ""
    if first_page is None:
        return pattern.tally(ask).words
    return Count(len(first_page.items), is_more=bool(first_page.next_cursor or first_page.unreadable)).words


@require_safe
def show_detail(request: HttpRequest, resource: Resource, key: str) -> HttpResponse:
    """One record: its sections, and the deeds that the domain offers to this actor now; or the way to its page in the portal."""
    ask = _ask(request)
    record = resource.load(key, ask.actor, ask.now)
    if resource.portal_page:
        return HttpResponseRedirect(resource.page_url(key))
    context = {
        "title": resource.title(record),
        "resource": resource,
        "key": key,
        "record": record,
        "deeds": [deed for deed in resource.deeds if deed.may(record, ask.actor, ask.now).allowed],
        "main_sections": [section for section in resource.sections if not section.is_aside],
        "aside_sections": [section for section in resource.sections if section.is_aside],
        "now": ask.now,
        **resource.details(record, ask),
    }
    return render_page(request, "console/detail.html", context)


@require_safe
def show_history(request: HttpRequest, resource: Resource, key: str) -> HttpResponse:
    """The audit events of one record, newest first; with ``?check=1`` also whether their chain is whole."""
    ask = _ask(request)
    record = resource.load(key, ask.actor, ask.now)
    if not resource.has_history:
        raise NotFound(f"A {resource.singular} has no history of its own.", code="no_history")
    entity = resource.entity(record)
    page = audit.history(entity, cursor=ask.cursor, limit=_HISTORY_PAGE)
    here = reverse(f"admin:console_{resource.name}_history", args=[key])
    context = {
        "title": f"History of {resource.title(record)}",
        "subject": resource.title(record),
        "subject_url": resource.page_url(key),
        "resource": resource,
        "key": key,
        "entity": entity,
        "events": page.items,
        "first_url": here,
        "is_first_page": ask.cursor is None,
        "next_url": f"{here}?{urlencode({'cursor': page.next_cursor})}" if page.next_cursor else "",
        "check_url": f"{here}?check=1",
        "now": ask.now,
    }
    if request.GET.get("check"):
        head = resource.head(record)
        breaks = audit.check_head(entity, version=head[0], audit_head=head[1]) if head else audit.find_breaks(entity)
        context |= {"is_checked": True, "breaks": breaks, "is_headless": head is None}
    return render_page(request, "console/history.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def operate(request: HttpRequest, resource: Resource, key: str, operation: str) -> HttpResponse:
    """Show what will happen; with ``confirmed`` do it, by one call to the domain. A GET changes nothing. When the record is no longer what
    the page described, the answer is the page once more."""
    ask = _ask(request)
    record, deed = resource.load(key, ask.actor, ask.now), resource.deed(operation)
    if request.method != "POST":
        decision = deed.may(record, ask.actor, ask.now)
        if not decision.allowed:
            messages.warning(request, decision.reason)
            return HttpResponseRedirect(resource.page_url(key))
    deed.require(record, ask.actor, ask.now)
    given = _given(request)
    is_confirmed = request.POST.get("confirmed") == "yes"
    form = deed.form(request.POST if is_confirmed else None, initial={**deed.starts_with(record, given.dict()), **given.dict()})
    described = deed.as_described(record, _mark_for(request, key))
    has_moved_on = is_confirmed and not described.allowed
    if has_moved_on:
        form.add_error(None, described.reason)
    if is_confirmed and form.is_valid():
        try:
            told = deed.run(record, form.cleaned_data, ask.actor, ask.now)
        except InvalidRequest as error:
            form.add_refusal(error)
        else:
            messages.success(request, told.words)
            return HttpResponseRedirect(way_back(request, given) or told.url or resource.page_url(key))
    context = {
        "title": f"{deed.label}: {resource.title(record)}",
        "will": deed.explain(record),
        "mark": deed.mark_of(record),
        "key": key,
        "record": record,
        "prospects": [],
        **_confirm_context(request, resource, deed, form, given),
    }
    return render_page(request, "console/confirm.html", context, status=409 if has_moved_on else 400 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def lead_to_portal(request: HttpRequest, resource: Resource, key: str, operation: str) -> HttpResponse:
    """A page of 0.5.0 that asked for one of its operations, and was left open over the upgrade (docs/decisions/0060)."""
    ask = _ask(request)
    resource.load(key, ask.actor, ask.now)
    messages.warning(request, "The portal was upgraded since that page was opened, so nothing was done. It can be done from here.")
    return HttpResponseRedirect(resource.page_url(key))


@require_http_methods(["GET", "HEAD", "POST"])
def operate_on_many(request: HttpRequest, resource: Resource, operation: str) -> HttpResponse:
    """Like :func:`operate` for up to ``MAX_BULK`` records; each is its own unit with its own result. What takes long goes on from the page
    that tells how far it is."""
    ask = _ask(request)
    resource.right.require(ask.actor)
    deed, given = resource.deed(operation), _given(request)
    # Where none is ticked, and the list says so, all that it shows.
    keys = list(dict.fromkeys(given.getlist("key") or given.getlist("listed")))
    if not deed.is_bulk or len(keys) > MAX_BULK:
        raise InvalidRequest(
            f"{deed.label} takes at most {MAX_BULK if deed.is_bulk else 1} at once. Select fewer.", code="too_many", field="key"
        )
    if "go_on" in request.POST or (request.method != "POST" and "done" in request.GET):
        return _carry_on(request, resource, deed, ask)
    if not keys:
        list_page = reverse(f"admin:console_{resource.name}")
        if request.method == "POST":
            words = f"Nothing was selected. Tick the {resource.plural.lower()} to {deed.label.lower()} first."
            messages.warning(request, words)
        return HttpResponseRedirect(way_back(request, given) or list_page)
    is_confirmed = request.POST.get("confirmed") == "yes"
    form = deed.form(request.POST if is_confirmed else None, initial=given.dict())
    if is_confirmed and form.is_valid():
        typed = {name: request.POST.get(name, "") for name in form.fields}
        batch = Batch(request.path, way_back(request, given), typed, left={key: _mark_for(request, key) for key in keys})
        request.session[_BATCH] = asdict(batch)
        return _carry_on(request, resource, deed, ask)
    prospects = weigh_many(resource=resource, deed=deed, keys=keys, ask=ask)
    possible = sum(prospect.is_possible for prospect in prospects)
    context = {
        "title": f"{deed.label} {possible or 'none'} {_counted(resource, possible, len(keys))}",
        "prospects": prospects,
        "possible": possible,
        "impossible": [one for one in prospects if not one.is_possible] if resource.prospects_template else prospects,
        **resource.described_together([one for one in prospects if one.is_possible]),
        **_confirm_context(request, resource, deed, form, given),
    }
    return render_page(request, "console/confirm.html", context, status=400 if form.errors else 200)


def _carry_on(request: HttpRequest, resource: Resource, deed: Deed[Any], ask: Ask) -> HttpResponse:
    """After a POST do some of what is left, and lead to the page that tells how far it is, as often as that is loaded; to the list when
    nothing is known."""
    told = request.session.get(_BATCH, {})
    if told.get("path") != request.path:
        return HttpResponseRedirect(reverse(f"admin:console_{resource.name}"))
    batch = Batch(**told)
    if request.method == "POST":
        form = deed.form(batch.typed)
        is_kept_until_then = is_kept(request)
        if form.is_valid():
            seconds = AT_ONCE_SECONDS if is_kept_until_then else math.inf
            carry_out(resource=resource, deed=deed, batch=batch, data=form.cleaned_data, actor=ask.actor, now=ask.now, seconds=seconds)
        request.session[_BATCH] = asdict(batch)
        if is_kept_until_then and is_kept(request):
            return HttpResponseRedirect(f"{request.path}?done")
    done = sum(outcome.is_done for outcome in batch.told)
    so_far = f"{len(batch.outcomes)} of {batch.total} so far" if batch.left else f"{done} of {batch.total} done"
    context = {
        "title": f"{deed.label}: {so_far}",
        "resource": resource,
        "deed": deed,
        "batch": batch,
        "done": done,
        "back_url": batch.back or reverse(f"admin:console_{resource.name}"),
        "now": SystemClock().now(),
    }
    page = render_page(request, "console/outcomes.html", context)
    # Its bar stays where the page goes on by itself, and counts anew what waits.
    return trigger_client_event(page, "decided") if cast(PortalRequest, request).htmx else page


def _mark_for(request: HttpRequest, key: str) -> str:
    """The mark of this record on the page that asked, see ``Deed.mark_of``."""
    return request.POST.get(f"mark-{key}", "")


def _given(request: HttpRequest) -> QueryDict:
    """What was posted, or was to be before the person had to sign in again."""
    return request.POST if request.method == "POST" else take(request)


def _confirm_context(request: HttpRequest, resource: Resource, deed: Deed[Any], form: DeedForm, given: QueryDict) -> dict[str, Any]:
    return {
        "resource": resource,
        "deed": deed,
        "form": form,
        "next": way_back(request, given) or way_back(request, request.GET),
        "back_url": reverse(f"admin:console_{resource.name}"),
        "now": SystemClock().now(),
    }


def _counted(resource: Resource, possible: int, chosen: int) -> str:
    """``request``, ``requests``, ``of 2 requests``."""
    if not possible:
        return f"of {chosen} {resource.plural.lower()}"
    return resource.singular if possible == 1 else resource.plural.lower()
