"""Looking on from outside, past every proxy: what is so at this moment, and whether it is quiet."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from accessportal.access_requests import queries
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import NotFound
from accessportal.web.presenting import phase_of
from benchmarks.chaos_people import Saying
from benchmarks.chaos_truth import all_requests, is_open_work

# A tick comes after 65 s at the latest, what failed is tried again after five minutes at the latest, and a little for the work itself.
_PATIENCE_SECONDS = 420.0
_LOOK_SECONDS = 1.0
_SOON = timedelta(minutes=5)


def word_of(request_id: str) -> str:
    """What a page must say of it at this moment."""
    now = SystemClock().now()
    try:
        return phase_of(queries.get(request_id=request_id, actor=system("chaos"), now=now), now).word
    except NotFound:
        return "nothing of the kind"


def wait_until_quiet() -> bool:
    """Whether nothing is under way any more, and nothing will be soon, within the patience."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        now = SystemClock().now()
        if not any(is_open_work(one, now) or one.is_over(now + _SOON) for one in all_requests()):
            return True
        time.sleep(_LOOK_SECONDS)
    return False


def write_down(path: Path, sayings: Iterable[Saying]) -> None:
    with path.open("w") as file:
        for saying in sayings:
            file.write(json.dumps({**dataclasses.asdict(saying), "told": saying.told.value}) + "\n")
