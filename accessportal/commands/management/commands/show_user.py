from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.commands.base import Document, Outcome, PortalCommand, plain
from accessportal.commands.directory import claim_words, holding_document, person_document, show_facts
from accessportal.directory import queries
from accessportal.kernel.clock import SystemClock


class Command(PortalCommand):
    help = "Show a person: the groups they are directly in, why and until when, and the roles that these give them elsewhere."
    example = "show_user alice@example.com --as alice@example.com"
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("email", metavar="EMAIL")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        actor, now = self.actor(options), SystemClock().now()
        why = queries.explain_person(email=options["email"], actor=actor, now=now)
        document = person_document(why.person) | {
            "memberships": [holding_document(holding) for holding in why.direct],
            "inherited": plain(why.inherited),
            "groups": plain(why.groups),
            "is_whole": why.is_whole,
            "mirror": plain(queries.mirror_state_of(entity=why.person.entity)),
        }
        return Outcome(document)

    def show(self, document: Document, console: Console) -> None:
        show_facts(document, console, "email", "name", "state", "created_at")
        if document["mirror"]:
            console.print("Cognito has not followed the latest change yet.")
        for membership in document["memberships"]:
            gives = membership["role"] or f"nothing now. {membership['reason']}"
            console.print(f"in {membership['group_id']}: {gives}", soft_wrap=True)
            for claim in membership["claims"]:
                console.print(f"    {claim_words(claim)}", soft_wrap=True)
        for role in document["inherited"]:
            console.print(f"on {role['group_id']}: {role['role']}, from {role['source_id']}", soft_wrap=True)
        if not document["memberships"]:
            console.print("in no group")
        if not document["is_whole"]:
            console.print("other groups are not shown: you are not their admin")
