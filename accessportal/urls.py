"""Every address of the portal."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("v1/", include("accessportal.api.urls")),
    path("", include("accessportal.observe.urls")),
    path("", include("accessportal.identity.urls")),
    path("", include("accessportal.portal.urls")),
]

handler400 = "accessportal.web.errors.bad_request"
handler500 = "accessportal.web.errors.server_error"
