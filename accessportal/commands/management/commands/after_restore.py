from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.audit.operations import begin_restore, require_restore_right
from accessportal.commands import restoring
from accessportal.commands.base import BadUsage, Document, Outcome, PortalCommand, plain
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock, to_epoch
from accessportal.store.restores import Restore


class Command(PortalCommand):
    help = (
        "Tell the portal that its tables were restored to an earlier moment. From then on nothing is granted until somebody confirms; "
        "fences and published sequences go on above all former ones; sessions end, API tokens are revoked, who is disabled in Cognito is "
        "disabled, free sandboxes are put aside. Names what must be looked at. May be run again at any time: it goes on where it stopped."
    )
    example = "after_restore --restored-to 2026-03-02T08:15:00Z --as olga@example.com"
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--restored-to", metavar="T", help="the moment that the tables were restored to, like 2026-03-02T08:15:00Z")
        what.add_argument(
            "--confirm",
            action="store_true",
            help="all was looked at: end what may have ended since then, clean what was put aside, and grant again",
        )
        parser.add_argument("--dry-run", action="store_true", help="show what must be looked at, and change nothing")
        parser.add_argument(
            "--keep-token",
            action="append",
            default=[],
            dest="keep_tokens",
            metavar="TOKEN_ID",
            help="a token that surely was not revoked since then; may be repeated (default: every token is revoked)",
        )

    def run(self, options: Mapping[str, Any]) -> Outcome:
        actor, clock = self.actor(options), SystemClock()
        if options["confirm"]:
            if options["dry_run"]:
                raise BadUsage(
                    "Confirming has nothing to show first: use --restored-to T --dry-run.", flag="--dry-run", code="flags_differ"
                )
            restore, counts = restoring.confirm(actor=actor, clock=clock)
            return Outcome({"restore": plain(restore), "steps": plain(counts), "findings": [], "unread": []})
        return self._restored(_moment(options["restored_to"]), options, actor, clock)

    def _restored(self, restored_to: datetime, options: Mapping[str, Any], actor: Actor, clock: SystemClock) -> Outcome:
        steps: dict[str, str] = {}
        if options["dry_run"]:
            require_restore_right(actor)
            restore = Restore(to_epoch(clock.now()), restored_to, actor.name)
        else:
            restore = begin_restore(restored_to=restored_to, actor=actor, now=clock.now())
        look = restoring.Look(restore, clock)
        look.before_the_steps()
        if not options["dry_run"]:
            restore, steps = restoring.run_steps(restoring.Context(restore, frozenset(options["keep_tokens"]), actor, clock))
        look.after_the_steps()
        document = {"restore": plain(restore), "steps": steps, "findings": plain(look.findings), "unread": look.unread}
        failed = [f"{name}: {told}" for name, told in steps.items() if told.startswith("failed")]
        problem = "; ".join([*failed, *look.unread])
        return Outcome(document, ok=not problem, problem=problem and f"{problem} Run it again when that is mended.")

    def show(self, document: Document, console: Console) -> None:
        for name, told in document["steps"].items():
            console.print(f"{name}: {told}", soft_wrap=True)
        for one in document["findings"]:
            console.print(f"{one['kind']}: {one['what']} {one['words']}.", soft_wrap=True)
        console.print(_state(document["restore"]), soft_wrap=True)


def _state(restore: Document) -> str:
    if restore["confirmed_at"]:
        return f"Confirmed by {restore['confirmed_by']}: grants go on."
    if not restore["version"]:
        return "Nothing was changed (--dry-run)."
    return "Grants are held. Look at the above, then: after_restore --confirm --as YOU"


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        shown = text if len(text) <= 40 else text[:40] + "…"
        raise BadUsage(
            f"“{shown}” is no moment with its zone: give one like 2026-03-02T08:15:00Z.", flag="--restored-to", code="moment_unreadable"
        )
    return moment.astimezone(UTC)
