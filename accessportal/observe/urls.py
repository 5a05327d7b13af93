"""The address for scrapers; probes are answered before there are routes (``probes``). No trailing slash: scrapers expect none."""

from django.urls import path

from accessportal.observe import views

urlpatterns = [
    path("metrics", views.metrics, name="metrics"),
]
