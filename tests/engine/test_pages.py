"""Pages of a query on Amazon's engine: whole, in order, each item once, and cursors that only continue their own query."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from accessportal.audit import queries
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import Draft
from accessportal.kernel.actors import person
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.pages import every
from accessportal.store.transactions import transact

pytestmark = pytest.mark.usefixtures("engine")
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
OLGA = person("olga@example.com")


def _write(entity: str, count: int, *, seconds_apart: int = 1) -> None:
    head = ""
    for sequence in range(1, count + 1):
        draft = Draft("user.enabled", entity, {"state": "enabled"})
        at = NOW + timedelta(seconds=sequence * seconds_apart)
        event = prepare_event(draft, entity=entity, sequence=sequence, prev_hash=head, actor=OLGA, now=at)
        transact([event.step])
        head = event.head


@pytest.mark.parametrize(("count", "sizes"), [(0, [0]), (9, [9]), (10, [10]), (11, [10, 1]), (20, [10, 10]), (25, [10, 10, 5])])
@pytest.mark.parametrize("newest_first", [False, True])
def test_a_next_cursor_means_that_there_is_a_next_item(count: int, sizes: list[int], *, newest_first: bool) -> None:
    _write("person#a", count)
    _write("person#b", 3)
    found, cursor, seen = [], None, []
    while True:
        page = queries.history("person#a", cursor=cursor, limit=10, newest_first=newest_first)
        found.append(len(page.items))
        seen += [event.sequence for event in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break

    assert found == sizes
    assert seen == sorted(range(1, count + 1), reverse=newest_first)


def test_an_index_gives_each_event_once_even_where_many_share_a_moment() -> None:
    for name in ("a", "b", "c", "d", "e"):
        _write(f"person#{name}", 4, seconds_apart=0)

    by_actor = [event.event_id for event in every(lambda cursor: queries.by_actor(OLGA.name, cursor=cursor, limit=3))]
    of_day = [event.event_id for event in every(lambda cursor: queries.list_day(day=NOW.date(), cursor=cursor, limit=3))]

    assert len(by_actor) == len(set(by_actor)) == 20
    assert sorted(of_day) == sorted(by_actor)


def test_a_cursor_of_another_query_or_a_changed_one_is_refused() -> None:
    _write("person#a", 5)
    _write("person#b", 5)
    cursor = queries.history("person#a", limit=2).next_cursor
    assert cursor is not None
    raw = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    raw[-1] ^= 1
    changed = base64.urlsafe_b64encode(bytes(raw)).decode().rstrip("=")

    with pytest.raises(InvalidRequest):
        queries.history("person#b", cursor=cursor, limit=2)
    for forged in (changed, "", "x", "é", cursor[:-4], cursor + "AAAA"):
        with pytest.raises(InvalidRequest):
            queries.history("person#a", cursor=forged, limit=2)
