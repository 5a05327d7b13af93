"""Every page needs somebody; who that is, is read from the directory at every request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import structlog
from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.functional import SimpleLazyObject
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from accessportal.access_requests.queries import ApproverBook
from accessportal.identity import drafts
from accessportal.identity.backends import remember, vouched_for
from accessportal.identity.operations import record_sign_out
from accessportal.identity.queries import actor_for
from accessportal.identity.sessions import end, identity_of, why_ended
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import NotAllowed, Unavailable

log = structlog.get_logger(__name__)

_OVER = "Portal-Signed-Out"
# What a server takes of an address. To take apart a longer one can take the square of its length.
_LONGEST_ADDRESS = 4_094
# Why somebody is signed out whom the directory has. A deleted person's history ends with that.
_TOLD = frozenset({"person_disabled", "identity_differs"})


class PortalRequest(HttpRequest):
    """A request as the views see it. ``actor`` is ``None`` only on pages that anybody may open."""

    actor: Actor | None
    book: ApproverBook
    htmx: HtmxDetails


def actor_of(request: HttpRequest) -> Actor:
    """The actor of a page that needs one; the middleware let nobody else through."""
    actor = cast(PortalRequest, request).actor
    assert actor is not None, "this view is open to anonymous people (login_not_required) and must not ask for the actor"
    return actor


def book_of(request: HttpRequest) -> ApproverBook:
    """What this web request has read of people, groups and rules: for what a page shows, never for a write
    (docs/decisions/0064-what-a-web-request-remembers.md)."""
    return cast(PortalRequest, request).book


class ActorMiddleware(LoginRequiredMiddleware):
    """Send anonymous people to the sign-in page, except from views marked ``login_not_required``, and set ``request.actor``. Who was
    disabled or removed since they signed in is signed out at their next request."""

    def process_view(
        self, request: HttpRequest, view_func: Callable[..., HttpResponseBase], view_args: tuple[Any, ...], view_kwargs: dict[str, Any]
    ) -> HttpResponseBase | None:
        cast(PortalRequest, request).actor = None
        cast(PortalRequest, request).book = ApproverBook(now=SystemClock().now())
        refused = super().process_view(request, view_func, view_args, view_kwargs)
        if refused is not None:
            return refused
        if not getattr(view_func, "login_required", True):
            # Anybody may open it; what it asks about the user's rights is answered for this session and not for its address's new owner.
            user = request.user
            request.user = cast(Any, SimpleLazyObject(lambda: vouched_for(user, identity_of(request))))
            return None
        return self._take_actor(request) or _kept_alone(request)

    def _take_actor(self, request: HttpRequest) -> HttpResponse | None:
        book = book_of(request)
        try:
            actor = actor_for(request.user, book.now, identity=identity_of(request), book=book.directory)
        except NotAllowed as error:
            return _signed_out(request, error)
        except Unavailable as error:
            # Raised before the view, so the portal's error middleware can't see it.
            log.exception("identity.directory_unavailable", code=error.code)
            return render(request, "503.html", status=503)
        remember(request.user, actor)
        cast(PortalRequest, request).actor = actor
        return None

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """What one person sees is kept by no shared cache, and asked for again after somebody else has signed in."""
        patch_cache_control(response, private=True, no_cache=True)
        return response

    def get_login_url(self, view_func: Callable[..., HttpResponseBase]) -> str:
        """One way in, for the admin pages too."""
        return str(resolve_url(settings.LOGIN_URL))

    def handle_no_permission(self, request: HttpRequest, view_func: Callable[..., HttpResponseBase]) -> Any:
        """Send the whole page there: htmx would follow a redirect and put the sign-in page into a corner. What was sent is kept for when
        they are back."""
        if request.method == "POST":
            drafts.keep(request)
        ended = why_ended(request)
        sign_in = self.get_login_url(view_func) + (f"?because={ended.value}" if ended else "")
        if cast(PortalRequest, request).htmx:
            return _send_page(redirect_to_login(_shown_path(request), sign_in).headers["Location"])
        return redirect_to_login(request.get_full_path(), sign_in)


def _send_page(address: str) -> HttpResponse:
    """Marked, so that the page first sends what is typed on it to be kept (static/portal/typed.js)."""
    response = HttpResponseClientRedirect(address)
    response.headers[_OVER] = "yes"
    return response


def _kept_alone(request: HttpRequest) -> HttpResponse | None:
    """Somebody signed in again in another tab before the page could send its draft: the form is shown, and nothing is done."""
    if request.method != "POST" or drafts.KEEP not in request.POST:
        return None
    drafts.keep(request)
    return redirect(request.path)


def _shown_path(request: HttpRequest) -> str:
    """Of the page that asks, by the browser's word; the start page where that is no address of ours."""
    if len(request.headers.get("HX-Current-URL", "")) > _LONGEST_ADDRESS:
        return "/"
    try:
        return cast(PortalRequest, request).htmx.current_url_abs_path or "/"
    except ValueError:
        return "/"


def _signed_out(request: HttpRequest, error: NotAllowed) -> HttpResponse:
    email = request.user.get_username()
    log.warning("identity.signed_out", user=email, code=error.code)
    if end(request) and error.code in _TOLD:
        record_sign_out(email=email, reason=error.code, now=SystemClock().now())
    if cast(PortalRequest, request).htmx:
        return _send_page(reverse("signed_out"))
    if request.method == "POST":
        drafts.keep(request)
    return render(request, "identity/signed_out.html", {"reason": error.message}, status=403)
