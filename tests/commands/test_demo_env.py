"""The environment of ``runportal``: the local twin, and nothing else."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from dotenv import dotenv_values

from accessportal.commands.demo_env import free_port, is_port_free, kept_secret, published, take_environment

MINE = {
    "AWS_PROFILE": "production",
    "AWS_SESSION_TOKEN": "a-real-one",
    "AWS_ACCESS_KEY_ID": "a-real-one",
    "AWS_ENDPOINT_URL_DYNAMODB": "https://elsewhere.example.com",
    "PATH": "/usr/bin",
}


def test_nothing_of_a_real_account_is_left(tmp_path: Path) -> None:
    environ = dict(MINE)

    take_environment(environ, home=tmp_path / "home")

    assert "a-real-one" not in environ.values()
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_DYNAMODB"} & environ.keys()
    assert environ["AWS_ENDPOINT_URL"].startswith("http://127.0.0.1:")
    assert (environ["PORTAL_DEMO"], environ["PORTAL_SECURE"], environ["PATH"]) == ("true", "false", "/usr/bin")


def test_the_secret_key_is_kept_between_starts_and_from_others(tmp_path: Path) -> None:
    first: dict[str, str] = {}
    second: dict[str, str] = {}

    for environ in (first, second):
        take_environment(environ, home=tmp_path)

    assert first["PORTAL_SECRET_KEY"] == second["PORTAL_SECRET_KEY"]
    assert len(first["PORTAL_SECRET_KEY"]) == 50
    assert stat.S_IMODE((tmp_path / "secret-key").stat().st_mode) == 0o600


def test_a_given_setting_wins(tmp_path: Path) -> None:
    environ = {"PORTAL_DATABASE_URL": "postgres://here/portal", "PORTAL_LOG_JSON": "true"}

    take_environment(environ, home=tmp_path)

    assert environ["PORTAL_DATABASE_URL"] == "postgres://here/portal"
    assert environ["PORTAL_LOG_JSON"] == "true"


def test_a_given_secret_is_kept_too(tmp_path: Path) -> None:
    assert kept_secret(tmp_path / "one", length=12, value="mine") == "mine"
    assert kept_secret(tmp_path / "one", length=12) == "mine"
    assert len(kept_secret(tmp_path / "two", length=12)) == 12


def test_other_terminals_read_what_is_published_while_it_lasts(tmp_path: Path) -> None:
    environ = {"PORTAL_DEMO_PASSWORD": "hidden"}
    take_environment(environ, home=tmp_path / "with a space")
    file = tmp_path / "env"

    with published(environ, path=file):
        told = dotenv_values(file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    assert not file.exists()
    assert told["AWS_ENDPOINT_URL"] == environ["AWS_ENDPOINT_URL"]
    assert told["PORTAL_DATABASE_URL"] == environ["PORTAL_DATABASE_URL"]
    assert "PORTAL_DEMO_PASSWORD" not in told
    assert "PATH" not in told


def test_a_port_in_use_is_noticed() -> None:
    port = free_port()
    assert is_port_free("127.0.0.1", port)

    import socket

    with socket.create_server(("127.0.0.1", port)):
        assert not is_port_free("127.0.0.1", port)


@pytest.mark.parametrize("text", ["0", "65536", "eighty", "-1", ""])
def test_a_port_that_is_none(text: str) -> None:
    from accessportal.commands.base import BadUsage
    from accessportal.commands.management.commands.runportal import _read_port

    with pytest.raises(BadUsage, match="is not a port"):
        _read_port(text)
