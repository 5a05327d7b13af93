"""The rule for texts: plain, in one spelling, and nothing that only pretends to be."""

from __future__ import annotations

import pytest

from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.texts import LONGEST_REASON, check_reason, check_text, clean_text, cut


def cleaned(text: str, *, longest: int = 20) -> str:
    return clean_text(text, field="reason", name="Why", longest=longest, newlines=True)


@pytest.mark.parametrize("text", ["\0", "a\x7f", "a\x85b", "\u2066x", "a\ud800"])
def test_characters_that_deceive_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="U\\+") as cleaning:
        cleaned(text)
    with pytest.raises(InvalidRequest, match="U\\+") as checking:
        check_text(text, field="reason", name="Why", longest=20)

    assert cleaning.value.code == checking.value.code == "reason_unprintable"


@pytest.mark.parametrize(
    ("text", "kept"), [(" a\r\nb ", "a\nb"), ("\u200b\u00a0\n", ""), ("e\u0301", "é"), ("👩‍🚒", "👩‍🚒"), ("\ufeff", "")]
)
def test_texts_are_kept_in_one_spelling(text: str, kept: str) -> None:
    assert cleaned(text) == kept


def test_what_is_kept_is_counted_and_not_what_was_sent() -> None:
    """A browser sends two characters for a line's end, and some keyboards three for a syllable."""
    assert cleaned("a\r\n" * 9 + "a\r\n") == "\n".join("a" * 10)
    assert cleaned("\u1100\u1161\u11a8" * 20) == "\uac01" * 20
    with pytest.raises(InvalidRequest, match=r"Why has 21 characters; 20 is the most\. Shorten it\.") as refused:
        cleaned("\u1100\u1161\u11a8" * 19 + "aa")

    assert refused.value.code == "reason_too_long"


def test_no_letter_has_more_marks_than_languages_write() -> None:
    """Sorting them takes the square of their number; Unicode's own limit for texts on their way is 30."""
    assert cleaned("a" + "\u0323" * 30, longest=40) == "ạ" + "\u0323" * 29
    with pytest.raises(InvalidRequest, match="more than 30 marks on one letter"):
        cleaned("a" + "\u0301\u0323" * 16, longest=40)


def test_one_line_is_one_line() -> None:
    with pytest.raises(InvalidRequest, match=r"The ticket must be one line\. Remove the line breaks and tabs\."):
        check_text("CHG-1\nCHG-2", field="ticket_id", name="The ticket", longest=20, newlines=False)


def test_a_reason_has_one_limit_everywhere_and_may_be_needed() -> None:
    assert check_reason(" " + "x" * (LONGEST_REASON - 1)) == "x" * (LONGEST_REASON - 1)
    assert check_reason("") == ""
    with pytest.raises(InvalidRequest) as refused:
        check_reason("x" * (LONGEST_REASON + 1))
    with pytest.raises(InvalidRequest, match="Say why") as missed:
        check_reason("\u200b \n", missing="Say why.")

    assert [one.value.code for one in (refused, missed)] == ["reason_too_long", "reason_missing"]


def test_what_was_typed_is_cut_where_a_sentence_repeats_it() -> None:
    assert cut("x" * 60) == "x" * 60
    assert cut("x" * 61) == "x" * 60 + "…"
