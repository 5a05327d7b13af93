"""What an answer costs in requests: as much after ten years as after one."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from accessportal.audit.operations import prepare_event
from accessportal.audit.states import Draft
from accessportal.history import operations, queries
from accessportal.history.states import Thing, ThingKind
from accessportal.kernel.actors import Role, person, system
from accessportal.store.keys import join_key
from accessportal.store.transactions import transact
from tests.conftest import FakeClock
from tests.crashing import Process, living

ANA = person("ana@example.com", roles=frozenset({Role.AUDITOR}))
ACCOUNT = Thing(ThingKind.ACCOUNT, "123456789012")
DAY = timedelta(days=1)


def write_access(number: int, at: datetime) -> None:
    """An hour of Alice's in the account, found in AWS."""
    entity, head = f"assignment#{join_key('USER', f'u-{number}', ACCOUNT.name, 'arn:ps')}", ""
    found = Draft("assignment.adopted", "alice@example.com", {"state": "PRESENT", "claims": ["outside"]})
    gone = Draft("assignment.absent", "alice@example.com", {"state": "ABSENT", "job_id": "job-1", "job_status": "SUCCEEDED"})
    for sequence, (draft, moment) in enumerate([(found, at), (gone, at + timedelta(hours=1))], start=1):
        event = prepare_event(draft, entity=entity, sequence=sequence, prev_hash=head, actor=system("test"), now=moment)
        transact([event.step])
        head = event.head


def test_an_answer_costs_the_same_however_long_the_past_is(tables: None, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    began_at, counts = clock.now(), []
    at, written = began_at + timedelta(days=3, minutes=30), 0
    for accesses in (12, 120):
        for number in range(written, accesses):
            write_access(number, began_at + number * 30 * DAY + 3 * DAY)
        written = accesses
        clock.advance((began_at + (accesses + 1) * 30 * DAY - clock.now()).total_seconds())
        assert operations.rebuild(workers=1, actor=person("olga@example.com", roles=frozenset({Role.OPERATOR})), clock=clock).is_ok
        process = Process(fatal=-1, after=True)
        with living(process, monkeypatch, reads=frozenset()):
            found = queries.who_had(thing=ACCOUNT, at=at, actor=ANA).page
            asked_for_a_moment = len(process.names)
            during = queries.who_had(thing=ACCOUNT, at=at - 50 * DAY, until=at + 42 * DAY, actor=ANA).page
            asked_for_three_months = len(process.names) - asked_for_a_moment
            had = queries.what_had(email="alice@example.com", begin=at - 7 * DAY, end=at, actor=ANA).page
        assert [len(found.items), len(during.items), len(had.items)] == [1, 2, 1]
        assert asked_for_three_months <= 9
        counts.append(process.names)
    assert counts[0] == counts[1]
    assert len(counts[0]) <= 22
