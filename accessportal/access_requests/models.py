"""The ActiveRequests item (seed 000 and the design's data model), whose keys, attributes and ``ExpirationIndex`` are a contract; and the
RequestComments and StandIns items."""

from __future__ import annotations

from typing import Any

from pynamodb.attributes import BooleanAttribute, ListAttribute, MapAttribute, NumberAttribute, UnicodeAttribute, UnicodeSetAttribute

from accessportal.store.base import PortalModel, global_index, register


@register
class RequestItem(PortalModel):
    """One request. Times are epoch seconds, whole for the seed's attributes; ``work_due_at`` has milliseconds."""

    base_table_name = "ActiveRequests"
    time_to_live = "purge_at"
    about_people = {"evidence.subject_name": "subject_id", "evidence.requested_by_name": "requested_by", "identities": ""}  # noqa: RUF012

    request_id = UnicodeAttribute(hash_key=True)
    subject_id = UnicodeAttribute()
    rule_name = UnicodeAttribute()
    ticket_id = UnicodeAttribute()
    account_id = UnicodeAttribute(null=True)
    permission_set = UnicodeAttribute(null=True)
    status = UnicodeAttribute()
    requested_at = NumberAttribute()
    expires_at = NumberAttribute()
    revoked_at = NumberAttribute(null=True)
    approval_required = BooleanAttribute()

    kind = UnicodeAttribute()
    target: Any = MapAttribute()
    requested_by = UnicodeAttribute()
    reason = UnicodeAttribute()
    duration_seconds = NumberAttribute()
    submission_id = UnicodeAttribute()
    extends = UnicodeAttribute(null=True)
    decided_by = UnicodeAttribute(null=True)
    decided_at = NumberAttribute(null=True)
    decision_reason = UnicodeAttribute(null=True)
    approvals = UnicodeSetAttribute(null=True)
    identities: Any = MapAttribute(null=True)
    in_place_of: Any = MapAttribute(null=True)
    approval: Any = MapAttribute()
    work = UnicodeAttribute(null=True)
    work_due_at = NumberAttribute(null=True)
    work_attempts = NumberAttribute(null=True)
    work_error = UnicodeAttribute(null=True)
    granted_at = NumberAttribute(null=True)
    held_since = NumberAttribute(null=True)
    ended_by = UnicodeAttribute(null=True)
    end_code = UnicodeAttribute(null=True)
    was_to_end_at = NumberAttribute(null=True)
    receipts: Any = ListAttribute(null=True)
    rule_hash = UnicodeAttribute()
    evidence: Any = MapAttribute()
    scope = UnicodeAttribute()
    open_subject = UnicodeAttribute(null=True)
    ticket_key = UnicodeAttribute(null=True)
    version = NumberAttribute()
    audit_head = UnicodeAttribute()
    purge_at = NumberAttribute(null=True)
    comments = NumberAttribute(null=True)
    last_comment_at = NumberAttribute(null=True)
    asked_back_by = UnicodeAttribute(null=True)
    awaits_answer = BooleanAttribute(null=True)

    expiration_index = global_index("ExpirationIndex", status=UnicodeAttribute(hash_key=True), expires_at=NumberAttribute(range_key=True))
    """By status, nearest end or deadline first."""
    subject_index = global_index("SubjectIndex", subject_id=UnicodeAttribute(hash_key=True), requested_at=NumberAttribute(range_key=True))
    """By whom the access is for."""
    requester_index = global_index(
        "RequesterIndex", requested_by=UnicodeAttribute(hash_key=True), requested_at=NumberAttribute(range_key=True)
    )
    """By who asked, for themselves or for a group."""
    ended_index = global_index("EndedIndex", requested_by=UnicodeAttribute(hash_key=True), purge_at=NumberAttribute(range_key=True))
    """By who asked, what is over. Sparse: ``purge_at`` is there from the end on, so many days after it."""
    rule_index = global_index("RuleIndex", rule_name=UnicodeAttribute(hash_key=True), status=UnicodeAttribute(range_key=True))
    """By rule and status: what waits for those who approve by a rule."""
    account_index = global_index("AccountIndex", account_id=UnicodeAttribute(hash_key=True), requested_at=NumberAttribute(range_key=True))
    """By AWS account."""
    ticket_index = global_index("TicketIndex", ticket_key=UnicodeAttribute(hash_key=True), requested_at=NumberAttribute(range_key=True))
    """By ticket, in any spelling of its letters; sparse."""
    asked_index = global_index("AskedIndex", status=UnicodeAttribute(hash_key=True), requested_at=NumberAttribute(range_key=True))
    """By status, in the order of asking; all of them together are everything that was ever asked for."""
    rule_asked_index = global_index(
        "RuleAskedIndex", rule_name=UnicodeAttribute(hash_key=True), requested_at=NumberAttribute(range_key=True)
    )
    """By rule, in the order of asking."""
    scope_index = global_index("ScopeIndex", scope=UnicodeAttribute(hash_key=True), requested_at=NumberAttribute(range_key=True))
    """By what it touches: the group that somebody asked to be in."""
    open_index = global_index("OpenIndex", open_subject=UnicodeAttribute(hash_key=True), expires_at=NumberAttribute(range_key=True))
    """What a subject holds or waits for now; sparse, so it costs what is open and not what ever was."""
    work_index = global_index("WorkIndex", work=UnicodeAttribute(hash_key=True), work_due_at=NumberAttribute(range_key=True))
    """What must be carried out; sparse."""


@register
class CommentItem(PortalModel):
    """One comment of a request's thread. When its writer is erased, so are its words."""

    base_table_name = "RequestComments"
    time_to_live = "purge_at"
    about_people = {"text": "written_by", "salt": "written_by"}  # noqa: RUF012

    request_id = UnicodeAttribute(hash_key=True)
    number = NumberAttribute(range_key=True)
    kind = UnicodeAttribute()
    written_by = UnicodeAttribute()
    written_at = NumberAttribute()
    text = UnicodeAttribute()
    salt = UnicodeAttribute()
    submission_id = UnicodeAttribute()
    purge_at = NumberAttribute(null=True)


STAND_INS = "stand_in"


@register
class StandInItem(PortalModel):
    """Who may decide in whose place. Times are epoch seconds. ``stand_in_id`` begins with the end, so that one strong request finds those
    of somebody that are not over."""

    base_table_name = "StandIns"
    time_to_live = "purge_at"

    stand_in = UnicodeAttribute(hash_key=True)
    stand_in_id = UnicodeAttribute(range_key=True)
    list = UnicodeAttribute()
    approver = UnicodeAttribute()
    note = UnicodeAttribute(null=True)
    named_at = NumberAttribute()
    starts_at = NumberAttribute()
    ends_at = NumberAttribute()
    ended_by = UnicodeAttribute(null=True)
    ended_at = NumberAttribute(null=True)
    version = NumberAttribute()
    audit_head = UnicodeAttribute()
    purge_at = NumberAttribute(null=True)

    approver_index = global_index("ApproverIndex", approver=UnicodeAttribute(hash_key=True), ends_at=NumberAttribute(range_key=True))
    """By whom somebody stands in for, in order of the end."""
    end_index = global_index("EndIndex", list=UnicodeAttribute(hash_key=True), ends_at=NumberAttribute(range_key=True))
    """All of them, in order of the end."""
