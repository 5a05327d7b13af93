from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.table import Table

from accessportal.catalog import queries
from accessportal.commands.base import Document, Outcome, PortalCommand, plain
from accessportal.kernel.pages import every


class Command(PortalCommand):
    help = "List the AWS accounts of the catalog, with their place in the tree and their tags."
    example = "list_accounts --search payments"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--search", default="", metavar="TEXT", help="a part of the name, id, place or tags")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        accounts = every(lambda cursor: queries.list_accounts(search=options["search"], cursor=cursor, limit=200))
        freshness = queries.freshness()
        return Outcome({"accounts": [plain(account) for account in accounts], "synced_at": plain(freshness.synced_at)})

    def show(self, document: Document, console: Console) -> None:
        if document["synced_at"] is None:
            console.print("The catalog has never been read. Run: python manage.py sync_catalog")
            return
        table = Table(box=None, pad_edge=False)
        for heading in ("account", "name", "place", "tags", "status"):
            table.add_column(heading, overflow="fold", no_wrap=heading == "account")
        for account in document["accounts"]:
            tags = "unreadable" if account["tags"] is None else ", ".join(f"{key}={value}" for key, value in account["tags"].items())
            table.add_row(account["account_id"], account["name"], account["ou_path"], tags, account["status"])
        console.print(table)
        console.print(f"{len(document['accounts'])} accounts, as read at {document['synced_at']}")
