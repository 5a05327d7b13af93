"""The room's Django app: management commands."""

from __future__ import annotations

from django.apps import AppConfig


class CommandsConfig(AppConfig):
    name = "accessportal.commands"
    label = "commands"
    verbose_name = "Commands"
