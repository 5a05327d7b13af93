"""How requests look on a terminal and in JSON, and how flags say what is asked for; the same for every command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.table import Table

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest
from accessportal.commands.base import BadUsage, Document, plain
from accessportal.kernel.durations import format_duration

# The inputs of each kind's target, in the order in which people say them.
TARGETS: Mapping[str, tuple[str, ...]] = {
    "aws_account": ("account", "permission_set"),
    "group": ("group", "role"),
    "sandbox": ("name_prefix",),
}
# Those that may be left out.
_OPTIONAL = frozenset({"name_prefix"})


def add_target_arguments(parser: CommandParser) -> None:
    """``--kind`` and the flags that say what is asked for."""
    parser.add_argument("--kind", default="aws_account", choices=list(TARGETS), help="of access (default: aws_account)")
    parser.add_argument("--account", metavar="ID", help="kind aws_account: the account, by 12-digit id or by name")
    parser.add_argument("--permission-set", metavar="NAME", help="kind aws_account: the permission set")
    parser.add_argument("--group", metavar="PATH", help="kind group: the group, like /engineering/payments")
    parser.add_argument("--name-prefix", metavar="TEXT", help="kind sandbox: how its name begins (default: any)")
    parser.add_argument("--role", metavar="ROLE", help="kind group: reader, contributor or admin")


def target_of(options: Mapping[str, Any]) -> dict[str, str]:
    """What the flags ask for.

    :raises BadUsage: when a flag of the kind is missing, or one of another kind is given.
    """
    kind = options["kind"]
    for other, names in TARGETS.items():
        for name in names:
            if other != kind and options[name] is not None:
                text = f"it belongs to kind {other}; this is kind {kind}. Give --kind {other}, or leave it out."
                raise BadUsage(text, flag=_flag(name), code="flag_of_other_kind")
    for name in TARGETS[kind]:
        if options[name] is None and name not in _OPTIONAL:
            flags = " and ".join(map(_flag, TARGETS[kind]))
            raise BadUsage(f"it is missing: kind {kind} needs {flags}.", flag=_flag(name), code="flag_missing")
    return {name: str(options[name] or "") for name in TARGETS[kind]}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


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
