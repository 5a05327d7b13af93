"""Asking back: the thread of a request, which leaves its state, deadline and verdict as they are
(docs/decisions/0089-comments-beside-the-chain.md)."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from accessportal.access_requests import policy, store
from accessportal.access_requests.operations.shared import load_for, require, until_written
from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.queries.threads import check_of, thread_of
from accessportal.access_requests.states import AccessRequest
from accessportal.access_requests.thread import Comment, CommentKind
from accessportal.audit import queries as audit
from accessportal.kernel.actors import Actor
from accessportal.kernel.pages import Unreadable


def comment(*, request_id: str, kind: CommentKind, text: str, submission_id: str, actor: Actor, now: datetime) -> AccessRequest:
    """Write into the thread of a request, the same text of one form once. A question or an answer that came too late is a plain comment.
    Conflict when the thread is closed or full, or work outside is under way; NotAllowed for whoever is not involved."""
    text = policy.clean_comment(text)
    policy.check_submission(submission_id)

    def attempt() -> AccessRequest:
        request, standing = load_for(request_id, actor, ApproverBook(now=now))
        if _was_sent(thread_of(request=request, past=_elsewhere), text, submission_id, actor):
            return request
        written = policy.kind_as_written(kind, request)
        require(policy.MAY_WRITE[written](request, actor, standing, now), request)
        return _write(request, written, text, submission_id, actor, now)

    return until_written(attempt)


def _elsewhere(_one: Unreadable) -> None:
    """The page names it."""


def _was_sent(thread: Iterable[Comment], text: str, submission_id: str, actor: Actor) -> bool:
    return any((one.written_by, one.submission_id, one.text) == (actor.name, submission_id, text) for one in thread)


def _write(request: AccessRequest, kind: CommentKind, text: str, submission_id: str, actor: Actor, now: datetime) -> AccessRequest:
    written = Comment(
        request_id=request.request_id,
        number=request.comments + 1,
        kind=kind,
        written_by=actor.name,
        written_at=now,
        text=text,
        salt=secrets.token_hex(16),
        submission_id=submission_id,
        purge_at=request.purge_at,
    )
    after = replace(request, comments=written.number, last_comment_at=now)
    if kind is CommentKind.QUESTION:
        after = replace(after, awaits_answer=True, asked_back_by=actor.name)
    if kind is CommentKind.ANSWER:
        after = replace(after, awaits_answer=False)
    data: dict[str, Any] = {"number": written.number, "comment_kind": kind.value, "check": check_of(audit.nameless(text), written.salt)}
    if kind is not CommentKind.COMMENT:
        data["addressee"] = request.requested_by if kind is CommentKind.QUESTION else request.asked_back_by
    return store.add_comment(request, after, written, data, actor=actor, now=now)
