"""Settings for signing in that don't fit together are told at the start, in words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from accessportal.conf import Conf

ROOT = Path(__file__).resolve().parent.parent.parent
WHOLE = {
    "PORTAL_OIDC_ISSUER": "https://login.example.com",
    "PORTAL_OIDC_CLIENT_ID": "access-portal",
    "PORTAL_OIDC_CLIENT_SECRET": "hunter2",
}


def conf_of(monkeypatch: pytest.MonkeyPatch, given: dict[str, str]) -> Conf:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    return Conf()


def test_the_three_make_an_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert conf_of(monkeypatch, WHOLE).oidc_client_id == "access-portal"


@pytest.mark.parametrize("missing", WHOLE)
def test_one_of_the_three_alone_is_told(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    with pytest.raises(ValidationError, match=f"belong together: set {missing} too, or none of them"):
        conf_of(monkeypatch, {name: value for name, value in WHOLE.items() if name != missing})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PORTAL_OIDC_ISSUER", "http://login.example.com", "must be an address that begins with https://"),
        ("PORTAL_OIDC_ISSUER", "login.example.com", "must be an address that begins with https://"),
        ("PORTAL_OIDC_ISSUER", "https://[", "must be an address that begins with https://"),
        ("PORTAL_OIDC_SIGN_OUT_URL", "javascript:alert(1)", "must be an address that begins with https://"),
        ("PORTAL_SESSION_IDLE_MINUTES", "0", "greater than or equal to 1"),
        ("PORTAL_SESSION_HOURS", "1000", "less than or equal to 168"),
    ],
)
def test_values_that_can_not_be_are_told(monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        conf_of(monkeypatch, {**WHOLE, name: value})


def test_creating_people_needs_an_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError, match="PORTAL_OIDC_CREATE_PEOPLE needs an issuer"):
        conf_of(monkeypatch, {"PORTAL_OIDC_CREATE_PEOPLE": "true"})


def test_the_program_says_so_without_the_secret() -> None:
    given = {"PORTAL_OIDC_CLIENT_SECRET": "hunter2", "PORTAL_DEMO": "true", "PORTAL_DATABASE_URL": "sqlite://:memory:", "PATH": ""}
    said = subprocess.run([sys.executable, "manage.py", "check"], cwd=ROOT, env=given, capture_output=True, text=True, check=False)

    assert said.returncode == 1
    assert "The settings can't be used. PORTAL_OIDC_ISSUER, PORTAL_OIDC_CLIENT_ID, PORTAL_OIDC_CLIENT_SECRET belong together" in said.stderr
    assert "set PORTAL_OIDC_ISSUER and PORTAL_OIDC_CLIENT_ID too" in said.stderr
    assert "hunter2" not in said.stderr + said.stdout


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, 1),
        (WHOLE, 0),
        ({"PORTAL_DEMO": "true", "PORTAL_SECURE": "false", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, 0),
    ],
    ids=["no way in", "an issuer", "the demo's passwords"],
)
def test_a_deployment_that_nobody_could_sign_in_to_fails_its_check(tmp_path: Path, given: dict[str, str], code: int) -> None:
    environ = {"PATH": "", "PORTAL_SECRET_KEY": "x" * 50, "PORTAL_DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3", **given}
    said = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy"], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )

    assert said.returncode == code
    assert ("(identity.E001) Nobody can sign in" in said.stderr) is (code == 1)
