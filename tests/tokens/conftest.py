"""API tokens at the test's own time: Olga operates, Ana audits, Mallory may not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pytest

from accessportal.kernel.actors import Role, person
from accessportal.tokens import operations
from accessportal.tokens.rate import RateLimit
from accessportal.tokens.states import ApiToken, NewToken, Scope
from tests.conftest import FakeClock

OLGA = person("olga@example.com", roles=frozenset({Role.OPERATOR}))
ANA = person("ana@example.com", roles=frozenset({Role.AUDITOR}))
MALLORY = person("mallory@example.com")


@dataclass
class Tokens:
    """Short words for what Olga and her clients do, at the clock's time."""

    clock: FakeClock

    def create(
        self, name: str = "Lab runner", *, scope: Scope = Scope.TRACK, rate: int = 600, expires_at: datetime | None = None
    ) -> NewToken:
        now = self.clock.now()
        return operations.create_token(name=name, scope=scope, rate_per_minute=rate, expires_at=expires_at, actor=OLGA, now=now)

    def revoke(self, made: NewToken, *, reason: str = "") -> ApiToken:
        return operations.revoke_token(token_id=made.token.token_id, reason=reason, actor=OLGA, now=self.clock.now())

    def use(self, text: str) -> ApiToken:
        return operations.authenticate(text=text, now=self.clock.now())

    def ask(self, token: ApiToken, times: int = 1) -> int:
        """How many of so many requests were let through."""
        return sum(operations.claim_request(token=token, now=self.clock.now()) == 0.0 for _ in range(times))


@pytest.fixture
def tokens(tables: None, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Tokens:
    monkeypatch.setattr(operations, "_rate_limit", RateLimit())
    return Tokens(clock)
