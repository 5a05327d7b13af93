"""What every command of ours shares: ``--json``, ``--as``, exit codes, one clear line for what went wrong, an example.

Exit codes: 0 done; 1 refused, failed, or (for checks) something found; 2 bad usage (a wrong flag, a value that can't be read).
"""

from __future__ import annotations

import dataclasses
import enum
import json
import logging
import re
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from typing import IO, Any, TypeVar, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter
from rich.console import Console

from accessportal.commands.flags import BadUsage, parameters_of, values_of
from accessportal.commands.terminal import Document, Facts, Show
from accessportal.identity.queries import actor_named
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock, SystemClock
from accessportal.kernel.counts import counted
from accessportal.kernel.errors import InvalidRequest, NotAllowed, PortalError
from accessportal.kernel.pages import Page, Unreadable, every

T = TypeVar("T")
_PIPE_WIDTH = 160


class Error(CommandError):
    """Django prints the class's name before the message: ``Error: duration: …``."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``document`` is what ``--json`` prints. With a ``problem``, that is told too, and the exit code is 1."""

    document: object
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A command: what :func:`command` has read off a function. Calling it gives Django's object."""

    run: Callable[..., object]
    example: str
    about: str
    show: Show
    one_of: Sequence[str]
    at_most_one_of: Sequence[str]

    def __call__(self) -> PortalCommand:
        return PortalCommand(self)


def command(
    example: str = "",
    *,
    show: Show = Facts(empty=()),  # noqa: B008  (it never changes)
    about: str = "",
    one_of: Sequence[str] = (),
    at_most_one_of: Sequence[str] = (),
) -> Callable[[Callable[..., object]], Declaration]:
    """Make a command of a function, called with its flags (:mod:`flags`); what it gives is shown, kernel errors become one line and the
    exit code. An ``Actor`` is the person of ``--as``; a ``Clock``, ``datetime`` or ``PortalCommand`` without a default is given. The help
    is the docstring or ``about``. Of ``one_of`` exactly one must be given."""

    def declare(function: Callable[..., object]) -> Declaration:
        words = about or " ".join((function.__doc__ or "").split())
        return Declaration(function, f"{function.__name__} {example}".rstrip(), words, show, one_of, at_most_one_of)

    return declare


class _Formatter(RawDescriptionHelpFormatter, DjangoHelpFormatter):
    """Keeps the example's line breaks, and Django's order of the flags."""


