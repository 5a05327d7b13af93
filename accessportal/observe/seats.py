"""A share of this process's threads for what may wait for a store, so that one is always left to say that the process lives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import cast

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

log = structlog.get_logger(__name__)

# How long a burst may wait for a seat.
_PATIENCE_SECONDS = 1.0
_RETRY_AFTER_SECONDS = 5
_BUSY = "The portal has too much to do right now. Nothing was done. Try again in a few seconds.\n"


class Seats:
    """Let half of the threads work on requests at a time while the others wait: a burst is served in turn. Once somebody waited in vain,
    others are told 503 at once until a seat is free. Probes and static files need none. What streams keeps its seat until it is sent."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        self._seats = threading.Semaphore(max(1, settings.WEB_THREADS // 2))
        self._is_jammed = False

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not self._take():
            return _refused()
        response: HttpResponseBase | None = None
        try:
            response = self._get_response(request)
        finally:
            if not isinstance(response, StreamingHttpResponse):
                self._give_back()
        if isinstance(response, StreamingHttpResponse):
            response.streaming_content = _Seated(response, self._give_back)
        return response

    def _give_back(self) -> None:
        self._is_jammed = False
        self._seats.release()

    def _take(self) -> bool:
        if self._seats.acquire(blocking=False):
            return True
        if self._is_jammed:
            return False
        is_free = self._seats.acquire(timeout=_PATIENCE_SECONDS)
        if not is_free and not self._is_jammed:
            log.warning("seats.jammed")
            self._is_jammed = True
        return is_free


class _Seated:
    """What is sent. The server closes it at its end, also when nothing of it was asked for."""

    def __init__(self, response: StreamingHttpResponse, give_back: Callable[[], None]) -> None:
        self._content = cast(Iterator[bytes], response.streaming_content)
        self.close = give_back

    def __iter__(self) -> Iterator[bytes]:
        return self._content


def _refused() -> HttpResponse:
    """Not a page with everything around it: that would ask the stores who this is."""
    response = HttpResponse(_BUSY, status=503, content_type="text/plain; charset=utf-8")
    response.headers["Retry-After"] = str(_RETRY_AFTER_SECONDS)
    # Django would log each as an error; that it is jammed is in the log once, and each answer with its code.
    response._has_been_logged = True  # type: ignore[attr-defined]  # Django's own mark
    return response
