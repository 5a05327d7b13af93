"""Every address of the API with its rights, tried with every kind of token. One that is missing from the table fails."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.test import Client

from accessportal.api import views
from accessportal.sandboxes import operations
from accessportal.tokens import operations as tokens
from accessportal.tokens.states import Scope
from tests.conftest import FakeClock
from tests.sandboxes.conftest import OLGA, SETUP, Pool

TOKENS = ("none", "garbage", "revoked", "expired", *Scope)
TRACK = {"X-Track-ID": "track-1"}


@dataclass(frozen=True)
class Call:
    """The answers to a token of each scope; nothing else gets in (401)."""

    method: str
    path: str
    track: int
    admin: int
    body: str = ""
    checks: int = 403
    writes: int = 403
    asks: int = 403
    cares: int = 403
    reads: int = 403

    def answer(self, token: str) -> int:
        answers = {
            Scope.TRACK: self.track,
            Scope.ADMIN: self.admin,
            Scope.AUTHZ_CHECK: self.checks,
            Scope.AUTHZ_WRITE: self.writes,
            Scope.LEASES_ASK: self.asks,
            Scope.LEASES_ADMIN: self.cares,
            Scope.HISTORY: self.reads,
        }
        return answers[Scope(token)] if token in list(Scope) else 401


def authz(verb: str, checks: int, writes: int, **body: object) -> Call:
    """About ``tenant:acme``, which is the home of the tokens, if nothing else is said."""
    return Call("POST", f"/v1/authz/{verb}", 403, 403, json.dumps({"scope": "tenant:acme"} | body), checks, writes)


def leases(method: str, path: str, asks: int, cares: int, **body: object) -> Call:
    return Call(method, f"/v1/{path}", 403, 403, json.dumps(body), asks=asks, cares=cares)


def history(path: str, reads: int) -> Call:
    return Call("GET", f"/v1/history/{path}", 403, 403, reads=reads)


NO_LEASE = "3f0c6a52-5d0e-4c8f-9a57-0a7c1f6d2b11"
WHY = {"reason": "It mines coins."}
ALICE = {"kind": "approval", "identity": "alice", "resource": "docs/1", "action": "GET"}
CHAIN = {"subject": "alice", "relation": "member", "object": "payments"}
ELSEWHERE = {"scope": "tenant:widgets"}


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
    "grant_record": [authz("grant", 403, 201, **ALICE), authz("grant", 403, 403, **ALICE | ELSEWHERE), authz("grant", 403, 400)],
    "extend_record": [authz("extend", 403, 404, **ALICE), authz("extend", 403, 403, **ALICE | ELSEWHERE)],
    "revoke_record": [authz("revoke", 403, 404, **ALICE), authz("revoke", 403, 403, **ALICE | ELSEWHERE)],
    "get_record": [authz("get", 404, 404, **ALICE), authz("get", 403, 403, **ALICE | ELSEWHERE)],
    "list_records": [authz("list", 200, 200, kind="approval"), authz("list", 403, 403, kind="approval", **ELSEWHERE)],
    "count_records": [authz("count", 200, 200, kind="approval"), authz("count", 403, 403, kind="approval", **ELSEWHERE)],
    "check_record": [authz("check", 200, 200, **ALICE), authz("check", 403, 403, **ALICE | ELSEWHERE)],
    "check_chain": [authz("chain", 200, 200, **CHAIN), authz("chain", 403, 403, **CHAIN | ELSEWHERE)],
    "check_batch": [Call("POST", "/v1/authz/batch", 403, 403, '{"checks": []}', 200, 200)],
    "get_policy": [authz("policy", 200, 200), authz("policy", 403, 403, **ELSEWHERE)],
    "request_lease": [leases("POST", "leases", 400, 400)],
    "list_leases": [
        leases("GET", "leases?person=alice@example.com", 200, 200),
        leases("GET", "leases?person=alice@example.com&cursor=forged", 400, 400),
    ],
    "get_lease": [leases("GET", f"leases/{NO_LEASE}", 404, 404)],
    "give_back_lease": [leases("POST", f"leases/{NO_LEASE}/give-back", 404, 404)],
    "list_accounts": [leases("GET", "admin/accounts", 403, 200), leases("GET", "admin/accounts?cursor=forged", 403, 400)],
    "get_account": [leases("GET", "admin/accounts/111111111111", 403, 404)],
    "restore_account": [leases("POST", "admin/accounts/111111111111/restore", 403, 404)],
    "retire_account": [leases("POST", "admin/accounts/111111111111/retire", 403, 404, **WHY)],
    "quarantine_account": [leases("POST", "admin/accounts/111111111111/quarantine", 403, 404, **WHY)],
    # No cleaner is set.
    "order_cleaning": [leases("POST", "admin/accounts-cleaning", 403, 409)],
    "list_held_leases": [leases("GET", "admin/leases", 403, 200)],
    "freeze_lease": [leases("POST", f"admin/leases/{NO_LEASE}/freeze", 403, 404, **WHY)],
    "unfreeze_lease": [leases("POST", f"admin/leases/{NO_LEASE}/unfreeze", 403, 404)],
    # No job has made the history.
    "who_had": [history("who-had?kind=group&name=/&at=1", 503), history("who-had?kind=group&name=/&at=soon", 400)],
    "what_had": [history("what-had?email=a@example.com&from=1&to=2", 503), history("what-had?email=a@example.com&from=2&to=1", 400)],
}


def test_every_operation_is_in_the_table() -> None:
    told = json.loads(views._document())

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
    scope = Scope(token) if token in list(Scope) else Scope.ADMIN
    home = "tenant:acme" if scope.has_home else ""
    made = tokens.create_token(name=token, scope=scope, expires_at=ends, home_scope=home, actor=SETUP, now=clock.now())
    if token == "revoked":
        tokens.revoke_token(token_id=made.token.token_id, actor=OLGA, now=clock.now())
    if token == "expired":
        clock.advance(60)
    return made.text
