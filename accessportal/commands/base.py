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
from argparse import ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any, ClassVar, TypeVar, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter
from rich.console import Console
from rich.progress import Progress, TaskID

from accessportal.identity.queries import actor_named
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.durations import parse_duration
from accessportal.kernel.errors import InvalidRequest, NotAllowed, PortalError
from accessportal.kernel.pages import Page, Unreadable, every

T = TypeVar("T")
Document = Mapping[str, Any]
_PIPE_WIDTH = 160
_LIMIT = "200"


class Error(CommandError):
    """Django prints the class's name before the message: ``Error: duration: …``."""


class BadUsage(Exception):
    """A flag's value can't be read. ``flag`` names it; the message says the rule and the remedy."""

    def __init__(self, message: str, *, flag: str, code: str) -> None:
        super().__init__(message)
        self.flag = flag
        self.code = code


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """``document`` is what ``--json`` prints. ``ok=False`` prints it too and exits with 1."""

    document: Document
    ok: bool = True
    problem: str = ""


class _Formatter(RawDescriptionHelpFormatter, DjangoHelpFormatter):
    """Keeps the example's line breaks, and Django's order of the flags."""


class PortalCommand(BaseCommand):
    """A thin command: reads flags, calls one operation or query, shows the answer.

    Subclasses set ``help``, ``example`` (the last line of ``--help``) and, where somebody acts, ``takes_actor``;
    they implement :meth:`run`, and :meth:`show` for people.
    """

    example: ClassVar[str]
    takes_actor: ClassVar[bool] = False
    # Django's own checks load every page and form; commands are run often, and `make check` runs the checks.
    requires_system_checks = ("demo",)

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        epilog = f"Example:\n  python manage.py {self.example}"
        return super().create_parser(prog_name, subcommand, epilog=epilog, formatter_class=_Formatter, **kwargs)

    def run_from_argv(self, argv: list[str]) -> None:
        # On a terminal only what the command says, and what went wrong, is of interest.
        logging.disable(logging.INFO)
        super().run_from_argv(joined(argv))

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for programs")
        if self.takes_actor:
            parser.add_argument("--as", required=True, dest="as_email", metavar="EMAIL", help="the person who does this, by e-mail address")

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            outcome = self.run(options)
        except BadUsage as error:
            raise self._failure(
                options, {"code": error.code, "field": error.flag, "message": str(error)}, f"{error.flag}: {error}", returncode=2
            ) from error
        except InvalidRequest as error:
            raise self._failure(options, _told(error) | {"field": error.field}, f"{error.field}: {error.message}") from error
        except PortalError as error:
            raise self._failure(options, _told(error), error.message) from error
        if options["as_json"]:
            self.print_json(outcome.document)
        else:
            self.show(outcome.document, self._console())
        if not outcome.ok:
            raise Error(outcome.problem or "It did not go well; see above.", returncode=1)

    def run(self, options: Mapping[str, Any]) -> Outcome:
        """Do it. Raise kernel errors as they come; they become one line and the exit code."""
        raise NotImplementedError

    def show(self, document: Document, console: Console) -> None:
        """The answer for people; by default one line for each entry."""
        for name, value in document.items():
            console.print(f"{name}: {value}", soft_wrap=True)

    def actor(self, options: Mapping[str, Any]) -> Actor:
        """The person named by ``--as``, with the roles that they hold right now.

        :raises NotAllowed: when the directory does not know them, or has them disabled.
        """
        try:
            return actor_named(email=str(options["as_email"]), now=SystemClock().now())
        except NotAllowed as error:
            raise NotAllowed(f"--as: {error.message}", code=error.code) from error

    @property
    def is_watched(self) -> bool:
        """Whether somebody sits in front of it: then long work shows its progress."""
        return sys.stderr.isatty()

    def progress_console(self) -> Console:
        return Console(file=cast(IO[str], self.stderr), highlight=False)

    def _failure(self, options: Mapping[str, Any], error: Document, line: str, *, returncode: int = 1) -> Error:
        """The line goes to standard error in any case; with ``--json`` standard output holds one object in any case."""
        if options["as_json"]:
            self.print_json({"error": error})
        return Error(line, returncode=returncode)

    def print_json(self, document: Document) -> None:
        """One object on standard output."""
        self.stdout.write(json.dumps(plain(document), indent=2, ensure_ascii=False))

    def _console(self) -> Console:
        width = None if self.stdout.isatty() else _PIPE_WIDTH
        return Console(file=cast(IO[str], self.stdout), highlight=False, width=width, markup=False)


def progress_bars(progress: Progress) -> Callable[[str, int, int], None]:
    """To be told what is being made, how many are done, and of how many: one bar for each sort of thing."""
    bars: dict[str, TaskID] = {}

    def tell(what: str, done: int, total: int) -> None:
        if what not in bars:
            bars[what] = progress.add_task(what[:1].upper() + what[1:], total=total)
        progress.update(bars[what], completed=done, total=total)

    return tell


def read_duration(text: str, *, flag: str = "--duration") -> int:
    """Whole seconds of ``30m``, ``8h``, ``PT8H``.

    :raises BadUsage: naming the flag, the rule and the remedy.
    """
    try:
        return parse_duration(text, field=flag)
    except InvalidRequest as error:
        raise BadUsage(error.message, flag=flag, code=error.code) from error


def read_file(name: str, *, flag: str = "FILE") -> bytes:
    """All of the file.

    :raises BadUsage: naming the flag, and why it can't be read.
    """
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise BadUsage(f"{name} can't be read ({error.strerror}).", flag=flag, code="file_unreadable") from error


def add_limit(parser: CommandParser) -> None:
    """``--limit``, for :func:`limit_of`."""
    parser.add_argument("--limit", default=_LIMIT, metavar="N", help=f"at most so many; 0 for all (default: {_LIMIT})")


def limit_of(options: Mapping[str, Any]) -> int:
    return read_whole_number(options["limit"], flag="--limit")


def first(limit: int, fetch: Callable[[str | None], Page[T]]) -> tuple[list[T], bool]:
    """At most ``limit`` records of a paged list (0: all of them), and whether there are more. What can't be read is named on
    stderr."""
    if limit == 0:
        return list(every(fetch, past=_name)), False
    found = list(islice(every(fetch, past=_name), limit + 1))
    return found[:limit], len(found) > limit


def _name(one: Unreadable) -> None:
    sys.stderr.write(f"{one}\n")


def read_whole_number(text: str, *, flag: str) -> int:
    """0 or more.

    :raises BadUsage: naming the flag, the rule and the remedy.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        shown = text if len(text) <= 40 else text[:40] + "…"
        raise BadUsage(f"“{shown}” is not a whole number: give 0 or more.", flag=flag, code="number_unreadable")
    return int(text)


def share(text: str) -> float:
    """For ``type=`` of a flag: a number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"“{text}” is not a share: give a number from 0 to 1")
    return number


def plain(value: Any) -> Any:
    """``value`` as JSON holds it: records as objects, moments as ISO 8601 in UTC, sets sorted."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime):
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


def _told(error: PortalError) -> dict[str, Any]:
    return {"code": error.code, "message": error.message}
