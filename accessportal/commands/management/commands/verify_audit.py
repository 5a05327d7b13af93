from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import Progress

from accessportal.audit.states import ChainBreak
from accessportal.commands.audit_heads import breaks_of, breaks_of_gone, breaks_of_rules, every_head, gone_entities
from accessportal.commands.base import Document, Outcome, PortalCommand, plain
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.pages import Unreadable


class Command(PortalCommand):
    help = (
        "Walk the audit chain of every request, assignment, rule, person, group and sandbox, those that are gone too, and report each "
        "break. Reads the whole audit log. Exit code 1 when there is a break."
    )
    example = "verify_audit --json"

    def run(self, options: Mapping[str, Any]) -> Outcome:
        breaks: list[ChainBreak] = []
        began, known, gone = SystemClock().now(), set[str](), 0

        def pass_over(one: Unreadable) -> None:
            breaks.append(ChainBreak(one.key, 0, str(one)))

        with Progress(console=self.progress_console(), disable=not self.is_watched) as progress:
            bar = progress.add_task("Chains", total=None)
            for head in every_head(pass_over):
                known.add(head.entity)
                breaks += breaks_of(head)
                progress.advance(bar)
            for entity in gone_entities(known):
                gone += 1
                breaks += breaks_of_gone(entity, began=began)
                progress.advance(bar)
        breaks += breaks_of_rules()
        document = {"chains": len(known) + gone, "gone": gone, "breaks": [plain(one) for one in breaks]}
        return Outcome(document, ok=not breaks, problem=f"{len(breaks)} breaks in the audit log.")

    def show(self, document: Document, console: Console) -> None:
        for one in document["breaks"]:
            console.print(f"{one['entity']}, event {one['sequence']}: {one['problem']}", soft_wrap=True)
        console.print(
            f"{document['chains']} chains walked, {document['gone']} of them of things that are gone; {len(document['breaks'])} breaks."
        )
