"""Addresses for signing in and out."""

from __future__ import annotations

from django.urls import path

from accessportal.identity import views

urlpatterns = [
    path("sign-in/", views.sign_in, name="sign_in"),
    path("sign-out/", views.sign_out, name="sign_out"),
    path("signed-out/", views.signed_out, name="signed_out"),
]
