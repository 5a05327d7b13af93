"""A restore of the tables is told as one by whoever has the files alone; and a note of one excuses nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from accessportal.audit import operations as audit
from accessportal.audit import queries
from accessportal.kernel.actors import Role, person
from accessportal.kernel.clock import to_epoch
from tests.commands.conftest import run
from tests.evidence.conftest import DAY, SIGNER, TODAY, Office
from tests.evidence.forging import Tables
from tests.evidence.test_heads import cut
from tests.evidence.test_verifying import alone, sign_anew

OLGA = person("olga@example.com", roles=frozenset({Role.OPERATOR}))
DIGEST = f"digests/{TODAY + 4 * DAY}.json"
FILE = f"events/{TODAY + 4 * DAY}.jsonl.gz"


@pytest.fixture
def fallen(installed: Office) -> Office:
    """The third and the fourth day were exported, and are not in the tables any more."""
    installed.work(4)
    installed.export()
    for number in range(3):
        entity = f"request#{number}"
        cut(entity, 3, 4)
        installed.chains[entity] = 2, queries.chain_of(entity)[-1].hash
    return installed


def tell(office: Office) -> None:
    """Of the restore, to a moment between the second day and the third."""
    now = office.clock.now()
    audit.begin_restore(restored_to=now - timedelta(days=2, hours=12), actor=OLGA, now=now)


def go_on(office: Office) -> None:
    office.work(1)
    office.export()


def test_what_a_restore_has_lost_is_neither_a_forgery_nor_passed_over(fallen: Office, tmp_path: Path) -> None:
    now = fallen.clock.now()
    tell(fallen)
    go_on(fallen)
    go_on(fallen)

    verdict = fallen.verify()
    assert verdict.breaks == []
    (restored,) = verdict.restored
    assert (restored.at, restored.restored_to, restored.events) == (now, now - timedelta(days=2, hours=12), 6)
    assert restored.chains == ("request#0", "request#1", "request#2")
    assert restored.by == queries.nameless("olga@example.com")
    (tmp_path / "public.pem").write_text(SIGNER.public_key)
    (tmp_path / "empty").mkdir()
    said = alone(tmp_path / "empty", str(fallen.folder), "--public-key", str(tmp_path / "public.pem"))
    assert said.returncode == 3
    assert said.stdout.splitlines()[2:] == [
        f"RESTORED {restored}",
        "Nothing else is wrong. Have each restore confirmed by somebody who can't write to the tables.",
    ]
    told = run("verify_evidence", str(fallen.folder), "--json")
    assert (told.code, told.json["restored"], told.json["breaks"]) == (0, [str(restored)], [])
    assert run("verify_audit", "--json").json["breaks"] == []


def test_a_chain_that_falls_back_without_a_note_is_a_break(fallen: Office) -> None:
    go_on(fallen)

    assert fallen.breaks()[0] == f"{FILE}, line 1: request#0, event 3 comes a second time"
    assert fallen.verify().restored == []


def test_a_restore_excuses_nothing_of_before_it(fallen: Office) -> None:
    """Somebody also rewrote a chain from its second event on."""
    cut("request#1", 2)
    fallen.chains["request#1"] = 1, queries.chain_of("request#1")[0].hash
    tell(fallen)
    go_on(fallen)

    assert fallen.breaks() == [f"{FILE}, line 3: request#1, event 2 comes a second time"]
    assert fallen.verify().restored[0].chains == ("request#0", "request#2")


def test_who_writes_to_the_tables_alone_gets_no_note(fallen: Office) -> None:
    """They can write the item, and no event of it that has the key in its hash."""
    now = to_epoch(fallen.clock.now())
    forged = {"name": {"S": "restore"}, "epoch": {"N": str(now)}, "restored_to": {"N": str(now - 216_000)}, "begun_by": {"S": OLGA.name}}
    Tables().put("Restores", forged | {"version": {"N": "1"}, "audit_head": {"S": "0" * 64}})
    go_on(fallen)

    assert fallen.breaks()[0] == f"{FILE}, line 1: request#0, event 3 comes a second time"
    assert "restores" not in json.loads((fallen.folder / DIGEST).read_bytes())


def _other(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda note: note.update(values)


def _fall(entity: str, which: str, sequence: int) -> Callable[[dict[str, Any]], object]:
    return lambda note: note["chains"][entity].update({which: [sequence, "0" * 64]})


NOTES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another head": (
        lambda note: note["chains"]["request#0"].update({"from": [4, "0" * 64]}),
        "request#0 did not fall back from event 4 to 2",
    ),
    "further back": (lambda note: note["chains"]["request#0"].update(to=[1, "0" * 64]), "request#0 did not fall back from event 4 to 1"),
    "another event": (lambda note: note["chains"]["request#0"].update(to=[2, "0" * 64]), "request#0 did not fall back from event 4 to 2"),
    "a chain that went on": (lambda note: note["chains"].update({"request#9": {"from": [1, ""], "to": [0, ""]}}), "request#9 did not"),
    "a longer time": (_other(restored_to="2026-01-01T00:00:00+00:00"), "it tells of restore#"),
    "somebody else": (_other(by="person-mallory"), "it tells of restore#"),
    "no event": (_other(restore="restore#7"), "it tells of restore#7, and its file has no such event"),
    "no note": (lambda note: note.clear(), "it is no digest of the form 1"),
}


@pytest.mark.parametrize("what", NOTES)
def test_a_note_that_does_not_fit_is_a_break(fallen: Office, what: str) -> None:
    """By whoever has the key of the digests, and none of the hashes."""
    change, words = NOTES[what]
    tell(fallen)
    go_on(fallen)
    (note,) = json.loads((fallen.folder / DIGEST).read_bytes())["restores"]
    change(note)
    sign_anew(fallen, DIGEST, restores=[note])

    assert any(one.startswith(f"{DIGEST}: {words}") for one in fallen.breaks()), fallen.breaks()


def test_a_restore_whose_event_was_changed_has_no_note(fallen: Office) -> None:
    tell(fallen)
    restore = f"restore#{to_epoch(fallen.clock.now())}"
    event = Tables().event(restore, 1)
    Tables().put("AuditLog", event | {"actor": {"S": "mallory@example.com"}})
    go_on(fallen)

    assert "restores" not in json.loads((fallen.folder / DIGEST).read_bytes())
    assert any(f"{restore}, event 1 was changed after it was written" in one for one in fallen.breaks())


def test_two_restores_on_one_day_are_both_told(fallen: Office) -> None:
    tell(fallen)
    fallen.clock.advance(60)
    now = fallen.clock.now()
    audit.begin_restore(restored_to=now - timedelta(hours=1), actor=OLGA, now=now)
    go_on(fallen)

    assert fallen.breaks() == []
    assert [one.events for one in fallen.verify().restored] == [6, 0]
