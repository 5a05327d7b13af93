"""Every table of every room, known by the time it is asked for."""

from __future__ import annotations

# A room's item classes register themselves when its queries are imported; without these a table would be forgotten.
import accessportal.access_requests.queries
import accessportal.assignments.queries
import accessportal.audit.queries
import accessportal.clients.queries
import accessportal.directory.queries
import accessportal.rules.queries
import accessportal.sandboxes.queries  # noqa: F401
from accessportal.kernel.clock import Clock
from accessportal.store.base import registered_models
from accessportal.store.tables import TableReport, ensure_table


def ensure_all_tables(*, clock: Clock) -> tuple[TableReport, ...]:
    """Make every registered table, with its indexes and protections, and wait until it is ready. Conflict when a table of that name belongs
    to something else."""
    return tuple(ensure_table(model, clock=clock) for model in registered_models())
