"""What became of access that another request still held when one of them was over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from accessportal.access_requests import queries
from accessportal.access_requests.queries import ApproverBook
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.kernel.actors import Actor
from accessportal.kernel.ids import is_request_id

_MOST_READ = 20


@dataclass(frozen=True, slots=True)
class Kept:
    """``by`` tells most of it: it holds the access still, or was proved gone last (``gone_at``). ``together``: what it is called by a
    request that ended in the same moment; else empty."""

    by: AccessRequest
    gone_at: datetime | None
    together: str

    @property
    def is_ending(self) -> bool:
        return self.gone_at is None and self.by.work is Work.REVOKE

    @property
    def sentence(self) -> str:
        """As the page announces it."""
        if self.gone_at is not None:
            return "The access was proved to be gone."
        return "The access is being taken back." if self.is_ending else "Another request holds the same access."

    @property
    def mark(self) -> str:
        """Changes with what a page shows of it."""
        return f".{self.by.request_id}.{self.by.version}"


def kept_by_another(found: AccessRequest, *, actor: Actor, book: ApproverBook) -> Kept | None:
    """By the receipt of ``found``, from those of the others that ``actor`` may see, read now; ``None`` where none of them tells it."""
    if found.status is not Status.REVOKED or found.granted_at is None or not found.receipts:
        return None
    named = list(filter(is_request_id, found.receipts[-1].kept_by))[:_MOST_READ]
    if not named:
        return None
    seen = [one for one in queries.get_many(request_ids=named, actor=actor, book=book).values() if isinstance(one, AccessRequest)]
    by = max(filter(_holds, seen), key=lambda one: one.expires_at, default=None) or next(filter(_was_last, seen), None)
    if by is None:
        return None
    gone_at = by.receipts[-1].proved_at if by.status is Status.REVOKED else None
    return Kept(by, gone_at, _called(by, found) if by.expires_at == found.expires_at and by.ended_by == found.ended_by else "")


def _holds(one: AccessRequest) -> bool:
    """Also while it is being taken back: the access may be there until that is proved."""
    return one.status is Status.ACTIVE and one.granted_at is not None


def _was_last(one: AccessRequest) -> bool:
    """Whether its own end was the end of the access."""
    return one.status is Status.REVOKED and bool(one.receipts) and not one.receipts[-1].kept_by


def _called(by: AccessRequest, found: AccessRequest) -> str:
    if by.extends == found.request_id:
        return "its extension"
    return "what it extends" if found.extends == by.request_id else "another request"
