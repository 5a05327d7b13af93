from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.clients import operations
from accessportal.clients.states import DEFAULT_DAYS, DEFAULT_RATE, Scope
from accessportal.commands.base import BadUsage, Document, Outcome, PortalCommand, read_whole_number
from accessportal.commands.tokens import show_token, token_document
from accessportal.kernel.clock import SystemClock

_MOST_DAYS = 3650


class Command(PortalCommand):
    help = "Create an API token for a program and print it, this once: it can't be shown again. Operators may."
    example = 'create_token "Lab runner" --scope track --days 90 --as olga@example.com'
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", metavar="NAME", help="what the program is called, so that people know what they revoke")
        parser.add_argument(
            "--scope",
            required=True,
            type=str.lower,
            choices=[scope.value for scope in Scope],
            help="track: lend sandboxes and give them back; admin: that, and the care of the whole pool",
        )
        parser.add_argument("--rate", default=str(DEFAULT_RATE), metavar="N", help=f"requests a minute at most (default: {DEFAULT_RATE})")
        end = parser.add_mutually_exclusive_group()
        end.add_argument("--days", default=str(DEFAULT_DAYS), metavar="N", help=f"count for so many days (default: {DEFAULT_DAYS})")
        end.add_argument("--no-end", action="store_true", help="count until it is revoked, or until you are no operator any more")
        parser.add_argument(
            "--track",
            action="append",
            default=[],
            dest="tracks",
            metavar="TRACK",
            help="act for this track alone; may be repeated; lab-* for all that begin with lab- (default: any)",
        )
        parser.add_argument("--most-held", metavar="N", help="hold so many sandboxes at a time, at most (default: any number)")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        actor, now = self.actor(options), SystemClock().now()
        days = None if options["no_end"] else _days(options["days"])
        most_held = options["most_held"]
        made = operations.create_token(
            name=options["name"],
            scope=Scope(options["scope"]),
            rate_per_minute=read_whole_number(options["rate"], flag="--rate"),
            expires_at=None if days is None else now + timedelta(days=days),
            tracks=options["tracks"],
            most_held=None if most_held is None else read_whole_number(most_held, flag="--most-held"),
            actor=actor,
            now=now,
        )
        return Outcome({"token": made.text, **token_document(made.token, now=now)})

    def show(self, document: Document, console: Console) -> None:
        show_token(document, console)
        console.print("Keep the token now: it is not shown again.")


def _days(text: str) -> int:
    days = read_whole_number(text, flag="--days")
    if not 1 <= days <= _MOST_DAYS:
        raise BadUsage(f"Give 1 to {_MOST_DAYS} days, or --no-end for a token without an end.", flag="--days", code="days_out_of_range")
    return days
