"""What an answer costs in requests: as much after ten years as after one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from accessportal.audit.operations import prepare_event
from accessportal.audit.states import Draft
from accessportal.history import operations, queries
from accessportal.history.states import Answer, Held, Thing, ThingKind
from accessportal.kernel.actors import Role, person, system
from accessportal.kernel.pages import Page, every
from accessportal.store.keys import join_key
from accessportal.store.transactions import transact
from tests.conftest import FakeClock
from tests.crashing import Process, living

ANA = person("ana@example.com", roles=frozenset({Role.AUDITOR}))
ACCOUNT = Thing(ThingKind.ACCOUNT, "123456789012")
DAY = timedelta(days=1)


def write(entity: str, *events: tuple[Draft, datetime]) -> None:
    head = ""
    for sequence, (draft, at) in enumerate(events, start=1):
        event = prepare_event(draft, entity=entity, sequence=sequence, prev_hash=head, actor=system("test"), now=at)
        transact([event.step])
        head = event.head


def write_access(number: int, at: datetime, who: str = "alice@example.com", hours: int = 1) -> None:
    """Found in AWS."""
    found = Draft("assignment.adopted", who, {"state": "PRESENT", "claims": ["outside"]})
    gone = Draft("assignment.absent", who, {"state": "ABSENT", "job_id": "job-1", "job_status": "SUCCEEDED"})
    entity = f"assignment#{join_key('USER', f'u-{number}', ACCOUNT.name, 'arn:ps')}"
    write(entity, (found, at), (gone, at + timedelta(hours=hours)))


def rebuilt(clock: FakeClock) -> None:
    assert operations.rebuild(workers=1, actor=person("olga@example.com", roles=frozenset({Role.OPERATOR})), clock=clock).is_ok


def test_an_answer_costs_the_same_however_long_the_past_is(tables: None, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    began_at, counts = clock.now(), []
    at, written = began_at + timedelta(days=3, minutes=30), 0
    for accesses in (24, 120):
        for number in range(written, accesses):
            write_access(number, began_at + number * 30 * DAY + 3 * DAY)
        written = accesses
        clock.advance((began_at + (accesses + 1) * 30 * DAY - clock.now()).total_seconds())
        rebuilt(clock)
        process = Process(fatal=-1, after=True)
        with living(process, monkeypatch, reads=frozenset()):
            found = queries.who_had(thing=ACCOUNT, at=at, actor=ANA).page
            asked_for_a_moment = len(process.names)
            during = queries.who_had(thing=ACCOUNT, at=at - 50 * DAY, until=at + 316 * DAY, actor=ANA).page
            asked_for_a_year = len(process.names) - asked_for_a_moment
            had = queries.what_had(email="alice@example.com", begin=at - 7 * DAY, end=at, actor=ANA).page
        assert [len(found.items), len(during.items), len(had.items)] == [1, 11, 1]
        assert asked_for_a_year == 4
        counts.append(process.names)
    assert counts[0] == counts[1]
    assert len(counts[0]) == 12


def asked_for(answer: Callable[[str | None], Answer], monkeypatch: pytest.MonkeyPatch) -> tuple[list[Held], list[int]]:
    """All lines, and how many requests each page took."""
    counts: list[int] = []

    def fetch(cursor: str | None) -> Page[Held]:
        process = Process(fatal=-1, after=True)
        with living(process, monkeypatch, reads=frozenset()):
            page = answer(cursor).page
        counts.append(len(process.names))
        return page

    return list(every(fetch)), counts


def test_through_groups_an_answer_about_the_last_year_asks_once_for_each(
    tables: None, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the group had it, and however many ways meet at a group."""
    at = clock.now()
    for group_id, parent_id in (("/", ""), ("/teams", "/"), *((f"/teams/{name}", "/teams") for name in "abcde")):
        write(f"group#{group_id}", (Draft("group.created", group_id, {"parent_id": parent_id, "state": "enabled"}), at))
    for email, names in (("alice@example.com", "ab"), ("bob@example.com", "c")):
        joined = ({"group_id": f"/teams/{name}", "role": "reader", "claim": "permanent", "effective_role": "reader"} for name in names)
        write(f"person#{email}", *((Draft("user.granted", email, data), at) for data in joined))
    for number in range(5):
        write_access(number, at + number * 60 * DAY, who="/teams", hours=24)
    clock.advance(360 * 86_400)
    rebuilt(clock)
    counts = []
    for begin, end in ((at, clock.now()), (at + 50 * DAY, at + 70 * DAY)):
        (found, asked), (same, asked_at_once) = (
            asked_for(
                lambda cursor: queries.who_had(thing=ACCOUNT, at=begin, until=end, cursor=cursor, limit=limit, actor=ANA),  # noqa: B023
                monkeypatch,
            )
            for limit in (25, 200)
        )
        had, asked_too = asked_for(
            lambda cursor: queries.what_had(email="alice@example.com", begin=begin, end=end, cursor=cursor, actor=ANA),  # noqa: B023
            monkeypatch,
        )
        assert {one.who for one in found} >= {"alice@example.com", "bob@example.com"}
        assert found == same
        assert {one.interval.thing for one in had} >= {ACCOUNT}
        counts.append((asked, asked_at_once, asked_too))
    # How far it is; the account (months, year, open), /teams' places and its members, those of each group below; where the next page goes
    # on. Alice, and the 4 groups above her.
    assert counts == [([8, 9, 9, 9, 9, 9], [9], [6]), ([8, 7], [11], [6])]
