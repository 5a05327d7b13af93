"""The threads of requests: for whoever got the request, and for checks."""

from __future__ import annotations

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import cache

from accessportal.access_requests import store
from accessportal.access_requests.states import AccessRequest
from accessportal.access_requests.thread import Comment, Threaded
from accessportal.kernel.pages import Unreadable
from accessportal.store.erasures import find_erasure

Past = Callable[[Unreadable], object]


def thread_of(*, request: AccessRequest, past: Past) -> tuple[Comment, ...]:
    """Its comments in order, strongly read; nothing is read where it has none. Whoever got the request may read them. ``past`` is told of
    what can't be read."""
    return store.thread_of(request.request_id, past=past) if request.comments else ()


def threaded(*, request: AccessRequest, now: datetime) -> Threaded:
    """The request with all that lies in its thread, and can be read."""
    return _threaded(request, store.thread_of(request.request_id, past=lambda _one: None), now)


def every_threaded(*, now: datetime, past: Past) -> Iterator[Threaded]:
    """Every request with its thread, both tables as a whole. ``past`` is told of what can't be read, of comments without a request, and of
    those that say that their writer was erased, who was not."""
    threads: defaultdict[str, list[Comment]] = defaultdict(list)
    for comment in store.every_comment(past=past):
        threads[comment.request_id].append(comment)
    unread: set[str] = set()
    erasure_of = cache(find_erasure)

    def named(one: Unreadable) -> None:
        unread.add(one.key)
        past(one)

    for request in store.every_request(past=named):
        thread = threads.pop(request.request_id, [])
        for one in thread:
            if one.is_erased and erasure_of(one.written_by) is None:
                past(_wrong(one, "its text is gone, and its writer was not erased"))
        yield _threaded(request, thread, now)
    # DynamoDB deletes a request and its comments one after the other.
    left = [one for request_id, thread in threads.items() if request_id not in unread for one in thread]
    for comment in left:
        if comment.purge_at is None or comment.purge_at > now:
            past(_wrong(comment, "there is no such request"))


def _threaded(request: AccessRequest, thread: Iterable[Comment], now: datetime) -> Threaded:
    purge_at = request.purge_at
    is_purged = request.status.is_terminal and purge_at is not None and purge_at <= now
    return Threaded(request, tuple(thread), is_purged)


def _wrong(comment: Comment, why: str) -> Unreadable:
    return Unreadable(store.COMMENTS, f"{comment.request_id}, {comment.number}", why)


def check_of(text: str, salt: str) -> str:
    """What tells that a text is still the same, and nothing of it to whoever has not the salt."""
    return hmac.new(salt.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
