"""Making the event that goes into the transaction of a change, publishing what was written, and what is told of a restore."""

from accessportal.audit.config import AuditKeys, configure, new_key, read_keys, read_pseudonyms
from accessportal.audit.operations.erasing import begin_erasure, end_erasure, pseudonyms, require_erasing_right, take_out
from accessportal.audit.operations.publishing import publish_outbox, topic_sender
from accessportal.audit.operations.restoring import begin_restore, confirm_restore, note_step, require_restore_right
from accessportal.audit.operations.retaining import order_removal, remove_chain, require_removing_right
from accessportal.audit.operations.writing import Prepared, change, insert, prepare_event, remove, told

__all__ = [
    "AuditKeys",
    "Prepared",
    "begin_erasure",
    "begin_restore",
    "change",
    "configure",
    "confirm_restore",
    "end_erasure",
    "insert",
    "new_key",
    "note_step",
    "order_removal",
    "prepare_event",
    "pseudonyms",
    "publish_outbox",
    "read_keys",
    "read_pseudonyms",
    "remove",
    "remove_chain",
    "require_erasing_right",
    "require_removing_right",
    "require_restore_right",
    "take_out",
    "told",
    "topic_sender",
]
