from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.commands.base import Document, Outcome, PortalCommand, read_file
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.rules import operations
from accessportal.rules.states import RulePlan


class Command(PortalCommand):
    help = "Check a rules file, show what it would change and who gains or loses what, and put it in force."
    example = "load_rules rules.yaml --dry-run"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", metavar="FILE", help="YAML (docs/rules.md)")
        parser.add_argument("--dry-run", action="store_true", help="show the plan and change nothing")
        parser.add_argument(
            "--as",
            dest="as_email",
            metavar="EMAIL",
            help="the operator who loads them, for the history; without it: whoever runs this machine",
        )

    def run(self, options: Mapping[str, Any]) -> Outcome:
        text = read_file(options["file"])
        if options["dry_run"]:
            plan = operations.plan_rules(text=text, now=SystemClock().now())
        else:
            actor = self.actor(options) if options["as_email"] else system("load_rules")
            plan = operations.apply_rules(text=text, actor=actor, now=SystemClock().now())
        return Outcome(_document(plan) | {"applied": not options["dry_run"] and not plan.is_empty})

    def show(self, document: Document, console: Console) -> None:
        for kind in ("added", "changed", "removed"):
            for name in document[kind]:
                console.print(f"{kind}: {name}", soft_wrap=True)
                for change in document["changes"].get(name, []):
                    console.print(f"    {change['field']}: {change['old'] or '(nothing)'} → {change['new'] or '(nothing)'}", soft_wrap=True)
        if document["is_reordered"]:
            console.print("The order of the rules changes, and with it which one decides.")
        for impact in document["impacts"]:
            for verb in ("gains", "loses"):
                for line in impact[verb]:
                    console.print(f"{impact['rule_name']} {verb}: {line}", soft_wrap=True)
        for warning in document["warnings"]:
            console.print(f"warning: {warning}", soft_wrap=True)
        console.print(_ending(document))


def _ending(document: Document) -> str:
    if document["applied"]:
        return "These rules are in force now."
    if document["is_empty"]:
        return "Nothing to change: these rules are in force already."
    return "Nothing was changed (--dry-run)."


def _document(plan: RulePlan) -> dict[str, Any]:
    return {
        "base_version": plan.base_version,
        "added": [rule.name for rule in plan.added],
        "changed": [change.new.name for change in plan.changed],
        "removed": [rule.name for rule in plan.removed],
        "unchanged": list(plan.unchanged),
        "is_reordered": plan.is_reordered,
        "is_empty": plan.is_empty,
        "changes": {
            change.new.name: [{"field": one.field, "old": one.old, "new": one.new} for one in change.fields] for change in plan.changed
        },
        "impacts": [{"rule_name": one.rule_name, "gains": list(one.gains), "loses": list(one.loses)} for one in plan.impacts],
        "warnings": list(plan.warnings),
    }
