"""A command's arguments and flags, read off the parameters of its function."""

from __future__ import annotations

import enum
import inspect
from argparse import SUPPRESS, ArgumentTypeError
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from accessportal.kernel.durations import parse_duration
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.texts import cut


class BadUsage(Exception):
    """A flag's value can't be read. ``flag`` names it; the message says the rule and the remedy."""

    def __init__(self, message: str, *, flag: str, code: str) -> None:
        super().__init__(message)
        self.flag = flag
        self.code = code


@dataclass(frozen=True, slots=True)
class Flag:
    """What ``Annotated`` says of a parameter: its help and, where the type does not tell, how it is called and read. ``read`` may raise
    :class:`BadUsage`; ``type`` is argparse's."""

    help: str = ""
    metavar: str | None = None
    read: Callable[[str, str], Any] | None = None
    type: Callable[[str], Any] | None = None
    name: str = ""
    choices: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Flags:
    """What ``Annotated`` says of ``**given``: a flag for each name, read as text; those that are not typed are not given."""

    each: Callable[[], Mapping[str, Flag]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a command's function. ``kind`` is its type, without ``None``."""

    name: str
    kind: Any
    flag: Flag
    is_flag: bool
    is_required: bool

    @property
    def shown(self) -> str:
        """As people type it, or see it in the help."""
        if not self.is_flag:
            return self.flag.metavar or self.name
        return self.flag.name or f"--{self.name.replace('_', '-')}"

    @property
    def choice(self) -> type[enum.Enum] | None:
        """The type of one that is a choice."""
        return self.kind if isinstance(self.kind, type) and issubclass(self.kind, enum.Enum) else None

    def declare(self, add_argument: Callable[..., object]) -> None:
        """What is not given is left out of the options, so that the function's own default counts."""
        words: dict[str, Any] = {"help": self.flag.help or None, "metavar": self.flag.metavar}
        if self.kind is bool:
            del words["metavar"]
            words["action"] = "store_true"
        elif get_origin(self.kind) is list and self.flag.read is None:
            words["action"] = "append"
        elif self.choice is not None:
            values = [one.value for one in self.choice]
            words |= {"choices": values, "type": partial(_spelt, values)}
        else:
            words |= {"choices": self.flag.choices, "type": self.flag.type}
        if self.is_flag:
            add_argument(self.shown, dest=self.name, required=self.is_required, default=SUPPRESS, **words)
        else:
            add_argument(self.name, **words)

    def value(self, given: Any) -> Any:
        """:raises BadUsage: when it can't be read."""
        if self.flag.read is not None:
            return self.flag.read(given, self.shown)
        return given if self.choice is None else self.choice(given)


def parameters_of(function: Callable[..., object]) -> tuple[Parameter, ...]:
    """Those before ``*`` are arguments, those after it flags."""
    hints = get_type_hints(function, include_extras=True)
    return tuple(found for one in inspect.signature(function).parameters.values() for found in _parameters(one, hints[one.name]))


def _parameters(one: inspect.Parameter, hint: Any) -> Iterator[Parameter]:
    if one.kind is not one.VAR_KEYWORD:
        yield _parameter(one, hint)
        return
    (flags,) = (extra for extra in get_args(hint) if isinstance(extra, Flags))
    yield from (Parameter(name, str, flag, is_flag=True, is_required=False) for name, flag in flags.each().items())


def _parameter(one: inspect.Parameter, hint: Any) -> Parameter:
    base, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    kind = next((part for part in get_args(base) if part is not NoneType), base) if NoneType in get_args(base) else base
    flag = next((extra for extra in more if isinstance(extra, Flag)), Flag())
    return Parameter(one.name, kind, flag, one.kind is one.KEYWORD_ONLY, one.default is one.empty)


def _spelt(choices: Sequence[str], text: str) -> str:
    """In whatever letters a choice is written."""
    return next((one for one in choices if one.casefold() == text.casefold()), text)


def values_of(parameters: Sequence[Parameter], options: Mapping[str, Any]) -> dict[str, Any]:
    """Read what was given. BadUsage for the first that can't be."""
    return {one.name: one.value(options[one.name]) for one in parameters if one.name in options}


def read_duration(text: str, flag: str) -> int:
    """Whole seconds of ``30m``, ``8h``, ``PT8H``."""
    try:
        return parse_duration(text, field=flag)
    except InvalidRequest as error:
        raise BadUsage(error.message, flag=flag, code=error.code) from error


def read_file(name: str, flag: str) -> bytes:
    """All of the file."""
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise BadUsage(f"{name} can't be read ({error.strerror}).", flag=flag, code="file_unreadable") from error


def read_whole_number(text: str, flag: str) -> int:
    """0 or more."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise BadUsage(f"“{cut(text)}” is not a whole number: give 0 or more.", flag=flag, code="number_unreadable")
    return int(text)


def read_moment(text: str, flag: str) -> datetime:
    """A moment with its zone, in UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        words = f"“{cut(text)}” is no moment with its zone: give one like 2026-03-02T08:15:00Z."
        raise BadUsage(words, flag=flag, code="moment_unreadable")
    return moment.astimezone(UTC)


def read_pairs(given: Sequence[str], flag: str) -> dict[str, str]:
    """Of a flag that may be repeated, each as ``NAME=VALUE``."""
    pairs = [one.partition("=") for one in given]
    if not all(name and equals for name, equals, _ in pairs):
        raise BadUsage("Give each as NAME=VALUE.", flag=flag, code="pair_unreadable")
    return {name: value for name, _, value in pairs}


def share(text: str) -> float:
    """For ``type``: a number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"“{text}” is not a share: give a number from 0 to 1")
    return number


Email = Annotated[str, Flag(metavar="EMAIL")]
"""The address of a person."""
GroupId = Annotated[str, Flag("the group's path", "ID")]
Limit = Annotated[int, Flag("at most so many; 0 for all (default: 200)", "N", read_whole_number)]
"""For the list that it goes with, 200 by default."""
Text = Annotated[str, Flag(metavar="TEXT")]
