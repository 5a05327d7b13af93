"""Stable stand-ins for people's addresses and names. Pure.

An address is found in a text by its form, so that no field can be forgotten. What stands in for it is found to be no address, wherever it
stands: a text has the same stand-ins whether or not some of its addresses were replaced before.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from accessportal.kernel.actors import fold_email

# What an address has, and keys have not between their parts (# / | : =); with the escapes of keys (%27 for an apostrophe).
_RUN = re.compile(r"[A-Za-z0-9_.%+'&!$~^@-]+")
_EDGES = ".%+'&!$~^@-"
_PERSON = re.compile(r"person-[a-z2-7]{26}")
_NAME = re.compile(r"name-[a-z2-7]{26}")
_LENGTH = 26


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """Those of one ``key``, which must be kept: with another one the same people have others."""

    key: bytes = field(repr=False)

    @property
    def key_id(self) -> str:
        """Tells keys apart, and nothing about them."""
        return hmac.new(self.key, b"key", hashlib.sha256).hexdigest()[:8]

    def of(self, address: str) -> str:
        """That of an address, however its letters are written; of a pseudonym, itself."""
        return _of_address(self.key, address) if "@" in address else address

    def of_name(self, name: str) -> str:
        """That of somebody's name; of a pseudonym, itself."""
        return _made(self.key, "name", name) if name and not _NAME.fullmatch(name) else name

    def in_text(self, text: str, *, only: str = "") -> str:
        """The text with the pseudonym for each address in it, or for those alone whose pseudonym is ``only``."""
        if "@" not in text:
            return text

        def replaced(run: re.Match[str]) -> str:
            address = run[0].strip(_EDGES)
            pseudonym = self.of(address)
            return run[0].replace(address, pseudonym, 1) if only in ("", pseudonym) and "@" in address else run[0]

        return _RUN.sub(replaced, text)


def pseudonyms_in(text: str) -> list[str]:
    """Those of people's addresses that stand in the text."""
    return _PERSON.findall(text)


def replaced_in(value: Any, replace: Callable[[str], str]) -> Any:
    """The value with each text in it replaced, also in the keys of maps."""
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, dict):
        return {replace(name): replaced_in(one, replace) for name, one in value.items()}
    if isinstance(value, tuple | frozenset):
        return type(value)(replaced_in(one, replace) for one in value)
    if isinstance(value, list):
        return [replaced_in(one, replace) for one in value]
    return value


def may_stand_in(address: str) -> bool:
    """Whether the address is found whole wherever it stands; some with rare characters are not."""
    return "%" not in address and _RUN.fullmatch(address) is not None and address.strip(_EDGES) == address


@functools.lru_cache(maxsize=10_000)
def _of_address(key: bytes, address: str) -> str:
    return _made(key, "person", fold_email(unquote(address)))


def _made(key: bytes, kind: str, text: str) -> str:
    made = hmac.new(key, f"{kind}:{text}".encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    return f"{kind}-{base64.b32encode(made).decode().lower()[:_LENGTH]}"
