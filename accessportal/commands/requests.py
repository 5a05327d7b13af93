"""How requests look on a terminal and in JSON; the same for every command that shows one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest
from accessportal.commands.base import Document, plain
from accessportal.kernel.durations import format_duration
from accessportal.kernel.pages import Page, every

T = TypeVar("T")


def request_document(request: AccessRequest) -> dict[str, Any]:
    """The request whole, ``request_id`` first, with its title in words."""
    document: dict[str, Any] = plain(request)
    return document | {"title": queries.describe(request=request).title}


def show_request(document: Document, console: Console) -> None:
    """One line for each fact that says something; ``request_id`` is the first."""
    for name, value in document.items():
        if value in (None, "", [], {}):
            continue
        shown = format_duration(value) if name == "duration_seconds" else value
        console.print(f"{name}: {shown}", soft_wrap=True)


def show_requests(documents: Iterable[Document], console: Console) -> None:
    """A table; the id is never cut, because it is what the next command needs."""
    table = Table(box=None, pad_edge=False)
    for heading in ("request", "status", "work", "subject", "what", "until", "problem"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "request")
    for one in documents:
        until = datetime.fromisoformat(one["expires_at"]).strftime("%Y-%m-%d %H:%M:%SZ")
        cells = (one["request_id"], one["status"], one["work"] or "", one["subject_id"], one["title"], until, one["work_error"])
        table.add_row(*cells)
    console.print(table)


def first(limit: int, fetch: Callable[[str | None], Page[T]]) -> tuple[list[T], bool]:
    """At most ``limit`` items of a paged list (0: all of them), and whether there are more."""
    if limit == 0:
        return list(every(fetch)), False
    found = list(islice(every(fetch), limit + 1))
    return found[:limit], len(found) > limit
