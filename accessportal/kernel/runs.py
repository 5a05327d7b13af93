"""Runs over many items: each item by itself, and one shape for what came of all (docs/decisions/0058)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import ClassVar, TypeVar

from accessportal.kernel.errors import Conflict, PortalError
from accessportal.kernel.pages import Unreadable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """One item of a run that could not be done; the others went on."""

    item: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run did. Its other fields are numbers, or lists of what was done; ``stopped`` says why the rest was left, where it was."""

    failures: tuple[Failure, ...] = ()
    stopped: str = ""

    @property
    def is_ok(self) -> bool:
        return not self.failures and not self.stopped

    @property
    def counts(self) -> dict[str, int]:
        """How many of each, by field, and how many failed."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "failures"}
        lists = (tuple, list)
        counted = {name: len(value) if isinstance(value, lists) else value for name, value in values.items()}
        return {name: value for name, value in counted.items() if type(value) is int} | {"failed": len(self.failures)}

    @property
    def moments(self) -> dict[str, float]:
        """Its moments, by field, in epoch seconds."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value.timestamp() for name, value in values.items() if isinstance(value, datetime)}


@dataclass(kw_only=True)
class Run:
    """A run under way, in any number of threads. An item that fails is noted and stops no other."""

    passes: ClassVar[tuple[type[Exception], ...]] = (Conflict,)
    """What is no failure: another worker or a person was first, and that is how parallel runs meet."""
    failures: list[Failure] = field(default_factory=list)

    def unit(self, item: str, action: Callable[[], object]) -> None:
        """Do one item."""
        try:
            action()
        except self.passes:
            return
        except Exception as error:  # noqa: BLE001 - a poisoned item must not stop the others; it is reported and fails the job
            self.fail(item, error)

    def fail(self, item: str, error: Exception) -> None:
        """Note a failure in the words that it has for people; an unexpected one has none."""
        words = error.message if isinstance(error, PortalError) else f"{type(error).__name__}: {error}"
        self.failures.append(Failure(item, words))

    def pass_over(self, one: Unreadable) -> None:
        """Note an item that can't be read."""
        self.failures.append(Failure(one.key, str(one)))

    @property
    def failed(self) -> tuple[Failure, ...]:
        """The failures, each once."""
        return tuple(dict.fromkeys(self.failures))


def each(items: Iterable[T], action: Callable[[T], object], *, workers: int, name: str) -> None:
    """Do ``action`` on each item, in so many threads called ``name`` (1: in this one)."""
    if workers == 1:
        for item in items:
            action(item)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix=name) as executor:
        for future in [executor.submit(action, item) for item in items]:
            future.result()
