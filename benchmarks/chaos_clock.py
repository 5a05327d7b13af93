"""A worker host whose clock is two hours ahead. What measures time that passes goes right, as where somebody set a clock wrong:

python -m benchmarks.chaos_clock
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import time_machine
from django.core.management import execute_from_command_line

AHEAD = timedelta(hours=2)

if __name__ == "__main__":
    # The processes of the worker are forks of this one, and inherit it.
    time_machine.travel(datetime.now(UTC) + AHEAD, tick=True).start()
    execute_from_command_line([sys.argv[0], "run_worker"])
