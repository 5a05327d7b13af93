"""How a search reads what people type."""

from __future__ import annotations

import pytest

from accessportal.catalog import policy


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        ("   ", ()),
        ("Payments  PROD", ("payments", "prod")),
        ("straße", ("strasse",)),
        ("a\0b", ("a", "b")),
        ("a b c d e f g h i j", ("a", "b", "c", "d", "e", "f", "g", "h")),
        ("x" * 1_000_000, ("x" * 200,)),
    ],
)
def test_words(text: str, words: tuple[str, ...]) -> None:
    assert policy.words_of(text) == words


def test_a_word_does_not_match_across_two_parts() -> None:
    text = policy.search_text("123456789012", "Payments Prod", "/Workloads/Prod", tags={"env": "Production"})
    assert text.split("\n") == ["123456789012", "payments prod", "/workloads/prod", "env=production"]
    assert policy.search_text("a", tags=None) == "a"
