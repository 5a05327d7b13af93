"""Export: days in order, once, whoever dies and however many go at once."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from accessportal.audit import queries as audit
from accessportal.audit.models import AuditItem
from accessportal.audit.states import AuditEvent
from accessportal.evidence.operations import export
from accessportal.evidence.storages import WriteOnceFolder
from accessportal.evidence.store import EvidenceFiles
from accessportal.kernel.actors import person
from accessportal.kernel.errors import InvalidRequest, NoAnswer, NotAllowed
from tests.conftest import START
from tests.crashing import Killed
from tests.evidence.conftest import DAY, SIGNER, TODAY, Office


def lines_of(office: Office, day: object) -> list[dict[str, Any]]:
    with gzip.open(office.folder / f"events/{day}.jsonl.gz") as lines:
        return [json.loads(line) for line in lines]


def test_each_day_that_is_over_is_written_from_the_first_one_on(office: Office) -> None:
    office.work(3)

    report = office.export()

    assert (report.days, report.events, report.newest, report.stopped) == (3, 9, TODAY + 2 * DAY, "")
    assert sorted(office.bytes_by_name()) == sorted(
        f"{name}" for n in range(3) for name in (f"digests/{TODAY + n * DAY}.json", f"events/{TODAY + n * DAY}.jsonl.gz")
    )
    second = json.loads((office.folder / f"digests/{TODAY + DAY}.json").read_bytes())
    assert second["before"]["name"] == f"digests/{TODAY}.json"
    assert {entity: head[0] for entity, head in second["heads"].items()} == {"request#0": 2, "request#1": 2, "request#2": 2}
    assert office.breaks() == []
    assert office.verify(keys=None).unproved == 9


def test_events_of_a_day_are_in_order_whatever_shard_they_lie_in(office: Office) -> None:
    for number in range(40):
        office.write(f"request#{39 - number}")
        office.write(f"request#{39 - number}")
        office.clock.advance(number % 3)
    office.clock.advance(26 * 3600)

    office.export()

    told = [(line["at"], line["entity"], line["sequence"]) for line in lines_of(office, TODAY)]
    assert len(told) == 80
    assert told == sorted(told)
    assert office.breaks() == []


def test_a_day_without_events_has_its_digest_and_the_line_goes_on(office: Office) -> None:
    office.work(1)
    office.clock.advance(2 * 24 * 3600)
    office.work(1)

    assert office.export().days == 4
    assert lines_of(office, TODAY + DAY) == []
    assert office.breaks() == []


def test_a_day_is_not_written_before_an_hour_after_its_end(office: Office) -> None:
    office.write("request#1")
    midnight = START.replace(hour=0) + DAY
    office.clock.advance((midnight - START).total_seconds() + 3599)

    assert office.export().days == 0
    with pytest.raises(InvalidRequest, match="is not over"):
        office.export(TODAY)
    office.clock.advance(1)
    assert office.export(TODAY).days == 1


def test_nothing_is_there_to_be_exported(office: Office) -> None:
    assert office.export().days == 0
    assert office.bytes_by_name() == {}


def test_days_that_are_made_up_read_each_old_digest_once(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two chains go on in turn, each after longer than the days that are read again."""
    for number in range(14):
        office.write(f"request#{number // 5 % 2}")
        office.clock.advance(24 * 3600)
    office.export(TODAY + 4 * DAY)
    read: list[date] = []
    real = EvidenceFiles.digest

    def digest(files: EvidenceFiles, day: date) -> tuple[dict[str, Any], bytes]:
        read.append(day)
        return real(files, day)

    monkeypatch.setattr(EvidenceFiles, "digest", digest)

    assert office.export().days == 9
    assert sorted(read) == [TODAY + n * DAY for n in range(2, 13)]
    assert office.breaks() == []


def test_a_second_run_changes_nothing(office: Office) -> None:
    office.work(2)
    office.export()
    before = office.bytes_by_name()

    assert office.export().days == 0
    assert office.export(TODAY).days == 0
    assert office.bytes_by_name() == before


def test_only_operators_and_the_portal_export(office: Office) -> None:
    with pytest.raises(NotAllowed):
        export(files=office.files, signer=SIGNER, actor=person("mallory@example.com"), clock=office.clock)


