"""Pseudonyms in the hashes: no address and no name is hashed, and an event holds whether or not somebody in it was erased."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accessportal.audit import config, policy, queries
from accessportal.audit.actions import ACTIONS
from accessportal.audit.config import AuditKeys, read_pseudonyms
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import AuditEvent, Draft
from accessportal.kernel.actors import person
from accessportal.kernel.pseudonyms import Pseudonyms, may_stand_in, replaced_in
from accessportal.store.transactions import transact
from tests.conftest import START

ALICE = "alice.o'hara+x@example.com"
PSEUDONYMS = Pseudonyms(b"p" * 32)
OF_ALICE = PSEUDONYMS.of(ALICE)
PLAIN = AuditKeys({"first": b"1" * 32})
NAMELESS = replace(PLAIN, pseudonyms=PSEUDONYMS)
# As addresses stand in keys, claims, texts and maps.
PLACES = [
    ALICE,
    f"user#{ALICE.upper()}",
    f"person:{ALICE}",
    f"approvals:s:{ALICE}:read:doc/1",
    "scope#alice.o%27hara%2Bx@example.com#x",
    f"person:{ALICE}\nrequest:1",
    f"Ask <{ALICE}>, or ({ALICE}).",
]


@pytest.fixture(autouse=True)
def _keys_of_before() -> Iterator[None]:
    before = config.current()
    config.configure(NAMELESS)
    yield
    config.configure(before)


def event_of(action: str, data: dict[str, Any], *, place: str = ALICE) -> AuditEvent:
    made = AuditEvent(f"user#{ALICE}", 1, "id", START, action, ALICE, place, data, hash="", scope=place, pseudonym_id=PSEUDONYMS.key_id)
    return replace(made, hash=policy.event_hash(made, NAMELESS))


def erased(event: AuditEvent) -> AuditEvent:
    """As it is when Alice was erased: what holds her address has her pseudonym there, and her names are gone."""

    def replaced(value: Any) -> Any:
        return replaced_in(value, lambda text: PSEUDONYMS.in_text(text, only=OF_ALICE))

    data = policy.without_names(event.action, event.data, PSEUDONYMS.of_name)
    told = {name: replaced(getattr(event, name)) for name in ("entity", "actor", "subject", "scope")}
    return replace(event, **told, data=replaced(data))


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_no_field_of_any_action_brings_a_person_into_the_hash(action: str) -> None:
    spec = ACTIONS[action]
    for place in PLACES:
        data: dict[str, Any] = {field: [place, {place: {"deep": place}}] for field in spec.fields} | dict.fromkeys(
            spec.names, "Alice O'Hara"
        )
        event = event_of(action, data, place=place)
        body = json.dumps(policy.body_of(event, NAMELESS)).casefold()
        assert "hara" not in body
        assert body.count(OF_ALICE) >= 3 * len(spec.fields - spec.names)
        assert policy.flaw_of(event, NAMELESS) == ""
        assert policy.flaw_of(erased(event), NAMELESS) == ""
        assert "hara" not in repr(erased(event)).casefold()
        assert policy.flaw_of(replace(event, actor="mallory@example.com"), NAMELESS) == "was changed after it was written"


@given(st.text(alphabet="ab@.%27'-#:< ", max_size=30), st.text(alphabet="ab@.%27'-#:< ", max_size=30))
def test_a_text_with_some_people_replaced_has_the_same_pseudonyms(text: str, other: str) -> None:
    """Whatever stands around an address: also where it runs into another one."""
    whole = f"{text}{ALICE}{other}"
    nameless = PSEUDONYMS.in_text(whole)
    assert "@" not in PSEUDONYMS.in_text(ALICE)
    assert PSEUDONYMS.in_text(nameless) == nameless
    for only in {PSEUDONYMS.of(one) for one in (ALICE, "a@b", "b@a.b")}:
        assert PSEUDONYMS.in_text(PSEUDONYMS.in_text(whole, only=only)) == nameless


def test_pseudonyms_are_stable_and_of_a_key() -> None:
    assert PSEUDONYMS.of("Alice@Example.com") == PSEUDONYMS.of("alice@example.com") == "person-442hjfi7hwahqcdeywsyuyw233"
    assert PSEUDONYMS.of(OF_ALICE) == OF_ALICE
    assert PSEUDONYMS.of_name(PSEUDONYMS.of_name("Alice")) == PSEUDONYMS.of_name("Alice") != PSEUDONYMS.of_name("Bob")
    assert Pseudonyms(b"q" * 32).of(ALICE) != OF_ALICE
    assert [one for one in ("bob", "system:tick", "client:1", "") if PSEUDONYMS.in_text(one) != one] == []
    assert may_stand_in(ALICE)
    assert [one for one in ("a#b@x.com", "a/b@x.com", "+a@x.com", "a%b@x.com") if may_stand_in(one)] == []


def test_a_key_of_pseudonyms_is_read_or_refused_without_being_told() -> None:
    assert read_pseudonyms("") is None
    assert read_pseudonyms("cHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHA=") == PSEUDONYMS
    for fault in ("no%base64", "c2hvcnQ="):
        with pytest.raises(ValueError, match="must be 32 bytes in base64") as refusal:
            read_pseudonyms(fault)
        assert fault not in str(refusal.value)


def written(hours: float, keys: AuditKeys, chain: list[AuditEvent]) -> AuditEvent:
    config.configure(keys)
    draft = Draft("request.denied", ALICE, {"reason": f"Says {ALICE}", "status": "DENIED"})
    head, number = (chain[-1].hash, len(chain)) if chain else ("", 0)
    now = START + timedelta(hours=hours)
    transact([prepare_event(draft, entity="request#1", sequence=number + 1, prev_hash=head, actor=person(ALICE), now=now).step])
    return queries.chain_of("request#1")[-1]


def problems(chain: list[AuditEvent]) -> list[tuple[int, str]]:
    return [(one.sequence, one.problem) for one in queries.breaks_in(chain)]


@pytest.mark.usefixtures("tables")
def test_a_chain_goes_on_with_pseudonyms_and_not_back_after_a_day() -> None:
    chain: list[AuditEvent] = []
    for hours, keys in ((0, PLAIN), (1, PLAIN), (2, NAMELESS), (25, PLAIN), (25.5, NAMELESS)):
        chain.append(written(hours, keys, chain))
    assert [bool(event.pseudonym_id) for event in chain] == [False, False, True, False, True]
    assert problems(chain) == []
    assert problems([*chain[:2], *map(erased, chain[2:3])]) == []

    chain.append(written(26.5, PLAIN, chain))
    config.configure(NAMELESS)
    assert problems(chain) == [(6, "has people in its hash, and an event before it has pseudonyms")]


@pytest.mark.usefixtures("tables")
def test_another_key_of_pseudonyms_is_named_as_such() -> None:
    chain = [written(0, NAMELESS, [])]
    for keys in (PLAIN, replace(PLAIN, pseudonyms=Pseudonyms(b"q" * 32))):
        config.configure(keys)
        assert problems(chain) == [(1, "has pseudonyms in its hash that are not by PORTAL_PSEUDONYM_KEY")]
