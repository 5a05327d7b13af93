"""Plain forms: they check the shape of what was typed. What it means is decided by one domain operation."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, tzinfo
from typing import Any, ClassVar, cast

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField
from django.http import QueryDict

from accessportal.kernel.clock import SystemClock, zone_named
from accessportal.kernel.durations import parse_duration
from accessportal.kernel.errors import InvalidRequest, PortalError
from accessportal.kernel.ids import new_submission_id
from accessportal.kernel.texts import LONGEST_REASON, clean_text

MAX_TICKET = 200
MAX_DURATION = 40
MAX_NAME = 256


class TextField(forms.CharField):
    """Text for people to read: see :func:`accessportal.kernel.texts.clean_text`."""

    def __init__(self, *, limit: int, newlines: bool = False, missing: str = "", **options: Any) -> None:
        super().__init__(strip=False, **options)
        self._limit = limit
        self._newlines = newlines
        self.missing = missing
        # Django's own check would refuse a zero character with a message that names no remedy.
        self.validators = []

    def to_python(self, value: Any) -> str:
        try:
            return clean_text(str(value or ""), field="text", name=str(self.label), longest=self._limit, newlines=self._newlines)
        except InvalidRequest as error:
            raise ValidationError(error.message, code=error.code) from error

    def validate(self, value: str) -> None:
        if self.required and not value:
            raise ValidationError(self.missing or f"{self.label} is needed.", code="required")


class DurationField(TextField):
    """Whole seconds of what people write (``kernel.durations``); ``None`` for nothing, where it is not required. ``zone`` is where they
    are, as their browser tells it."""

    zone: tzinfo = UTC

    def __init__(self, **options: Any) -> None:
        super().__init__(limit=MAX_DURATION, missing="Say for how long, like 90 (minutes), 8h or 2h30.", **options)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        try:
            return parse_duration(text, now=SystemClock().now().astimezone(self.zone))
        except InvalidRequest as error:
            raise ValidationError(error.message, code=error.code) from error


class SubmissionField(forms.CharField):
    """The once-only token of a rendered form: the same form sent twice gives one request (``kernel.ids``)."""

    def __init__(self) -> None:
        super().__init__(required=False, widget=forms.HiddenInput, initial=new_submission_id)

    def to_python(self, value: Any) -> str:
        try:
            return str(uuid.UUID(str(value)))
        except ValueError:
            return new_submission_id()


class PlainForm(forms.Form):
    """A form whose errors can also come from the domain. ``aliases``: how the domain calls an input, where it differs."""

    aliases: ClassVar[Mapping[str, str]] = {"duration_seconds": "duration", "subject_id": "subject", "account_id": "account"}

    def __init__(self, data: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(data, label_suffix="", **kwargs)
        for field in self.fields.values():
            if isinstance(field, DurationField):
                field.zone = zone_named(str(self.data.get("zone", "")))
            if not field.widget.is_hidden and not isinstance(field.widget, forms.Select):
                field.widget.attrs.setdefault("class", "form-control")

    def offer_duration(self, typed: str) -> None:
        """Start with this length. While nobody touches it, the page goes on offering the one of the rule that decides."""
        self.initial["duration"] = typed
        self.fields["duration"].widget.attrs["data-offered"] = ""

    def focus_first_empty(self, names: Iterable[str], given: Mapping[str, Any]) -> bool:
        """Let the page begin where something is still to be typed; false where nothing is."""
        typed = (name for name in names if not given.get(name) and not self.fields[name].widget.is_hidden)
        first = next(typed, "")
        if first:
            self.fields[first].widget.attrs["autofocus"] = ""
        return bool(first)

    def add_error(self, field: str | None, error: Any) -> None:
        super().add_error(field, error)
        if field in self.fields:
            attrs = self.fields[field].widget.attrs
            attrs["class"] = f"{attrs.get('class', '')} is-invalid".strip()

    def begin_anew(self) -> None:
        """Sent once more, it is another request: its once-only token belongs to what was sent before."""
        self.data = {**self.data.dict(), "submission_id": new_submission_id()} if isinstance(self.data, QueryDict) else self.data

    def add_refusal(self, error: PortalError) -> None:
        """Show an error of the domain beside the field that it names, or above the form."""
        wanted = getattr(error, "field", "")
        name = self.aliases.get(wanted, wanted)
        is_visible = name in self.fields and not self.fields[name].widget.is_hidden
        self.add_error(name if is_visible else None, ValidationError(error.message, code=error.code))


def reason_field(*, required: bool, label: str, missing: str = "") -> TextField:
    return TextField(
        limit=LONGEST_REASON, newlines=True, required=required, label=label, missing=missing, widget=forms.Textarea(attrs={"rows": 3})
    )


def line(**attrs: str) -> forms.TextInput:
    """A line for what nobody's dictionary knows: no completion, no corrections."""
    return forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off", **attrs})


class DeedForm(PlainForm):
    """A form of a deed; without fields it is only the button."""

    def shown_fields(self) -> list[BoundField]:
        return self.visible_fields()


class ReasonForm(DeedForm):
    """The words that go with a deed."""

    reason = reason_field(required=False, label="Reason")

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        is_required: bool,
        label: str = "Reason",
        help_text: str = "",
        missing: str = "A reason is needed: it is kept in the history.",
        **kwargs: Any,
    ) -> None:
        super().__init__(data, **kwargs)
        field = cast(TextField, self.fields["reason"])
        field.required, field.label, field.help_text, field.missing = is_required, label, help_text, missing


class CommentForm(DeedForm):
    """A comment; the form sent twice writes it once."""

    text = reason_field(required=True, label="Comment", missing="Write what you want to ask or say.")
    submission_id = SubmissionField()

    def __init__(self, data: Mapping[str, Any] | None = None, *, label: str = "Comment", help_text: str = "", **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        self.fields["text"].label, self.fields["text"].help_text = label, help_text
