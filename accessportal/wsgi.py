"""The WSGI entry point."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from accessportal.store.base import open_connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "accessportal.settings")
application = get_wsgi_application()
open_connections()
