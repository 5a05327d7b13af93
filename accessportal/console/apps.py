"""The two entries in ``INSTALLED_APPS``: this room, and Django's admin with our site as the default one."""

from django.apps import AppConfig
from django.contrib.admin import apps as django_admin


class ConsoleConfig(AppConfig):
    name = "accessportal.console"
    label = "console"
    verbose_name = "Console"
    default = True


class PortalAdminConfig(django_admin.AdminConfig):
    """Replaces ``django.contrib.admin``; named in full in the settings, so never the default of this package."""

    default = False
    default_site = "accessportal.console.site.PortalAdminSite"
