"""Addresses under ``/v1/``. Any that is not here is answered in the API's own words."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.urls import URLPattern, path, re_path

from accessportal.api import views
from accessportal.api.service import api

app_name = "api"


def _operations() -> list[URLPattern]:
    """Those of the framework, open to people who are not signed in (tokens decide), without its empty start page."""
    found = [one for one in api.urls[0] if isinstance(one, URLPattern) and one.name != "api-root"]
    for one in found:
        login_not_required(one.callback)
    return found


urlpatterns = [
    path("openapi.json", views.openapi, name="openapi"),
    path("docs", views.docs, name="docs"),
    *_operations(),
    re_path("", views.unknown, name="unknown"),
]
