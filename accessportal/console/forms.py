"""Forms: the shape of the input only. Whether it is allowed, the domain says."""

from __future__ import annotations

from django import forms

from accessportal.console.resource import Operation, ReasonRule


class OperationForm(forms.Form):
    """The confirmation of an operation: a reason where one is taken."""

    reason = forms.CharField(
        required=False,
        strip=True,
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 3, "maxlength": 2000, "autocomplete": "off"}),
    )

    def __init__(self, *args: object, operation: Operation, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        if operation.reason is ReasonRule.NONE:
            del self.fields["reason"]
            return
        reason = self.fields["reason"]
        reason.label = operation.reason_label
        reason.required = operation.reason is ReasonRule.REQUIRED
        reason.error_messages["required"] = f"A reason is needed to {operation.label.lower()}: it is kept in the history."

    @property
    def given_reason(self) -> str:
        reason = self.cleaned_data.get("reason", "")
        return str(reason)


class ExplainForm(forms.Form):
    """A question to the rules. ``duration`` and ``ticket_id`` may stay empty: then they are not judged."""

    subject = forms.CharField(
        label="Person or group",
        max_length=320,
        widget=forms.TextInput(attrs={"placeholder": "alice@example.com or /engineering", "autocomplete": "off", "spellcheck": "false"}),
    )
    account = forms.CharField(
        label="Account",
        max_length=128,
        widget=forms.TextInput(attrs={"placeholder": "payments-prod or 12 digits", "autocomplete": "off", "spellcheck": "false"}),
    )
    permission_set = forms.CharField(
        label="Permission set",
        max_length=64,
        widget=forms.TextInput(attrs={"placeholder": "ReadOnlyAccess", "autocomplete": "off", "spellcheck": "false"}),
    )
    duration = forms.CharField(
        label="For how long",
        required=False,
        max_length=40,
        widget=forms.TextInput(attrs={"placeholder": "2h (optional)", "autocomplete": "off"}),
    )
    ticket_id = forms.CharField(
        label="Ticket", required=False, max_length=128, widget=forms.TextInput(attrs={"placeholder": "optional", "autocomplete": "off"})
    )

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        for name, field in self.fields.items():
            invalid = self.is_bound and name in self.errors
            field.widget.attrs["class"] = "form-control is-invalid" if invalid else "form-control"
