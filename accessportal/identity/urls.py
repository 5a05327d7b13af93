"""Addresses for signing in and out. Of allauth's own pages none is here."""

from django.urls import path

from accessportal.identity import views

urlpatterns = [
    path("sign-in/", views.sign_in, name="sign_in"),
    path("sign-in/start/", views.start, name="sign_in_start"),
    path("sign-in/callback/", views.come_back, name="sign_in_callback"),
    path("sign-out/", views.sign_out, name="sign_out"),
    path("signed-out/", views.signed_out, name="signed_out"),
]
