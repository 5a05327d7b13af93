"""Every address of the portal."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("accessportal.observe.urls")),
    path("", include("accessportal.identity.urls")),
    path("", include("accessportal.portal.urls")),
]