def test_what_came_late_is_in_the_next_day_s_file_with_a_note(office: Office) -> None:
    office.work(1)
    office.export()
    before = office.bytes_by_name()
    office.write("request#1", at=START.replace(hour=23))
    office.work(1)

    report = office.export()

    assert (report.days, report.late) == (1, 1)
    assert [line.get("late_of") for line in lines_of(office, TODAY + DAY)] == [str(TODAY), None, None, None]
    assert before.items() <= office.bytes_by_name().items()
    assert (office.breaks(), office.verify().late) == ([], 1)


@pytest.mark.parametrize("days_later", [1, 2, 3])
def test_what_came_days_late_is_in_the_next_file_and_in_no_other(office: Office, days_later: int) -> None:
    office.work(days_later)
    office.export()
    office.write("request#1", at=START.replace(hour=23))

    found = []
    for _ in range(4):
        office.work(1)
        found.append(office.export().late)

    assert found == [1, 0, 0, 0]
    assert [line["late_of"] for line in lines_of(office, TODAY + days_later * DAY) if "late_of" in line] == [str(TODAY)]
    assert (office.breaks(), office.verify().late) == ([], 1)


def test_clocks_that_differ_over_midnight_are_no_break(office: Office) -> None:
    midnight = START.replace(hour=0) + DAY
    office.write("request#1", at=midnight + timedelta(milliseconds=200))
    office.write("request#1", at=midnight - timedelta(milliseconds=200))
    office.write("request#1", at=midnight + timedelta(milliseconds=100))
    office.clock.advance(50 * 3600)

    assert office.export().days == 2
    assert office.breaks() == []


