"""Tasks for a real worker: they leave a file, and some stay until they are killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from accessportal.jobs.keeper import Place, Slot, Stopping, keep


def touch(path: str) -> None:
    Path(path).touch()


def stay(path: str) -> None:
    """The first time until it is killed; the second time at once."""
    told = Path(path)
    is_second = told.exists()
    with told.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if not is_second:
        signal.pause()


def stay_for_ever(path: str) -> None:
    Path(path).touch()
    while True:
        signal.pause()


def _hang(slot: Slot, _stopping: Stopping) -> None:
    slot.show(for_seconds=0.2)
    signal.pause()


if __name__ == "__main__":
    # A keeper with one process that says it will show itself again at once, and does not.
    keep([Place("hangs", _hang)], Stopping(signal.SIGTERM))
