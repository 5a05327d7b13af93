"""Django's admin site with our rights, our way in, and the resources beside the framework's own models.

Uses the public admin interface only: ``AdminSite``, ``admin_view``, ``each_context``, ``get_urls``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import Any, cast

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.db.models import Model
from django.db.models.base import ModelBase
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse

from accessportal.console import (
    chain_check,
    cleaning,
    deciding,
    evidence_files,
    explain,
    export,
    granting,
    new_token,
    people_holdings,
    pool_runs,
    record_check,
    scope_counts,
    views,
)
from accessportal.console.framework import ReadOnly
from accessportal.console.resource import Ask, Resource
from accessportal.console.resources import RESOURCES
from accessportal.console.rooms import rooms_for
from accessportal.identity.middleware import PortalRequest, actor_of, book_of
from accessportal.identity.views import sign_out
from accessportal.kernel.errors import NotAllowed, NotFound, Unavailable
from accessportal.store.restores import held_restore

View = Callable[..., HttpResponseBase]

_CACHED = "_console_admitted"


class PortalAdminSite(admin.AdminSite):
    site_header = "Access Portal"
    site_title = "Access Portal"
    index_title = "Administration"
    site_url = "/"
    enable_nav_sidebar = False

    def has_permission(self, request: HttpRequest) -> bool:
        """Operators, auditors, and approvers of some current rule; ``is_staff`` is not asked."""
        if not hasattr(request, _CACHED):
            setattr(request, _CACHED, _is_admitted(request))
        return bool(getattr(request, _CACHED))

    def admin_view(self, view: View, cacheable: bool = False) -> Any:  # noqa: FBT001, FBT002  # Django's signature
        inner = super().admin_view(view, cacheable)

        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if cast(PortalRequest, request).actor is None:
                return redirect_to_login(request.get_full_path(), settings.LOGIN_URL)
            if not self.has_permission(request):
                raise NotAllowed(
                    "The admin pages are for operators, auditors and approvers. Your own access is under “My access”.",
                    code="not_admitted",
                )
            return inner(request, *args, **kwargs)

        return update_wrapper(guarded, inner)

    @login_not_required
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """There is one way in, the portal's sign-in page."""
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"), settings.LOGIN_URL)

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """And one way out, which is told in the audit log."""
        return sign_out(request)

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Django's page would take any password. People have none here; those of the demo come from its settings."""
        raise NotFound("Passwords are not changed here.", code="no_passwords")

    def password_change_done(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        raise NotFound("Passwords are not changed here.", code="no_passwords")

    def register(self, model_or_iterable: ModelBase | type[Model] | Iterable[type[Model]], admin_class: Any = None, **options: Any) -> None:
        """Every model's pages are for looking, whoever registers it. Of the job queue, writing a row would be running code: its
        rows hold dotted names of functions and pickled arguments."""
        chosen = admin_class or admin.ModelAdmin
        if not issubclass(chosen, ReadOnly):
            chosen = type(f"ReadOnly{chosen.__name__}", (ReadOnly, chosen), {"__module__": __name__})
        super().register(model_or_iterable, chosen, **options)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        ours: list[URLPattern | URLResolver] = [
            path("rules/explain/", self.admin_view(explain.explain), name="console_explain"),
            path("audit/chain/", self.admin_view(chain_check.check), name="console_chain"),
            path("sandbox-runs/order/<slug:kind>/", self.admin_view(pool_runs.order), name="console_order_run"),
            path("account-pool/clean/", self.admin_view(cleaning.order), name="console_order_cleaning"),
            path("evidence/<item:key>/files/<slug:what>/", self.admin_view(evidence_files.download), name="console_evidence_file"),
            path("people/holdings/", self.admin_view(people_holdings.show), name="console_people_holdings"),
            path("tokens/new/", self.admin_view(new_token.create), name="console_tokens_new"),
            path("requests/<item:request_id>/around/", self.admin_view(deciding.around), name="console_requests_around"),
            path("scopes/<item:key>/counts/", self.admin_view(scope_counts.show), name="console_scopes_counts"),
            path("check-record/", self.admin_view(record_check.check), name="console_check_record"),
            *(
                path(f"{name}/grant/", self.admin_view(granting.grant), {"records": name}, name=f"console_{name}_grant")
                for name in ("approvals", "relationships")
            ),
        ]
        for resource in RESOURCES.values():
            ours += self._urls_of(resource)
        return ours + super().get_urls()

    def _urls_of(self, resource: Resource) -> list[URLPattern | URLResolver]:
        at, given = resource.name, {"resource": resource}
        operate = views.lead_to_portal if resource.portal_page else views.operate
        return [
            path(f"{at}/", self.admin_view(views.show_list), given, name=f"console_{at}"),
            path(f"{at}/export/<slug:form>/", self.admin_view(export.export), given, name=f"console_{at}_export"),
            path(f"{at}/bulk/<slug:operation>/", self.admin_view(views.operate_on_many), given, name=f"console_{at}_bulk"),
            path(f"{at}/<item:key>/", self.admin_view(views.show_detail), given, name=f"console_{at}_detail"),
            path(f"{at}/<item:key>/history/", self.admin_view(views.show_history), given, name=f"console_{at}_history"),
            path(f"{at}/<item:key>/do/<slug:operation>/", self.admin_view(operate), given, name=f"console_{at}_operate"),
        ]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The start page, with how many requests wait and are stuck, and the box that finds them."""
        ask = Ask(actor=actor_of(request), book=book_of(request))
        requests = RESOURCES["requests"]
        patterns = requests.patterns_for(ask.actor)
        tallies = [(pattern.label, pattern.tally(ask).words) for pattern in patterns if pattern.tally]
        told = {
            "tallies": [(label, words) for label, words in tallies if words],
            "find_box": requests.box if ask.actor.reads_everything else None,
        }
        return super().index(request, {**(extra_context or {}), **told})

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context = super().each_context(request)
        actor = cast(PortalRequest, request).actor
        is_in = actor is not None and context["has_permission"]
        rooms = rooms_for(actor, request.path, context["available_apps"]) if actor is not None and is_in else ()
        context["rooms"], context["room"] = rooms, next((room for room in rooms if room.is_current), None)
        context["held_words"] = _held_words() if is_in else ""
        return context


def _is_admitted(request: HttpRequest) -> bool:
    actor = cast(PortalRequest, request).actor
    return actor is not None and (actor.reads_everything or book_of(request).decides(actor))


def _held_words() -> str:
    """The banner of every admin page while grants are held; that it can't be known is said too, on the pages that need no table."""
    try:
        restore = held_restore()
    except Unavailable:
        return "Whether grants are held after a restore of the tables can't be read at the moment."
    if restore is None:
        return ""
    told = f"The tables were restored to {restore.restored_to:%Y-%m-%d %H:%M} UTC (told by {restore.begun_by})"
    return f"{told}. Nothing is granted until that is confirmed; taking back goes on. See “Restore” in docs/operations.md."
