"""What every answer has, whoever asks for whatever: one shape, a number, no cookie, and the right refusal of tokens."""

from __future__ import annotations

import json
import logging
import random
import re
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from django.contrib.staticfiles import finders
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from accessportal.api import views
from accessportal.sandboxes import operations
from accessportal.sandboxes.operations import taking
from accessportal.tokens.states import Scope
from tests.api.conftest import Lab

OPERATIONS = [
    (method.upper(), path.removeprefix("/v1/"), [one["name"] for one in told["parameters"] if one["in"] == "query"])
    for path, methods in json.loads(views._document())["paths"].items()
    for method, told in methods.items()
]
ODD_NAMES = ("=x", "body=1", "%00=1", "status=available&Status=available", f"{'a' * 3_000}=1", "&".join(f"a{n}=1" for n in range(1_500)))


@pytest.mark.parametrize("token", ["garbage", "apt_", "apt_abc", "apt_aaaaaaaaaaaa_" + "x" * 43, "ä", "x" * 5000, "apt__"])
def test_a_token_that_is_none_is_refused(lab: Lab, token: str) -> None:
    refused = lab.send("POST", "allocate", token=token, X_Track_ID="track-1")

    assert refused.error == (401, "INVALID_TOKEN")
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("header", ["", "Basic dXNlcjpwYXNz", "Bearer", "Bearer ", "apt_x"])
def test_without_a_bearer_token_nobody_gets_in(lab: Lab, header: str) -> None:
    headers = {"Authorization": header} if header else {}

    refused = lab.send("POST", "allocate", token="", X_Track_ID="track-1", **headers)

    assert refused.error == (401, "INVALID_TOKEN")


def test_a_token_with_another_secret_is_refused(lab: Lab) -> None:
    changed = lab.track_token[:-4] + ("AAAA" if not lab.track_token.endswith("AAAA") else "BBBB")

    assert lab.send("POST", "allocate", token=changed, X_Track_ID="track-1").error == (401, "INVALID_TOKEN")


def test_a_revoked_token_is_refused_at_once(lab: Lab) -> None:
    lab.pool.fill(1)
    assert lab.allocate().status == 201

    lab.revoke(lab.track_token)

    assert lab.allocate().error == (401, "TOKEN_REVOKED")


def test_an_expired_token_is_refused(lab: Lab) -> None:
    lab.pool.fill(1)
    lab.track_token = lab.new_token("short", expires_at=lab.pool.clock.now() + timedelta(hours=1))
    assert lab.allocate().status == 201

    lab.pool.clock.advance(3600)

    assert lab.allocate().error == (401, "TOKEN_EXPIRED")


def test_used_up_requests_say_when_to_go_on(lab: Lab) -> None:
    lab.pool.fill(1)
    lab.track_token = lab.new_token("slow", rate=3)
    assert [lab.allocate().status for _ in range(3)] == [201, 200, 200]

    refused = lab.allocate()

    assert refused.error == (429, "RATE_LIMITED")
    assert 1 <= refused.body["error"]["retry_after"] <= 60
    assert lab.admin("GET", "stats").status == 200, "another token has requests of its own"
    lab.pool.clock.advance(refused.body["error"]["retry_after"])
    assert lab.allocate().status == 200


def test_nothing_is_above_the_limit_of_a_token_that_may_not(lab: Lab) -> None:
    slow = lab.new_token("slow", rate=2)

    told = [lab.send("GET", "admin/stats", token=slow).error for _ in range(3)]

    assert told == [(403, "INSUFFICIENT_SCOPE"), (403, "INSUFFICIENT_SCOPE"), (429, "RATE_LIMITED")]


