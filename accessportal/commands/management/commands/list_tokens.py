from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.clients import queries
from accessportal.commands.base import Document, Outcome, PortalCommand, add_limit, first, limit_of
from accessportal.commands.tokens import show_tokens, token_document
from accessportal.kernel.clock import SystemClock


class Command(PortalCommand):
    help = "List the API tokens that are not revoked, newest first, with when each was last used. For operators and auditors."
    example = "list_tokens --as olga@example.com"
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--all", action="store_true", dest="with_revoked", help="those that were revoked, too")
        parser.add_argument("--by", metavar="EMAIL", help="every one that this person made, those that were revoked, too")
        add_limit(parser)

    def run(self, options: Mapping[str, Any]) -> Outcome:
        queries.may_see(actor=self.actor(options)).require()
        fetch = queries.list_tokens if options["with_revoked"] else queries.list_unrevoked
        if options["by"]:
            fetch = partial(queries.list_of_maker, email=options["by"])
        tokens, has_more = first(limit_of(options), lambda cursor: fetch(cursor=cursor))
        documents = map(partial(token_document, now=SystemClock().now()), tokens)
        return Outcome({"tokens": list(documents), "has_more": has_more})

    def show(self, document: Document, console: Console) -> None:
        if not document["tokens"]:
            console.print("None.")
            return
        show_tokens(document["tokens"], console)
        if document["has_more"]:
            console.print("There are more: --limit 0 lists all.")
