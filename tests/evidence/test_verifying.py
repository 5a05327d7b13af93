"""The verifier finds what was done to files, to the tables before they were exported, and to keys; it names the place."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accessportal.audit import config
from accessportal.audit.config import AuditKeys
from accessportal.conf import ROOT
from accessportal.evidence import policy
from tests.evidence.conftest import DAY, KEYS, OTHER, SIGNER, TODAY, Office

DAYS = [TODAY + n * DAY for n in range(4)]
FILES = [f"events/{day}.jsonl.gz" for day in DAYS]
DIGESTS = [f"digests/{day}.json" for day in DAYS]


@pytest.fixture
def exported(office: Office) -> Office:
    """Four days with three events each."""
    office.work(4)
    office.export()
    assert office.breaks() == []
    return office


def rewrite(office: Office, name: str, change: Callable[[list[dict[str, Any]]], object]) -> None:
    path = office.folder / name
    events = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    change(events)
    path.write_bytes(gzip.compress(b"".join(json.dumps(event).encode() + b"\n" for event in events), mtime=0))


def sign_anew(office: Office, name: str, **changed: Any) -> None:
    """As whoever has the key of the digests, and none of the hashes."""
    path = office.folder / name
    digest = json.loads(path.read_bytes()) | changed
    path.write_text(json.dumps(digest | {"signature": SIGNER.sign(policy.signed_bytes(digest))}))


def swap(office: Office, one: str, other: str) -> None:
    first, second = office.folder / one, office.folder / other
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


def swapped_chains(events: list[dict[str, Any]]) -> None:
    events[0]["entity"], events[1]["entity"] = events[1]["entity"], events[0]["entity"]


FORGERIES: dict[str, tuple[Callable[[Office], object], str]] = {
    "an approver is another": (
        lambda office: rewrite(office, FILES[1], lambda events: events[1].update(actor="mallory@example.com")),
        f"{FILES[1]}, line 2: request#1, event 2 was changed after it was written",
    ),
    "inserted": (
        lambda office: rewrite(office, FILES[1], lambda events: events.insert(1, events[0] | {"entity": "request#9", "sequence": 1})),
        f"{FILES[1]}, line 2: request#9, event 1 was changed after it was written",
    ),
    "deleted": (
        lambda office: rewrite(office, FILES[1], lambda events: events.pop(1)),
        f"{FILES[1]}: its SHA-256 is not the one in {DIGESTS[1]}",
    ),
    "reordered": (
        lambda office: rewrite(office, FILES[1], lambda events: events.reverse()),
        f"{FILES[1]}, line 2: it is not in order of time, entity and sequence",
    ),
    "truncated": (
        lambda office: rewrite(office, FILES[3], lambda events: events.pop()),
        f"{FILES[3]}: its SHA-256 is not the one in {DIGESTS[3]}",
    ),
    "an old event again": (
        lambda office: rewrite(office, FILES[2], lambda events: events.insert(0, _lines(office, FILES[1])[0])),
        f"{FILES[2]}, line 1: it happened on {DAYS[1]}, and is in the file of {DAYS[2]}",
    ),
    "the clock back": (
        lambda office: rewrite(office, FILES[2], lambda events: events[1].update(at=events[0]["at"])),
        f"{FILES[2]}, line 2: request#1, event 3 was changed after it was written",
    ),
    "two chains swapped": (
        lambda office: rewrite(office, FILES[1], swapped_chains),
        f"{FILES[1]}, line 1: request#1, event 2 was changed after it was written",
    ),
    "a file is another day's": (
        lambda office: swap(office, FILES[1], FILES[2]),
        f"{FILES[1]}, line 1: it happened on {DAYS[2]}, and is in the file of {DAYS[1]}",
    ),
    "a file is cut in its bytes": (
        lambda office: (office.folder / FILES[2]).write_bytes((office.folder / FILES[2]).read_bytes()[:-20]),
        f"{FILES[2]}, line ",
    ),
    "a file is gone": (lambda office: (office.folder / FILES[2]).unlink(), f"{FILES[2]}: it is missing"),
    "a file beside the others": (
        lambda office: shutil.copy(office.folder / FILES[2], office.folder / "events/2026-02-01.jsonl.gz"),
        "events/2026-02-01.jsonl.gz: no digest names it",
    ),
    "a digest left out": (
        lambda office: (office.folder / DIGESTS[2]).unlink(),
        f"{DIGESTS[2]}: it is missing: {DIGESTS[1]} is followed by {DIGESTS[3]}",
    ),
    "the first digest left out": (
        lambda office: (office.folder / DIGESTS[0]).unlink(),
        f"{DIGESTS[0]}: it is missing: {DIGESTS[1]} continues {DIGESTS[0]}",
    ),
    "two digests swapped": (lambda office: swap(office, DIGESTS[1], DIGESTS[2]), f"{DIGESTS[1]}: it is the digest of {DAYS[2]}"),
    "a digest says other heads": (
        lambda office: (office.folder / DIGESTS[1]).write_text((office.folder / DIGESTS[1]).read_text().replace("request#0", "request#7")),
        f"{DIGESTS[1]}: the signature is not of this digest",
    ),
    "a digest is no digest": (lambda office: (office.folder / DIGESTS[1]).write_text("{}"), f"{DIGESTS[1]}: it is signed by the key None"),
    "signed heads that the file does not have": (
        lambda office: sign_anew(office, DIGESTS[3], heads={}),
        f"{DIGESTS[3]}: the head of request#0 is not the one in {FILES[3]}",
    ),
    "a digest signed anew in the middle": (
        lambda office: sign_anew(office, DIGESTS[1], before={"name": DIGESTS[0], "sha256": "0" * 64}),
        f"{DIGESTS[1]}: it does not continue {DIGESTS[0]} as that is now",
    ),
}


def _lines(office: Office, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((office.folder / name).read_bytes()).splitlines()]


def test_every_forgery_of_files_is_found_at_its_place(exported: Office, tmp_path: Path) -> None:
    for what, (forge, words) in FORGERIES.items():
        forged = Office(exported.clock, tmp_path / "forged")
        shutil.copytree(exported.folder, forged.folder)
        forge(forged)
        found = forged.breaks()
        assert found, what
        assert found[0].startswith(words), (what, found)
        intact = set(forged.bytes_by_name().items()) & set(exported.bytes_by_name().items())
        assert [one for one in found if one.partition(",")[0].partition(":")[0] in dict(intact)] == [], (what, found)
        shutil.rmtree(forged.folder)


def test_what_follows_a_break_is_not_judged_where_it_hangs_on_it_and_else_it_is(exported: Office) -> None:
    """The second day's file lacks a line: its chain's next event can't be held against that, what was forged elsewhere is found still."""
    rewrite(exported, FILES[1], lambda events: events.pop(1))
    verdict = exported.verify()
    assert {one.file for one in verdict.breaks} == {FILES[1]}
    assert verdict.unjudged == [FILES[2]]

    (exported.folder / DIGESTS[2]).write_text((exported.folder / DIGESTS[2]).read_text().replace("request#0", "request#7"))
    verdict = exported.verify()
    assert {one.file for one in verdict.breaks} == {FILES[1], DIGESTS[2]}
    assert verdict.unjudged == [FILES[2], DIGESTS[3]]


