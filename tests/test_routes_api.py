"""Every address of the API with its rights, tried with every kind of token. One that is missing from the table fails."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.test import Client

from accessportal.api.documenting import document
from accessportal.api.service import api
from accessportal.sandboxes import operations
from accessportal.tokens import operations as tokens
from accessportal.tokens.states import Scope
from tests.conftest import FakeClock
from tests.sandboxes.conftest import OLGA, SETUP, Pool

TOKENS = ("none", "garbage", "revoked", "expired", "track", "admin")
TRACK = {"X-Track-ID": "track-1"}


@dataclass(frozen=True)
class Call:
    """``track`` and ``admin`` are the answers to a token of that scope; nothing else gets in (401)."""

    method: str
    path: str
    track: int
    admin: int
    body: str = ""

    def answer(self, token: str) -> int:
        return {"track": self.track, "admin": self.admin}.get(token, 401)


CALLS = {
    "allocate": [Call("POST", "/v1/allocate", 201, 201)],
    "mark_for_deletion": [
        Call("POST", "/v1/sandboxes/{mine}/mark-for-deletion", 200, 200),
        Call("POST", "/v1/sandboxes/{others}/mark-for-deletion", 403, 403),
        Call("POST", "/v1/sandboxes/nothing/mark-for-deletion", 404, 404),
    ],
    "get_sandbox": [
        Call("GET", "/v1/sandboxes/{mine}", 200, 200),
        Call("GET", "/v1/sandboxes/{others}", 403, 200),
        Call("GET", "/v1/sandboxes/nothing", 404, 404),
    ],
    "list_sandboxes": [
        Call("GET", "/v1/admin/sandboxes?status=available", 403, 200),
        Call("GET", "/v1/admin/sandboxes?status=available&cursor=forged", 403, 400),
    ],
    "get_stats": [Call("GET", "/v1/admin/stats", 403, 200)],
    "order_sync": [Call("POST", "/v1/admin/sync", 403, 202)],
    "order_cleanup": [Call("POST", "/v1/admin/cleanup", 403, 202)],
    "get_job": [Call("GET", "/v1/admin/jobs/nothing", 403, 404)],
    "restore_sandbox": [
        Call("POST", "/v1/admin/sandboxes/{broken}/restore", 403, 200),
        Call("POST", "/v1/admin/sandboxes/{mine}/restore", 403, 409),
    ],
    "quarantine_sandbox": [
        Call("POST", "/v1/admin/sandboxes/{others}/quarantine", 403, 200, body='{"reason": "The disk is corrupt."}'),
        Call("POST", "/v1/admin/sandboxes/{others}/quarantine", 403, 400),
    ],
}


def test_every_operation_is_in_the_table() -> None:
    told = json.loads(json.dumps(document(api)))

    assert {operation["operationId"] for methods in told["paths"].values() for operation in methods.values()} == set(CALLS)


@pytest.mark.django_db
@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("name", CALLS)
def test_every_token_may_what_the_table_says_and_no_more(tables: None, clock: FakeClock, token: str, name: str) -> None:
    pool = Pool(clock)
    pool.fill(4)
    broken = pool.everything()[0]
    operations.quarantine(sandbox_id=broken.sandbox_id, reason="Broken", actor=OLGA, now=clock.now())
    keys = {"broken": broken.sandbox_id, "mine": pool.take("track-1", key="mine").sandbox.sandbox_id}
    keys["others"] = pool.take("track-2").sandbox.sandbox_id
    text = text_of(token, clock)
    headers = TRACK | ({"Authorization": f"Bearer {text}"} if text else {})

    for call in CALLS[name]:
        response = Client().generic(call.method, call.path.format(**keys), call.body, "application/json", headers=headers)

        assert response.status_code == call.answer(token), call


def text_of(token: str, clock: FakeClock) -> str:
    if token in {"none", "garbage"}:
        return "" if token == "none" else "apt_garbage"
    ends = clock.now() + timedelta(minutes=1) if token == "expired" else None
    scope = Scope.TRACK if token == "track" else Scope.ADMIN
    made = tokens.create_token(name=token, scope=scope, expires_at=ends, actor=SETUP, now=clock.now())
    if token == "revoked":
        tokens.revoke_token(token_id=made.token.token_id, actor=OLGA, now=clock.now())
    if token == "expired":
        clock.advance(60)
    return made.text
