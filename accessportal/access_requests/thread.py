"""Records of a request's thread."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

from accessportal.access_requests.states import AccessRequest
from accessportal.kernel.clock import Precise


class CommentKind(enum.StrEnum):
    """While a request waits, those who decide ask back, and those whom it is for answer."""

    QUESTION = "QUESTION"
    ANSWER = "ANSWER"
    COMMENT = "COMMENT"


@dataclass(frozen=True, slots=True)
class Comment:
    """One entry of a request's thread, numbered from 1. ``salt``: an erased text can't be guessed by its hash in the audit log."""

    request_id: str
    number: int
    kind: CommentKind
    written_by: str
    written_at: Precise
    text: str
    salt: str
    submission_id: str
    purge_at: datetime | None = None

    @property
    def is_erased(self) -> bool:
        """Its writer was erased, and the text with them."""
        return self.text == self.written_by


@dataclass(frozen=True, slots=True)
class Threaded:
    """A request with what there is of its thread. ``is_purged``: its time is over, and DynamoDB deletes both, one after the other."""

    request: AccessRequest
    thread: tuple[Comment, ...]
    is_purged: bool

    @property
    def entity(self) -> str:
        return self.request.entity

    @property
    def version(self) -> int:
        return self.request.version

    @property
    def audit_head(self) -> str:
        return self.request.audit_head
