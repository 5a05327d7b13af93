"""Groups, people and keys of items in addresses, and the way back to a page of the portal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from django.http import HttpRequest
from django.urls import register_converter
from django.urls.converters import StringConverter
from django.utils.http import url_has_allowed_host_and_scheme

from accessportal.directory.states import ROOT

# A slash that is merely percent-escaped is unescaped by the web server before Django sees it, hence a sign of our own.
_ESCAPE = "~"


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


class KeyConverter:
    """Any string as one path segment: ARNs and paths hold characters that an address gives another meaning."""

    regex = r"[^/]+"

    def to_python(self, value: str) -> str:
        return unquote(value.replace(_ESCAPE, "%"))

    def to_url(self, value: str) -> str:
        return quote(value, safe="@").replace(_ESCAPE, "%7E").replace("%", _ESCAPE)


def way_back(request: HttpRequest, given: Mapping[str, Any]) -> str:
    """Where a form wants to return to (``next``), if that is a page of this portal."""
    wanted = str(given.get("next", ""))
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure())
    return wanted if is_ours else ""


register_converter(GroupConverter, "group")
register_converter(EmailConverter, "email")
register_converter(KeyConverter, "item")
