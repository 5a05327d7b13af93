"""What an address, a group path, a name and a description look like."""

from __future__ import annotations

import re
import string
import unicodedata

from accessportal.directory.states import ROOT
from accessportal.kernel.actors import fold_email
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.texts import cut

# ASCII alone: for other letters, what is the same depends on who asks.
_EMAIL = re.compile(
    r"(?=.{3,254}\Z)(?=[^@]{1,64}@)"
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+"
)
_GROUP_ID = re.compile(r"(?:/[a-z0-9_-][a-z0-9._-]*)+")
_LONGEST_STORED_GROUP_ID = 256
# Cognito's names have 128 characters: a user's is the address, a group's is "<groupId>:contributor".
_MAX_EMAIL = 128
_MAX_GROUP_ID = 116
_MAX_NAME = 200
# Persian and Indic names are not spelled without them, nor are families of emoji.
_JOINERS = "\u200c\u200d"
_MAX_DESCRIPTION = 1000


def is_email(text: str) -> bool:
    """Whether somebody in the table may have this address; other programs take longer ones than are accepted here."""
    return _EMAIL.fullmatch(text) is not None


def is_group_id(text: str) -> bool:
    """Whether a group in the table may have this path, the root included; other programs take longer ones."""
    return text == ROOT or (len(text) <= _LONGEST_STORED_GROUP_ID and _GROUP_ID.fullmatch(text) is not None)


def clean_email(text: str) -> str:
    """Return the address as typed, without space around it, fit for a new person."""
    email = text.strip(string.whitespace)
    # Where a person or a group may be named, what begins with a slash is a group.
    if not is_email(email) or len(email) > _MAX_EMAIL or email.startswith("/"):
        raise InvalidRequest(
            f"“{cut(text)}” is not an e-mail address that can be used here: write it like alice@example.com, in ASCII letters, "
            f"with at most {_MAX_EMAIL} characters and no slash at its beginning.",
            code="email_invalid",
            field="email",
        )
    return email


def clean_group_id(text: str) -> str:
    """Return the path, unchanged, fit for a new group below the root."""
    if text == ROOT or not is_group_id(text) or len(text) > _MAX_GROUP_ID:
        raise InvalidRequest(
            f"“{cut(text)}” is not a group path: write it like /engineering/payments, at most {_MAX_GROUP_ID} lower-case letters, "
            "digits and - _ . (a part does not start with a dot, the path does not end with a slash).",
            code="group_id_invalid",
            field="group_id",
        )
    return text


def clean_name(text: str) -> str:
    """Return the name without space around it, of 1 to 200 printable characters; blanks of every kind become spaces."""
    name = "".join(" " if unicodedata.category(char) == "Zs" else char for char in text.strip()[: _MAX_NAME + 1])
    wrong = next((char for char in name if not char.isprintable() and char not in _JOINERS), "")
    if not name.strip(_JOINERS) or len(name) > _MAX_NAME or wrong:
        remedy = f" Remove the character U+{ord(wrong):04X}." if wrong else ""
        text = f"A name has 1 to {_MAX_NAME} printable characters on one line.{remedy}"
        raise InvalidRequest(text, code="name_invalid", field="name")
    return name


def clean_description(text: str) -> str:
    """Return the description without space around it, of at most 1,000 characters; it may be empty."""
    description = text.strip()
    # A lone surrogate can't be stored as UTF-8.
    if len(description) > _MAX_DESCRIPTION or any("\ud800" <= char <= "\udfff" for char in description):
        raise InvalidRequest(f"A description has at most {_MAX_DESCRIPTION} characters.", code="description_invalid", field="description")
    return description


def key_of(email: str) -> str | None:
    """The folded form of ``email``, or ``None`` for what can't be anybody's address (and is not worth a read)."""
    key = fold_email(email)
    return key if is_email(key) else None
