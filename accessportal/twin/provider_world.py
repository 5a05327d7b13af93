"""The demo's sandboxes: made at the twin's own provider, with plain HTTP calls."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable

# A request is judged by the shortest of them: none is shorter than the longest of the demo's rules.
_SORTS = (("lab-python", 8.0), ("lab-data", 8.0), ("lab-web", 8.0), ("lab-gpu", 12.0))
_CALL_SECONDS = 30


def seed_sandboxes(*, provider_url: str, count: int, progress: Callable[[str, int, int], None]) -> None:
    """Give the provider (at least) so many sandboxes of four sorts; those that exist stay. :raises OSError: when it does not answer."""
    for number in range(count):
        sort, hours = _SORTS[number % len(_SORTS)]
        row = {"id": f"demo-{number:05}", "name": f"{sort}-{number:03}", "lab_duration_hours": hours}
        request = urllib.request.Request(f"{provider_url}/sandboxes", data=json.dumps(row).encode(), method="POST")  # noqa: S310
        with urllib.request.urlopen(request, timeout=_CALL_SECONDS):  # noqa: S310
            progress("sandboxes", number + 1, count)