def test_a_break_excuses_no_other_chain_later(office: Office) -> None:
    """After a day that is broken, and one on which all chains went on, an event is missing."""
    office.work(3)
    office.chains["request#1"] = (4, office.chains["request#1"][1])
    office.work(1)
    office.export()
    rewrite(office, FILES[0], lambda events: events.pop(0))
    verdict = office.verify()
    assert [str(one) for one in verdict.breaks if one.file != FILES[0]] == [f"{FILES[3]}, line 2: request#1, event 4 is missing; 5 is here"]
    assert verdict.unjudged == [FILES[1]]


def test_the_key_of_another_day_is_found(office: Office) -> None:
    office.work(1)
    office.export()
    office.work(1)
    Office(office.clock, office.folder, signer=OTHER).export()

    assert office.breaks() == [f"{DIGESTS[1]}: it is signed by the key {OTHER.key_id}, whose public key was not given"]


def test_the_end_left_out_is_found_by_the_day_that_must_be_there(exported: Office) -> None:
    (exported.folder / DIGESTS[3]).unlink()
    assert [str(one) for one in exported.verify(last_day=DAYS[3]).breaks] == [
        f"{DIGESTS[3]}: the digests end at {DAYS[2]}, before the day that must be there"
    ]
    assert exported.verify().notes == [f"{FILES[3]} has no digest yet: it was not looked at"]


