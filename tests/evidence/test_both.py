"""Ten forgeries, each looked for twice: in the tables by verify_audit, and in the files alone by the verifier. What one of them can't see
stands there as such."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from accessportal.audit import queries
from tests.commands.conftest import run
from tests.evidence.conftest import DAY, OTHER, TODAY, Office
from tests.evidence.forging import Raw, Tables
from tests.evidence.test_heads import cut
from tests.evidence.test_verifying import swap

LOG = "AuditLog"
OTHERS = f"signed by the key {OTHER.key_id}"
CHANGED = "was changed after it was written"
NOT_SEEN = ""


def events(*wanted: tuple[str, int]) -> list[Raw]:
    return [Tables().event(entity, sequence) for entity, sequence in wanted]


def inserted(_office: Office) -> None:
    (event,) = events(("request#0", 3))
    Tables().put(LOG, event | {"sequence": {"N": "4"}})


def deleted(office: Office) -> None:
    office.write("request#0")
    cut("request#0", 3)


def reordered(office: Office) -> None:
    office.write("request#0")
    third, fourth = events(("request#0", 3), ("request#0", 4))
    for event, place in ((third, fourth), (fourth, third)):
        Tables().put(LOG, event | {"sequence": place["sequence"]})


def truncated(office: Office) -> None:
    """And the portal goes on from there."""
    cut("request#0", 2, 3)
    office.chains["request#0"] = 1, queries.chain_of("request#0")[-1].hash
    office.write("request#0")


def an_old_one_again(_office: Office) -> None:
    first, third = events(("request#0", 1), ("request#0", 3))
    Tables().put(LOG, first | {"sequence": {"N": "4"}, "prev_hash": third["hash"]})


def the_clock_back(_office: Office) -> None:
    (event,) = events(("request#0", 3))
    Tables().put(LOG, event | {"at": {"N": str(float(event["at"]["N"]) - 60)}})


def two_chains_swapped(_office: Office) -> None:
    one, other = events(("request#0", 3), ("request#1", 3))
    for event, place in ((one, other), (other, one)):
        Tables().put(LOG, event | {name: place[name] for name in ("entity", "day#shard")})


def another_approver(_office: Office) -> None:
    (event,) = events(("request#0", 3))
    Tables().put(LOG, event | {"actor": {"S": "mallory@example.com"}})


def a_key_of_another_day(office: Office) -> None:
    Office(office.clock, office.folder, signer=OTHER).export()


def a_digest_left_out(office: Office) -> None:
    office.export()
    (office.folder / f"digests/{TODAY + DAY}.json").unlink()


def a_file_of_another_day(office: Office) -> None:
    swap(office, f"events/{TODAY}.jsonl.gz", f"events/{TODAY + DAY}.jsonl.gz")


FORGERIES: dict[str, tuple[Callable[[Office], object], str, str]] = {
    "insert": (inserted, f"request#0, 4: ({CHANGED}|does not continue)", f"request#0, event 4 {CHANGED}"),
    "delete": (deleted, "request#0, 3: event 3 is missing", "request#0, event 3 is missing; 4 is here"),
    "reorder": (reordered, f"request#0, 3: ({CHANGED}|does not continue)", f"request#0, event [34] {CHANGED}"),
    "truncate": (truncated, "request#0, 2: event 2 is not the one that the digest", "request#0, event 2 comes a second time"),
    "an old event again": (an_old_one_again, f"request#0, 4: {CHANGED}", f"request#0, event 4 {CHANGED}"),
    "the clock back": (the_clock_back, f"request#0, 3: {CHANGED}", f"request#0, event 3 {CHANGED}"),
    "two chains swapped": (two_chains_swapped, f"request#1, 3: {CHANGED}", f"request#1, event 3 {CHANGED}"),
    "another approver": (another_approver, f"request#0, 3: {CHANGED}", f"request#0, event 3 {CHANGED}"),
    "a key of another day": (a_key_of_another_day, OTHERS, OTHERS),
    "a digest left out": (a_digest_left_out, f"digests/{TODAY + DAY}.json, 0: it is missing", f"digests/{TODAY + DAY}.json: it is missing"),
    # It compares tables with what digests say: what files hold, it does not read.
    "a file of another day": (a_file_of_another_day, NOT_SEEN, "it happened on"),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forgery_is_found_in_the_tables_and_in_the_files(installed: Office, what: str) -> None:
    """Two days are exported, and one is not yet."""
    forge, in_tables, in_files = FORGERIES[what]
    installed.work(2)
    installed.export()
    installed.work(1)

    forge(installed)
    audited = [f"{one['entity']}, {one['sequence']}: {one['problem']}" for one in run("verify_audit", "--json").json["breaks"]]
    installed.clock.advance(24 * 3600)
    installed.export()
    verified = installed.breaks()

    assert [one for one in audited if re.search(in_tables, one)] if in_tables else audited == []
    assert [one for one in verified if re.search(in_files, one)], verified
