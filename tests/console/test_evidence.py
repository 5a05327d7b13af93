"""The page of the days of evidence: what is there, what is missing or broken, and the files themselves."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from accessportal.evidence import config
from accessportal.kernel.errors import NoAnswer
from accessportal.observe import heartbeats
from tests.evidence.conftest import OTHER, SIGNER, TODAY, Office
from tests.fixtures_story import Story

SignIn = Callable[[str], Client]
DAY = timedelta(days=1)
PAGE = "/admin/evidence/"


@pytest.fixture
def office(story: Story, settings: Settings, tmp_path: Path) -> Iterator[Office]:
    """Whose evidence the portal's pages show; three days of it are written."""
    settings.STORAGES = settings.STORAGES | {
        "evidence": {"BACKEND": "accessportal.evidence.storages.WriteOnceFolder", "OPTIONS": {"location": tmp_path}}
    }
    config.configure(SIGNER)
    found = Office(story.clock, tmp_path)
    found.work(3)
    found.export()
    yield found
    config.configure(None)


def states(client: Client) -> dict[str, str]:
    rows = client.get(PAGE).context["rows"]
    return {str(row.record.day): row.context[0] for row in rows}


def text(client: Client, url: str, status: int = 200) -> str:
    answer = client.get(url)
    assert answer.status_code == status, (url, answer.status_code)
    return " ".join(answer.content.decode().split())


def day(number: int) -> str:
    """Of the story's first day on."""
    return str(TODAY + number * DAY)


def change(office: Office, number: int, **changes: Any) -> None:
    path = office.folder / f"digests/{day(number)}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_each_day_is_shown_as_it_is_the_newest_first(office: Office, as_person: SignIn) -> None:
    ana = as_person("ana")
    assert list(states(ana).items()) == [(day(2), "Signed"), (day(1), "Signed"), (day(0), "Signed")]

    office.work(2)
    office.export(TODAY + 3 * DAY)
    assert list(states(ana).items())[:2] == [(day(4), "To be written"), (day(3), "Signed")]
    page = text(ana, PAGE)
    assert SIGNER.key_id in page
    assert str(office.folder) in page


def test_what_is_wrong_with_a_day_is_said_beside_it(office: Office, as_person: SignIn) -> None:
    ana = as_person("ana")
    office.work(3)
    office.export()
    (office.folder / f"digests/{day(1)}.json").unlink()
    change(office, 3, key=OTHER.key_id)
    (office.folder / f"digests/{day(5)}.json").write_text("[")

    assert states(ana) == {
        day(5): "Broken",
        day(4): "Broken",
        day(3): "Another key",
        day(2): "Not judged",
        day(1): "Missing",
        day(0): "Signed",
    }
    page = text(ana, PAGE)
    assert "It does not continue the day before as that is now." in page
    assert "It can’t be held against the day before, which is broken or missing." in page
    assert "can't be read: look at it" in page.replace("&#x27;", "'")


@pytest.mark.parametrize("changes", [{"signature": "AAAA"}, {"heads": {}}, {"day": "2020-01-01"}])
def test_a_day_after_a_broken_one_is_not_called_broken(office: Office, as_person: SignIn, changes: dict[str, Any]) -> None:
    change(office, 1, **changes)

    assert states(as_person("ana")) == {day(2): "Not judged", day(1): "Broken", day(0): "Signed"}
    # Its own file is read nevertheless.
    (office.folder / f"events/{day(2)}.jsonl.gz").write_bytes(b"something else")
    assert "not that of its digest" in text(as_person("ana"), f"{PAGE}{day(2)}/")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"day": "2020-01-01"}, "It is the digest of another day."),
        ({"signature": "AAAA"}, "The signature is not of this digest."),
        ({"files": []}, "It is no digest of the form 1"),
        ({"before": {"name": "digests/2020-01-01.json", "sha256": "0"}}, "digests were taken away from the beginning"),
    ],
)
def test_a_digest_that_was_changed_is_broken(office: Office, as_person: SignIn, changes: dict[str, Any], words: str) -> None:
    change(office, 0, **changes)

    assert words in text(as_person("ana"), PAGE)
    assert words in text(as_person("ana"), f"{PAGE}{day(0)}/")


def test_the_page_of_a_day_reads_its_file_and_gives_it_out(office: Office, as_person: SignIn) -> None:
    ana = as_person("ana")
    shown = text(ana, f"{PAGE}{day(1)}/")
    events = ana.get(f"{PAGE}{day(1)}/files/events/")
    digest = ana.get(f"{PAGE}{day(1)}/files/digest/")

    assert "3 events about 3 things" in shown
    assert "History" not in shown.partition("<h1")[2]
    assert events["Content-Disposition"] == f'attachment; filename="events-{day(1)}.jsonl.gz"'
    assert gzip.decompress(b"".join(events.streaming_content)).count(b"\n") == 3  # type: ignore[attr-defined]
    assert json.loads(b"".join(digest.streaming_content))["day"] == day(1)  # type: ignore[attr-defined]

    (office.folder / f"events/{day(1)}.jsonl.gz").write_bytes(b"something else")
    assert "not that of its digest" in text(ana, f"{PAGE}{day(1)}/")
    (office.folder / f"events/{day(1)}.jsonl.gz").unlink()
    assert "is missing" in text(ana, f"{PAGE}{day(1)}/")
    assert "A file of evidence is missing" in text(ana, f"{PAGE}{day(1)}/files/events/", 503)


def test_a_store_that_is_away_is_no_empty_list(office: Office, as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_files: object) -> None:
        raise NoAnswer("The store of the evidence did not answer (timed out).", code="evidence_unavailable")

    monkeypatch.setattr("accessportal.evidence.store.EvidenceFiles.days", away)

    page = text(as_person("ana"), PAGE, 503)

    assert "The store of the evidence does not answer" in page
    assert "timed out" in page
    assert "sending the same form again" not in page


def test_what_health_says_stands_on_the_page(office: Office, as_person: SignIn) -> None:
    old = (office.clock.now() - 9 * DAY).timestamp()
    heartbeats.beat(heartbeats.EVIDENCE, now=office.clock.now(), detail={heartbeats.NEWEST_DAY_AT: old})

    assert "The newest day of evidence is" in text(as_person("olga"), PAGE)


def test_without_evidence_the_page_says_how_to_have_it(as_person: SignIn) -> None:
    ana = as_person("ana")

    assert "make_evidence_key" in text(ana, PAGE)
    for address in ("2026-03-02/", "2026-03-02/files/events/", "yesterday/", "2026-03-02/history/"):
        text(ana, PAGE + address, 404)


def test_days_come_in_pages_and_as_a_file(office: Office, as_person: SignIn) -> None:
    office.clock.advance(40 * 86_400)
    ana = as_person("ana")
    first = ana.get(PAGE)
    rest = ana.get(first.context["next_url"])

    assert [len(page.context["rows"]) for page in (first, rest)] == [25, 18]
    assert text(ana, f"{PAGE}?cursor=forged", 400)
    written = b"".join(ana.get(f"{PAGE}export/csv/").streaming_content).decode()  # type: ignore[attr-defined]
    assert written.count('"signed"') == 3
