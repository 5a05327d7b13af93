"""Telling that somebody may have lost something, and that it was looked at."""

from __future__ import annotations

from accessportal.directory.states import Departure
from accessportal.directory.store import departures as store
from accessportal.kernel.ports import after_commit


def ask_to_look() -> None:
    """Have what hangs on the directory looked at soon, after a change by which somebody may lose something."""
    after_commit("end_departed")


def settle_departure(*, departure: Departure) -> bool:
    """Everything that hung on it was looked at. False when there was a further change meanwhile: then it stays.

    :raises Unavailable: when the store did not answer.
    """
    return store.finish(departure)
