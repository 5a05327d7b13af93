from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.commands.base import Document, Outcome
from accessportal.commands.mirror import OperatorCommand
from accessportal.directory import operations

_SETTING = "PORTAL_USER_POOL_ID"


class Command(OperatorCommand):
    help = (
        "Find or create the Cognito user pool that follows the directory, and say how to set it. May be repeated: a pool of that name is "
        "found again."
    )
    example = "create_user_pool --name accessportal"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--name", default=operations.POOL_NAME, help=f"the pool's name (default: {operations.POOL_NAME})")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        pool = operations.ensure_user_pool(name=options["name"], actor=self.actor(options))
        return Outcome(
            {
                "user_pool_id": pool.pool_id,
                "name": options["name"],
                "created": pool.is_new,
                "setting": f"{_SETTING}={pool.pool_id}",
                "is_set": pool.is_set,
            }
        )

    def show(self, document: Document, console: Console) -> None:
        done = "created" if document["created"] else "exists"
        console.print(f"The user pool {document['name']} {done}: {document['user_pool_id']}", soft_wrap=True)
        if not document["is_set"]:
            console.print(
                f"Set {document['setting']} for every process. Then python manage.py mirror_directory puts in who is there already. "
                "If people sign in with the pool itself, set PORTAL_USER_POOL_INVITES=true before: Cognito then sends each a password.",
                soft_wrap=True,
            )
