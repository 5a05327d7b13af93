"""Signing in and out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model, views
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_safe

from accessportal.directory import queries as directory
from accessportal.identity.forms import SignInForm
from accessportal.kernel.clock import SystemClock

_HINTS = 8


@dataclass(frozen=True, slots=True)
class Hint:
    """A person of the demo, for the sign-in page. ``groups`` are the innermost ones."""

    email: str
    name: str
    groups: tuple[str, ...]


@method_decorator(login_not_required, name="dispatch")
class SignIn(views.LoginView):
    """Django's login, only where ``DEMO`` is on; elsewhere a page that says that no way to sign in is set up yet.

    ``next`` is checked by the base class: an address of another site is dropped. There is no lockout here; a company's
    identity provider has one, and the demo needs none.
    """

    template_name = "identity/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.DEMO:
            return render(request, "identity/not_configured.html", status=200 if request.method in {"GET", "HEAD"} else 403)
        return super().dispatch(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(hints=_hints(), **kwargs)


sign_in = SignIn.as_view()
sign_out = method_decorator(login_not_required, name="dispatch")(views.LogoutView).as_view()


@login_not_required
@require_safe
def signed_out(request: HttpRequest) -> HttpResponse:
    """Where a page that refreshes itself is sent when its person is no longer known or enabled."""
    return render(request, "identity/signed_out.html", {"reason": ""})


def _hints() -> list[Hint]:
    people = get_user_model().objects.filter(is_active=True).order_by("pk")[:_HINTS]
    now = SystemClock().now()
    return [Hint(user.email, user.get_full_name(), _innermost(directory.groups_of(email=user.get_username(), now=now))) for user in people]


def _innermost(groups: frozenset[str]) -> tuple[str, ...]:
    return tuple(
        sorted(group for group in groups if not any(other.startswith(group.rstrip("/") + "/") for other in groups if other != group))
    )