@pytest.mark.parametrize("path", ["", "nothing", "docs/", "admin", "sandboxes/", "allocate/", "sandboxes/a/b/c", "../admin"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_an_unknown_address_is_told_in_the_one_shape(lab: Lab, method: str, path: str) -> None:
    assert lab.send(method, path).error == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "path", "allowed"), [("GET", "allocate", "POST"), ("PUT", "docs", "GET"), ("POST", "openapi.json", "GET")]
)
def test_an_unknown_method_is_told_what_is_known(lab: Lab, method: str, path: str, allowed: str) -> None:
    refused = lab.send(method, path)

    assert refused.error == (405, "METHOD_NOT_ALLOWED")
    assert refused.headers["Allow"] == allowed
    # Else a server cuts what it sends; Django's test client does not.
    assert refused.headers["Content-Length"] == str(refused.length)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe",
        b"[]",
        b'"x"',
        b"null",
        b"{}",
        b'{"reason": ""}',
        b'{"reason": 5}',
        b'{"reason": "x", "more": 1}',
        b'{"reason": "a\\u0000"}',
        b'{"reason": "\\u202ea"}',
        b'{"reason": " \\n"}',
    ],
)
def test_a_body_that_breaks_a_rule_is_refused(lab: Lab, body: bytes) -> None:
    (sandbox,) = lab.pool.fill(1)

    assert lab.admin("POST", f"sandboxes/{sandbox.sandbox_id}/quarantine", body=body).error == (400, "INVALID_REQUEST")


def test_a_body_that_is_missing_is_named(lab: Lab) -> None:
    (sandbox,) = lab.pool.fill(1)

    refused = lab.admin("POST", f"sandboxes/{sandbox.sandbox_id}/quarantine")

    assert (refused.error, refused.body["error"]["field"]) == ((400, "INVALID_REQUEST"), "body")


def test_a_body_of_endless_depth_or_size_is_refused(lab: Lab) -> None:
    (sandbox,) = lab.pool.fill(1)
    path = f"sandboxes/{sandbox.sandbox_id}/quarantine"

    assert lab.admin("POST", path, body=b"[" * 200_000).error == (400, "INVALID_REQUEST")
    assert lab.admin("POST", path, body=b" " * 3_000_000).error == (413, "REQUEST_TOO_LARGE")


def test_a_body_of_an_allocation_counts_for_nothing(lab: Lab) -> None:
    lab.pool.fill(1)

    assert lab.send("POST", "allocate", body={"track": "other", "duration": 1}, X_Track_ID="track-1").body["track_id"] == "track-1"


def test_a_fault_of_ours_tells_its_number_and_no_trace(lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("the secret is 4711")

    monkeypatch.setattr(operations, "take", fail)

    refused = lab.allocate(X_Request_ID="mine-1")

    assert refused.error == (500, "INTERNAL_ERROR")
    assert refused.body["error"]["request_id"] == "mine-1"
    assert "4711" not in json.dumps(refused.body)
    (record,) = [record for record in caplog.records if record.name == "accessportal.api.errors"]
    assert "4711" in str(record.msg), "the logs have it all"


def test_a_host_that_is_not_ours_is_told_in_the_one_shape(lab: Lab) -> None:
    assert lab.send("GET", "admin/stats", Host="evil.example").error == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("given", ["a", "A-z_0.9", "x" * 128, "4bf92f35-77b3-4da6"])
def test_a_number_that_was_given_is_kept(lab: Lab, given: str) -> None:
    assert lab.allocate(X_Request_ID=given).headers["X-Request-ID"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "<script>", "ä", "a\tb", "a/b"])
def test_a_number_that_could_do_harm_is_replaced(lab: Lab, given: str) -> None:
    number = lab.allocate(X_Request_ID=given).headers["X-Request-ID"]

    assert number != given
    assert len(number) == 36