def test_the_store_is_away_for_three_days_and_they_are_made_up(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.work(1)
    office.export()
    with monkeypatch.context() as away:
        away.setattr(os, "link", refuse)
        for _ in range(3):
            office.work(1)
            report = office.export()
            assert "did not answer" in report.stopped
            assert (report.days, report.newest) == (0, TODAY)
            assert report.days_left >= 1

    assert office.export().days == 3
    assert office.breaks() == []


def refuse(*_: object) -> None:
    raise OSError("Input/output error")


def test_a_store_that_can_not_even_be_listed_is_an_error(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.work(1)
    monkeypatch.setattr(WriteOnceFolder, "listdir", refuse)

    with pytest.raises(NoAnswer):
        office.export()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("fatal", range(6))
def test_killed_at_every_file_and_twice_at_once_there_is_one_set(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal: int, after: bool
) -> None:
    """Three days are six files. Whoever comes next writes what a run that nobody killed writes."""
    office.work(3)
    undisturbed = Office(office.clock, tmp_path / "undisturbed")
    undisturbed.export()
    die_at(office, monkeypatch, fatal, after=after)

    # The second one begins what the first has written meanwhile.
    with monkeypatch.context() as overtaking:
        overtaking.setattr(os, "link", overtaken_by(office.export, overtaking))
        office.export()

    assert office.bytes_by_name() == undisturbed.bytes_by_name()
    assert office.breaks() == []


def die_at(office: Office, monkeypatch: pytest.MonkeyPatch, fatal: int, *, after: bool) -> None:
    """An export that does not survive its ``fatal`` file, right before it is in its place or right after."""
    link, steps = os.link, iter(range(100))

    def linked(source: Any, target: Any) -> None:
        is_fatal = next(steps) == fatal
        if not is_fatal or after:
            link(source, target)
        if is_fatal:
            raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(os, "link", linked)
        with pytest.raises(Killed):
            office.export()


def overtaken_by(export: Callable[[], object], patch: pytest.MonkeyPatch) -> Callable[[Any, Any], None]:
    """Before the first file is in its place, somebody else does all the work."""
    link = os.link

    def linked(source: Any, target: Any) -> None:
        patch.setattr(os, "link", link)
        export()
        link(source, target)

    return linked


def test_a_file_without_a_digest_is_signed_as_it_is_and_the_rest_is_late(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.work(1)
    die_at(office, monkeypatch, 0, after=True)
    first = office.bytes_by_name()
    office.write("request#1", at=START.replace(hour=23))
    office.work(1)

    assert (office.export().late, office.breaks()) == (1, [])
    assert first.items() <= office.bytes_by_name().items()


def test_a_file_that_somebody_put_there_is_not_signed(office: Office) -> None:
    office.work(1)
    foreign = office.folder / f"events/{TODAY}.jsonl.gz"
    foreign.parent.mkdir(parents=True)
    foreign.write_bytes(gzip.compress(b'{"entity": "request#1"}\n'))

    assert "tells what the audit log does not" in office.export().stopped
    assert not (office.folder / "digests").exists()


@pytest.mark.parametrize("damage", [lambda content: content[:-20], lambda content: b"no gzip" + content])
def test_a_file_that_can_not_be_unpacked_stops_the_export_and_is_named(office: Office, damage: Callable[[bytes], bytes]) -> None:
    office.work(1)
    office.export()
    file = office.folder / f"events/{TODAY}.jsonl.gz"
    file.write_bytes(damage(file.read_bytes()))
    office.work(1)

    report = office.export()

    assert (report.days, report.days_left) == (0, 1)
    assert report.stopped.startswith(f"{TODAY + DAY}: events/{TODAY}.jsonl.gz can't be unpacked")


def test_an_event_that_can_not_be_read_is_exported_as_the_break_that_it_is(office: Office) -> None:
    office.work(1)
    item = AuditItem.get("request#1", 1)
    item.update([AuditItem.actor.set("mallory@example.com")])

    office.export()
    assert any("request#1, event 1 was changed" in words for words in office.breaks())


@pytest.mark.parametrize("days_late", [10, 6])
def test_what_came_later_than_that_is_in_a_file_as_soon_as_its_chain_goes_on(office: Office, days_late: int) -> None:
    """By a process whose clock is days behind, and by somebody who has filed an event where no export looks."""
    office.work(4)
    office.export()
    office.clock.advance(7 * 24 * 3600)
    office.export()
    then = office.clock.now() - timedelta(days=days_late)
    office.write("request#1", at=then)
    office.write("request#1", at=then + timedelta(hours=1))
    office.write("request#9", at=then)
    AuditItem.get("request#9", 1).update([AuditItem.day_shard.set("nowhere")])
    assert office.export().late == 0
    office.write("request#1")
    office.write("request#9")
    office.clock.advance(24 * 3600)

    report = office.export()

    assert (report.stopped, report.late) == ("", 2)
    assert {one.rpartition(": ")[2] for one in office.breaks()} == {
        "when it was exported it was filed under another day after it was written",
        f"it happened on {then.date()}, and is in the file of {TODAY + 11 * DAY}",
    }
    office.work(2)
    assert office.export().late == 0


def test_events_that_are_written_while_a_day_is_exported_are_late(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.work(2)
    read = audit.events_of_day
    written = iter(range(6))

    def while_it_is_read(day: date) -> Iterator[AuditEvent]:
        yield from read(day)
        if next(written, None) is not None:
            office.write("request#1", at=START + timedelta(hours=3))
            office.write("request#8", at=START + timedelta(hours=27))

    monkeypatch.setattr(audit, "events_of_day", while_it_is_read)
    assert office.export().days == 2
    monkeypatch.undo()
    office.work(2)
    assert office.export().days == 2
    everything = sum(sequence for sequence, _ in office.chains.values())
    assert (office.breaks(), office.verify().chains, office.verify().events) == ([], 4, everything)


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"heads": {"request#1": 7}}', None])
def test_a_digest_of_long_ago_that_can_not_be_read_stops_no_day(office: Office, damage: bytes | None) -> None:
    office.work(1)
    office.clock.advance(9 * 24 * 3600)
    office.export()
    digest = office.folder / f"digests/{TODAY}.json"
    digest.unlink() if damage is None else digest.write_bytes(damage)
    office.work(1)

    report = office.export()

    assert (report.days, report.late, report.stopped) == (1, 0, "")
    assert office.breaks()


@pytest.mark.parametrize("entity", ["person#alice@example.com", "membership#alice@example.com", "request#1"])
def test_a_chain_that_goes_on_after_a_long_time_tells_nothing_twice(office: Office, entity: str) -> None:
    """Also where files have a pseudonym in the place of a person."""
    for _ in range(3):
        office.write(entity)
        office.clock.advance(9 * 24 * 3600)
        report = office.export()
        assert (report.late, report.stopped) == (0, "")
    assert office.breaks() == []
    assert office.verify().events == 3
