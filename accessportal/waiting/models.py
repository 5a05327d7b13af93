"""The WaitingLine items and their keys."""

from __future__ import annotations

from typing import Any

from pynamodb.attributes import MapAttribute, NumberAttribute, UnicodeAttribute

from accessportal.store.base import PortalModel, register
from accessportal.store.keys import join_key

_DIGITS = 12
FIRST, LAST = "0" * _DIGITS, "9" * _DIGITS


@register
class WaitingItem(PortalModel):
    """The head of a line, a place in it, the same place under its claim, or the line's last cleanings: the keys tell which. Times are epoch
    seconds, ``joined_at`` with milliseconds."""

    base_table_name = "WaitingLine"

    pk = UnicodeAttribute(hash_key=True, attr_name="PK")
    sk = UnicodeAttribute(range_key=True, attr_name="SK")
    line = UnicodeAttribute(null=True)
    # the head
    waiting = NumberAttribute(null=True)
    next_number = NumberAttribute(null=True)
    version = NumberAttribute(null=True)
    audit_head = UnicodeAttribute(null=True)
    # a place
    number = NumberAttribute(null=True)
    claim = UnicodeAttribute(null=True)
    joined_at = NumberAttribute(null=True)
    lapses_at = NumberAttribute(null=True)
    duration_seconds = NumberAttribute(null=True)
    wants: Any = MapAttribute(null=True)
    # how long each of the last cleanings took, in seconds, the newest last
    cleanings = UnicodeAttribute(null=True)


def line_key(line: str) -> str:
    return join_key("LINE", line)


def head_key(line: str) -> tuple[str, str]:
    return line_key(line), "HEAD"


def place_key(line: str, number: int) -> tuple[str, str]:
    """The range key sorts by number; the head sorts behind all of them."""
    return line_key(line), f"{number:0{_DIGITS}}"


def claim_key(line: str, claim: str) -> tuple[str, str]:
    return join_key("CLAIM", claim), line


def cleanings_key(line: str) -> tuple[str, str]:
    return line_key(line), "LATELY"
