"""Tickets and the patterns that rules want of them. Pure."""

from __future__ import annotations

import functools
import re
from itertools import cycle, islice

from pydantic_core import SchemaError, SchemaValidator, ValidationError

from accessportal.rules.states import LONGEST_TICKET

_PART = re.compile(
    r"(?P<group>\((?:\?:)?)|(?P<close>\))|(?P<bar>\|)|(?:\[(?P<set>[^\]\^\\][^\]\\]*)\]|\\(?P<escape>.)|(?P<plain>[^\\\[\](){}*+?|^$.]))"
    r"(?P<times>[+*?]|\{(?P<least>\d{1,2})(?:,\d{0,2})?\})?"
)
_NUMBERED = re.compile(r"(?P<head>(?:[A-Za-z_#/-]|\\[-_#/])+)(?:\[0-9\]|\\d)(?:\+|\{\d{1,2}(?:,\d{0,2})?\})")
_NUMBERS, _LETTERS, _USUAL_LENGTH = "4711", "ABC", 4


def pattern_fault(pattern: str) -> str:
    """Why ``pattern`` can't be a ticket pattern; empty when it can."""
    try:
        # By itself first: "a)|(b" would be well-formed once it stands between the anchors.
        SchemaValidator({"type": "str", "pattern": pattern})
        _validator(pattern)
    except SchemaError as error:
        return str(error).strip().splitlines()[-1].strip().removeprefix("error: ").removeprefix("SchemaError: ")
    return ""


def ticket_matches(pattern: str, ticket_id: str) -> bool:
    """Whether the whole of ``ticket_id`` matches; an empty pattern takes any ticket of at most 200 characters."""
    if len(ticket_id) > LONGEST_TICKET:
        return False
    if not pattern:
        return True
    try:
        _validator(pattern).validate_python(ticket_id)
    except ValidationError:
        return False
    return True


@functools.lru_cache(maxsize=256)
def example_of(pattern: str) -> str:
    """A ticket that matches, like ``CHG-4711`` for ``(CHG|INC)-[0-9]+``; empty where the pattern is more than letters, sets, groups and
    counts."""
    made = _first_way(pattern) if len(pattern) <= LONGEST_TICKET else ""
    return made if made and ticket_matches(pattern, made) else ""


def head_of(pattern: str) -> str:
    """What stands before the number in every ticket that matches, like ``CHG-`` for ``CHG-[0-9]+``; empty where tickets may begin
    differently, or are more than a number after it."""
    numbered = _NUMBERED.fullmatch(pattern)
    return numbered["head"].replace("\\", "") if numbered else ""


def _first_way(pattern: str) -> str:
    """By the first of all alternatives, as short as it may be. What comes of a pattern that is not understood does not match it."""
    made, at, skipped_from = "", 0, -1
    depth = 0
    while (part := _PART.match(pattern, at)) is not None and at < len(pattern):
        at = part.end()
        if part["group"]:
            depth += 1
        elif part["close"]:
            depth -= 1
            skipped_from = -1 if depth < skipped_from else skipped_from
        elif part["bar"]:
            skipped_from = depth if skipped_from < 0 else skipped_from
        elif skipped_from < 0:
            made += _some_of(part)
    return made


def _some_of(part: re.Match[str]) -> str:
    times = part["times"] or "1"
    if times in ("?", "*"):
        return ""
    plain = part["plain"] or (part["escape"] if part["escape"] and part["escape"] not in "dw" else "")
    if plain:
        return plain * int(part["least"] or 1)
    signs = _NUMBERS if part["escape"] == "d" or (part["set"] or "")[:1].isdigit() else _LETTERS
    if part["set"] and "-" not in part["set"]:
        signs = part["set"]
    length = int(part["least"]) if part["least"] else _USUAL_LENGTH if times == "+" else 1
    return "".join(islice(cycle(signs), length))


@functools.lru_cache(maxsize=256)
def _validator(pattern: str) -> SchemaValidator:
    # The Rust engine that comes with pydantic has no backtracking: its time grows with the length of the ticket, never
    # with the nesting of the pattern. Python's own engine can be brought to a stand-still by "(a+)+$".
    return SchemaValidator({"type": "str", "pattern": rf"\A(?:{pattern})\z", "regex_engine": "rust-regex"})
