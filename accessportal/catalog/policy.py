"""Pure rules of the catalog: how text is folded for comparing, and what a search looks at."""

from __future__ import annotations

from collections.abc import Mapping

from accessportal.kernel.texts import fold_key

ACTIVE = "ACTIVE"
_MAX_WORDS = 8
_MAX_TEXT = 200


def fold(text: str) -> str:
    """The form in which text is searched: case and outer or doubled space do not matter."""
    return " ".join(text.split()).casefold()


def key_of(name: str) -> str:
    """What an account or permission set is found by; unlike :func:`fold`, which is for searching, never another name's key."""
    return fold_key(" ".join(part for part in name.split(" ") if part))


def words_of(text: str) -> tuple[str, ...]:
    """The folded words of a search, at most 8 of the first 200 characters: nobody types more, and each costs a pass."""
    return tuple(fold(text[:_MAX_TEXT].replace("\0", " ")).split()[:_MAX_WORDS])


def search_text(*parts: str, tags: Mapping[str, str] | None = None) -> str:
    """What a word is looked for in; line ends keep a word from matching across two parts. Tags stand as pages show them."""
    return "\n".join(fold(part) for part in (*parts, *(f"{key}={value}" for key, value in (tags or {}).items())))
