"""Groups and people in addresses."""

from __future__ import annotations

from django.urls.converters import StringConverter

from accessportal.directory.states import ROOT


class GroupConverter:
    """``at<group:group_id>``: the path of a group and a slash, ``/engineering/payments/``; the root is the slash alone."""

    regex = r"/(?:[^/]+/)*"

    def to_python(self, value: str) -> str:
        return value.removesuffix("/") or ROOT

    def to_url(self, value: str) -> str:
        return value if value == ROOT else f"{value}/"


class EmailConverter(StringConverter):
    """An e-mail address. A slash may be in front of its @ and never behind it, so what follows in the path is told apart."""

    regex = r"[^@]+@[^@/]+"
