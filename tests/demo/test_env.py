"""The environment of ``runportal``: the local twin, and nothing else."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from dotenv import dotenv_values

from accessportal.apps import check_demo
from accessportal.conf import Conf, debug_faults, demo_faults
from accessportal.demo.env import free_port, is_port_free, kept_secret, published, published_file, take_environment

ROOT = Path(__file__).resolve().parent.parent.parent
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
    given = {"PORTAL_DATABASE_URL": "postgres://here/portal", "PORTAL_LOG_JSON": "true", "PORTAL_DYNAMODB_READ_SECONDS": "5"}
    environ = dict(given)

    take_environment(environ, home=tmp_path)

    assert environ.items() >= given.items()


def test_a_slow_answer_of_the_twin_is_waited_for_and_not_asked_for_again(tmp_path: Path) -> None:
    environ: dict[str, str] = {}

    take_environment(environ, home=tmp_path)

    assert environ["PORTAL_DYNAMODB_READ_SECONDS"] == "30"


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


@pytest.fixture
def left_over(tmp_path: Path) -> Path:
    """The folder of a demo that was killed."""
    (tmp_path / "lock").touch()
    (tmp_path / "env").write_text("PORTAL_DEMO=true\nPORTAL_SECRET_KEY=of-the-demo\nAWS_ENDPOINT_URL=http://127.0.0.1:1\n")
    return tmp_path


@pytest.fixture
def running(left_over: Path) -> Iterator[Path]:
    """The folder of a demo that is up."""
    with (left_over / "lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield left_over


def test_a_running_demo_is_found_without_any_setting(running: Path) -> None:
    assert published_file({"PATH": "/usr/bin", "AWS_PROFILE": "mine"}, home=running) == running / "env"
    assert Conf(_env_file=running / "env").demo  # type: ignore[call-arg]


def test_what_a_killed_demo_left_counts_for_nothing(left_over: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert published_file({}, home=left_over) is None
    (left_over / "lock").unlink()
    assert published_file({}, home=left_over) is None
    assert published_file({}, home=tmp_path_factory.mktemp("empty")) is None


@pytest.mark.parametrize("name", ["PORTAL_SECRET_KEY", "PORTAL_DATABASE_URL", "PORTAL_LOG_LEVEL", "portal_table_prefix", "PORTAL_DEMO"])
def test_an_installation_with_any_setting_is_never_turned_into_a_demo(running: Path, name: str) -> None:
    assert published_file({name: "x"}, home=running) is None


LOCAL = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "PORTAL_DEMO": "true"}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"AWS_ENDPOINT_URL": ""}, "AWS_ENDPOINT_URL is not an address of this machine"),
        ({"AWS_ENDPOINT_URL": "https://dynamodb.eu-central-1.amazonaws.com"}, "AWS_ENDPOINT_URL is not an address of this machine"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1.example.com"}, "AWS_ENDPOINT_URL is not an address of this machine"),
        ({"AWS_ENDPOINT_URL_SSO_ADMIN": "https://elsewhere.example.com"}, "AWS_ENDPOINT_URL_SSO_ADMIN is not an address of this machine"),
        ({"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is set"),
        ({"PORTAL_SANDBOX_PROVIDER_URL": "https://labs.example.com"}, "PORTAL_SANDBOX_PROVIDER_URL is not an address of this machine"),
        (
            {f"PORTAL_OIDC_{name}": "https://login.example.com" for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET")},
            "PORTAL_OIDC_ISSUER is set",
        ),
        (
            {"PORTAL_ALLOWED_HOSTS": "localhost, access.example.com, *"},
            "PORTAL_ALLOWED_HOSTS names more than this machine (access.example.com, *)",
        ),
    ],
)
def test_a_demo_that_others_can_reach_or_that_reaches_others_is_told(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, str], fault: str
) -> None:
    monkeypatch.setenv("PORTAL_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
    for name, value in (LOCAL | change).items():
        monkeypatch.setenv(name, value)

    assert demo_faults(Conf(), os.environ) == [fault]
    monkeypatch.setenv("PORTAL_DEMO", "false")
    assert demo_faults(Conf(), os.environ) == []


def test_debug_pages_are_not_shown_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As left over from looking for a fault: each error would show settings and local variables to whoever causes it."""
    monkeypatch.setenv("PORTAL_ALLOWED_HOSTS", "localhost,access.example.com")
    for on, faults in (("true", ["PORTAL_ALLOWED_HOSTS names more than this machine (access.example.com)"]), ("false", [])):
        monkeypatch.setenv("PORTAL_DEBUG", on)
        assert debug_faults(Conf()) == faults
    monkeypatch.setenv("PORTAL_DEBUG", "true")
    monkeypatch.setattr("accessportal.apps.conf", Conf)
    assert [one.id for one in check_demo(None) if "PORTAL_DEBUG" in one.msg] == ["accessportal.E002"]

    monkeypatch.setenv("PORTAL_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
    assert debug_faults(Conf()) == []


def test_the_demo_that_runportal_makes_has_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PORTAL_ALLOWED_HOSTS")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PORTAL_")}
    take_environment(environ, home=tmp_path)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert demo_faults(Conf(), environ) == []


