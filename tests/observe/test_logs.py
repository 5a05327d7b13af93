"""What the logs say, and what they never say."""

from __future__ import annotations

import io
import json
import logging
import logging.config
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

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
