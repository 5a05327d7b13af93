"""What may be typed about groups, memberships and people: shape only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField

from accessportal.directory.states import GroupRole
from accessportal.web.forms import MAX_NAME, DeedForm, TextField, line

_DESCRIPTION = 1000
_ROLES = [(role.value, role.value.capitalize()) for role in (GroupRole.READER, GroupRole.CONTRIBUTOR, GroupRole.ADMIN)]


def _role_field(*, label: str = "Role") -> forms.ChoiceField:
    return forms.ChoiceField(
        label=label,
        choices=_ROLES,
        widget=forms.RadioSelect(attrs={"class": "form-check-input"}),
        error_messages={"required": "Choose a role.", "invalid_choice": "Choose one of the roles reader, contributor and admin."},
    )


def _email_field(**options: Any) -> TextField:
    return TextField(limit=MAX_NAME, label="E-mail address", missing="Give the person's e-mail address.", **options)


def _name_field() -> TextField:
    return TextField(limit=MAX_NAME, label="Name", missing="Give it a name.", widget=line())


def _description_field() -> TextField:
    widget = forms.Textarea(attrs={"rows": 2})
    return TextField(
        limit=_DESCRIPTION, newlines=True, required=False, label="Description", help_text="What the group is for.", widget=widget
    )


class AddPersonForm(DeedForm):
    """``name`` is asked only when the address turned out to be new."""

    email = _email_field(widget=line(type="email", placeholder="somebody@example.com"))
    name = TextField(limit=MAX_NAME, required=False, label="Name", widget=line())
    role = _role_field()

    def shown_fields(self) -> list[BoundField]:
        asks_name = bool(self.errors.get("name") or self["name"].value())
        return [field for field in self.visible_fields() if field.name != "name" or asks_name]


class RoleForm(DeedForm):
    email = _email_field(widget=forms.HiddenInput)
    role = _role_field()


class MemberForm(DeedForm):
    email = _email_field(widget=forms.HiddenInput)


class NewGroupForm(DeedForm):
    aliases: ClassVar[Mapping[str, str]] = {"group_id": "part"}

    name = _name_field()
    part = TextField(
        limit=MAX_NAME,
        label="Id",
        missing="Give it an id: the last part of its path.",
        help_text="The last part of its path: lower-case letters, digits and - _ . It can't be changed later.",
        widget=line(),
    )
    description = _description_field()

    def clean_part(self) -> str:
        part = str(self.cleaned_data["part"])
        if "/" in part:
            raise ValidationError("Give the last part of the path alone, without a slash.", code="part_has_slash")
        return part


class RenameGroupForm(DeedForm):
    name = _name_field()
    description = _description_field()


class MoveForm(DeedForm):
    parent_id = TextField(
        limit=MAX_NAME,
        label="New place: right below",
        missing="Choose the group that it shall be below.",
        widget=line(placeholder="Name or id of a group"),
    )
