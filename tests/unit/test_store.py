"""Keys and cursors, and conditional writes against moto."""

from __future__ import annotations

import importlib
import itertools
from datetime import timedelta
from functools import partial
from typing import Any

import boto3
import botocore.endpoint
import botocore.session
import hypothesis.strategies as st
import pytest
from hypothesis import given

from accessportal.access_requests.models import RequestItem
from accessportal.audit.models import AuditItem
from accessportal.kernel.errors import InvalidRequest, Unavailable
from accessportal.store import restores
from accessportal.store.base import StoreSettings, configure, current_settings, open_connections
from accessportal.store.coordination import CoordinationItem, claim_watch, leave_seat, reserve_slot, take_seat
from accessportal.store.cursors import configure_cursors, read_cursor, sign_cursor
from accessportal.store.keys import join_key, split_key
from accessportal.store.reading import get_item
from accessportal.store.tables import silent_tables
from accessportal.store.transactions import Change, ConditionFailed, Guard, Insert, Remove, Upsert, transact, update_one
from tests.conftest import START, FakeClock
from tests.fixtures_twin import REGION, LostAnswers


@given(st.lists(st.text(), min_size=1, max_size=4), st.lists(st.text(), min_size=1, max_size=4))
def test_no_two_inputs_build_the_same_key(one: list[str], other: list[str]) -> None:
    storable = [part.encode("utf-8", "ignore").decode() for part in one]
    rest = [part.encode("utf-8", "ignore").decode() for part in other]

    assert split_key(join_key(*storable)) == tuple(storable)
    assert (join_key(*storable) == join_key(*rest)) == (storable == rest)


def test_a_cursor_serves_its_own_list_alone() -> None:
    configure_cursors("a-secret-for-tests-alone")
    cursor = sign_cursor("requests.pending", {"request_id": {"S": "r-1"}})

    assert cursor is not None
    assert read_cursor("requests.pending", cursor) == {"request_id": {"S": "r-1"}}
    for pattern, forged in (
        ("requests.active", cursor),
        ("requests.pending", cursor[:-2]),
        ("requests.pending", "x"),
        ("requests.pending", "é"),
    ):
        with pytest.raises(InvalidRequest):
            read_cursor(pattern, forged)
    assert sign_cursor("requests.pending", None) is None
    assert read_cursor("requests.pending", None) is None


@pytest.mark.usefixtures("tables")
def test_all_steps_or_none_and_the_first_that_failed_is_named() -> None:
    one, two = CoordinationItem("one", until=1), CoordinationItem("two", until=1)
    transact([Insert(one), Insert(two)])

    with pytest.raises(ConditionFailed) as failed:
        transact(
            [
                Change(CoordinationItem, "one", [CoordinationItem.until.set(2)], CoordinationItem.until == 1),
                Change(CoordinationItem, "two", [CoordinationItem.until.set(2)], CoordinationItem.until == 7),
                Guard(CoordinationItem, "three", CoordinationItem.until == 1),
            ]
        )

    assert failed.value.position == 1
    kept = get_item(CoordinationItem, "one")
    assert kept is not None
    assert kept.until == 1


@pytest.mark.usefixtures("tables")
def test_a_change_never_creates_a_torso() -> None:
    change = Change(CoordinationItem, "nobody", [CoordinationItem.until.set(2)], CoordinationItem.until.does_not_exist())

    for write in (lambda: transact([change]), lambda: update_one(change)):
        with pytest.raises(ConditionFailed):
            write()
    assert get_item(CoordinationItem, "nobody") is None
    update_one(Upsert(CoordinationItem, "somebody", [CoordinationItem.until.set(2)], CoordinationItem.until.does_not_exist()))
    transact([Remove(CoordinationItem, "somebody", CoordinationItem.until == 2)])
    assert get_item(CoordinationItem, "somebody") is None


@pytest.mark.usefixtures("tables")
def test_an_insert_never_overwrites() -> None:
    transact([Insert(CoordinationItem("one", until=1))])

    with pytest.raises(ConditionFailed):
        transact([Insert(CoordinationItem("one", until=2))])

    kept = get_item(CoordinationItem, "one")
    assert kept is not None
    assert kept.until == 1


@pytest.mark.usefixtures("twin")
def test_a_table_that_is_not_there_is_an_error_and_no_empty_answer() -> None:
    for model in (RequestItem, AuditItem):
        with pytest.raises(Unavailable):
            get_item(model, "x", 1 if model is AuditItem else None)


@pytest.mark.usefixtures("tables")
def test_call_slots_keep_their_distance_and_the_queue_its_length() -> None:
    slots = [reserve_slot("calls", gap_seconds=0.1, longest_wait_seconds=0.35, now=START) for _ in range(8)]

    given_out = [slot for slot in slots if slot is not None]
    assert slots[len(given_out) :] == [None] * (8 - len(given_out))
    distances = [(later - earlier).total_seconds() for earlier, later in itertools.pairwise(given_out)]
    assert len(given_out) >= 4
    assert all(0.099 <= distance <= 0.101 for distance in distances)


