"""What the commands about Cognito share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from accessportal.commands.base import PortalCommand
from accessportal.kernel.actors import Actor, system


class OperatorCommand(PortalCommand):
    """Done by the operator that ``--as`` names; without it by the portal itself, as its jobs do: before there are any people too."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--as", dest="as_email", metavar="EMAIL", help="the operator who does this (default: the portal itself)")

    def actor(self, options: Mapping[str, Any]) -> Actor:
        return super().actor(options) if options["as_email"] else system("mirror")
