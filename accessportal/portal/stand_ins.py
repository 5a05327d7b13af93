"""Stand-ins: who decides in one's place, and in whose place one decides."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from accessportal.access_requests import operations, queries
from accessportal.access_requests.stand_in import LONGEST_NOTE, StandIn
from accessportal.identity.drafts import take
from accessportal.identity.middleware import actor_of, book_of
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.clock import SystemClock, zone_named
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.kernel.pages import Unreadable
from accessportal.portal.deeds import Page, ask_or_do
from accessportal.web.deeds import Data, Told
from accessportal.web.forms import MAX_NAME, PlainForm, SubmissionField, TextField, line
from accessportal.web.stand_in_deeds import END_STAND_IN, named

_USUAL = timedelta(days=14)
_PAGE = 25
# Days that a clock knows in every zone.
_FIRST, _LAST = date(2000, 1, 1), date(8999, 12, 31)


def _day(label: str, missing: str) -> forms.DateField:
    words = {"required": missing, "invalid": "Give a day like 2026-12-24."}
    return forms.DateField(label=label, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"), error_messages=words)


class StandInForm(PlainForm):
    """Whom, and from which day to which, both included, by the clock of their browser."""

    aliases = {"starts_at": "first_day", "ends_at": "last_day"}  # noqa: RUF012

    email = TextField(limit=MAX_NAME, label="Who", missing="Give the address of who decides in your place.", widget=line(type="email"))
    first_day = _day("From", "Give the first day.")
    last_day = _day("Until, that day included", "Give the last day.")
    note = TextField(limit=LONGEST_NOTE, label="Note", required=False)
    zone = forms.CharField(required=False, widget=forms.HiddenInput(attrs={"data-zone-name": ""}))
    submission_id = SubmissionField()

    def clean(self) -> dict[str, Any]:
        for name in ("first_day", "last_day"):
            day = self.cleaned_data.get(name)
            if day is not None and not _FIRST <= day <= _LAST:
                self.add_error(name, forms.ValidationError("Give a day of these years.", code="day_unusual"))
        return self.cleaned_data

    def period(self) -> tuple[datetime, datetime]:
        """From the first moment of the first day until the last day is over."""
        zone = zone_named(self.cleaned_data["zone"])
        return (
            datetime.combine(self.cleaned_data["first_day"], time(), zone),
            datetime.combine(self.cleaned_data["last_day"] + timedelta(days=1), time(), zone),
        )


@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest) -> HttpResponse:
    """The page; POST names somebody."""
    if request.method != "POST":
        typed = take(request).dict()
        today = book_of(request).now.date()
        return _page(request, StandInForm(initial={"first_day": today, "last_day": today + _USUAL, **typed}))
    form, status = StandInForm(request.POST), 422
    if form.is_valid():
        starts_at, ends_at = form.period()
        given = {name: form.cleaned_data[name] for name in ("email", "note", "submission_id")}
        try:
            one = operations.name_stand_in(**given, starts_at=starts_at, ends_at=ends_at, actor=actor_of(request), now=SystemClock().now())
        except (InvalidRequest, NotAllowed, Conflict) as error:
            form.add_refusal(error)
            form.begin_anew()
            status = 422 if isinstance(error, InvalidRequest) else 403 if isinstance(error, NotAllowed) else 409
        else:
            messages.success(request, f"{one.stand_in} may decide in your place.")
            return redirect("stand_ins")
    return _page(request, form, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def end(request: HttpRequest, email: str, stand_in_id: str) -> HttpResponse:
    """Taking it back: GET asks, POST does it."""
    actor = actor_of(request)
    one = queries.find_stand_in(stand_in=fold_email(email), stand_in_id=stand_in_id, actor=actor)
    if request.method != "POST":
        END_STAND_IN.require(one, actor, SystemClock().now())
    return ask_or_do(request, _END_HERE, one, Page(reverse("stand_ins"), "Stand-ins", {}))


def _end_here(one: StandIn, data: Data, actor: Actor, now: datetime) -> Told:
    return replace(END_STAND_IN.run(one, data, actor, now), url=reverse("stand_ins"))


_END_HERE = replace(END_STAND_IN, run=_end_here)


def _page(request: HttpRequest, form: StandInForm, *, status: int = 200) -> HttpResponse:
    actor, book = actor_of(request), book_of(request)
    unreadable: list[Unreadable] = []
    mine = queries.list_named(actor=actor, cursor=request.GET.get("cursor") or None, limit=_PAGE)
    others = queries.list_stood_in_for(actor=actor, now=book.now, past=unreadable)
    told = named([*mine.items, *others], book)
    context = {
        "form": form,
        "may_name": queries.may_name_stand_in(actor=actor, book=book).allowed,
        "mine": told[: len(mine.items)],
        "others": told[len(mine.items) :],
        "next_cursor": mine.next_cursor,
        "most_days": queries.longest_stand_in().days,
        "unreadable": [*mine.unreadable, *unreadable],
    }
    return render(request, "portal/stand_ins.html", context, status=status)
