"""Addresses for machines. No trailing slash: probes and scrapers expect none."""

from __future__ import annotations

from django.urls import path

from accessportal.observe import views

urlpatterns = [
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("metrics", views.metrics, name="metrics"),
]
