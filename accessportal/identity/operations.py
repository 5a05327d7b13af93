"""Writes to Django's own user table: the part of a person that lets them sign in."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User

from accessportal.kernel.actors import fold_email


def ensure_demo_user(*, email: str, name: str, password: str) -> User:
    """Afterwards the person can sign in with ``password`` (where ``DEMO`` is on). Doing it again changes the password.

    What they may do stays with the directory: no role or permission is kept on the user. ``is_staff`` only lets Django's
    admin site be reached at all; its pages ask the actor.
    """
    first, _, last = name.partition(" ")
    user, _created = get_user_model().objects.get_or_create(username=fold_email(email))
    user.email = email.strip()
    user.first_name, user.last_name = first[:150], last[:150]
    user.is_active = user.is_staff = True
    if not user.check_password(password):
        user.set_password(password)
    user.save()
    return user
