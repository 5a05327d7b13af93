"""The WSGI entry point."""

import os

from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application

from accessportal.apps import check_demo
from accessportal.store.base import open_connections
from accessportal.web.headers import judged

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "accessportal.settings")
application = judged(get_wsgi_application())
if faults := check_demo(None):
    # Commands run Django's checks; a web server does not.
    raise ImproperlyConfigured(" ".join(str(fault) for fault in faults))
open_connections()