def test_the_logs_know_the_number_and_the_client_but_no_secret(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    lab.pool.fill(1)
    with caplog.at_level(logging.INFO):
        lab.allocate(X_Request_ID="mine-2")

    finished = [record.msg for record in caplog.records if "request_finished" in str(record.msg)]
    (told,) = [message for message in finished if isinstance(message, dict)]
    assert (told["request_id"], told["client"]) == ("mine-2", lab.tokens[lab.track_token].token_id)
    assert lab.track_token not in caplog.text
    assert lab.track_token.rpartition("_")[2] not in caplog.text


@pytest.mark.django_db
def test_a_browsers_session_counts_for_nothing(lab: Lab, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    client = Client()
    client.cookies["sessionid"] = "a" * 32
    lab.pool.fill(1)

    with django_assert_num_queries(0):
        refused = client.post("/v1/allocate", headers={"X-Track-ID": "track-1"})
        taken = client.post("/v1/allocate", headers={"X-Track-ID": "track-1", "Authorization": f"Bearer {lab.track_token}"})

    assert (refused.status_code, taken.status_code) == (401, 201)
    assert not taken.cookies


@pytest.mark.parametrize("path", ["openapi.json", "docs"])
def test_the_document_needs_no_token(lab: Lab, path: str) -> None:
    response = Client().get(f"/v1/{path}")

    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Request-ID"]


def test_the_page_of_the_document_has_a_strict_policy_of_its_own(lab: Lab) -> None:
    response = Client().get("/v1/docs")

    policy = response.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy
    assert b"http://" not in response.content
    assert b"https://" not in response.content


def test_the_page_cleans_what_it_shows_with_a_present_library(lab: Lab) -> None:
    """Swagger UI shows descriptions as HTML, cleaned by DOMPurify; the one inside django-ninja is 3.2.6, which has known holes."""
    page = Client().get("/v1/docs").content.decode()
    found = finders.find("swagger-ui/swagger-ui-bundle.js")
    assert isinstance(found, str)
    versions = re.findall(r'\bversion="(3\.(\d+)\.\d+)",\w+\.removed=', Path(found).read_text())

    assert [int(minor) >= 4 for _, minor in versions] == [True]
    assert set(re.findall(r'(?:src|href)="/static/([^"]+)"', page)) == {
        "portal/favicon.svg",
        "portal/theme.js",
        "swagger-ui/swagger-ui.css",
        "api/docs.css",
        "swagger-ui/swagger-ui-bundle.js",
        "api/docs.js",
    }
    assert finders.find("ninja/redoc.standalone.js") is None


def test_an_allocation_costs_no_request_more_than_the_take(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.pool.fill(20)
    lab.allocate("warm-up")
    calls: list[str] = []
    original = BaseClient._make_api_call  # type: ignore[attr-defined]

    def counted(self: Any, name: str, arguments: Any) -> Any:
        calls.append(name)
        return original(self, name, arguments)

    monkeypatch.setattr(BaseClient, "_make_api_call", counted)
    # A take begins at a line that the last one left, or at a random place; without one, from the first on, both need the same.
    monkeypatch.setattr(random, "choice", lambda shards: shards[0])
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=0))
    taking._kept.clear()
    lab.pool.take("track-1")
    plain, calls[:] = [*calls], []

    taking._kept.clear()
    lab.allocate("track-2")

    assert sorted(calls) == sorted(plain), "the token is read with what a take begins with"


def test_a_parameter_that_no_operation_knows_is_refused_with_the_nearest_name(lab: Lab) -> None:
    """Every operation of the document; nothing of it is done."""
    lab.pool.fill(1)
    tokens = [lab.new_token(one.value, one, rate=1_000, home="global" if one.has_home else "") for one in Scope]

    for method, path, known in OPERATIONS:
        for name, nearest in [("zzz", ""), *((f"{one}{one[-1]}", one) for one in known)]:
            sent = f"{path}?{'&'.join(f'{one}=5' for one in known)}&{name}=x"
            told = [lab.send(method, sent, token=token, X_Track_ID="track-1") for token in tokens]

            (refused, *_) = [one for one in told if one.status != 403]
            assert (refused.error, refused.body["error"]["field"]) == ((400, "INVALID_REQUEST"), name), sent
            said = refused.body["error"]["message"]
            assert said.startswith(f"The parameter {name} can't be used: it is not known here"), sent
            assert all(one in said for one in known), said
            assert (f"Did you mean {nearest}?" in said) is bool(nearest), said
            assert lab.send(method, sent, token="").status == 401, "who sends no token is told that first"
    assert lab.admin("GET", "sandboxes?status=allocated").body["items"] == []


@pytest.mark.parametrize("query", ODD_NAMES)
def test_no_name_of_a_parameter_is_too_odd_to_be_refused(lab: Lab, query: str) -> None:
    refused = lab.admin("GET", f"sandboxes?{query}")

    assert refused.error == (400, "INVALID_REQUEST")
    assert len(refused.body["error"]["message"]) < 300
