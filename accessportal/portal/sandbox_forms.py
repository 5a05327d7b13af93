"""What may be typed about sandboxes: shape only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from accessportal.web.forms import MAX_TICKET, DurationField, PlainForm, SubmissionField, TextField, line, reason_field


class SandboxForm(PlainForm):
    """A request for a sandbox of the pool. Which one is asked only where there is a choice."""

    name_prefix = forms.ChoiceField(label="Which", required=False, widget=forms.Select(attrs={"class": "form-select"}))
    duration = DurationField(label="For how long", widget=line(placeholder="30m, 2h, 8h"))
    ticket_id = TextField(limit=MAX_TICKET, required=False, label="Ticket", widget=line())
    reason = reason_field(required=True, label="Why", missing="Say what you need it for. Whoever decides reads this.")
    submission_id = SubmissionField()

    def __init__(self, data: Mapping[str, Any] | None = None, *, prefixes: Sequence[str], **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        self.has_choice = len(prefixes) > 1
        field = self.fields["name_prefix"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(prefix, f"One whose name begins with {prefix}" if prefix else "Any sandbox") for prefix in prefixes]
        field.error_messages["invalid_choice"] = "No rule offers you sandboxes with this name. Choose one of the list."
        if not self.has_choice:
            field.widget = forms.HiddenInput()
