from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from accessportal.commands.base import Document, Outcome, PortalCommand
from accessportal.commands.tables import ensure_all_tables
from accessportal.kernel.clock import SystemClock


class Command(PortalCommand):
    help = "Create the DynamoDB tables that are missing, and add new indexes and protections to those that exist. May be repeated."
    example = "create_tables --json"

    def run(self, options: Mapping[str, Any]) -> Outcome:
        reports = ensure_all_tables(clock=SystemClock())
        return Outcome({"tables": [dataclasses.asdict(report) for report in reports]})

    def show(self, document: Document, console: Console) -> None:
        for table in document["tables"]:
            done = ["created" if table["created"] else "exists"]
            done += [f"index {name} added" for name in table["added_indexes"]]
            if table["unsupported"]:
                done.append(f"this engine has no {', no '.join(table['unsupported'])}")
            console.print(f"{table['table']}: {'; '.join(done)}", soft_wrap=True)
