"""The audit chain: what may be written, and what is found out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from accessportal.audit import queries
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import AuditEvent, Draft
from accessportal.kernel.actors import person
from accessportal.kernel.pages import every
from accessportal.store.transactions import ConditionFailed, transact
from tests.conftest import START

ALICE = person("alice@example.com")


def write_chain(length: int, entity: str = "request#1") -> str:
    head = ""
    for sequence in range(1, length + 1):
        draft = Draft("request.denied", ALICE.name, {"reason": f"ünïcödé {sequence}", "status": "DENIED"})
        event = prepare_event(draft, entity=entity, sequence=sequence, prev_hash=head, actor=ALICE, now=START)
        transact([event.step])
        head = event.head
    return head


def read_chain(entity: str = "request#1") -> list[AuditEvent]:
    return list(every(lambda cursor: queries.history(entity, cursor=cursor, limit=3, newest_first=False)))


@pytest.mark.parametrize(
    ("action", "data"),
    [("request.invented", {}), ("request.denied", {"reason": "x", "password": "y"})],
)
def test_unknown_actions_and_fields_are_never_written(action: str, data: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="audit action"):
        prepare_event(Draft(action, ALICE.name, data), entity="request#1", sequence=1, prev_hash="", actor=ALICE, now=START)


@pytest.mark.usefixtures("tables")
def test_a_whole_chain_has_no_break_and_its_end_is_known() -> None:
    head = write_chain(8)

    assert [event.sequence for event in read_chain()] == list(range(1, 9))
    assert queries.check_head("request#1", version=8, audit_head=head) == []
    assert queries.check_head("request#1", version=9, audit_head=head) != []
    assert queries.check_head("request#2", version=1, audit_head=head) != []


@pytest.mark.usefixtures("tables")
def test_two_writers_can_not_fork_a_chain() -> None:
    head = write_chain(2)
    drafts = [Draft("request.denied", ALICE.name, {"reason": reason}) for reason in ("one", "other")]
    first, second = (prepare_event(draft, entity="request#1", sequence=3, prev_hash=head, actor=ALICE, now=START) for draft in drafts)

    transact([first.step])
    with pytest.raises(ConditionFailed):
        transact([second.step])
    assert queries.check_head("request#1", version=3, audit_head=first.head) == []


@pytest.mark.usefixtures("tables")
def test_every_tampering_is_found_at_its_sequence() -> None:
    write_chain(4)
    chain = read_chain()
    third = chain[2]
    cases = {
        "reworded": [*chain[:2], replace(third, data={"reason": "another"}), chain[3]],
        "another actor": [*chain[:2], replace(third, actor="mallory@example.com"), chain[3]],
        "taken out": [*chain[:2], chain[3]],
        "beginning taken out": chain[2:],
        "put in another chain": [*chain[:2], replace(third, prev_hash="0" * 64), chain[3]],
    }

    assert queries.breaks_in(chain) == []
    for what, forged in cases.items():
        breaks = queries.breaks_in(forged)
        assert breaks, what
        assert breaks[0].sequence == (1 if what == "beginning taken out" else 3), what


@pytest.mark.usefixtures("tables")
def test_what_somebody_did_and_what_happened_on_a_day() -> None:
    write_chain(3)
    write_chain(2, entity="request#2")

    assert len(queries.by_actor(ALICE.name).items) == 5
    days = list(every(lambda cursor: queries.list_day(day=START.date(), cursor=cursor, limit=2)))
    assert {(event.entity, event.sequence) for event in days} == {
        ("request#1", 1),
        ("request#1", 2),
        ("request#1", 3),
        ("request#2", 1),
        ("request#2", 2),
    }
    assert queries.list_day(day=START.date() + timedelta(days=1), cursor=None, limit=2).items == ()
