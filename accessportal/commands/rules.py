"""Rules from a terminal."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from rich.console import Console

from accessportal.commands.base import command, facts
from accessportal.commands.flags import Flag, read_file
from accessportal.commands.terminal import Document, say
from accessportal.kernel.actors import Actor, system
from accessportal.rules import operations
from accessportal.rules.states import RulePlan

_MACHINE = system("load_rules")


def _show(document: Document, console: Console) -> None:
    for kind in ("added", "changed", "removed"):
        for name in document[kind]:
            say(console, f"{kind}: {name}")
            for change in document["changes"].get(name, []):
                say(console, f"    {change['field']}: {change['old'] or '(nothing)'} → {change['new'] or '(nothing)'}")
    if document["is_reordered"]:
        console.print("The order of the rules changes, and with it which one decides.")
    for impact in document["impacts"]:
        for verb in ("gains", "loses"):
            for line in impact[verb]:
                say(console, f"{impact['rule_name']} {verb}: {line}")
    for warning in document["warnings"]:
        say(console, f"warning: {warning}")
    if document["applied"]:
        console.print("These rules are in force now.")
    elif document["is_empty"]:
        console.print("Nothing to change: these rules are in force already.")
    else:
        console.print("Nothing was changed (--dry-run).")


@command("rules.yaml --dry-run", show=_show)
def load_rules(
    file: Annotated[bytes, Flag("YAML (docs/rules.md)", "FILE", read_file)],
    *,
    dry_run: Annotated[bool, Flag("show the plan and change nothing")] = False,
    actor: Annotated[Actor, Flag("the operator who loads them, for the history; without it: whoever runs this machine")] = _MACHINE,
    now: datetime,
) -> Document:
    """Check a rules file, show what it would change and who gains or loses what, and put it in force."""
    plan = operations.plan_rules(text=file, now=now) if dry_run else operations.apply_rules(text=file, actor=actor, now=now)
    return _document(plan) | {"applied": not dry_run and not plan.is_empty}


def _document(plan: RulePlan) -> dict[str, object]:
    return facts(plan, "base_version", "unchanged", "is_reordered", "is_empty", "warnings") | {
        "added": [rule.name for rule in plan.added],
        "changed": [change.new.name for change in plan.changed],
        "removed": [rule.name for rule in plan.removed],
        "changes": {change.new.name: [facts(one, "field", "old", "new") for one in change.fields] for change in plan.changed},
        "impacts": [facts(one, "rule_name", "gains", "loses") for one in plan.impacts],
    }
