"""The Assignments item (design, data model) and its key, and how far a comparison with IAM Identity Center is."""

from __future__ import annotations

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute, UnicodeSetAttribute

from accessportal.store.base import PortalModel, global_index, register
from accessportal.store.keys import join_key


@register
class AssignmentItem(PortalModel):
    """One real assignment. Times are epoch seconds with milliseconds."""

    base_table_name = "Assignments"

    assignment_id = UnicodeAttribute(hash_key=True)
    principal_type = UnicodeAttribute()
    principal_id = UnicodeAttribute()
    account_id = UnicodeAttribute()
    permission_set_arn = UnicodeAttribute()
    claims = UnicodeSetAttribute(null=True)
    state = UnicodeAttribute()
    job_id = UnicodeAttribute(null=True)
    called_at = NumberAttribute(null=True)
    fence = NumberAttribute()
    changed_at = NumberAttribute()
    proved_at = NumberAttribute(null=True)
    busy_until = NumberAttribute(null=True)
    version = NumberAttribute()
    audit_head = UnicodeAttribute()

    state_index = global_index("StateIndex", state=UnicodeAttribute(hash_key=True), changed_at=NumberAttribute(range_key=True))
    """Assignments by state, longest unchanged first."""


def assignment_id_for(*, principal_type: str, principal_id: str, account_id: str, permission_set_arn: str) -> str:
    """The one place where the key is built."""
    return join_key(principal_type, principal_id, account_id, permission_set_arn)


@register
class ComparisonItem(PortalModel):
    """Under ``CURRENT`` which comparison is open and which ended last; under a comparison's own id its head (``part`` 0) and what its
    pages found (from 1). Times are epoch seconds with milliseconds."""

    base_table_name = "Comparisons"
    time_to_live = "purge_at"

    comparison_id = UnicodeAttribute(hash_key=True)
    part = NumberAttribute(range_key=True)
    open_id = UnicodeAttribute(null=True)
    ended_id = UnicodeAttribute(null=True)
    begun_at = NumberAttribute(null=True)
    finished_at = NumberAttribute(null=True)
    busy_until = NumberAttribute(null=True)
    step = NumberAttribute(null=True)
    is_counted = BooleanAttribute(null=True)
    permission_set_arn = UnicodeAttribute(null=True)
    account_id = UnicodeAttribute(null=True)
    pairs = NumberAttribute(null=True)
    pairs_read = NumberAttribute(null=True)
    listed = NumberAttribute(null=True)
    parts = NumberAttribute(null=True)
    found = UnicodeAttribute(null=True)
    purge_at = NumberAttribute(null=True)


CURRENT = "current"
