from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.access_requests import operations
from accessportal.commands.base import Document, Outcome, PortalCommand, read_duration
from accessportal.commands.requests import add_target_arguments, request_document, show_request, target_of
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.ids import new_submission_id


class Command(PortalCommand):
    help = "Ask for a permission set in an AWS account, for membership in a group, or for a sandbox. Prints the request, its id first."
    example = (
        "request_access --as alice@example.com --account payments-dev --permission-set PowerUserAccess "
        '--duration 30m --reason "Look into the failed payout"'
    )
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_target_arguments(parser)
        parser.add_argument("--duration", metavar="D", help="like 30m, 8h, 2h30m or PT8H (default: the rule's duration.default)")
        parser.add_argument("--reason", required=True, metavar="TEXT", help="why; the approvers and the audit log see it")
        parser.add_argument("--ticket", default="", metavar="T", help="the ticket, where the rule asks for one")
        parser.add_argument("--submission-id", default="", metavar="TOKEN", help="sent again with the same token: the same request")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        duration = None if options["duration"] is None else read_duration(options["duration"])
        request = operations.submit(
            kind=options["kind"],
            subject_id=None,
            target=target_of(options),
            duration_seconds=duration,
            reason=options["reason"],
            ticket_id=options["ticket"],
            submission_id=options["submission_id"] or new_submission_id(),
            actor=self.actor(options),
            now=SystemClock().now(),
        )
        return Outcome(request_document(request))

    def show(self, document: Document, console: Console) -> None:
        show_request(document, console)
