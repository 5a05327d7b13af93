"""Stored data as people read it: one labelled value after the other. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from accessportal.kernel.clock import from_epoch
from accessportal.kernel.durations import format_duration
from accessportal.kernel.texts import cut

_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Fact:
    """``moment`` instead of ``words`` where the value is a time."""

    label: str
    words: str
    moment: datetime | None = None


def facts_of(data: Mapping[str, Any], *, prefix: str = "", called: Mapping[str, str] = MappingProxyType({})) -> Iterator[Fact]:
    """One line for each value; maps are flattened, empty values left out. ``called``: keys by other names."""
    for key in sorted(data):
        value, label = data[key], f"{prefix}{called.get(key, key.replace('_', ' '))}"
        if isinstance(value, Mapping):
            yield from facts_of(value, prefix=f"{label}, ", called=called)
        elif value not in ("", None, [], ()):
            yield _fact(key, label, value)


def _fact(key: str, label: str, value: Any) -> Fact:
    label = label[:1].upper() + label[1:]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and (key.endswith("_at") or key == "deadline"):
        with suppress(ValueError):
            return Fact(label, "", from_epoch(float(value)))
    if is_number and key.endswith("_seconds"):
        label = label.removesuffix(" seconds")
        return Fact(label, format_duration(int(value)) if float(value).is_integer() else f"{float(value):.3f} s")
    return Fact(label, _words(value))


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(_words(each) for each in value)
    text = str(value)
    return cut(text, longest=_LONGEST)
