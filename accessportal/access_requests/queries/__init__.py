"""Reads of the workflow for the faces and for other rooms."""

from __future__ import annotations

from accessportal.access_requests.queries.leaving import ACCESS_ENDS, ACCESS_OF_GROUP_ENDS, access_that_ends
from accessportal.access_requests.queries.lists import (
    count_waiting_for,
    history,
    list_active,
    list_by_account,
    list_by_status,
    list_by_subject,
    list_by_ticket,
    list_ending_soon,
    list_mine,
    list_open,
    list_pending,
    list_stuck,
    list_undecidable,
    list_waiting_for,
    recent_of,
)
from accessportal.access_requests.queries.one import (
    approvers_of,
    asked,
    can,
    describe,
    ended_together,
    get,
    others_holding,
    title_of,
    verbs_for,
)
from accessportal.access_requests.queries.previews import explain, preview
from accessportal.access_requests.queries.rights import ApproverBook, is_approver_anywhere

__all__ = [
    "ACCESS_ENDS",
    "ACCESS_OF_GROUP_ENDS",
    "ApproverBook",
    "access_that_ends",
    "approvers_of",
    "asked",
    "can",
    "count_waiting_for",
    "describe",
    "ended_together",
    "explain",
    "get",
    "history",
    "is_approver_anywhere",
    "list_active",
    "list_by_account",
    "list_by_status",
    "list_by_subject",
    "list_by_ticket",
    "list_ending_soon",
    "list_mine",
    "list_open",
    "list_pending",
    "list_stuck",
    "list_undecidable",
    "list_waiting_for",
    "others_holding",
    "preview",
    "recent_of",
    "title_of",
    "verbs_for",
]
