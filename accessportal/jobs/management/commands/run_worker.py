from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import BaseCommand

from accessportal.jobs.keeper import Stopping, keep
from accessportal.jobs.worker import places


class Command(BaseCommand):
    # It lives here because the queue is known to this room alone.
    help = (
        "Run the jobs: the processes of every line, and the schedules. One that dies or hangs is replaced. "
        "Stops on SIGTERM or ctrl-C, within 15 s. May run on several machines. Example: python manage.py run_worker"
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        keep(places(), Stopping(signal.SIGTERM, signal.SIGINT))
