"""How API tokens look on a terminal and in JSON; the same for every command that shows one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from accessportal.clients.states import ApiToken
from accessportal.commands.base import Document, plain


def token_document(token: ApiToken, *, now: datetime) -> dict[str, Any]:
    """The token whole, with its state; its secret is no part of the record."""
    document: dict[str, Any] = plain(token)
    return document | {"state": token.state(now).value}


def show_token(document: Document, console: Console) -> None:
    """One line for each fact that says something."""
    for name, value in document.items():
        if value not in (None, "", []) and name != "audit_head":
            console.print(f"{name}: {value}", soft_wrap=True)


def show_tokens(documents: Iterable[Document], console: Console) -> None:
    """A table; the id is never cut, because it is what the next command needs."""
    table = Table(box=None, pad_edge=False)
    for heading in ("token", "name", "scope", "state", "per minute", "tracks", "created by", "last used", "until"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "token")
    for one in documents:
        cells = (one["token_id"], one["name"], one["scope"], one["state"], str(one["rate_per_minute"]))
        tracks = " ".join(one["tracks"]) or "any"
        table.add_row(
            *cells, tracks, one["created_by"], _shown(one["last_used_at"], otherwise="never"), _shown(one["expires_at"], otherwise="no end")
        )
    console.print(table)


def _shown(moment: str | None, *, otherwise: str) -> str:
    return otherwise if moment is None else datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M:%SZ")
