"""Key strings made of several parts, so that no two inputs can build the same key."""

from __future__ import annotations

from urllib.parse import quote, unquote

_SEPARATOR = "#"


def join_key(*parts: str) -> str:
    """The parts percent-escaped where they hold the separator or the escape sign, joined by ``#``.

    Ordinary e-mail addresses, ARNs and paths stay readable; ``split_key`` gives the parts back.
    """
    return _SEPARATOR.join(quote(part, safe="@:/+-._~ =,") for part in parts)


def split_key(key: str) -> tuple[str, ...]:
    return tuple(unquote(part) for part in key.split(_SEPARATOR))
