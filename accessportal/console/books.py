"""One book of approvers for each web request: who approves is looked up once for the whole page."""

from __future__ import annotations

from django.http import HttpRequest

from accessportal.access_requests.queries import ApproverBook
from accessportal.kernel.clock import SystemClock

_KEPT = "_approver_book"


def book_of(request: HttpRequest) -> ApproverBook:
    """Decisions look anew."""
    if not hasattr(request, _KEPT):
        setattr(request, _KEPT, ApproverBook(now=SystemClock().now()))
    book: ApproverBook = getattr(request, _KEPT)
    return book
