"""Showing an answer to people: facts a line each, tables, and how far long work is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn, TaskID
from rich.table import Table

Document = Mapping[str, Any]
Show = Callable[[Document, Console], None]
Columns = Mapping[str, str | Callable[[Document], object]]
"""By heading: the name of a fact, or what makes the cell of all of them."""


def is_watched() -> bool:
    """Whether somebody sits in front of it: then long work shows its progress."""
    return sys.stderr.isatty()


def progress(*columns: ProgressColumn) -> Progress:
    return Progress(*columns, console=Console(stderr=True, highlight=False), disable=not is_watched())


def bars(progress: Progress) -> Callable[[str, int, int], None]:
    """To be told what is being made, how many are done, and of how many: one bar for each sort of thing."""
    tasks: dict[str, TaskID] = {}

    def tell(what: str, done: int, total: int) -> None:
        if what not in tasks:
            tasks[what] = progress.add_task(what[:1].upper() + what[1:], total=total)
        progress.update(tasks[what], completed=done, total=total)

    return tell


@dataclass(frozen=True, slots=True)
class Facts:
    """One line for each fact that is neither ``hidden`` nor ``empty``; ``words`` says some in a better way."""

    hidden: Collection[str] = ()
    empty: Sequence[object] = (None, "", [], {})
    words: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)

    def __call__(self, document: Document, console: Console) -> None:
        for name, value in document.items():
            if name not in self.hidden and value not in self.empty:
                say(console, f"{name}: {self.words[name](value) if name in self.words else value}")


def with_history(show: Show) -> Show:
    """What ``show`` shows, and then the ``history``, a line each."""

    def both(document: Document, console: Console) -> None:
        show(document, console)
        for event in document["history"]:
            words = " ".join(f"{name}={value}" for name, value in event["data"].items())
            say(console, f"{event['at']}  {event['action']}  by {event['actor']}  {words}")

    return both


def say(console: Console, line: str) -> None:
    """A line that is not broken, however long it is."""
    console.print(line, soft_wrap=True)


def show_report(document: Document, console: Console) -> None:
    """What a run did: of lists how many, then each item that failed, with its words."""
    for name, value in document.items():
        if name != "failures" and value != "":
            say(console, f"{name}: {len(value) if isinstance(value, list) else value}")
    for failure in document["failures"]:
        say(console, f"failed: {failure['item']}: {failure['error']}")


def show_rows(rows: Iterable[Document], columns: Columns, console: Console) -> None:
    """The first column is never cut: it is what the next command needs."""
    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(columns):
        table.add_column(heading, overflow="fold", no_wrap=number == 0)
    for row in rows:
        cells = [row[cell] if isinstance(cell, str) else cell(row) for cell in columns.values()]
        table.add_row(*("" if cell is None else str(cell) for cell in cells))
    console.print(table)


@dataclass(frozen=True, slots=True)
class Listing:
    """How a list of at most ``--limit`` is shown; ``name`` is its name in the document."""

    name: str
    columns: Columns

    def __call__(self, document: Document, console: Console) -> None:
        if not document[self.name]:
            console.print("None.")
            return
        show_rows(document[self.name], self.columns, console)
        if document["has_more"]:
            console.print("There are more: --limit 0 lists all.")


def moment(fact: str, *, otherwise: str = "") -> Callable[[Document], str]:
    """The cell of a moment; ``otherwise`` where there is none."""
    return lambda row: f"{datetime.fromisoformat(row[fact]):%Y-%m-%d %H:%M:%SZ}" if row[fact] else otherwise


def named(*facts: str) -> dict[str, str]:
    """Columns that are called as the facts are."""
    return {fact.replace("_", " "): fact for fact in facts}
