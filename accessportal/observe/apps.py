"""The room's Django app: it owns one small table, the heartbeats."""

from django.apps import AppConfig


class ObserveConfig(AppConfig):
    name = "accessportal.observe"
    label = "observe"
    verbose_name = "Health"
