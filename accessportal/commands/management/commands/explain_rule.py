from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.access_requests import queries
from accessportal.commands.base import Document, Outcome, PortalCommand, plain, read_duration
from accessportal.commands.directory import group_named, show_reach
from accessportal.commands.requests import add_target_arguments, target_of
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.durations import format_duration
from accessportal.rules import queries as rules


class Command(PortalCommand):
    help = "Say what the rules answer to a person asking for something, why, who could approve, and what would change it."
    example = "explain_rule --as alice@example.com --account payments-prod --permission-set ReadOnlyAccess --duration 4h"
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_target_arguments(parser)
        parser.add_argument("--reaching", metavar="PATH", help="say instead which rules the people in this group approve or are served by")
        parser.add_argument("--duration", metavar="D", help="like 30m, 8h, 2h30m or PT8H; without it, it is not judged")
        parser.add_argument("--ticket", metavar="T", help="without it, it is not judged")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        if options["reaching"] is not None:
            self.actor(options)
            group = group_named(options["reaching"])
            reach = rules.reach_of(group_id=group.group_id, groups_above=group.ancestors)
            return Outcome({"group_id": group.group_id, "reach": plain(reach)})
        duration = read_duration(options["duration"]) if options["duration"] is not None else None
        decision, preview = queries.explain(
            kind=options["kind"],
            subject_id=self.actor(options).name,
            target=target_of(options),
            duration_seconds=duration,
            ticket_id=options["ticket"],
            now=SystemClock().now(),
        )
        document = {"allowed": decision.allowed, "outcome": preview.outcome, "code": decision.code} | plain(preview)
        return Outcome(document)

    def show(self, document: Document, console: Console) -> None:
        if "reach" in document:
            show_reach(document, console)
            return
        verdicts = {"at_once": "Allowed at once", "needs_approval": "Allowed after approval", "impossible": "Not possible"}
        console.print(f"{verdicts[document['outcome']]}: {document['reason']}", soft_wrap=True)
        if document["rule_name"]:
            console.print(f"rule: {document['rule_name']}")
        if document["max_duration_seconds"]:
            console.print(f"longest: {format_duration(document['max_duration_seconds'])}")
        if document["approvers"]:
            people = ", ".join(person["email"] for person in document["approvers"]["people"]) or "nobody"
            console.print(f"approvals needed: {document['quorum']}, by {people}", soft_wrap=True)
        for remedy in document["remedies"]:
            console.print(f"would change it: {remedy}", soft_wrap=True)
        for name, reasons in document["misses"]:
            console.print(f"{name} does not decide: {' '.join(reasons)}", soft_wrap=True)
