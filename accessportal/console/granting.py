"""The form that grants an approval or adds a relationship."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_http_methods

from accessportal.authz import operations
from accessportal.authz.operations import Granted, IfExists
from accessportal.authz.queries import Ledger, caller_of, read_scope
from accessportal.authz.states import LONGEST_NAME, Approval, Relationship, RelationType
from accessportal.console.resources.authz import RECORDS, end_in_words, key_of, may_write
from accessportal.console.views import render_page
from accessportal.identity.drafts import take
from accessportal.identity.middleware import actor_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import Conflict, InvalidRequest
from accessportal.web.forms import DurationField, PlainForm, TextField, line

_TYPES = {
    RelationType.ROLE: "Role",
    RelationType.TRUST: "Trust: carries over chains",
    RelationType.MEMBERSHIP: "Membership: carries over chains",
    RelationType.OWNERSHIP: "Ownership",
    RelationType.DELEGATION: "Delegation",
    RelationType.CUSTOM: "Custom",
}


class GrantForm(PlainForm):
    """What is the same for both. What the names and the time may be, the domain says."""

    aliases: ClassVar[Mapping[str, str]] = {"ttl_seconds": "duration"}

    scope = TextField(
        limit=LONGEST_NAME,
        label="Scope",
        help_text="global, tenant:T, env:E, tenant:T:env:E or custom:A:B. It counts there and nowhere else.",
        widget=line(placeholder="tenant:acme-corp:env:prod"),
    )
    duration = DurationField(
        label="For how long",
        required=False,
        help_text="Like 30m, 8h or 2d. Empty: as long as the scope’s policy says.",
        widget=line(placeholder="8h"),
    )
    if_exists = forms.ChoiceField(
        label="When it is there already",
        choices=[
            (IfExists.REFUSE.value, "Change nothing, and tell me"),
            (IfExists.EXTEND.value, "Move its end, if that is later"),
            (IfExists.REPLACE.value, "Replace it"),
        ],
        error_messages={"required": "Choose what becomes of it.", "invalid_choice": "Choose one of the three."},
        widget=forms.Select(attrs={"class": "form-select"}),
    )


class ApprovalForm(GrantForm):
    identity = TextField(limit=LONGEST_NAME, label="Identity", widget=line(placeholder="alice@example.com"))
    resource = TextField(limit=LONGEST_NAME, label="Resource", widget=line(placeholder="https://api.example.com/data"))
    action = TextField(limit=LONGEST_NAME, label="Action", widget=line(placeholder="GET"))
    field_order = ("scope", "identity", "action", "resource", "duration", "if_exists")

    def record(self, actor: Actor, now: datetime) -> Approval:
        given = self.cleaned_data
        return Approval(read_scope(given["scope"]), given["identity"], given["resource"], given["action"], actor.name, now)


class RelationshipForm(GrantForm):
    subject = TextField(limit=LONGEST_NAME, label="Subject", widget=line(placeholder="alice"))
    relation = TextField(limit=LONGEST_NAME, label="Relation", widget=line(placeholder="editor"))
    object = TextField(limit=LONGEST_NAME, label="Object", widget=line(placeholder="document-123"))
    relation_type = forms.ChoiceField(
        label="Type",
        choices=[(one.value, words) for one, words in _TYPES.items()],
        error_messages={"required": "Choose a type.", "invalid_choice": "Choose one of the types."},
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    field_order = ("scope", "subject", "relation", "object", "relation_type", "duration", "if_exists")

    def record(self, actor: Actor, now: datetime) -> Relationship:
        given = self.cleaned_data
        kind = RelationType(given["relation_type"])
        return Relationship(read_scope(given["scope"]), given["subject"], given["relation"], given["object"], kind, actor.name, now)


_FORMS: Mapping[str, type[ApprovalForm | RelationshipForm]] = {"approvals": ApprovalForm, "relationships": RelationshipForm}


@require_http_methods(["GET", "HEAD", "POST"])
def grant(request: HttpRequest, records: str) -> HttpResponse:
    """Show the form; sent, grant and go to the page of what was granted."""
    actor, now, resource = actor_of(request), SystemClock().now(), RECORDS[records]
    may_write(actor).require()
    is_sent = request.method == "POST"
    form = _FORMS[records](request.POST if is_sent else None, initial=request.GET.dict() | take(request).dict())
    if is_sent and form.is_valid():
        granted = _granted(form, resource.ledger, actor, now)
        if granted is not None:
            messages.success(request, f"It counts {end_in_words(granted.record)}.")
            for warning in granted.warnings:
                messages.warning(request, warning)
            return HttpResponseRedirect(resource.page_url(key_of(granted.record)))
    context = {"title": f"New {resource.singular}", "form": form, "resource": resource}
    return render_page(request, "console/authz/grant.html", context, status=400 if form.errors else 200)


def _granted(form: ApprovalForm | RelationshipForm, ledger: Ledger[Any], actor: Actor, now: datetime) -> Granted[Any] | None:
    """What was granted, or the form with the domain's complaint beside the input that it names."""
    given = form.cleaned_data
    try:
        return operations.grant(
            ledger,
            form.record(actor, now),
            ttl_seconds=given["duration"],
            if_exists=IfExists(given["if_exists"]),
            caller=caller_of(actor),
            now=now,
        )
    except Conflict as error:
        present = error.present
        if isinstance(present, Approval | Relationship):
            form.add_error("if_exists", f"It is there already, and counts {end_in_words(present)}. Choose what becomes of it.")
        else:
            form.add_refusal(error)
    except InvalidRequest as error:
        form.add_refusal(error)
    return None
