"""Logging, for ``settings``: one line of JSON per event in production, plain lines in the demo, never a secret in either."""

from __future__ import annotations

import re
from typing import Any

import structlog
from django.conf import settings
from django.dispatch import receiver
from django.http import HttpRequest
from django_structlog.signals import bind_extra_request_metadata
from structlog.typing import EventDict, Processor, WrappedLogger

from accessportal.kernel.addresses import client_address

_HIDDEN = "[hidden]"
_SECRET_NAME = re.compile(
    r"pass(word|phrase|wd)|secret|token|authorization|cookie|credential|signature|(session[_-]?id|(session|api|access)[_-]?key)",
    re.IGNORECASE,
)
# Longer texts are cut before anything is looked for in them: strangers write some of what is logged (addresses, headers).
_LONGEST_TEXT = 20_000
# What follows a secret's name inside a text: a query string, a header, a key=value pair. Each word is looked at once, from its
# beginning, and nothing is given back (++, *+): the time grows with the length alone.
_SECRET_IN_TEXT = re.compile(
    r"((?<![\w-])(?=[\w-]*?(?:password|secret|token|signature|credential|cookie|api[_-]?key|sessionid|authorization))[\w-]++"
    r"['\"]?+\s*+[=:]\s*+(?:(?:bearer|basic)\s++)?+['\"]?+)[^\s&'\",;)}\]]++",
    re.IGNORECASE,
)
# An API token that has strayed, behind whatever name: into a box for searching, for one.
_API_TOKEN = re.compile(r"(apt_[a-z0-9]{12}_)[A-Za-z0-9_-]{20,}")
# What the issuer sends people back with: good for one sign-in, by whoever has the rest of it.
_ISSUERS_ANSWER = re.compile(r"(/sign-in/callback/\?)[^\s'\"]+")


@receiver(bind_extra_request_metadata, dispatch_uid="accessportal.observe.logs")
def _tell_the_address(request: HttpRequest, **_: Any) -> None:
    structlog.contextvars.bind_contextvars(ip=client_address(request.META, trusted_proxies=settings.TRUSTED_PROXIES))


def hide_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """A structlog processor: nothing named like a secret, and nothing that follows such a name in a text, is written."""
    return {name: _HIDDEN if _SECRET_NAME.search(name) else _cleaned(value) for name, value in event.items()}


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        text = value if len(value) <= _LONGEST_TEXT else f"{value[:_LONGEST_TEXT]}… ({len(value):,} characters)"
        named = _SECRET_IN_TEXT.sub(rf"\1{_HIDDEN}", _API_TOKEN.sub(rf"\1{_HIDDEN}", text))
        return _ISSUERS_ANSWER.sub(rf"\1{_HIDDEN}", named)
    if isinstance(value, dict):
        return {name: _HIDDEN if _SECRET_NAME.search(str(name)) else _cleaned(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(inner) for inner in value]
    return value


_SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.stdlib.PositionalArgumentsFormatter(),
)

# Where it happened, without the frames' local variables: they hold passwords in plain text.
_TRACEBACKS = structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))


def configure_structlog() -> None:
    """structlog's own loggers hand over to the standard library's, so that everything leaves by the same handler."""
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def logging_settings(*, level: str, as_json: bool) -> dict[str, Any]:
    """Make Django's ``LOGGING``: everything to standard error, so that the output of commands stays clean. ``level`` is for our own and the
    queue's events; libraries speak from WARNING on."""
    ending: list[Processor] = (
        [_TRACEBACKS, hide_secrets, structlog.processors.JSONRenderer()]
        if as_json
        else [structlog.processors.format_exc_info, hide_secrets, structlog.dev.ConsoleRenderer(colors=False)]
    )
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": list(_SHARED),
        "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending],
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"events": formatter},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "events"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "accessportal": {"level": level},
            "django_structlog": {"level": level},
            "django-q": {"level": level},
            "gunicorn.error": {"level": level, "handlers": ["stderr"], "propagate": False},
            "gunicorn.access": {"level": level, "handlers": ["stderr"], "propagate": False},
            # django-structlog tells every request once already.
            "django.request": {"level": "ERROR"},
            "django.server": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},
        },
    }
