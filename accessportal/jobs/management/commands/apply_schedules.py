from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accessportal.jobs.schedules import apply_schedules
from accessportal.kernel.clock import SystemClock


class Command(BaseCommand):
    # It lives here because the queue is known to this room alone.
    help = (
        "Write the list of schedules (tick, reconcile_assignments, sync_catalog) into the queue's table. May be repeated. "
        "Example: python manage.py apply_schedules --json"
    )
    requires_system_checks = ("demo",)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for programs")
        parser.add_argument(
            "--remove-unknown",
            action="store_true",
            dest="removes_unknown",
            help="also remove schedules of a newer version, after a rollback that lasts",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        outcome = apply_schedules(now=SystemClock().now(), removes_unknown=options["removes_unknown"])
        if options["as_json"]:
            self.stdout.write(json.dumps({"schedules": outcome}, indent=2))
            return
        for name, change in outcome.items():
            self.stdout.write(f"{name}: {change}")
