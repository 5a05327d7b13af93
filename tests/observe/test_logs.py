"""What the logs say, and what they never say."""

from __future__ import annotations

import io
import json
import logging
import logging.config
import time
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from django.test import Client
from django_structlog.signals import bind_extra_request_finished_metadata
from pytest_django import Settings

from accessportal.observe.logs import hide_secrets, logging_settings


@pytest.fixture(params=[True, False], ids=["json", "plain"])
def written(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """A logger named ``accessportal.test`` that writes here, as the settings would have it write."""
    stream = io.StringIO()
    wanted = logging_settings(level="INFO", as_json=request.param)
    handler = logging.StreamHandler(stream)
    formatter = dict(wanted["formatters"]["events"])
    handler.setFormatter(formatter.pop("()")(**formatter))
    logger = logging.getLogger("accessportal.test")
    logger.addHandler(handler)
    logger.propagate = False
    yield stream
    logger.removeHandler(handler)
    logger.propagate = True


def test_events_of_both_kinds_of_loggers_leave_alike(written: io.StringIO) -> None:
    structlog.get_logger("accessportal.test").info("request.granted", access_request="r-1")
    logging.getLogger("accessportal.test").info("plain %s", "words")

    first, second = written.getvalue().splitlines()
    assert "request.granted" in first
    assert "r-1" in first
    assert "plain words" in second
    if first.startswith("{"):
        assert json.loads(first)["level"] == "info"
        assert json.loads(second)["logger"] == "accessportal.test"


def test_no_secret_is_written_whatever_carries_it(written: io.StringIO) -> None:
    log = structlog.get_logger("accessportal.test")
    log.info("signed in", password="hunter2", headers={"Cookie": "sessionid=hunter2", "Accept": "text/html"})
    log.info("called", request="GET /metrics?token=hunter2&page=2", detail=["aws_secret_access_key = 'hunter2'"])
    log.info("back", request="GET /sign-in/callback/?state=hunter2&code=hunter2")
    token = f"apt_abcdefghijkl_{'hunter2' * 6}x"
    log.info("looked for", request=f"GET /admin/tokens/?find={token}", agent=f"lab ({token})")
    logging.getLogger("accessportal.test").warning("Authorization: Bearer hunter2 was refused")
    try:
        raise ValueError("can't connect with password=hunter2")
    except ValueError:
        log.exception("failed")

    assert "hunter2" not in written.getvalue()
    assert "text/html" in written.getvalue()
    assert "page=2" in written.getvalue()


def test_a_trace_tells_no_local_variables(written: io.StringIO) -> None:
    def fail(typed: str) -> None:
        raise ValueError(f"{len(typed)} characters")

    try:
        fail("correct horse")
    except ValueError:
        logging.getLogger("accessportal.test").exception("failed")

    assert "13 characters" in written.getvalue()
    assert "correct horse" not in written.getvalue().replace('fail("correct horse")', "")


@pytest.mark.parametrize("name", ["password", "PORTAL_SECRET_KEY", "csrftoken", "X-Api-Key", "Set-Cookie", "aws_access_key_id"])
def test_names_of_secrets(name: str) -> None:
    assert hide_secrets(None, "info", {name: "hunter2"}) == {name: "[hidden]"}


@pytest.mark.parametrize("event", [{"access_request": "r-1"}, {"session_seconds": 3600}, {"permission_set": "Pass"}, {"count": 3}])
def test_other_names_are_left_alone(event: dict[str, Any]) -> None:
    assert hide_secrets(None, "info", event) == event


def test_the_settings_are_accepted() -> None:
    former = logging.root.handlers[:]
    logging.config.dictConfig(logging_settings(level="INFO", as_json=True) | {"incremental": False})
    logging.root.handlers[:] = former


def test_the_logs_believe_no_address_that_a_client_writes(client: Client, settings: Settings) -> None:
    """The server's own word counts, or that of as many proxies as are set."""
    told: list[object] = []

    def listen(**_: Any) -> None:
        told.append(structlog.contextvars.get_contextvars()["ip"])

    bind_extra_request_finished_metadata.connect(listen)
    try:
        for proxies in (0, 1):
            settings.TRUSTED_PROXIES = proxies
            client.get("/v1/nothing", headers={"X-Forwarded-For": "6.6.6.6, 192.0.2.7", "X-Real-Ip": "6.6.6.6", "Forwarded": "for=6.6.6.6"})
    finally:
        bind_extra_request_finished_metadata.disconnect(listen)

    assert told == ["127.0.0.1", "192.0.2.7"]


def test_a_stranger_s_address_and_browser_are_logged_in_no_time(written: io.StringIO) -> None:
    """The one of a thousand words took a minute, and the server's process with it."""
    began = time.process_time()
    structlog.get_logger("accessportal.test").info("started", request="GET /healthz?" + "token" * 1_000, user_agent="key" * 1_000)

    assert time.process_time() - began < 1
    assert "GET /healthz?token" in written.getvalue()
