"""The forms that ask for access, or for more of it: shape only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django import forms

from accessportal.access_requests.kind import Field, Kind
from accessportal.access_requests.queries import ApproverBook
from accessportal.directory import queries as directory
from accessportal.directory.states import ROOT
from accessportal.kernel.actors import Actor
from accessportal.web.forms import MAX_NAME, MAX_TICKET, DurationField, PlainForm, SubmissionField, TextField, line, reason_field


class RequestForm(PlainForm):
    """A request for access: what its kind asks, for how long, and why."""

    aliases: ClassVar[Mapping[str, str]] = {**PlainForm.aliases, "group_id": "group"}

    duration = DurationField(label="For how long", widget=line(placeholder="90, 2h30, until 18:00"))
    ticket_id = TextField(limit=MAX_TICKET, required=False, label="Ticket", widget=line())
    reason = reason_field(required=True, label="Why", missing="Say why you need it. Whoever decides reads this.")
    submission_id = SubmissionField()

    def __init__(self, data: Mapping[str, Any] | None = None, *, target: Mapping[str, forms.Field], **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        self.fields |= target
        self.order_fields([*target])


def target_fields(kind: Kind, actor: Actor, book: ApproverBook) -> dict[str, forms.Field]:
    """The inputs for the target of a kind, and for whom it is where somebody may ask for a group."""
    groups = sorted(directory.groups_of(email=actor.name, now=book.now, book=book.directory) - {ROOT}) if kind.fields.has_subject else []
    subject = {"subject": _subject_field(groups)} if groups else {}
    return {**{field.name: _input(field, actor, book) for field in kind.fields.target}, **subject}


def _subject_field(groups: Sequence[str]) -> forms.Field:
    return forms.ChoiceField(
        label="For",
        required=False,
        choices=[("", "Me"), *((group, f"Everybody in {group}") for group in groups)],
        widget=forms.Select(attrs={"class": "form-select"}),
        error_messages={"invalid_choice": "You are not in that group. Choose yourself or one of your groups."},
    )


def _input(field: Field, actor: Actor, book: ApproverBook) -> forms.Field:
    if field.choices is None:
        widget = line(placeholder=field.placeholder, **{"class": "form-control"})
        return TextField(limit=MAX_NAME, label=field.label, required=bool(field.missing), missing=field.missing, widget=widget)
    choices = field.choices(actor, book.directory, book.now)
    radio = forms.RadioSelect(attrs={"class": "form-check-input"}) if field.is_radio else forms.Select(attrs={"class": "form-select"})
    return forms.ChoiceField(
        label=field.label,
        required=bool(field.missing),
        choices=choices,
        initial=choices[0][0],
        widget=radio if len(choices) > 1 else forms.HiddenInput,
        error_messages={"required": field.missing, "invalid_choice": field.wrong},
    )


class ExtendForm(PlainForm):
    """A further request for what the person already holds."""

    duration = DurationField(label="For how long, counted from its approval", widget=line(placeholder="90, 2h30, until 18:00"))
    ticket_id = TextField(limit=MAX_TICKET, required=False, label="Ticket", widget=line())
    reason = reason_field(required=False, label="Why", missing="")
    submission_id = SubmissionField()
