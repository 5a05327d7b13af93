"""Keys in the hashes: what somebody with the tables alone can't do, and what goes on with a new key."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from accessportal.audit import config, policy, queries
from accessportal.audit.config import AuditKeys, new_key, read_keys
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import AuditEvent, Draft
from accessportal.kernel.actors import person
from accessportal.store.transactions import transact
from tests.conftest import START

BOB = person("bob@example.com")
ENTITY = "request#1"
FIRST = AuditKeys({"first": b"1" * 32})
BOTH = AuditKeys({"second": b"2" * 32, "first": b"1" * 32})

pytestmark = pytest.mark.usefixtures("tables")


@pytest.fixture(autouse=True)
def _keys_of_before() -> Iterator[None]:
    before = config.current()
    yield
    config.configure(before)


def written_with(*keys: AuditKeys) -> list[AuditEvent]:
    """A chain, each event by the keys of its time; those of the last one are in force afterwards."""
    head = ""
    for number, in_force in enumerate(keys):
        config.configure(in_force)
        draft = Draft("request.denied", BOB.name, {"reason": f"No. {number}", "status": "DENIED"})
        now = START + timedelta(hours=number)
        event = prepare_event(draft, entity=ENTITY, sequence=number + 1, prev_hash=head, actor=BOB, now=now)
        transact([event.step])
        head = event.head
    return list(queries.chain_of(ENTITY))


def forged(chain: list[AuditEvent], begins: int, change: Callable[[AuditEvent], AuditEvent]) -> list[AuditEvent]:
    """The chain with its events from ``begins`` on changed and hashed anew, by whoever can write to the tables and has no key."""
    found = chain[:begins]
    for event in chain[begins:]:
        linked = replace(change(event), prev_hash=found[-1].hash if found else "", hash="")
        try:
            found.append(replace(linked, hash=policy.event_hash(linked, AuditKeys())))
        except KeyError:
            found.append(replace(linked, hash=policy.event_hash(replace(linked, key_id=""), AuditKeys())))
    return found


def problems(chain: list[AuditEvent]) -> list[tuple[int, str]]:
    return [(one.sequence, one.problem) for one in queries.breaks_in(chain)]


def test_chains_go_on_from_no_key_to_a_key_and_to_the_next_one() -> None:
    chain = written_with(AuditKeys(), AuditKeys(), FIRST, FIRST, BOTH)

    assert [event.key_id for event in chain] == ["", "", "first", "first", "second"]
    assert problems(chain) == []
    config.configure(AuditKeys({"second": b"2" * 32}))
    assert problems(chain) == [(number, "has a hash by the key first, which is not in PORTAL_AUDIT_KEYS") for number in (3, 4)]
    config.configure(AuditKeys({"second": b"2" * 32, "first": b"x" * 32}))
    assert problems(chain) == [(number, "was changed after it was written") for number in (3, 4)]


def test_another_approver_with_all_hashes_made_anew_is_found() -> None:
    chain = written_with(FIRST, FIRST, FIRST)

    kept_id = forged(chain, 1, lambda event: replace(event, actor="mallory@example.com"))
    assert problems(kept_id)[0] == (2, "was changed after it was written")
    foreign_id = forged(chain, 1, lambda event: replace(event, key_id="mine"))
    assert problems(foreign_id)[0] == (2, "has a hash by the key mine, which is not in PORTAL_AUDIT_KEYS")
    no_id = forged(chain, 1, lambda event: replace(event, key_id=""))
    assert problems(no_id)[0] == (2, "has no key in its hash, and an event before it has one")


def test_a_whole_chain_without_its_key_is_found_by_the_moment_after_which_there_is_none() -> None:
    keys = replace(FIRST, plain_until=START + timedelta(minutes=30))
    chain = written_with(AuditKeys(), keys, keys)
    assert problems(chain) == []

    stripped = forged(chain, 0, lambda event: replace(event, key_id=""))
    assert problems(stripped)[0] == (2, "has no key in its hash, and was written after PORTAL_AUDIT_PLAIN_UNTIL")


def test_while_the_key_is_brought_to_every_process_those_without_it_may_write() -> None:
    keys = replace(FIRST, plain_until=START + timedelta(hours=5))

    assert problems(written_with(keys, AuditKeys(), keys)) == []


def test_an_event_that_was_written_without_a_key_has_the_hash_that_it_always_had() -> None:
    """Written by 0.6.0."""
    event = AuditEvent(
        "request#1", 1, "id", START, "request.denied", "bob@example.com", "alice@example.com", {"status": "DENIED"}, hash="", prev_hash=""
    )

    assert policy.event_hash(event, BOTH) == "4c93cc63ed2367a31c46a893673f02ce509615b167c1911b5cd4d11c9b91b7ce"


def test_keys_are_read_in_their_order_and_faults_are_named_without_the_secret() -> None:
    made = new_key(START)
    assert list(read_keys(f"{made}, old:{base64.b64encode(b'0' * 32).decode()}")) == ["k20260302090000", "old"]
    assert read_keys("") == {}
    good = made.partition(":")[2]
    faults = {
        good: "key 1 needs an id",
        f"a b:{good}": "key 1 needs an id",
        f"k:{good}, k:{good}": "the id k comes twice",
        "k:no%base64": "the key k is not base64",
        "k:c2hvcnQ=": "the key k is shorter than 32 bytes",
    }
    for text, words in faults.items():
        with pytest.raises(ValueError, match=words) as caught:
            read_keys(text)
        assert good not in str(caught.value)
