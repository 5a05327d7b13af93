"""Signing in and out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import structlog
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django import forms
from django.conf import settings
from django.contrib.auth import get_user_model, logout, views
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_GET, require_http_methods, require_safe

from accessportal.directory import queries as directory
from accessportal.identity import drafts, issuer, operations, throttle
from accessportal.identity.provider import IssuerAdapter, safe_next
from accessportal.identity.sessions import Ended, begin_waiting
from accessportal.identity.tokens import Refused
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import NotAllowed, Unavailable

log = structlog.get_logger(__name__)

_HINTS = 8
_MOST_TYPED = 150
_RETRY_AFTER_SECONDS = 10
_ISSUER_CODES = frozenset({"issuer_unavailable", "issuer_unusable"})
# Whose refusal it is not: the person is who they are, and the directory says no.
_BY_DIRECTORY = frozenset({"person_unknown", "person_disabled", "person_unusable", "user_inactive", "identity_differs", "account_taken"})


@dataclass(frozen=True, slots=True)
class Hint:
    """A person of the demo, for the sign-in page. ``groups`` are the innermost ones."""

    email: str
    name: str
    groups: tuple[str, ...]


class SignInForm(AuthenticationForm):
    """Django's form, with the e-mail address as the user name."""

    username = forms.CharField(
        label="E-mail address",
        max_length=150,
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True, "spellcheck": "false", "class": "form-control"}),
    )
    password = forms.CharField(
        label="Password",
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "class": "form-control"}),
    )

    error_messages = {  # noqa: RUF012  # Django's own declaration has this shape
        "invalid_login": "That e-mail address and password don't belong together, or the person is disabled. Try again.",
        "inactive": "This person is disabled. Ask your operator.",
    }