class PortalCommand(BaseCommand):
    """A declaration at work: reads flags, calls its function, shows the answer."""

    # Django's own checks load every page and form; commands are run often, and `make check` runs the checks.
    requires_system_checks = ("demo",)

    def __init__(self, declaration: Declaration) -> None:
        super().__init__()
        self.help = declaration.about
        self.as_json = False
        self._declared = declaration
        parameters = parameters_of(declaration.run)
        self._given = {one.name: one.kind for one in parameters if one.kind in (Clock, datetime, PortalCommand) and one.is_required}
        self._actor = next((one for one in parameters if one.kind is Actor), None)
        self._parameters = [one for one in parameters if one.name not in self._given and one is not self._actor]

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        epilog = f"Example:\n  python manage.py {self._declared.example}"
        return super().create_parser(prog_name, subcommand, epilog=epilog, formatter_class=_Formatter, **kwargs)

    def run_from_argv(self, argv: list[str]) -> None:
        # On a terminal only what the command says, and what went wrong, is of interest.
        logging.disable(logging.INFO)
        super().run_from_argv(joined(argv))

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for programs")
        if self._actor is not None:
            words = self._actor.flag.help or "the person who does this, by e-mail address"
            parser.add_argument("--as", required=self._actor.is_required, dest="as_email", metavar="EMAIL", help=words)
        either = (*self._declared.one_of, *self._declared.at_most_one_of)
        group = parser.add_mutually_exclusive_group(required=bool(self._declared.one_of)) if either else parser
        for one in self._parameters:
            one.declare((group if one.name in either else parser).add_argument)

    def handle(self, *_args: Any, **options: Any) -> None:
        self.as_json = options["as_json"]
        try:
            answer = self._declared.run(**self._values(options))
        except BadUsage as error:
            told = {"code": error.code, "field": error.flag, "message": str(error)}
            raise self._failure(told, f"{error.flag}: {error}", returncode=2) from error
        except InvalidRequest as error:
            told = {"code": error.code, "message": error.message, "field": error.field}
            raise self._failure(told, f"{error.field}: {error.message}") from error
        except PortalError as error:
            raise self._failure({"code": error.code, "message": error.message}, error.message) from error
        outcome = answer if isinstance(answer, Outcome) else Outcome(answer)
        if self.as_json:
            self.print_json(outcome.document)
        else:
            self._declared.show(plain(outcome.document), self._console())
        if outcome.problem:
            raise Error(outcome.problem, returncode=1)

    def print_json(self, document: object) -> None:
        """One object on standard output."""
        self.stdout.write(json.dumps(plain(document), indent=2, ensure_ascii=False))

    def say(self, text: str) -> None:
        """To people, while it runs; with ``--json`` standard output is for the program that reads it."""
        stream = self.stderr if self.as_json else self.stdout
        stream.write(text, style_func=str)
        stream.flush()

    def _values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """By parameter: what was given, and what whoever asks for it gets."""
        clock = SystemClock()
        now = clock.now()
        values = values_of(self._parameters, options)
        values |= {name: {Clock: clock, datetime: now, PortalCommand: self}[kind] for name, kind in self._given.items()}
        if self._actor is not None and options["as_email"] is not None:
            values[self._actor.name] = _actor(options["as_email"], now)
        return values

    def _failure(self, error: Document, line: str, *, returncode: int = 1) -> Error:
        """The line goes to standard error in any case; with ``--json`` standard output holds one object in any case."""
        if self.as_json:
            self.print_json({"error": error})
        return Error(line, returncode=returncode)

    def _console(self) -> Console:
        width = None if self.stdout.isatty() else _PIPE_WIDTH
        return Console(file=cast(IO[str], self.stdout), highlight=False, width=width, markup=False)


def _actor(email: str, now: datetime) -> Actor:
    """Return the person named by ``--as``, with the roles that they hold right now. NotAllowed when the directory does not know them, or
    has them disabled."""
    try:
        return actor_named(email=email, now=now)
    except NotAllowed as error:
        raise NotAllowed(f"--as: {error.message}", code=error.code) from error


def first(limit: int, *lists: Callable[[str | None], Page[T]]) -> tuple[list[T], bool]:
    """At most ``limit`` records of each paged list (0: all), and whether there are more. What can't be read is named on
    stderr."""
    found: list[T] = []
    has_more = False
    for fetch in lists:
        some = list(islice(every(fetch, past=_name), limit + 1 if limit else None))
        found += some[: limit or None]
        has_more |= len(some) > limit > 0
    return found, has_more


def _name(one: Unreadable) -> None:
    sys.stderr.write(f"{one}\n")


def failed(failures: Sequence[object], words: str, *, one: str, then: str = "") -> str:
    """The problem of a run whose items failed; nothing when none did. ``one``: the words for a single one; ``then`` follows either."""
    return counted(len(failures), one, words) + then if failures else ""


def facts(record: object, *names: str) -> dict[str, Any]:
    """Some facts of a record, as its document has them."""
    return {name: plain(getattr(record, name)) for name in names}


def document_of(record: object) -> dict[str, Any]:
    """All of a record, as its document has it."""
    return dict(plain(record))


def plain(value: Any) -> Any:
    """``value`` as JSON holds it: records as objects, moments (in UTC) and days as ISO 8601, sets sorted."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, date):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(inner) for inner in value)
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def joined(argv: Sequence[str]) -> list[str]:
    """``--duration -1h`` as ``--duration=-1h``: no flag of ours is a number, and the command can say what is wrong with it."""
    words: list[str] = []
    for word in argv:
        if re.match(r"-[0-9]", word) and words and words[-1].startswith("--") and "=" not in words[-1]:
            words[-1] += f"={word}"
        else:
            words.append(word)
    return words
