"""Every table of every room, known by the time it is asked for."""

from __future__ import annotations

# A room's item classes register themselves when its queries are imported; without these a table would be forgotten.
from accessportal.kernel.clock import Clock
from accessportal.store.base import registered_models
from accessportal.store.tables import TableReport, ensure_table


def ensure_all_tables(*, clock: Clock) -> tuple[TableReport, ...]:
    """Make every registered table, with its indexes and protections, and wait until it is ready. Conflict when a table of that name belongs
    to something else."""
    return tuple(ensure_table(model, clock=clock) for model in registered_models())
