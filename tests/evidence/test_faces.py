"""Commands, the job and health."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from accessportal.access_requests import operations
from accessportal.apps import check_audit_keys
from accessportal.conf import Conf
from accessportal.demo import history
from accessportal.evidence import config
from accessportal.evidence.config import read_key
from accessportal.evidence.storages import WriteOnceFolder
from accessportal.jobs import tasks
from accessportal.observe import health
from accessportal.observe.heartbeats import EVIDENCE, last_beat
from tests.commands.conftest import run
from tests.evidence.conftest import DAY, SIGNER, TODAY, Office
from tests.fixtures_story import Story

KEY = "A" * 43 + "="


def test_an_operator_exports_and_verifies(story: Story, installed: Office) -> None:
    installed.work(2)

    assert run("export_evidence", "--as", "mallory@example.com").code == 1
    assert run("export_evidence", "--as", "olga@example.com", "--day", "2026-13-01").code == 2
    report = run("export_evidence", "--as", "olga@example.com", "--json").json
    assert (report["days"], report["newest"]) == (2, str(TODAY + DAY))
    assert report["unlocked"].startswith("A folder has no lock")
    found = run("verify_evidence", str(installed.folder), "--last-day", str(TODAY + DAY), "--json")
    assert (found.code, found.json["breaks"], found.json["unproved"]) == (0, [], 0)
    late = run("verify_evidence", str(installed.folder), "--last-day", str(TODAY + 2 * DAY))
    assert late.code == 1
    assert "the digests end at" in late.out
    assert run("verify_evidence", str(installed.folder), "--public-key", "nowhere").code == 2


def test_a_digest_that_can_not_be_read_is_told_as_such(story: Story, installed: Office) -> None:
    installed.work(1)
    run("export_evidence", "--as", "olga@example.com")
    digest = installed.folder / "digests" / f"{TODAY}.json"
    content = digest.read_bytes()
    digest.unlink()
    digest.mkdir()

    told = run("verify_evidence", str(installed.folder), "--json")

    assert (told.code, told.json["breaks"][0]) == (1, f"digests/{TODAY}.json: it is no file of at most 64 MB")
    digest.rmdir()
    digest.write_bytes(content.replace(b'"signature"', b'"forged"'))
    assert run("verify_evidence", str(installed.folder)).problem == "1 break in the evidence."


def test_the_demos_past_has_no_break(story: Story, installed: Office) -> None:
    """Ten days of people at work, and everything that the story itself has written."""
    now = installed.clock.now()
    with operations.lifted_limits():
        for number, fate in enumerate(history._FATES):
            history._live(number, fate, now, 10)
    installed.clock.advance(26 * 3600)

    report = run("export_evidence", "--as", "olga@example.com", "--json").json

    assert (report["days"], report["stopped"]) == (11, "")
    assert report["events"] > 60
    assert run("verify_evidence", str(installed.folder)).code == 0


@pytest.mark.parametrize(
    ("given", "warnings"),
    [
        ({"evidence_dir": "/tmp/x"}, ["accessportal.W002"]),
        ({"evidence_bucket": "evidence"}, ["accessportal.W002"]),
        ({"evidence_bucket": "evidence", "evidence_lock_days": 30}, []),
    ],
)
def test_a_deployment_is_told_that_its_evidence_is_not_locked(
    given: dict[str, Any], warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = Conf(audit_keys=SecretStr(f"k:{KEY}"), evidence_key=SecretStr(KEY), **given)
    monkeypatch.setattr("accessportal.apps.conf", lambda: conf)
    assert [one.id for one in check_audit_keys(None)] == warnings


def test_whether_evidence_is_locked_is_a_figure(db: None, installed: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    installed.work(1)
    for flaw, locked in (("A folder has no lock.", 0), ("", 1)):
        monkeypatch.setattr(WriteOnceFolder, "lock_flaw", lambda _self, flaw=flaw: flaw)
        tasks.export_evidence()
        beat = last_beat(EVIDENCE)
        assert beat is not None
        assert (beat.detail["locked"], problem(installed)) == (locked, "")


def test_keys_are_made_and_shown(installed: Office) -> None:
    made = run("make_evidence_key", "--json").json
    assert read_key(made["key"]).public_key == made["public_key"]
    pem = str(installed.folder) + ".pem"
    shown = run("make_evidence_key", "--public", "--pem", pem, "--json").json
    assert shown == {"key": "", "key_id": SIGNER.key_id, "public_key": SIGNER.public_key}
    assert Path(pem).read_text() == SIGNER.public_key
    assert run("make_evidence_key", "--pem", f"{pem}/x").code == 2


def test_without_a_store_nothing_is_exported_and_it_is_said(db: None, office: Office) -> None:
    assert tasks.export_evidence() == "no store of evidence is set"
    told = run("make_evidence_key", "--public")
    assert told.code == 1
    assert "PORTAL_EVIDENCE_KEY" in told.problem


def test_health_says_when_the_newest_day_is_old_until_it_is_made_up(db: None, installed: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    installed.work(1)
    tasks.export_evidence()
    assert problem(installed) == ""

    with monkeypatch.context() as away:
        away.setattr("os.link", unreachable)
        installed.work(3)
        with pytest.raises(tasks.ItemsFailed, match="did not answer"):
            tasks.export_evidence()
        assert problem(installed).startswith(f"The newest day of evidence is {TODAY}.")

    tasks.export_evidence()
    assert problem(installed) == ""
    assert installed.breaks() == []


def test_health_says_nothing_of_evidence_that_is_switched_off(db: None, installed: Office) -> None:
    installed.work(1)
    tasks.export_evidence()
    installed.clock.advance(5 * 24 * 3600)
    assert problem(installed).startswith(f"The newest day of evidence is {TODAY}.")

    config.configure(None)
    assert tasks.export_evidence() == "no store of evidence is set"

    assert problem(installed) == ""


def test_health_says_that_no_day_was_ever_written(db: None, installed: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    installed.work(1)
    monkeypatch.setattr("os.link", unreachable)
    with pytest.raises(tasks.ItemsFailed):
        tasks.export_evidence()

    assert problem(installed).startswith("No day of evidence was ever exported")


def unreachable(*_: object) -> None:
    raise OSError("Input/output error")


def problem(office: Office) -> str:
    return health.work(now=office.clock.now()).missing.get(EVIDENCE, "")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"evidence_key": SecretStr(KEY)}, "belong together"),
        ({"evidence_dir": "/tmp/x"}, "belong together"),
        ({"evidence_kms_signing_key": "alias/x"}, "belong together"),
        ({"evidence_dir": "/tmp/x", "evidence_kms_signing_key": "alias/x", "evidence_key": SecretStr(KEY)}, "exclude each other"),
        ({"evidence_dir": "/tmp/x", "evidence_bucket": "evidence", "evidence_key": SecretStr(KEY)}, "exclude each other"),
        ({"evidence_dir": "/tmp/x", "evidence_lock_days": 3, "evidence_key": SecretStr(KEY)}, "are for PORTAL_EVIDENCE_BUCKET"),
        ({"evidence_dir": "/tmp/x", "evidence_key": SecretStr("short")}, "must be 32 bytes in base64"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Conf(**given)  # type: ignore[arg-type]