@method_decorator(login_not_required, name="dispatch")
class SignIn(views.LoginView):
    """Offer the ways in: the issuer's button where one is set, Django's form where ``DEMO`` is on. The base class drops a ``next`` of
    another site."""

    template_name = "identity/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        is_asking = request.method in {"GET", "HEAD"}
        if not (settings.DEMO or settings.OIDC_ISSUER):
            return render(request, "identity/not_configured.html", status=200 if is_asking else 403)
        if not (settings.DEMO or is_asking):
            return _refused(request, NotAllowed("Passwords work in the demo alone.", code="passwords_off"))
        return super().dispatch(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if throttle.is_too_often(request, email=request.POST.get("username", "").strip()[:_MOST_TYPED]):
            return _tried_too_often(request)
        return super().post(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        ways = {"has_issuer": bool(settings.OIDC_ISSUER), "issuer_name": settings.OIDC_NAME, "has_passwords": settings.DEMO}
        ended = _words_for(self.request.GET.get("because", ""))
        told = {"ended": ended, "has_drafts": drafts.has_any(self.request.session)}
        return super().get_context_data(hints=_hints() if settings.DEMO else [], **told, **ways, **kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        email = form.get_user().get_username()
        throttle.forgive(self.request, email=email)
        operations.record_password_sign_in(email=email, now=SystemClock().now())
        return super().form_valid(form)

    def form_invalid(self, form: Any) -> HttpResponse:
        if not form.has_error("username") and not form.has_error("password"):
            email = form.cleaned_data.get("username", "")
            operations.record_refusal(email=email, reason="password_refused", method=operations.BY_PASSWORD, now=SystemClock().now())
        return super().form_invalid(form)


sign_in = SignIn.as_view()


@login_not_required
@require_GET
def start(request: HttpRequest) -> HttpResponseBase:
    """Go to the issuer, by a link: ``form-action`` of the content policy would stop a form's redirect. It changes nothing but this
    browser's own session and signs nobody in; a page of another site gets the sign-in page."""
    if not settings.OIDC_ISSUER:
        raise Http404
    if request.user.is_authenticated:
        return redirect(safe_next(request) or settings.LOGIN_REDIRECT_URL)
    if request.headers.get("Sec-Fetch-Site") == "cross-site":
        return redirect("sign_in")
    begin_waiting(request)
    return _with_the_issuer(request, OAuth2LoginView.adapter_view(IssuerAdapter))


@login_not_required
@require_GET
def come_back(request: HttpRequest) -> HttpResponseBase:
    """Back from the issuer: signed in and on to the page that was asked for, or told why not."""
    if not settings.OIDC_ISSUER:
        raise Http404
    return _with_the_issuer(request, OAuth2CallbackView.adapter_view(IssuerAdapter))


def _with_the_issuer(request: HttpRequest, view: Any) -> HttpResponseBase:
    try:
        response: HttpResponseBase = view(request)
    except Refused as refusal:
        operations.record_refusal(email=refusal.email, reason=refusal.code, method=operations.BY_ISSUER, now=SystemClock().now())
        return _refused(request, refusal)
    except NotAllowed as refusal:
        # Without a valid state anybody may have sent this: it is logged, and written nowhere.
        log.info("identity.state_unknown", code=refusal.code)
        return _refused(request, refusal)
    except Unavailable as error:
        if error.code not in _ISSUER_CODES:
            raise
        log.exception("identity.issuer_failed", code=error.code)
        return _issuer_failed(request)
    return response


def _refused(request: HttpRequest, refusal: NotAllowed) -> HttpResponse:
    told = {"reason": refusal.message, "code": refusal.code, "is_by_directory": refusal.code in _BY_DIRECTORY}
    sign_out_address = _issuer_sign_out_address(request) if told["is_by_directory"] else ""
    context = {**told, "help_contact": settings.HELP_CONTACT, "issuer_name": settings.OIDC_NAME, "sign_out_address": sign_out_address}
    return render(request, "identity/refused.html", context, status=403)


def _tried_too_often(request: HttpRequest) -> HttpResponse:
    minutes = throttle.WINDOW_SECONDS // 60
    words = f"Passwords were tried too often from here. Wait {minutes} minutes, then try again."
    log.warning("identity.tried_too_often")
    response = _refused(request, NotAllowed(words, code="tried_too_often"))
    response.status_code = 429
    response.headers["Retry-After"] = str(throttle.WINDOW_SECONDS)
    return response


def _issuer_failed(request: HttpRequest) -> HttpResponse:
    response = render(request, "identity/issuer_failed.html", {"issuer_name": settings.OIDC_NAME}, status=503)
    response.headers["Retry-After"] = str(_RETRY_AFTER_SECONDS)
    return response


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def sign_out(request: HttpRequest) -> HttpResponse:
    """Sign out here, and go on to a page that offers to sign out of the issuer, where the person is signed in for other programs. A GET
    signs nobody out and leads home."""
    if request.method != "POST":
        return redirect("home")
    email = request.user.get_username() if request.user.is_authenticated else ""
    logout(request)
    if email:
        operations.record_sign_out(email=email, now=SystemClock().now())
    return HttpResponseRedirect(f"{reverse('signed_out')}?because=asked" if settings.OIDC_ISSUER else reverse("sign_in"))


@login_not_required
@require_safe
def signed_out(request: HttpRequest) -> HttpResponse:
    """Where signing out leads, and where a page that refreshes itself is sent when its person is no longer known or enabled."""
    is_asked = request.GET.get("because") == "asked"
    context = {
        "reason": "",
        "is_asked": is_asked,
        "issuer_name": settings.OIDC_NAME,
        "sign_out_address": _issuer_sign_out_address(request) if is_asked else "",
    }
    return render(request, "identity/signed_out.html", context)


def _issuer_sign_out_address(request: HttpRequest) -> str:
    """Where to sign out of the issuer as well; empty where there is none, or where it can't be asked now."""
    if settings.OIDC_SIGN_OUT_URL or not settings.OIDC_ISSUER:
        return str(settings.OIDC_SIGN_OUT_URL)
    try:
        found = issuer.discover(settings.OIDC_ISSUER)
    except Unavailable:
        return ""
    back_to = request.build_absolute_uri(reverse("sign_in"))
    return issuer.end_session_address(found, client_id=settings.OIDC_CLIENT_ID, back_to=back_to)


def _words_for(because: str) -> str:
    match because:
        case Ended.IDLE:
            return f"You were signed out, because nothing was done for {settings.SESSION_IDLE_MINUTES} minutes."
        case Ended.TOO_LONG:
            return f"You were signed out: everybody signs in anew after {settings.SESSION_HOURS} hours."
        case _:
            return ""


def _hints() -> list[Hint]:
    people = get_user_model().objects.filter(is_active=True).exclude(password__startswith=UNUSABLE_PASSWORD_PREFIX).order_by("pk")[:_HINTS]
    now = SystemClock().now()
    return [Hint(user.email, user.get_full_name(), _innermost(directory.groups_of(email=user.get_username(), now=now))) for user in people]


def _innermost(groups: frozenset[str]) -> tuple[str, ...]:
    return tuple(
        sorted(group for group in groups if not any(other.startswith(group.rstrip("/") + "/") for other in groups if other != group))
    )
