"""How long a session may last: an idle limit and an absolute one, counted from what the session itself remembers."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth import SESSION_KEY, logout
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.exceptions import SessionInterrupted
from django.contrib.sessions.middleware import SessionMiddleware
from django.contrib.sessions.models import Session
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from accessportal.identity import drafts
from accessportal.identity.database import AWAY, let_go
from accessportal.identity.session_store import stored_key
from accessportal.kernel.clock import Clock, SystemClock, from_epoch, to_epoch
from accessportal.kernel.moments import SKEW

log = structlog.get_logger(__name__)

SIGNED_IN_AT = "signed_in_at"
SEEN_AT = "seen_at"
_IDENTITY = "identity"
_VOUCHED = "_portal_identity"
# allauth's states are good for so long, and an ended session says why.
_WAY_SECONDS = 600
_ENDED = "_portal_session_ended"
_BECAUSE = "ended_because"
# Writing "seen" at every request would be a database write for each; the idle limit is kept to within this.
_SEEN_EVERY = timedelta(seconds=30)


class Ended(enum.StrEnum):
    """Why a session is over; the sign-in page says it in words."""

    IDLE = "idle"
    TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class Limits:
    idle: timedelta
    absolute: timedelta


def ended_at(session: dict[str, Any], *, limits: Limits, now: datetime) -> Ended | None:
    """Say why the signed-in ``session`` is over ``now``; ``None`` while it goes on. One without its times was not begun by signing in here:
    it is over."""
    started, seen = session.get(SIGNED_IN_AT), session.get(SEEN_AT)
    if not isinstance(started, int) or not isinstance(seen, int) or now >= from_epoch(started) + limits.absolute:
        return Ended.TOO_LONG
    return Ended.IDLE if now >= from_epoch(seen) + limits.idle else None


def _present_limits() -> Limits:
    return Limits(idle=timedelta(minutes=settings.SESSION_IDLE_MINUTES), absolute=timedelta(hours=settings.SESSION_HOURS))


def why_ended(request: HttpRequest) -> Ended | None:
    """Why this request came without its session, if a limit ended it."""
    found = getattr(request, _ENDED, None)
    return found if isinstance(found, Ended) else None


class Sessions(SessionMiddleware):
    """Django's own, but that a session which can't be kept takes no answer back: what the answer tells has been done by then."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        try:
            return super().process_response(request, response)
        except SessionInterrupted:
            # Signed out meanwhile, in another tab.
            if drafts.is_kept(request):
                raise
            log.info("identity.session_gone", path=request.path)
            return response
        except AWAY:
            # Who is signed in loses when they were last seen. Signing in, and a draft, would be lost with the session itself.
            if getattr(request, "actor", None) is None or drafts.is_kept(request):
                raise
            log.exception("identity.session_not_kept", path=request.path)
            let_go()
            return response


def is_kept(request: HttpRequest) -> bool:
    """Whether what was put into the session will be there for the next page; where not, this answer must tell it."""
    try:
        request.session.save()
    except (*AWAY, UpdateError):
        return False
    return True


class SessionLimits:
    """Sign out whoever did nothing for too long, or signed in too long ago. What htmx fetches by GET counts as nothing: a page left open
    refreshes itself, and must not keep its session alive for ever."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase], clock: Clock | None = None) -> None:
        self._get_response = get_response
        self._clock = clock or SystemClock()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if SESSION_KEY in request.session:
            self._judge(request, self._clock.now())
        elif _BECAUSE in request.session:
            setattr(request, _ENDED, Ended(request.session[_BECAUSE]))
        return self._get_response(request)

    def _judge(self, request: HttpRequest, now: datetime) -> None:
        session = request.session
        told = {name: session.get(name) for name in (SIGNED_IN_AT, SEEN_AT)}
        ended = ended_at(told, limits=_present_limits(), now=now)
        if ended is not None:
            log.info("identity.session_ended", user=request.user.get_username(), why=ended.value)
            _end_by_limit(request, ended)
            return
        if not _is_refresh(request) and now - from_epoch(told[SEEN_AT] or 0) >= _SEEN_EVERY:
            session[SEEN_AT] = to_epoch(now)
        for name, at in told.items():
            # From a clock that was ahead: the session goes on, and lasts no longer for it.
            if from_epoch(at or 0) > now + SKEW:
                session[name] = to_epoch(now)


def _end_by_limit(request: HttpRequest, ended: Ended) -> None:
    """Nobody is signed in any more, but the session stays for a while to say why: a page asks for several things at once, and
    whichever answer comes last decides what the person reads."""
    request.session.clear()
    request.session[_BECAUSE] = ended.value
    request.session.set_expiry(_WAY_SECONDS)
    request.user = AnonymousUser()
    setattr(request, _ENDED, ended)


def _is_refresh(request: HttpRequest) -> bool:
    return request.method == "GET" and request.headers.get("HX-Request") == "true"


@receiver(user_logged_in, dispatch_uid="accessportal.identity.sessions")
def _begin(request: HttpRequest, user: Any, **_: Any) -> None:
    """Mark a session that begins, whatever the way in: Django calls this. What is over goes out of the database now; nothing else would
    ever delete it."""
    now = to_epoch(SystemClock().now())
    request.session[SIGNED_IN_AT] = request.session[SEEN_AT] = now
    request.session[_IDENTITY] = getattr(request, _VOUCHED, "")
    request.session.pop(_BECAUSE, None)
    drafts.drop_others(request.session, person=user.get_username())
    request.session.set_expiry(None)
    request.session.clear_expired()


def end(request: HttpRequest) -> bool:
    """The request's session is over. ``True`` for one request alone, however many of the same page come at once."""
    deleted, _ = Session.objects.filter(session_key=stored_key(request.session.session_key or "")).delete()
    logout(request)
    return deleted > 0


def vouch(request: HttpRequest, identity: str) -> None:
    """The session that begins in this request is for this identity alone, as long as the directory keeps it."""
    setattr(request, _VOUCHED, identity)


def identity_of(request: HttpRequest) -> str:
    """Whom the issuer vouched for when the session began; empty where it did not (passwords of the demo)."""
    return str(request.session.get(_IDENTITY, ""))


def begin_waiting(request: HttpRequest) -> None:
    """The session of somebody who has gone to the issuer. Anybody may begin one, so it is kept no longer than the way may take;
    with a draft in it, as long as that."""
    if not drafts.has_any(request.session):
        request.session.set_expiry(_WAY_SECONDS)
