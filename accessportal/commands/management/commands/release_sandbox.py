from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from accessportal.commands.base import Outcome, PortalCommand, plain, read_whole_number
from accessportal.commands.sandboxes import require_operator
from accessportal.kernel.clock import SystemClock
from accessportal.sandboxes import operations


class Command(PortalCommand):
    help = "Give a sandbox back: for its track, or for whoever has it, with a reason. It is cleaned before anybody gets it. Operators may."
    example = "release_sandbox 3f0c6a52-5d0e-5c8f-9a57-0a7c1f6d2b11 --as olga@example.com --track track-123"
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("sandbox_id", metavar="SANDBOX_ID")
        how = parser.add_mutually_exclusive_group(required=True)
        how.add_argument("--track", metavar="TRACK", help="the track that gives it back")
        how.add_argument("--reason", metavar="TEXT", help="end whoever's allocation it is; kept in the history")
        parser.add_argument("--fence", metavar="N", help="only this hand-over: one that was lent anew since is left alone")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        fence = None if options["fence"] is None else read_whole_number(options["fence"], flag="--fence")
        actor, now = require_operator(self.actor(options)), SystemClock().now()
        sandbox_id, track, reason = options["sandbox_id"], options["track"], options["reason"]
        if track is None:
            released = operations.release_by_operator(sandbox_id=sandbox_id, reason=reason, fence=fence, actor=actor, now=now)
        else:
            released = operations.release(sandbox_id=sandbox_id, track=track, fence=fence, actor=actor, now=now)
        return Outcome(plain(released))
