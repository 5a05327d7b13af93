"""Item keys in addresses: e-mail addresses, ARNs and paths hold characters that an address gives another meaning."""

from __future__ import annotations

from urllib.parse import quote, unquote

# A slash that is merely percent-escaped is unescaped by the web server before Django sees it, hence a sign of our own.
_ESCAPE = "~"


class KeyConverter:
    """``<item:key>`` in a URL pattern: any string as one path segment."""

    regex = r"[^/]+"

    def to_python(self, value: str) -> str:
        return unquote(value.replace(_ESCAPE, "%"))

    def to_url(self, value: str) -> str:
        return quote(value, safe="@").replace(_ESCAPE, "%7E").replace("%", _ESCAPE)
