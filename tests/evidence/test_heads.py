"""The audit log against every head that was ever signed: what hashes and items can't tell, because both were forged with the right key."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from accessportal.audit import operations as audit
from accessportal.audit import policy as audit_policy
from accessportal.audit import queries
from accessportal.audit.models import AuditItem
from accessportal.kernel.actors import Role, person
from tests.commands.conftest import Ran, run
from tests.evidence.conftest import DAY, KEYS, OTHER, TODAY, Office
from tests.evidence.forging import Tables
from tests.evidence.test_verifying import swap
from tests.fixtures_story import Story

OLGA = person("olga@example.com", roles=frozenset({Role.OPERATOR}))
DAYS = [TODAY + n * DAY for n in range(4)]


@pytest.fixture
def exported(installed: Office) -> Office:
    """Four days with three events each, of requests that are over and long forgotten."""
    installed.work(4)
    installed.export()
    whole = verified()
    assert (whole.code, whole.json["breaks"], whole.json["digests"]) == (0, [], 4)
    assert whole.json["heads"] >= 12
    return installed


def verified(*arguments: str) -> Ran:
    return run("verify_audit", "--json", *arguments)


def breaks(*arguments: str) -> list[tuple[str, int, str]]:
    return [(one["entity"], one["sequence"], one["problem"]) for one in verified(*arguments).json["breaks"]]


def cut(entity: str, *sequences: int) -> None:
    tables = Tables()
    for sequence in sequences:
        tables.delete("AuditLog", tables.event(entity, sequence))


def rewritten(entity: str, begins: int) -> None:
    """As whoever has the key of the hashes: another approver, and all later events hashed anew."""
    chain = list(queries.chain_of(entity))
    head = chain[begins - 2].hash if begins > 1 else ""
    for event in chain[begins - 1 :]:
        forged = replace(event, prev_hash=head, actor="mallory@example.com" if event.sequence == begins else event.actor, hash="")
        head = audit_policy.event_hash(forged, KEYS)
        AuditItem(entity, event.sequence).update(
            actions=[
                AuditItem.actor.set(forged.actor),
                AuditItem.hash.set(head),
                AuditItem.prev_hash.set(forged.prev_hash) if forged.prev_hash else AuditItem.prev_hash.remove(),
            ]
        )


def test_chains_that_are_whole_in_themselves_are_held_against_what_was_signed(exported: Office) -> None:
    cut("request#0", 3, 4)
    rewritten("request#1", 2)
    cut("request#2", 1, 2, 3, 4)

    assert breaks() == [
        ("request#0", 3, f"event 3 is missing, and the digest of {DAYS[2]} has signed it"),
        ("request#1", 2, f"event 2 is not the one that the digest of {DAYS[1]} has signed"),
        ("request#2", 1, f"event 1 is missing, and the digest of {DAYS[0]} has signed it"),
    ]
    assert breaks("--without-evidence") == []


def test_a_head_that_was_signed_once_counts_for_ever(exported: Office) -> None:
    """Later days sign the forged chain: the older head tells."""
    rewritten("request#1", 2)
    last = queries.chain_of("request#1")[-1]
    exported.chains["request#1"] = last.sequence, last.hash
    exported.work(1)
    exported.export()

    assert breaks() == [("request#1", 2, f"event 2 is not the one that the digest of {DAYS[1]} has signed")]
    # From the files alone, where the forged events come as late ones.
    assert exported.breaks()[0] == f"events/{TODAY + 4 * DAY}.jsonl.gz, line 1: request#1, event 2 comes a second time"


def test_a_request_and_a_person_deleted_with_their_chains_are_found(story: Story, exported: Office) -> None:
    asked = story.ask_for_prod()
    exported.clock.advance(2 * 24 * 3600)
    exported.export()
    tables = Tables()
    tables.delete("ActiveRequests", {"request_id": {"S": asked.request_id}})
    cut(asked.entity, 1)
    mallory = {"S": "U:mallory@example.com"}
    tables.delete("AccessManagement", {"pk": mallory, "sk": mallory})
    # Evidence knows her by a pseudonym.
    known_as = queries.name_outside(queries.chain_of("person#mallory@example.com")[0])
    cut("person#mallory@example.com", 1)

    assert set(breaks()) == {
        (asked.entity, 1, f"event 1 is missing, and the digest of {DAYS[3] + DAY} has signed it"),
        (known_as, 1, f"event 1 is missing, and the digest of {TODAY} has signed it"),
    }


def _other_heads(office: Office) -> None:
    path = office.folder / f"digests/{DAYS[1]}.json"
    path.write_text(path.read_text().replace('"request#0"', '"request#7"'))


DIGESTS = [f"digests/{day}.json" for day in DAYS]
FORGED_DIGESTS: dict[str, tuple[Callable[[Office], object], list[tuple[str, int, str]]]] = {
    "other heads": (
        _other_heads,
        [(DIGESTS[1], 0, "the signature is not of this digest")],
    ),
    "left out": (
        lambda office: (office.folder / DIGESTS[2]).unlink(),
        [(DIGESTS[2], 0, f"it is missing: {DIGESTS[1]} is followed by {DIGESTS[3]}")],
    ),
    "no digest": (
        lambda office: (office.folder / DIGESTS[3]).write_text("[]"),
        [(DIGESTS[3], 0, "it is no digest (KeyError: 'format')")],
    ),
}


@pytest.mark.parametrize("what", FORGED_DIGESTS)
def test_forged_digests_are_named_and_prove_nothing(exported: Office, what: str) -> None:
    forge, expected = FORGED_DIGESTS[what]
    forge(exported)
    assert breaks() == expected


def test_a_file_that_a_digest_has_signed_and_is_missing_is_named(exported: Office) -> None:
    """Also where a restore would be looked up in it: it excuses nothing then."""
    name = f"events/{DAYS[2]}.jsonl.gz"
    missing = (name, 0, f"it is missing, and the digest of {DAYS[2]} has signed it")
    (exported.folder / name).unlink()
    assert breaks() == [missing]

    cut("request#0", 3, 4)
    now = exported.clock.now()
    audit.begin_restore(restored_to=now - timedelta(days=2, hours=12), actor=OLGA, now=now)
    assert breaks() == [missing, ("request#0", 3, f"event 3 is missing, and the digest of {DAYS[2]} has signed it")]


def test_a_restore_that_can_not_be_read_is_a_break_and_excuses_nothing(exported: Office) -> None:
    cut("request#0", 3, 4)
    now = exported.clock.now()
    audit.begin_restore(restored_to=now - timedelta(days=2, hours=12), actor=OLGA, now=now)
    tables = Tables()
    restore = next(one for one in tables.client.scan(TableName="Restores")["Items"] if "restored_to" in one)
    tables.put("Restores", restore | {"restored_to": {"S": "one day"}})

    assert {one[:2] for one in breaks()} == {(f"restore, {restore['epoch']['N']}", 0), ("request#0", 3)}


def test_two_days_swapped_are_named(exported: Office) -> None:
    swap(exported, DIGESTS[1], DIGESTS[2])
    assert breaks()[0] == (DIGESTS[1], 0, f"it is the digest of {DAYS[2]}")


def test_who_signed_before_is_told_by_a_public_key(installed: Office, tmp_path: Path) -> None:
    installed.work(1)
    Office(installed.clock, installed.folder, signer=OTHER).export()
    (tmp_path / "former.pem").write_text(OTHER.public_key)

    assert breaks() == [(DIGESTS[0], 0, f"it is signed by the key {OTHER.key_id}, whose public key was not given")]
    assert breaks("--public-key", str(tmp_path / "former.pem")) == []
    (tmp_path / "former.pem").write_text("none")
    assert verified("--public-key", str(tmp_path / "former.pem")).code == 2


def test_a_public_key_without_heads_to_check_is_refused(office: Office, tmp_path: Path) -> None:
    (tmp_path / "former.pem").write_text(OTHER.public_key)
    told = verified("--public-key", str(tmp_path / "former.pem"))
    assert told.code == 2
    assert "set up evidence here" in told.problem


def test_a_public_key_beside_what_leaves_out_the_heads_is_refused(exported: Office, tmp_path: Path) -> None:
    (tmp_path / "former.pem").write_text(OTHER.public_key)
    assert verified("--without-evidence", "--public-key", str(tmp_path / "former.pem")).code == 2


def test_what_a_restore_of_the_tables_has_lost_is_no_forgery(exported: Office) -> None:
    """The events of the last two days are gone, and the portal was told so; one of before is a forgery all the same."""
    for number in (0, 1, 2):
        cut(f"request#{number}", 3, 4)
    cut("request#1", 2)
    restored_to = exported.clock.now() - timedelta(days=2, hours=12)
    audit.begin_restore(restored_to=restored_to, actor=OLGA, now=exported.clock.now())

    told = verified()

    assert [(one["entity"], one["sequence"], one["problem"]) for one in told.json["breaks"]] == [
        ("request#1", 2, f"event 2 is missing, and the digest of {DAYS[1]} has signed it")
    ]
    assert told.json["lost"] == 6


def test_a_file_that_was_changed_excuses_nothing(exported: Office) -> None:
    """It says that event 2 happened in the time that the restore has lost."""
    cut("request#1", 2, 3, 4)
    now = exported.clock.now()
    audit.begin_restore(restored_to=now - timedelta(hours=12), actor=OLGA, now=now)
    path = exported.folder / f"events/{DAYS[1]}.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    path.write_bytes(gzip.compress(b"".join(json.dumps(line | {"at": now.isoformat()}).encode() + b"\n" for line in lines)))

    told = verified()

    assert [(one["entity"], one["sequence"]) for one in told.json["breaks"]] == [("request#1", 2)]
    assert told.json["lost"] == 0


def test_a_store_of_evidence_that_does_not_answer_is_no_answer(exported: Office) -> None:
    (exported.folder / "digests").rename(exported.folder / "kept")
    (exported.folder / "digests").write_text("no folder")
    assert "did not answer" in verified().problem
