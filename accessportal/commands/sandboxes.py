"""How sandboxes look on a terminal and in JSON; the same for every command that shows one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from accessportal.commands.base import Document, plain
from accessportal.kernel.actors import Actor
from accessportal.sandboxes import queries
from accessportal.sandboxes.states import Sandbox

_HIDDEN = frozenset({"audit_head", "lent_at", "due", "held_by", "held_until"})


def require_operator(actor: Actor) -> Actor:
    """:raises NotAllowed: when ``actor`` may not lend and take back for tracks by hand."""
    queries.may_operate(actor=actor).require()
    return actor


def sandbox_document(sandbox: Sandbox) -> dict[str, Any]:
    """The sandbox whole, ``sandbox_id`` first."""
    document: dict[str, Any] = plain(sandbox)
    return document


def show_sandbox(document: Document, console: Console) -> None:
    """One line for each fact that says something; ``sandbox_id`` is the first."""
    for name, value in document.items():
        if value not in (None, "", 0, [], {}) and name not in _HIDDEN:
            console.print(f"{name}: {value}", soft_wrap=True)


def show_sandboxes(documents: Iterable[Document], console: Console) -> None:
    """A table; the id is never cut, because it is what the next command needs."""
    table = Table(box=None, pad_edge=False)
    for heading in ("sandbox", "name", "status", "track", "fence", "until", "problem"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "sandbox")
    for one in documents:
        problem = one["quarantine_reason"] or one["clean_error"]
        cells = (one["sandbox_id"], one["name"], one["status"], one["track"], str(one["fence"]), _until(one["expires_at"]), problem)
        table.add_row(*cells)
    console.print(table)


def show_counts(document: Document, console: Console) -> None:
    """Of lists how many, then each failure with its words."""
    for name, value in document.items():
        if name != "failures":
            console.print(f"{name}: {len(value) if isinstance(value, list) else value}", soft_wrap=True)
    for failure in document.get("failures", ()):
        console.print(f"failed: {failure['sandbox_id']}: {failure['error']}", soft_wrap=True)


def _until(moment: str | None) -> str:
    return "" if moment is None else datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M:%SZ")
