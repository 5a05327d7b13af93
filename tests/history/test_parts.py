"""Whatever the time that is asked about, each interval that was so in it is met once; and rows that a former version wrote elsewhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product

import boto3
import pytest

from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole
from accessportal.history import operations, queries, store
from accessportal.history.models import HistoryItem
from accessportal.history.states import Held, Interval, Mark, NotMadeYet, Thing, ThingKind, key_of
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.pages import Page, every
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION
from tests.history.comparing import rows

ACCOUNT = Thing(ThingKind.ACCOUNT, "123456789012")
PAYMENTS = Thing(ThingKind.GROUP, "/engineering/payments")
DAY, JUST = timedelta(days=1), timedelta(milliseconds=1)
FIRST, THEN = datetime(2023, 10, 20, 8, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC)
LENGTHS = (timedelta(hours=1), 40 * DAY, 395 * DAY, 430 * DAY, 900 * DAY)


def interval(from_at: datetime, gone_at: datetime | None) -> Interval:
    names = f"{from_at}", f"{gone_at}"
    begun = Interval(
        key=key_of(from_at, *names),
        thing=ACCOUNT,
        who="alice@example.com",
        right="ReadOnlyAccess",
        reason="outside",
        entity="assignment#1",
        sequence=1,
        from_at=from_at,
    )
    return replace(begun, gone_at=gone_at)


@pytest.mark.parametrize("is_person", [False, True])
def test_each_interval_is_met_once(tables: None, is_person: bool) -> None:
    """At the turns of months and years, of an hour and of years, in pages of any size."""
    begins = [FIRST + number * 37 * DAY for number in range(8)] + [THEN - JUST, THEN, datetime(2024, 12, 31, 23, tzinfo=UTC)]
    written = [interval(at, at + length) for at, length in product(begins, LENGTHS)] + [interval(at, None) for at in begins]
    mark = Mark(entity="assignment#1")
    for one in written:
        mark = store.keep_mark(7, mark, mark.to(to_write=(one,)))
    name = "alice@example.com" if is_person else ACCOUNT.key
    ends = (FIRST, THEN, datetime(2024, 7, 4, 12, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 5, 31, tzinfo=UTC))
    for end, length, is_late, limit in product(ends, (JUST, 35 * DAY, 366 * DAY), (False, True), (7, 500)):
        begin = end - length
        found = [
            one.key
            for span in store.spans_of(begin, end, is_late=is_late)
            for _, one in every(
                lambda cursor: store.page_of(7, name, span, begin=begin, end=end, is_person=is_person, cursor=cursor, limit=limit)  # noqa: B023
            )
        ]
        assert sorted(found) == sorted(one.key for one in written if one.overlaps(begin, end)), (begin, end, is_late)


def join(story: Story, email: str) -> None:
    directory.grant_membership(email=email, group_id=PAYMENTS.name, role=GroupRole.READER, actor=story.olga, now=story.clock.now())
    story.clock.advance(300)


def members(story: Story) -> set[str]:
    return {one.who for one in queries.who_had(thing=PAYMENTS, at=story.clock.now(), actor=story.ana).page.items}


def test_what_is_over_between_two_pages_is_told_once(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page reads one list, and whoever was in the group is in it no more before the next page."""
    people = [f"{name}@example.com" for name in ("sam", "gina", "mallory")]
    for email in people:
        join(story, email)
    operations.follow(workers=1, clock=story.clock)
    at, gone = story.clock.now() - JUST, reversed(people)
    ask = partial(queries.who_had, thing=Thing(ThingKind.GROUP, "/engineering"), at=at, limit=1, actor=story.ana)
    whole = [(one.who, one.path) for one in every(lambda cursor: ask(cursor=cursor).page)]
    assert {who for who, _ in whole} >= set(people)
    monkeypatch.setattr(queries, "_MOST_READS", 0)

    def fetch(cursor: str | None) -> Page[Held]:
        page = ask(cursor=cursor).page
        if page.items and page.items[0].who in people and (email := next(gone, "")):
            directory.revoke_membership(email=email, group_id=PAYMENTS.name, actor=story.olga, now=story.clock.now())
            story.clock.advance(300)
            operations.follow(workers=1, clock=story.clock)
        return page

    found = list(every(fetch))
    assert [one.who for one in found] == [who for who, _ in whole]
    assert any(step.gone_at for one in found for step in one.path)


def put_where_the_former_version_did() -> None:
    """Each part under a hash key of its own, and nothing of a later schema."""
    client = boto3.client("dynamodb", region_name=REGION)
    for item in client.scan(TableName="AccessHistory")["Items"]:
        client.delete_item(TableName="AccessHistory", Key={name: item[name] for name in ("place", "row")})
        part, _, key = item["row"]["S"].rpartition("|")
        keys = {name: {"S": f"{item[name]['S']}|{part}"} for name in ("place", "person_place")} | {"row": {"S": key}} if part else {}
        client.put_item(TableName="AccessHistory", Item=item | keys | {"schema_version": {"N": "1"}})


@pytest.mark.parametrize("is_half_made", [False, True])
def test_a_history_of_the_former_version_is_made_anew(story: Story, is_half_made: bool) -> None:
    """Until then it is said that it is not made; no answer is empty."""
    join(story, "sam@example.com")
    operations.follow(workers=1, clock=story.clock)
    told, before = members(story), rows()
    assert "sam@example.com" in told
    if is_half_made:
        progress = store.get_progress()
        assert progress is not None
        store.keep_progress(progress, replace(progress, parts_done=0))
    put_where_the_former_version_did()
    with pytest.raises(NotMadeYet, match="0 of 1 parts"):
        members(story)
    with pytest.raises(NotMadeYet):
        queries.what_had(email="sam@example.com", begin=story.clock.now() - DAY, end=story.clock.now(), actor=story.ana)
    assert operations.follow(workers=1, clock=story.clock).is_ok
    assert (members(story), rows()) == (told, before)
    assert {(item.place.partition("|")[0], item.schema_version) for item in HistoryItem.scan()} == {("2", 2), ("progress", 2)}


def test_the_former_version_leaves_a_newer_history_alone(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would find nothing where this version writes."""
    join(story, "sam@example.com")
    operations.follow(workers=1, clock=story.clock)
    before = rows()
    with monkeypatch.context() as former:
        former.setattr(HistoryItem, "known_schema", 1)
        for do in (
            lambda: members(story),
            lambda: operations.follow(workers=1, clock=story.clock),
            lambda: operations.rebuild(workers=1, actor=story.olga, clock=story.clock),
        ):
            with pytest.raises(Unavailable, match="made by a newer version"):
                do()
    assert rows() == before
    assert "sam@example.com" in members(story)
