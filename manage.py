#!/usr/bin/env python
"""The management commands."""

from __future__ import annotations

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

if __name__ == "__main__":
    if sys.argv[1:2] == ["runportal"]:
        # Before Django reads its settings: the demo's environment reaches the local twin and nothing else.
        from accessportal.demo.env import take_environment

        take_environment()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "accessportal.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"Error: {error} The demo on this machine is found while it runs (make run), and where no PORTAL_ variable is set.")
