"""What people may type: plain text that shows as it was typed, and nothing that only pretends to."""

from __future__ import annotations

import unicodedata

from django.core.exceptions import ValidationError

from accessportal.access_requests.policy import TURNING_MARKS, is_visible


def clean_text(text: str, *, label: str, newlines: bool = False) -> str:
    """``text`` in one spelling (Unicode NFC, line feeds), without blanks around it; empty when nothing in it is visible.

    :raises ValidationError: for control characters and characters that turn the writing direction, named with the remedy.
    """
    plain = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    for character in plain:
        if character in TURNING_MARKS or (unicodedata.category(character) in {"Cc", "Cs"} and not (newlines and character in "\n\t")):
            raise ValidationError(_refusal(character, label=label), code="characters")
    if not is_visible(plain):
        return ""
    return plain.strip()


def _refusal(character: str, *, label: str) -> str:
    if character in "\n\t":
        return f"{label} must be one line. Remove the line breaks and tabs."
    return f"{label} contains a character that can't be shown (U+{ord(character):04X}). Remove it, or type the text again."
