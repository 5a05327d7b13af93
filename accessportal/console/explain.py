"""The explainer: why somebody may or may not have something, and who could approve it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accessportal.access_requests import queries
from accessportal.catalog import queries as catalog
from accessportal.console.views import render_page
from accessportal.identity.middleware import actor_of, book_of
from accessportal.kernel.actors import fold_email
from accessportal.kernel.durations import parse_duration
from accessportal.kernel.errors import InvalidRequest, NotAllowed
from accessportal.web.forms import MAX_DURATION, PlainForm, TextField, line

_KIND = "aws_account"
_SUGGESTIONS = 5


class ExplainForm(PlainForm):
    """A question to the rules. ``duration`` and ``ticket_id`` may stay empty: then they are not judged."""

    subject = TextField(limit=320, label="Person or group", widget=line(placeholder="alice@example.com"))
    account = TextField(limit=128, label="Account", widget=line(placeholder="payments-prod or 12 digits"))
    permission_set = TextField(limit=64, label="Permission set", widget=line(placeholder="ReadOnlyAccess"))
    duration = TextField(limit=MAX_DURATION, label="For how long", required=False, widget=line(placeholder="2h (optional)"))
    ticket_id = TextField(limit=128, label="Ticket", required=False, widget=line(placeholder="optional"))


@require_safe
def explain(request: HttpRequest) -> HttpResponse:
    """A question to the rules as an address that can be passed on; asking changes nothing, so it is a GET."""
    form = ExplainForm(request.GET if "subject" in request.GET else None)
    context: dict[str, Any] = {"title": "Why / who can", "form": form}
    if form.is_bound and form.is_valid():
        context |= _answer(form, book_of(request))
    context["reads_everything"] = actor_of(request).reads_everything
    return render_page(request, "console/explain.html", context, status=400 if form.errors else 200)


def _answer(form: ExplainForm, book: queries.ApproverBook) -> dict[str, Any]:
    """The decision for the page, or the form with the domain's complaint beside the input that it names."""
    asked = form.cleaned_data
    try:
        duration = parse_duration(asked["duration"]) if asked["duration"] else None
        decision, preview = queries.explain(
            kind=_KIND,
            subject_id=fold_email(asked["subject"]) if "@" in asked["subject"] else asked["subject"],
            target={"account": asked["account"], "permission_set": asked["permission_set"]},
            duration_seconds=duration,
            ticket_id=asked["ticket_id"] or None,
            book=book,
        )
    except InvalidRequest as error:
        field = error.field if error.field in form.fields else None
        form.add_error(field, f"{error.message}{_near(asked['account']) if field == 'account' else ''}")
        return {}
    except NotAllowed as error:
        # Said of the person asked about (unknown, disabled), not of the one who asks.
        form.add_error("subject", error.message)
        return {}
    return {"decision": decision, "preview": preview, "asked": asked}


def _near(text: str) -> str:
    """Accounts that were probably meant."""
    near = [account.name for account in catalog.search_accounts(text=text, limit=_SUGGESTIONS)]
    return f" Did you mean {', '.join(near)}?" if near else ""
