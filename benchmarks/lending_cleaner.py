"""A process that cleans and expires for :mod:`benchmarks.lending`, and is killed there at any moment.

    python -m benchmarks.lending_cleaner FOLDER NUMBER

It rests until clients have found the pool empty (``FOLDER/hungry``), then cleans until nothing is due: so the pool runs dry, is
fought for, and is full again, over and over. What it cleaned, and when it knew, goes into ``FOLDER/cleaned-NUMBER.jsonl``.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

_BATCH = 10
_LOOK_SECONDS = 0.2
_IDLE_SECONDS = 60.0


def main(folder: Path, number: str) -> None:
    import django

    django.setup()
    from accessportal.kernel.clock import SystemClock
    from accessportal.kernel.errors import PortalError
    from accessportal.sandboxes import operations
    from accessportal.upstream.client import provider

    clock, idle_since = SystemClock(), time.monotonic()
    with (folder / f"cleaned-{number}.jsonl").open("a") as file:
        while True:
            if not (folder / "hungry").exists() and time.monotonic() - idle_since < _IDLE_SECONDS:
                time.sleep(_LOOK_SECONDS)
                continue
            (folder / "hungry").unlink(missing_ok=True)
            try:
                operations.expire(clock=clock)
                while (report := operations.clean(provider=provider(), clock=clock, limit=_BATCH, pace_seconds=0, workers=2)).cleaned:
                    at = time.time()
                    file.writelines(json.dumps({"sandbox_id": one, "at": at}) + "\n" for one in report.cleaned)
                    file.flush()
            except PortalError as error:
                print(f"{error.code}: {error.message}", file=sys.stderr, flush=True)
            idle_since = time.monotonic()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
