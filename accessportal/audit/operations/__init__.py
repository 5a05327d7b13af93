"""Making the event that goes into the transaction of a change, and publishing what was written."""

from __future__ import annotations

from accessportal.audit.operations.preparing import Prepared, prepare_event
from accessportal.audit.operations.publishing import publish_outbox

__all__ = ["Prepared", "prepare_event", "publish_outbox"]
