"""Creating an API token: a form, and the one page that shows the token's text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from django import forms
from django.http import HttpRequest, HttpResponse
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from accessportal.authz.queries import read_scope
from accessportal.console.views import render_page
from accessportal.identity.drafts import take
from accessportal.identity.middleware import actor_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import InvalidRequest
from accessportal.tokens import operations, queries
from accessportal.tokens.states import DEFAULT_DAYS, DEFAULT_RATE, LONGEST_NAME, MOST_HELD, MOST_RATE, NewToken, Scope
from accessportal.web.forms import PlainForm, SubmissionField, line

_SCOPES = {
    Scope.TRACK: ("Track", "Lends sandboxes to tracks and gives them back."),
    Scope.ADMIN: ("Admin", "That, and the whole pool: lists, counts, sync, cleanup, restore, quarantine."),
    Scope.AUTHZ_CHECK: ("Checks", "Asks about approvals and relationships in its home scope: checks, lists, counts."),
    Scope.AUTHZ_WRITE: ("Grants", "That, and grants, extends and revokes them."),
    Scope.LEASES_ASK: ("Leases", "Asks for account leases in people's names, for what they may ask for, and gives them back."),
    Scope.LEASES_ADMIN: ("Accounts", "That, and the whole pool of accounts: lists, restore, retire, freeze, quarantine, cleaning."),
    Scope.HISTORY: ("History", "Asks who had access to what, and when, as auditors may."),
}
_DAYS = [("30", "In 30 days"), ("90", "In 90 days"), ("365", "In a year"), ("", "Only when it is revoked")]


class NewTokenForm(PlainForm):
    """What was typed; whether it can be a token, the domain says. The same form sent twice makes one."""

    aliases: ClassVar[Mapping[str, str]] = {"expires_at": "days"}

    name = forms.CharField(
        label="Name",
        help_text="Which program it is for, and where it runs. Whoever revokes it one day must know what stops.",
        error_messages={"required": "Say which program it is for."},
        widget=forms.TextInput(attrs={"autocomplete": "off", "maxlength": LONGEST_NAME, "placeholder": "Lab runner, Frankfurt"}),
    )
    scope = forms.ChoiceField(
        label="What it opens",
        choices=[(scope.value, label) for scope, (label, _) in _SCOPES.items()],
        error_messages={"required": "Choose what it opens.", "invalid_choice": "Choose one of them."},
        widget=forms.RadioSelect,
    )
    rate_per_minute = forms.IntegerField(
        label="Requests a minute, at most",
        initial=DEFAULT_RATE,
        help_text="Beyond that the API answers 429 and says when to go on.",
        error_messages={"required": f"Give a number from 1 to {MOST_RATE:,}.", "invalid": f"Give a number from 1 to {MOST_RATE:,}."},
        widget=forms.NumberInput(attrs={"min": 1, "max": MOST_RATE, "inputmode": "numeric"}),
    )
    days = forms.ChoiceField(
        label="Ends",
        required=False,
        choices=_DAYS,
        initial=str(DEFAULT_DAYS),
        error_messages={"invalid_choice": "Choose one of the times."},
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    tracks = forms.CharField(
        label="Tracks (optional)",
        required=False,
        help_text="Those that it may act for, with blanks or commas between; lab-* means all that begin with lab-. Empty: any.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "placeholder": "any track"}),
    )
    most_held = forms.IntegerField(
        label="Sandboxes at a time, at most (optional)",
        required=False,
        help_text="Beyond that the API answers TOO_MANY_HELD. Empty: any number.",
        error_messages={"invalid": f"Give a number from 1 to {MOST_HELD:,}, or none."},
        widget=forms.NumberInput(attrs={"min": 1, "max": MOST_HELD, "inputmode": "numeric"}),
    )
    home_scope = forms.CharField(
        label="Home scope (for checks and grants)",
        required=False,
        help_text="What it never leaves: tenant:acme with its environments, tenant:acme:env:prod, env:prod, custom:a:b with what lies "
        "below it, or global for everything.",
        widget=line(placeholder="tenant:acme"),
    )
    submission_id = SubmissionField()

    def scope_choices(self) -> list[tuple[str, str, str, bool]]:
        """Value, label, what it means, and whether it is chosen."""
        return [(scope.value, label, words, self["scope"].value() == scope.value) for scope, (label, words) in _SCOPES.items()]


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("made")
def create(request: HttpRequest) -> HttpResponse:
    """Show the form; sent, the answer itself shows the token: never an address, a message or a session holds its text. Loading the answer
    again is refused: 409, with what to do."""
    actor, now = actor_of(request), SystemClock().now()
    queries.may_manage(actor=actor).require()
    form = NewTokenForm(request.POST) if request.method == "POST" else NewTokenForm(initial=take(request).dict())
    if form.is_bound and form.is_valid():
        made = _made(form, actor, now)
        if made is not None:
            return render_page(request, "console/tokens/made.html", {"title": f"{made.token.name} has its token", "made": made})
    return render_page(request, "console/tokens/new.html", {"title": "New API token", "form": form}, status=400 if form.errors else 200)


def _made(form: NewTokenForm, actor: Actor, now: datetime) -> NewToken | None:
    """The token, or the form with the domain's complaint beside the input that it names."""
    given = form.cleaned_data
    try:
        return operations.create_token(
            name=given["name"],
            scope=Scope(given["scope"]),
            rate_per_minute=given["rate_per_minute"],
            expires_at=now + timedelta(days=int(given["days"])) if given["days"] else None,
            tracks=given["tracks"].replace(",", " ").split(),
            most_held=given["most_held"],
            home_scope=read_scope(given["home_scope"], field="home_scope") if given["home_scope"] else "",
            submission_id=given["submission_id"],
            actor=actor,
            now=now,
        )
    except InvalidRequest as error:
        form.add_refusal(error)
        return None
