from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.commands.base import Document, Outcome, PortalCommand, add_limit, first, limit_of
from accessportal.commands.directory import person_document, show_table
from accessportal.directory import queries
from accessportal.directory.states import GroupVerb
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import NotAllowed


class Command(PortalCommand):
    help = "List people in order of their addresses. For operators, auditors, and whoever has a role on the root."
    example = "list_users --prefix ali --as olga@example.com"
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--prefix", default="", metavar="TEXT", help="only those whose address starts so")
        add_limit(parser)

    def run(self, options: Mapping[str, Any]) -> Outcome:
        # Whoever may see the members of the root may see those of every group, so everybody.
        decision = queries.may(verb=GroupVerb.SEE_MEMBERS, group=None, actor=self.actor(options), now=SystemClock().now())
        if not decision.allowed:
            raise NotAllowed("Only people with a role on the group /, operators and auditors see everybody.", code=decision.code)
        people, has_more = first(limit_of(options), lambda cursor: queries.list_people(prefix=options["prefix"], cursor=cursor))
        return Outcome({"people": [person_document(person) for person in people], "has_more": has_more})

    def show(self, document: Document, console: Console) -> None:
        if not document["people"]:
            console.print("None.")
            return
        show_table(console, document["people"], "email", "name", "state", "created_at")
        if document["has_more"]:
            console.print("There are more: --limit 0 lists all.")
