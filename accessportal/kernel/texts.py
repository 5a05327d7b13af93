"""Texts from outside. Their length is judged before any work is done on them: sorting the marks of a long one takes minutes."""

from __future__ import annotations

import difflib
import string
import unicodedata
from collections.abc import Sequence

from accessportal.kernel.errors import InvalidRequest

# They make a text read as another one.
TURNING_MARKS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# In another spelling a text may be so much longer: three parts of a Korean syllable, a letter with two marks, a line's two ends.
_LONGEST_SPELLING = 3
# As in Unicode's "stream-safe" texts. Normalising sorts the marks of one letter, which takes the square of their number.
_MOST_MARKS = 30
LONGEST_REASON = 2_000
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def clean_text(text: str, *, field: str, name: str, longest: int, newlines: bool = False) -> str:
    """Return ``text`` in one spelling (Unicode NFC, line feeds), without blanks around it; empty when nothing in it is visible. :raises
    InvalidRequest: as :func:`check_text`, and for more marks on a letter than any language writes."""
    if len(text) > _LONGEST_SPELLING * longest:
        check_length(text, field=field, name=name, longest=longest)
    _check_marks(text, field=field, name=name)
    plain = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    check_text(plain, field=field, name=name, longest=longest, newlines=newlines)
    return plain.strip() if is_visible(plain) else ""


def check_text(text: str, *, field: str, name: str, longest: int, newlines: bool = True) -> None:
    """Refuse what is too long, or can't be stored and shown faithfully: control characters, turned writing directions. The error names
    ``field`` (``name`` is its word for people), the rule and the remedy."""
    check_length(text, field=field, name=name, longest=longest)
    for character in text:
        if newlines and character in "\n\r\t":
            continue
        if character in TURNING_MARKS or unicodedata.category(character) in {"Cc", "Cs"}:
            raise InvalidRequest(_refusal(character, name=name), code=f"{field}_unprintable", field=field)


def check_reason(reason: str, *, missing: str = "") -> str:
    """Return the reason as it is kept, judged by :func:`check_text`. ``missing``: what to say to somebody who gives none where there must
    be one."""
    check_text(reason, field="reason", name="The reason", longest=LONGEST_REASON)
    if missing and not is_visible(reason):
        raise InvalidRequest(missing, code="reason_missing", field="reason")
    return reason.strip()


def check_length(text: str, *, field: str, name: str, longest: int) -> None:
    """:raises InvalidRequest: naming how long it is, and how long it may be."""
    if len(text) > longest:
        message = f"{name} has {len(text):,} characters; {longest:,} is the most. Shorten it."
        raise InvalidRequest(message, code=f"{field}_too_long", field=field)


def cut(text: str, *, longest: int = 60) -> str:
    """Return ``text`` as it may stand in a sentence."""
    return text if len(text) <= longest else text[:longest] + "…"


def words_on_unknown(name: str, known: Sequence[str]) -> str:
    """What is wrong with a parameter that is none of ``known``, and which of these was probably meant."""
    near = difflib.get_close_matches(cut(name), known, n=1)
    if not known:
        return "it is not known here, where no parameters are. Leave it out"
    return f"it is not known here. {f'Did you mean {near[0]}? ' if near else ''}Known are: {', '.join(known)}"


def is_visible(text: str) -> bool:
    """Whether there is anything to read in it: blanks, joiners and marks without width are nothing."""
    return any(unicodedata.category(character)[0] not in "CZ" for character in text)


def fold_key(name: str) -> str:
    """Make the key that a name is found and compared by: ASCII letters in lower case. Unicode's own folding makes ASCII of some foreign
    letters (``ß`` becomes ``ss``), so that one name would be found under the key of another."""
    return name.translate(_LOWER)


def _check_marks(text: str, *, field: str, name: str) -> None:
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > _MOST_MARKS:
            message = f"{name} has more than {_MOST_MARKS} marks on one letter (U+{ord(character):04X}). Type the text again."
            raise InvalidRequest(message, code=f"{field}_unprintable", field=field)


def _refusal(character: str, *, name: str) -> str:
    if character in "\n\r\t":
        return f"{name} must be one line. Remove the line breaks and tabs."
    return f"{name} contains a character that can't be shown (U+{ord(character):04X}). Remove it, or type the text again."
