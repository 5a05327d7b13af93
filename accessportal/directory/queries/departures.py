"""Who may have lost something."""

from __future__ import annotations

from collections.abc import Iterator

from accessportal.directory.states import Departure, UnreadableDeparture
from accessportal.directory.store import departures as store


def list_departures() -> Iterator[Departure | UnreadableDeparture]:
    """The people and groups that may have lost something and that were not looked at since, to their end. It may lag a moment.

    :raises Unavailable: when the store did not answer.
    """
    return store.every_departure()
