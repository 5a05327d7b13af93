"""Django's authentication and permissions, answered by the directory."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.http import HttpRequest

from accessportal.identity.queries import actor_for
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import NotAllowed

_CACHED = "_portal_actor"
_IDENTITY = "_portal_identity"


class DirectoryBackend(ModelBackend):
    """Passwords work only where ``DEMO`` is on; permissions come from the role in the directory, read live: operators may do all that
    Django's own admin pages offer, auditors may look. No domain function asks Django's permission tables."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        if not settings.DEMO or username is None or "\0" in username:
            return None
        user = super().authenticate(request, username=fold_email(username), password=password, **kwargs)
        # Whether somebody who is signed in still may be is asked by the middleware, which can tell them why not.
        return user if user is not None and _actor(user) is not None else None

    def has_perm(self, user_obj: Any, perm: str, obj: object | None = None) -> bool:
        if not user_obj.is_active:
            return False
        actor = _actor(user_obj)
        if actor is None:
            return False
        return actor.is_operator or (actor.is_auditor and perm.partition(".")[2].startswith("view_"))

    def has_module_perms(self, user_obj: Any, app_label: str) -> bool:
        actor = _actor(user_obj) if user_obj.is_active else None
        return actor is not None and (actor.is_operator or actor.is_auditor)


def remember(user: object, actor: Actor) -> None:
    """Keep ``actor`` on the user object, which lives as long as one web request: an admin page asks ``has_perm`` dozens of times."""
    setattr(user, _CACHED, actor)


def vouched_for(user: Any, identity: str) -> Any:
    """``user``, whose rights are those of a session that was begun for ``identity``."""
    setattr(user, _IDENTITY, identity)
    return user


def _actor(user: Any) -> Actor | None:
    if not hasattr(user, _CACHED):
        try:
            remember(user, actor_for(user, SystemClock().now(), identity=getattr(user, _IDENTITY, "")))
        except NotAllowed:
            return None
    found = getattr(user, _CACHED)
    assert isinstance(found, Actor)
    return found
