from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.commands.base import Document, Outcome, PortalCommand, add_limit, first, limit_of
from accessportal.commands.directory import group_document, group_named, show_table
from accessportal.directory import queries
from accessportal.directory.states import ROOT


class Command(PortalCommand):
    help = "List the groups below another one, at any depth, in order of their paths."
    example = "list_groups --under /engineering --as alice@example.com"
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--under", default=ROOT, metavar="ID", help="the group above (default: /, which lists all)")
        add_limit(parser)

    def run(self, options: Mapping[str, Any]) -> Outcome:
        self.actor(options)
        if options["under"] != ROOT:
            group_named(options["under"])
        groups, has_more = first(limit_of(options), lambda cursor: queries.list_groups(under=options["under"], cursor=cursor))
        return Outcome({"groups": [group_document(group) for group in groups], "has_more": has_more})

    def show(self, document: Document, console: Console) -> None:
        if not document["groups"]:
            console.print("None.")
            return
        show_table(console, document["groups"], "group_id", "name", "state", "parent_id", "member_count", "child_count")
        if document["has_more"]:
            console.print("There are more: --limit 0 lists all.")
