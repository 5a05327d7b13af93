"""What gunicorn says, by the same way as everything else, with how long each request took.

gunicorn's first process loads this without Django's apps: nothing here may lead to a model.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django_structlog.middlewares import RequestMiddleware
from gunicorn.glogging import Logger

from accessportal.kernel.addresses import client_address

# Asked every few seconds by machines.
QUIET = frozenset({"/healthz", "/readyz", "/workz", "/metrics"})


class WebLog(Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's own, but that a request is told in named parts, and probes below INFO."""

    def access(self, resp: Any, _req: Any, environ: dict[str, Any], request_time: timedelta) -> None:
        level = logging.DEBUG if environ.get("PATH_INFO") in QUIET else logging.INFO
        if not self.access_log.isEnabledFor(level):
            return
        told = {
            "request": f"{environ.get('REQUEST_METHOD')} {environ.get('RAW_URI')}",
            "code": int(str(resp.status).split(maxsplit=1)[0]),
            "bytes": resp.sent,
            "duration_ms": round(request_time.total_seconds() * 1000, 1),
            "ip": client_address(environ, trusted_proxies=settings.TRUSTED_PROXIES),
            "user_agent": environ.get("HTTP_USER_AGENT"),
        }
        self.access_log.log(level, "request_answered", extra=told)


class RequestLog(RequestMiddleware):
    """django-structlog's, but that a scraper's regular requests are not told."""

    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request) if request.path_info in QUIET else super().__call__(request)
