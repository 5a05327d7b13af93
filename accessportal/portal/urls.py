"""Addresses of the pages for people."""

from __future__ import annotations

from django.urls import path

from accessportal.portal.views import fragments, home, new, request, verbs

urlpatterns = [
    path("", home.show, name="home"),
    path("requests/new/", new.choose_kind, name="new"),
    path("requests/new/aws_account/", new.aws_account, name="new_aws_account"),
    path("requests/new/aws_account/preview/", new.preview, name="preview_aws_account"),
    path("requests/new/aws_account/accounts/", new.accounts, name="search_accounts"),
    path("requests/new/aws_account/permission-sets/", new.permission_sets, name="search_permission_sets"),
    path("requests/<uuid:request_id>/", request.show, name="request"),
    path("requests/<uuid:request_id>/live/", request.live, name="request_live"),
    path("requests/<uuid:request_id>/extend/", new.extend, name="extend"),
    path("requests/<uuid:request_id>/<slug:verb>/", verbs.confirm, name="verb"),
    path("fragments/approvals/", fragments.approvals_tally, name="approvals_tally"),
]