@pytest.mark.parametrize(
    "program",
    [
        "manage.py check",
        "manage.py list_users --as olga@example.com",
        "manage.py apply_schedules",
        "manage.py run_worker",
        "manage.py qcluster",
        "-c import accessportal.wsgi",
    ],
)
def test_nothing_starts_as_a_demo_beside_the_real_aws(tmp_path: Path, program: str) -> None:
    given = {
        "PATH": "",
        "PORTAL_DEMO": "true",
        "PORTAL_SECRET_KEY": "x" * 50,
        "PORTAL_DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    said = subprocess.run(
        [sys.executable, *program.split(maxsplit=1 if program[0] == "-" else -1)],
        cwd=ROOT,
        env=given,
        capture_output=True,
        text=True,
        check=False,
    )

    assert said.returncode != 0
    assert "PORTAL_DEMO is on, but AWS_ENDPOINT_URL is not an address of this machine." in said.stderr


@pytest.mark.parametrize("demo", ["true", "false"])
def test_no_key_is_nobodys_default(demo: str) -> None:
    """Not in the demo either: whoever reads the source could sign sessions with it."""
    given = {"PATH": "", "PORTAL_DEMO": demo, "PORTAL_DEBUG": demo, "PORTAL_DATABASE_URL": "sqlite://:memory:"}
    said = subprocess.run([sys.executable, "manage.py", "check"], cwd=ROOT, env=given, capture_output=True, text=True, check=False)

    assert said.returncode == 1
    assert "PORTAL_SECRET_KEY is not set" in said.stderr


def test_a_port_that_is_free_is_none_that_a_connection_gets_before_it_is_used() -> None:
    """Whatever binds to no port of its own choice gets one of the system's; much comes and goes before the portal's server is up."""
    handed_out = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])

    assert all(1_024 <= free_port() < min(handed_out, 49_152) for _ in range(50))


def test_a_port_in_use_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    assert is_port_free("127.0.0.1", port)

    import socket

    monkeypatch.setattr("accessportal.demo.env._PORTS", range(port, port + 1))
    with socket.create_server(("127.0.0.1", port)):
        assert not is_port_free("127.0.0.1", port)
        with pytest.raises(StopIteration):
            free_port()


@pytest.mark.parametrize("text", ["0", "65536", "eighty", "-1", ""])
def test_a_port_that_is_none(text: str) -> None:
    from accessportal.commands.demo import _read_port
    from accessportal.commands.flags import BadUsage

    with pytest.raises(BadUsage, match="is not a port"):
        _read_port(text, "--port")
