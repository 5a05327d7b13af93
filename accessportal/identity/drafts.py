"""What was typed into a form outlives the session: it is kept for the person who typed it, and shown when they have signed in again.

Kept in the browser's own session, in the database: nothing of it is in an address, and no other person gets it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.sessions.backends.base import SessionBase
from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpRequest, QueryDict

from accessportal.kernel.actors import fold_email
from accessportal.kernel.clock import SystemClock, to_epoch

TYPED_BY = "typed_by"
"""The hidden field that says whose page the form is on. A form without it (passwords, for one) is never kept."""
KEEP = "keep"
"""The page itself sends a form that is not finished, to be kept and nothing else."""

_DRAFTS = "drafts"
_SHOWN = "_portal_draft_shown"
_KEPT = "_portal_draft_kept"
_SIGNER = TimestampSigner(salt="accessportal.identity.drafts")
# A page may lie open over holidays. Who left the company can't go on putting drafts into sessions for ever.
_GOOD_FOR = timedelta(days=7)
# A browser has a few tabs with half a form in each; a form holds some thousand characters.
_MOST_DRAFTS = 5
_MOST_CHARACTERS = 64_000
_BACK = "What you typed before you had to sign in again is back. It has not been sent."


@dataclass(frozen=True, slots=True)
class _Draft:
    person: str
    fields: str
    kept_at: int


def sign(person: str) -> str:
    """The value of ``TYPED_BY`` on the pages of this person."""
    return _SIGNER.sign(person)


def keep(request: HttpRequest) -> bool:
    """Keep what was posted, for whoever typed it; ``False`` when nobody provably did, or somebody else is signed in by now."""
    try:
        person = _SIGNER.unsign(request.POST.get(TYPED_BY, ""), max_age=_GOOD_FOR)
    except BadSignature:
        return False
    fields = request.POST.copy()
    for name in (TYPED_BY, KEEP, "csrfmiddlewaretoken"):
        fields.pop(name, None)
    text = fields.urlencode()
    is_somebody_else = request.user.is_authenticated and fold_email(request.user.get_username()) != person
    if is_somebody_else or len(text) > _MOST_CHARACTERS:
        return False
    drafts = {path: draft for path, draft in _drafts(request.session).items() if path != request.path}
    newest = list(drafts.items())[1 - _MOST_DRAFTS :]
    _write(request.session, {**dict(newest), request.path: _Draft(person, text, to_epoch(SystemClock().now()))})
    if not request.user.is_authenticated:
        request.session.set_expiry(_kept_seconds())
    setattr(request, _KEPT, True)
    return True


def is_kept(request: HttpRequest) -> bool:
    """Whether the answer to this request is that its form was kept."""
    return bool(getattr(request, _KEPT, False))


def take(request: HttpRequest) -> QueryDict:
    """What the person typed into the form of this page before they signed in again, told and given out once; empty when nothing."""
    drafts = _drafts(request.session)
    if request.method != "GET" or request.headers.get("HX-Request") == "true" or request.path not in drafts:
        return QueryDict()
    draft = drafts.pop(request.path)
    _write(request.session, drafts)
    if draft.person != fold_email(request.user.get_username()):
        return QueryDict()
    setattr(request, _SHOWN, True)
    messages.info(request, _BACK)
    return QueryDict(draft.fields)


def is_shown(request: HttpRequest) -> bool:
    """Whether this page shows what :func:`take` gave out: it was typed, although it stands there from the start."""
    return bool(getattr(request, _SHOWN, False))


def has_any(session: SessionBase) -> bool:
    return bool(_drafts(session))


def drop_others(session: SessionBase, *, person: str) -> None:
    """Forget what anybody but ``person`` typed: they are the one at this browser now."""
    drafts = _drafts(session)
    mine = {path: draft for path, draft in drafts.items() if draft.person == fold_email(person)}
    if mine != drafts:
        _write(session, mine)


def _kept_seconds() -> int:
    return int(settings.SESSION_HOURS) * 3600


def _drafts(session: SessionBase) -> dict[str, _Draft]:
    """Those that are not too old, oldest first."""
    oldest = to_epoch(SystemClock().now()) - _kept_seconds()
    kept: dict[str, dict[str, Any]] = session.get(_DRAFTS, {})
    return {path: draft for path, given in kept.items() if (draft := _Draft(**given)).kept_at > oldest}


def _write(session: SessionBase, drafts: dict[str, _Draft]) -> None:
    session[_DRAFTS] = {path: {"person": draft.person, "fields": draft.fields, "kept_at": draft.kept_at} for path, draft in drafts.items()}
