"""Sessions in Django's table, under a hash of their keys: the key is the cookie, and no row, list or backup tells it."""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.models import Session
from django.utils import timezone

from accessportal.identity.database import AWAY

# As much of the hash as the table's column takes.
_LENGTH = 40


def stored_key(session_key: str) -> str:
    """What the table has in the place of ``session_key``. It is too random to be guessed, so a fast hash will do."""
    return hashlib.sha256(session_key.encode()).hexdigest()[:_LENGTH]


class SessionStore(DatabaseStore):
    """The name is Django's (``SESSION_ENGINE``). Its variants for asynchronous views are not used here."""

    def load(self) -> dict[str, Any]:
        row = Session.objects.filter(session_key=stored_key(self.session_key or ""), expire_date__gt=timezone.now()).first()
        if row is None:
            self._session_key = None
            return {}
        return dict(self.decode(row.session_data))

    def exists(self, session_key: str) -> bool:
        return super().exists(stored_key(session_key))

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        row = super().create_model_instance(data)
        row.session_key = stored_key(row.session_key)
        return row

    def save(self, must_create: bool = False) -> None:  # noqa: FBT001, FBT002  # Django's signature
        try:
            super().save(must_create)
        except UpdateError as error:
            # Django tells a database that takes no writes as it tells a session that was deleted meanwhile.
            if isinstance(error.__context__, AWAY):
                raise error.__context__ from None
            raise

    def delete(self, session_key: str | None = None) -> None:
        if key := session_key or self.session_key:
            super().delete(stored_key(key))
