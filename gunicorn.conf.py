"""What every web server of the portal is started with. gunicorn reads it by itself where it is started from this folder."""

import os

from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "accessportal.settings")

worker_class = "gthread"
# The share of them that may wait for a store is reckoned from the same number (accessportal.observe.seats).
threads = settings.WEB_THREADS
logger_class = "accessportal.observe.web_log.WebLog"
logconfig_dict = settings.LOGGING