@pytest.mark.usefixtures("tables")
def test_seats_are_limited_and_taking_one_twice_is_harmless() -> None:
    for holder in ("a", "b", "a"):
        transact([take_seat("seats", holder=holder, seats=2)])
    with pytest.raises(ConditionFailed):
        transact([take_seat("seats", holder="c", seats=2)])

    transact([leave_seat("seats", holder="b")])
    transact([leave_seat("seats", holder="nobody")])

    transact([take_seat("seats", holder="c", seats=2)])
    item = get_item(CoordinationItem, "seats")
    assert item is not None
    assert item.holders == {"a", "c"}


@pytest.mark.usefixtures("tables")
def test_one_watches_and_the_others_rely_on_it(clock: FakeClock) -> None:
    soon, later = clock.now() + timedelta(seconds=60), clock.now() + timedelta(seconds=120)

    claim = partial(claim_watch, "ends", longest=timedelta(seconds=180), now=clock.now())
    assert claim(needed_until=soon, until=later)
    assert not claim(needed_until=soon, until=later)
    assert claim(needed_until=later + timedelta(seconds=1), until=later + timedelta(seconds=60))


@pytest.mark.usefixtures("tables")
def test_a_server_makes_its_client_before_its_first_request_and_never_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables share it; sixteen threads that came first would all wait for it."""
    former, made = current_settings(), itertools.count()
    create = botocore.session.Session.create_client

    def counted(self: Any, *args: Any, **rest: Any) -> Any:
        next(made)
        return create(self, *args, **rest)

    monkeypatch.setattr(botocore.session.Session, "create_client", counted)
    configure(StoreSettings(table_prefix="", region=former.region, max_attempts=1))
    # The tests are a demo that reaches no twin.
    monkeypatch.setattr("accessportal.apps.demo_faults", lambda *_: [])
    try:
        importlib.reload(importlib.import_module("accessportal.wsgi"))
        open_connections()
        opened = next(made)
        assert opened == 1
        assert get_item(RequestItem, "r-1") is None
        transact([Insert(CoordinationItem("one", until=1))])
        assert next(made) == opened + 1
    finally:
        configure(former)


@pytest.mark.usefixtures("tables")
def test_an_update_whose_answer_was_lost_is_known_again(lost_answers: LostAnswers) -> None:
    transact([Insert(CoordinationItem("one", until=1))])
    until = CoordinationItem.until
    claim = Change(CoordinationItem, "one", [until.set(100)], until < 50)
    lost_answers.of("UpdateItem")

    item = update_one(claim)

    assert isinstance(item, CoordinationItem)
    assert (item.until, lost_answers.left) == (100, 0)
    with pytest.raises(ConditionFailed):
        update_one(claim)


@pytest.mark.usefixtures("tables")
def test_the_head_of_the_restores_is_made_though_the_answer_was_lost(lost_answers: LostAnswers) -> None:
    """It has a few of the attributes that a restore must have."""
    lost_answers.of("UpdateItem")

    assert not restores.is_held_by(None)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("theirs", [101, 100.5])
def test_an_update_that_somebody_else_was_faster_with_is_theirs(lost_answers: LostAnswers, theirs: float) -> None:
    """The first sending was refused, its answer lost: what stands there is not what we would write."""
    transact([Insert(CoordinationItem("one", until=theirs))])
    until = CoordinationItem.until
    lost_answers.of("UpdateItem")

    with pytest.raises(ConditionFailed):
        update_one(Change(CoordinationItem, "one", [until.set(100)], until < 50))


@pytest.mark.usefixtures("tables")
def test_an_addition_whose_answer_was_lost_is_nobody_s(lost_answers: LostAnswers) -> None:
    transact([Insert(CoordinationItem("one", next_at=1, until=1))])
    next_at = CoordinationItem.next_at
    lost_answers.of("UpdateItem")

    with pytest.raises(ConditionFailed):
        update_one(Change(CoordinationItem, "one", [next_at.set(next_at + 5)], next_at < 2))


@pytest.mark.usefixtures("tables")
def test_a_watch_whose_answer_was_lost_is_kept(lost_answers: LostAnswers) -> None:
    lost_answers.of("UpdateItem")

    def claim() -> bool:
        return claim_watch("ends", needed_until=START, until=START + timedelta(seconds=60), longest=timedelta(minutes=5), now=START)

    assert claim()
    assert not claim()


def test_all_tables_are_asked_in_one_call_and_those_that_are_missing_are_named(tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    send = botocore.endpoint.Endpoint.make_request
    sent: list[str] = []

    def make_request(self: Any, operation_model: Any, request_dict: Any) -> Any:
        sent.append(operation_model.name)
        return send(self, operation_model, request_dict)

    monkeypatch.setattr(botocore.endpoint.Endpoint, "make_request", make_request)
    assert silent_tables() == {}
    assert sent == ["BatchGetItem"]

    boto3.client("dynamodb", region_name=REGION).delete_table(TableName="Coordination")
    assert silent_tables() == {"Coordination": "ResourceNotFoundException"}
