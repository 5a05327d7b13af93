from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.clients import operations
from accessportal.commands.base import Document, Outcome, PortalCommand
from accessportal.commands.tokens import show_token, token_document
from accessportal.kernel.clock import SystemClock


class Command(PortalCommand):
    help = "Revoke an API token: from now on it opens nothing. Revoking it again changes nothing. Operators may."
    example = 'revoke_token 3k9x0c2m7q1a --reason "The lab has closed" --as olga@example.com'
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("token_id", metavar="TOKEN_ID", help="the part after apt_, as list_tokens shows it")
        parser.add_argument("--reason", default="", metavar="TEXT", help="kept in the history")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        now = SystemClock().now()
        token = operations.revoke_token(token_id=options["token_id"], reason=options["reason"], actor=self.actor(options), now=now)
        return Outcome(token_document(token, now=now))

    def show(self, document: Document, console: Console) -> None:
        show_token(document, console)
