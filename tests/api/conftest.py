"""Lab tracks at the API: a small pool at the test's own time, and tokens of both scopes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from django.test import Client

from accessportal.kernel.ports import set_after_commit
from accessportal.tokens import operations as tokens
from accessportal.tokens.states import ApiToken, Scope
from tests.conftest import FakeClock
from tests.sandboxes.conftest import OLGA, SETUP, Pool


@dataclass(frozen=True)
class Answer:
    """What a client sees."""

    status: int
    headers: dict[str, str]
    body: Any
    length: int

    @property
    def code(self) -> str:
        return str(self.body["error"]["code"])

    @property
    def error(self) -> tuple[int, str]:
        return self.status, self.code


@dataclass
class Lab:
    """A client program with a token of scope ``track``, one of scope ``admin``, and the pool behind the API."""

    pool: Pool
    track_token: str
    admin_token: str
    tokens: dict[str, ApiToken]

    def send(self, method: str, path: str, *, token: str | None = None, body: Any = None, **headers: str) -> Answer:
        """Header names with underscores; ``token`` empty: none is sent; ``body``: JSON, or bytes as they are."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        token = self.track_token if token is None else token
        if token:
            given["Authorization"] = f"Bearer {token}"
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        client = Client(raise_request_exception=False)
        response = client.generic(method, f"/v1/{path}", content, content_type="application/json", headers=given)
        assert response.headers["X-Request-ID"]
        assert response.headers["Cache-Control"] == "no-store"
        assert not response.cookies
        assert "Vary" not in response.headers
        told = Answer(response.status_code, dict(response.headers), json.loads(response.content), len(response.content))
        if told.status >= 400:
            check_error(told)
        return told

    def allocate(self, track: str = "track-1", **headers: str) -> Answer:
        return self.send("POST", "allocate", X_Track_ID=track, **headers)

    def give_back(self, sandbox_id: str, track: str = "track-1", **headers: str) -> Answer:
        return self.send("POST", f"sandboxes/{sandbox_id}/mark-for-deletion", X_Track_ID=track, **headers)

    def look(self, sandbox_id: str, track: str = "track-1") -> Answer:
        return self.send("GET", f"sandboxes/{sandbox_id}", X_Track_ID=track)

    def admin(self, method: str, path: str, *, body: Any = None) -> Answer:
        return self.send(method, f"admin/{path}", token=self.admin_token, body=body)

    def new_token(
        self,
        name: str,
        scope: Scope = Scope.TRACK,
        *,
        rate: int = 600,
        expires_at: datetime | None = None,
        tracks: Collection[str] = (),
        most_held: int | None = None,
        home: str = "",
    ) -> str:
        made = tokens.create_token(
            name=name,
            scope=scope,
            rate_per_minute=rate,
            expires_at=expires_at,
            tracks=tracks,
            most_held=most_held,
            home_scope=home,
            actor=SETUP,
            now=self.pool.clock.now(),
        )
        self.tokens[made.text] = made.token
        return made.text

    def revoke(self, text: str) -> None:
        tokens.revoke_token(token_id=self.tokens[text].token_id, reason="left", actor=OLGA, now=self.pool.clock.now())


def check_error(told: Answer) -> None:
    """The one shape."""
    assert set(told.body) == {"error"}
    error = told.body["error"]
    assert {"code", "message", "request_id"} <= set(error) <= {"code", "message", "request_id", "field", "retry_after"}
    assert error["code"] == error["code"].upper()
    assert error["message"]
    assert error["request_id"] == told.headers["X-Request-ID"]
    if "retry_after" in error:
        assert told.headers["Retry-After"] == str(error["retry_after"])
        assert error["retry_after"] >= 1
    assert told.headers["Content-Type"] == "application/json"


@pytest.fixture
def pool(tables: None, clock: FakeClock) -> Pool:
    return Pool(clock)


@pytest.fixture
def lab(pool: Pool) -> Iterator[Lab]:
    lab = Lab(pool, "", "", {})
    lab.track_token, lab.admin_token = lab.new_token("lab"), lab.new_token("care", Scope.ADMIN)
    replaced = set_after_commit(lambda *_, **__: None)
    yield lab
    set_after_commit(replaced)