def test_chains_that_were_forged_in_the_tables_before_the_export_are_found(office: Office) -> None:
    """By whoever writes to the tables, with hashes made anew: without the key, and by leaving it out."""
    office.write("request#0")
    for keys in (AuditKeys({"k1": b"mallory's".ljust(32)}), AuditKeys()):
        config.configure(keys)
        office.write("request#0")
    config.configure(KEYS)
    office.work(1)
    office.export()

    found = office.breaks()
    assert found[0] == f"{FILES[0]}, line 2: request#0, event 2 was changed after it was written"
    assert found[1] == f"{FILES[0]}, line 3: request#0, event 3 has no key in its hash, and must have one"


def test_files_hold_no_people_and_a_chain_does_not_go_back_to_them(office: Office) -> None:
    config.configure(replace(KEYS, pseudonyms=None))
    office.work(1)
    config.configure(KEYS)
    office.work(3)
    office.export()
    assert office.breaks() == []
    assert [b"@example.com" in gzip.decompress((office.folder / name).read_bytes()) for name in FILES] == [True, False, False, False]

    config.configure(replace(KEYS, pseudonyms=None))
    office.work(1)
    assert "set" in office.export().stopped.casefold()
    config.configure(KEYS)
    office.export()
    words = "request#0, event 5 has people in its hash, and an event before it has pseudonyms"
    assert office.breaks()[0] == f"events/{TODAY + 4 * DAY}.jsonl.gz, line 1: {words}"


def test_an_event_that_was_taken_out_of_the_table_is_named_where_the_next_one_is(office: Office) -> None:
    office.work(1)
    office.chains["request#1"] = (2, office.chains["request#1"][1])
    office.work(1)
    office.export()

    assert office.breaks() == [f"{FILES[1]}, line 2: request#1, event 2 is missing; 3 is here"]


def test_an_empty_folder_is_no_evidence(office: Office) -> None:
    assert office.breaks() == ["digests: there is no digest of any day"]


def alone(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The verifier's file and nothing else of ours: in an empty folder, by a Python that looks for nothing beside it."""
    shutil.copy(ROOT / "accessportal/evidence/verify_evidence.py", folder)
    command = [sys.executable, "-I", "verify_evidence.py", *arguments]
    return subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, timeout=60, check=False)


def test_the_verifier_works_alone(exported: Office, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "public.pem").write_text(SIGNER.public_key)
    (tmp_path / "keys").write_text("k1:MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=")
    given = [str(exported.folder), "--public-key", str(tmp_path / "public.pem")]

    without = alone(empty, *given)
    assert (without.returncode, without.stderr) == (0, "")
    assert without.stdout.splitlines() == [
        f"4 days ({DAYS[0]} to {DAYS[3]}), 12 events of 3 chains, 0 of them late.",
        "12 events have a key in their hash that was not given: their links and the signed heads were checked.",
        "Nothing is wrong.",
    ]
    assert "not given" not in alone(empty, *given, "--audit-keys", str(tmp_path / "keys")).stdout

    rewrite(exported, FILES[1], lambda events: events[1].update(actor="mallory@example.com"))
    found = alone(empty, *given, "--audit-keys", str(tmp_path / "keys"))
    assert found.returncode == 1
    assert found.stdout.splitlines()[1] == f"BREAK {FILES[1]}, line 2: request#1, event 2 was changed after it was written"
    assert alone(empty, str(exported.folder), "--public-key", str(tmp_path / "keys")).returncode == 2
