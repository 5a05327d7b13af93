from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accessportal.catalog import operations
from accessportal.commands.base import Outcome, PortalCommand, plain
from accessportal.kernel.clock import SystemClock


class Command(PortalCommand):
    help = "Read accounts, permission sets and principals from AWS anew. Half a reading never replaces a whole one."
    example = "sync_catalog"

    def run(self, options: Mapping[str, Any]) -> Outcome:
        clock = SystemClock()
        return Outcome(plain(operations.sync_catalog(now=clock.now(), clock=clock)))
