"""What auditors look at: the days of evidence, and who had what; and what somebody had, for themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect
from pytest_django.fixtures import Settings

from accessportal.evidence import config
from accessportal.evidence.operations import export
from accessportal.evidence.queries import evidence_files
from accessportal.history import policy
from accessportal.history.operations import follow
from accessportal.kernel.actors import system
from tests.browser.conftest import BusyDay, OpenAs
from tests.browser.test_pages import visit
from tests.evidence.conftest import SIGNER

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_answers_looked_at(busy_day: BusyDay, open_as: OpenAs, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    story = busy_day.story
    monkeypatch.setattr(policy, "PARTS", 1)
    assert follow(workers=1, clock=story.clock).is_ok
    settings.STORAGES = settings.STORAGES | {
        "evidence": {"BACKEND": "accessportal.evidence.storages.WriteOnceFolder", "OPTIONS": {"location": tmp_path}}
    }
    monkeypatch.setattr(config._signer, "_value", SIGNER)
    export(files=evidence_files(), signer=SIGNER, actor=system("test"), clock=story.clock)
    story.clock.advance(86_400)
    (first, *_) = sorted(tmp_path.glob("digests/*.json"))
    ana = open_as("ana")

    visit(ana, "/admin/evidence/", "evidence-days")
    visit(ana, f"/admin/evidence/{first.stem}/", "evidence-day")
    (tmp_path / f"events/{first.stem}.jsonl.gz").write_bytes(b"something else")
    visit(ana, f"/admin/evidence/{first.stem}/", "evidence-broken")

    visit(ana, "/admin/history/", "history-empty")
    ana.get_by_label("Which").fill("payments-prod")
    ana.get_by_role("button", name="Show", exact=True).click()
    expect(ana.get_by_text("Known up to")).to_be_visible()
    visit(ana, ana.url, "history-who")
    visit(ana, "/admin/history/?pattern=who&kind=group&q=/engineering", "history-group")
    visit(ana, "/admin/history/?pattern=what&q=alice@example.com", "history-what")
    visit(ana, "/admin/history/?pattern=who&q=payments-prod&at=yesterday", "history-refused", status=400)
    visit(open_as("alice"), "/history/", "my-history")
    visit(open_as("mallory"), "/history/", "my-history-empty")
    visit(open_as("bob"), "/stand-ins/", "stand-ins")
    visit(open_as("alice"), "/requests/?state=ACTIVE", "my-requests")
    visit(open_as("mallory"), "/requests/?kind=key", "my-requests-refused", status=400)
