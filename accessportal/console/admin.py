"""The framework's own models in the admin: users and sessions. django-q2 registers its own; the site makes all read-only."""

from __future__ import annotations

from typing import Any, ClassVar

import allauth.account.admin  # these three register what is unregistered below; our app comes first
import allauth.socialaccount.admin  # noqa: F401
import django.contrib.auth.admin  # noqa: F401
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.http import HttpRequest

from accessportal.console.framework import ReadOnly
from accessportal.kernel.actors import fold_email

# What a person may do comes from the directory; Django's groups would look as if they meant something.
admin.site.unregister(Group)
admin.site.unregister(get_user_model())
# Of allauth the sign-in flow alone is used; its tables are empty, and rows in them would look as if they meant something.
admin.site.unregister([EmailAddress, SocialAccount, SocialApp, SocialToken])


class SignInForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable at run time
    """The framework's own words tell people to untick it, which nobody can."""

    class Meta:
        help_texts: ClassVar = {
            "is_active": "Can't be changed here. Who must be shut out is disabled in the directory: that lasts, and the audit log tells it."
        }


@admin.register(User)
class SignInAdmin(ReadOnly):
    """Show who has signed in; nothing can be changed. Whoever may write a user name, or a password, could approve their own request as
    somebody else, and ``is_active`` would shut people out without an event."""

    form = SignInForm
    list_display = ("username", "first_name", "last_name", "is_active", "last_login")
    list_filter = ("is_active",)
    search_fields = ("username", "first_name", "last_name")
    ordering = ("username",)
    fields = ("username", "first_name", "last_name", "is_active", "last_login", "date_joined")


@admin.register(Session)
class SessionAdmin(ReadOnly):
    """Who is signed in until when. The table has a hash of each key (``identity.session_store``); not even that is linked."""

    list_display = ("fingerprint", "person", "expire_date")
    list_display_links = None
    ordering = ("-expire_date",)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The list, never one session: its page would have the key in its address and its data on the screen."""
        return obj is None and super().has_view_permission(request, obj)

    @admin.display(description="Session")
    def fingerprint(self, session: Session) -> str:
        return session.session_key[:12]

    @admin.display(description="Person")
    def person(self, session: Session) -> str:
        user = get_user_model().objects.filter(pk=session.get_decoded().get("_auth_user_id", 0)).first()
        return fold_email(user.get_username()) if user else "nobody (not signed in)"
