"""How many examples a random run tries: few in every run, many at night (``make nightly``)."""

from __future__ import annotations

import os

_DEPTH = int(os.environ.get("PORTAL_TESTS_DEPTH", "1"))


IS_DEEP = _DEPTH > 1


def examples(few: int) -> int:
    """``few`` in every run; ``PORTAL_TESTS_DEPTH`` times as many in a deep one."""
    return few * _DEPTH
