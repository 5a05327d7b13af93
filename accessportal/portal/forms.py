"""The forms that ask for access to an account, or for more of it: shape only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from accessportal.web.forms import MAX_NAME, MAX_TICKET, DurationField, PlainForm, SubmissionField, TextField, line, reason_field


class AwsAccountForm(PlainForm):
    """A request for a permission set in an AWS account."""

    subject = forms.ChoiceField(label="For", required=False, widget=forms.Select(attrs={"class": "form-select"}))
    account = TextField(
        limit=MAX_NAME,
        label="Account",
        missing="Choose an account, or type its name or 12-digit id.",
        widget=line(placeholder="Name, id, path or tag"),
    )
    permission_set = TextField(
        limit=MAX_NAME, label="Permission set", missing="Choose a permission set.", widget=line(placeholder="For example ReadOnlyAccess")
    )
    duration = DurationField(label="For how long", widget=line(placeholder="30m, 8h, 2h30m"))
    ticket_id = TextField(limit=MAX_TICKET, required=False, label="Ticket", widget=line())
    reason = reason_field(required=True, label="Why", missing="Say why you need it. Whoever decides reads this.")
    submission_id = SubmissionField()

    def __init__(self, data: Mapping[str, Any] | None = None, *, groups: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        self.has_groups = bool(groups)
        choices = [("", "Me"), *((group, f"Everybody in {group}") for group in groups)]
        subject = self.fields["subject"]
        assert isinstance(subject, forms.ChoiceField)
        subject.choices = choices
        subject.error_messages["invalid_choice"] = "You are not in that group. Choose yourself or one of your groups."


class ExtendForm(PlainForm):
    """A further request for what the person already holds."""

    duration = DurationField(label="For how long, counted from its approval", widget=line(placeholder="30m, 8h, 2h30m"))
    ticket_id = TextField(limit=MAX_TICKET, required=False, label="Ticket", widget=line())
    reason = reason_field(required=False, label="Why", missing="")
    submission_id = SubmissionField()
