"""What became of access that another request still held when one of them was over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from accessportal.access_requests import queries
from accessportal.access_requests.queries import ApproverBook
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.kernel.actors import Actor
from accessportal.kernel.ids import is_request_id

_MOST_READ = 20
# What the tables give in one request.
_MOST_TOGETHER = 100


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
        """As a list says it, and as the page announces it."""
        with_what = f"It ended together with {self.together}." if self.together else "Another request still held the same, and ended too."
        if self.gone_at is not None:
            return f"{with_what} The access was proved to be gone."
        return f"{with_what} The access is being taken back." if self.is_ending else "Another request holds the same access."

    @property
    def mark(self) -> str:
        """Changes with what a page shows of it."""
        return f".{self.by.request_id}.{self.by.version}"


def kept_by_another(found: AccessRequest, *, actor: Actor, book: ApproverBook) -> Kept | None:
    """By the receipt of ``found``, from those of the others that ``actor`` may see; ``None`` where none of them tells it."""
    return kept_by_others([found], actor=actor, book=book).get(found.request_id)


def kept_by_others(found: Sequence[AccessRequest], *, actor: Actor, book: ApproverBook) -> dict[str, Kept]:
    """As :func:`kept_by_another`, by id, of those that are in a list; the others that are not in it are read at once, and only some where
    they are very many."""
    named = {one.request_id: _named(one)[: min(_MOST_READ, _MOST_TOGETHER // len(found))] for one in found}
    seen = {one.request_id: one for one in found}
    missing = sorted({other for others in named.values() for other in others} - seen.keys())
    read = queries.get_many(request_ids=missing, actor=actor, book=book) if missing else {}
    seen |= {one.request_id: one for one in read.values() if isinstance(one, AccessRequest)}
    kept = {one.request_id: _kept(one, [seen[other] for other in named[one.request_id] if other in seen]) for one in found}
    return {request_id: one for request_id, one in kept.items() if one is not None}


def _named(found: AccessRequest) -> list[str]:
    """Those that held the same when it was proved to be over."""
    if found.status is not Status.REVOKED or found.granted_at is None or not found.receipts:
        return []
    return list(filter(is_request_id, found.receipts[-1].kept_by))


def _kept(found: AccessRequest, others: Sequence[AccessRequest]) -> Kept | None:
    by = max(filter(_holds, others), key=lambda one: one.expires_at, default=None) or next(filter(_was_last, others), None)
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
