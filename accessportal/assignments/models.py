"""The Assignments item (design, data model) and its key."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UnicodeSetAttribute
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex

from accessportal.store.base import PortalModel, register
from accessportal.store.keys import join_key


class StateIndex(GlobalSecondaryIndex["AssignmentItem"]):
    """Assignments by state, longest unchanged first."""

    class Meta:
        index_name = "StateIndex"
        projection = AllProjection()

    state = UnicodeAttribute(hash_key=True)
    changed_at = NumberAttribute(range_key=True)


@register
class AssignmentItem(PortalModel):
    """One real assignment. Times are epoch seconds with milliseconds."""

    base_table_name = "Assignments"

    class Meta:
        table_name = "Assignments"
        billing_mode = "PAY_PER_REQUEST"

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

    state_index = StateIndex()


def assignment_id_for(*, principal_type: str, principal_id: str, account_id: str, permission_set_arn: str) -> str:
    """The one place where the key is built."""
    return join_key(principal_type, principal_id, account_id, permission_set_arn)
