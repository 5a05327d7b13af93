"""State from events: the tables of actions are whole, and each fact that an event leaves open raises no alarm."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from accessportal.audit.actions import ACTIONS
from accessportal.audit.states import AuditEvent
from accessportal.evidence.replay import KINDS, differences, replay
from tests.conftest import START

EVENT = AuditEvent("x#1", 0, "id", START, "", "olga@example.com", "alice@example.com", {}, "hash")


def chain(*events: tuple[str, dict[str, Any]]) -> list[AuditEvent]:
    """An hour between each."""
    return [
        replace(EVENT, sequence=number, action=action, data=data, at=START + timedelta(hours=number))
        for number, (action, data) in enumerate(events, start=1)
    ]


def problems(kind: str, facts: dict[str, Any], *events: tuple[str, dict[str, Any]]) -> list[tuple[int, str]]:
    found = differences(KINDS[kind], replay(KINDS[kind], chain(*events)), facts, entity="x#1", version=len(events))
    return [(one.sequence, one.problem) for one in found]


def test_every_action_of_the_registry_is_known_to_one_kind() -> None:
    known = [action for kind in KINDS.values() for action in kind.acts]

    assert sorted(known) == sorted(ACTIONS)


PERSON = {"email": "alice@example.com", "name": "Alice", "state": "enabled"}
CREATED = ("user.created", PERSON)


def given(claim: str, role: str = "reader", **more: Any) -> tuple[str, dict[str, Any]]:
    return "user.granted", {"group_id": "/a", "claim": claim, "role": role, **more}


@pytest.mark.parametrize(
    ("held", "events"),
    [
        ({"in /a by permanent": "admin"}, [CREATED, given("r1", ends_at=9), given("under:r2", ends_at=9), given("permanent", "admin")]),
        ({}, [CREATED, given("r1"), given("r2"), ("user.revoked", {"group_id": "/a", "claim": "r1", "reason": "the person was deleted"})]),
        ({"in /a by r2": "reader"}, [CREATED, given("r1"), given("r2"), ("user.revoked", {"group_id": "/a", "claim": "r1"})]),
        ({"in /b by r1": "reader", "in /a by permanent": "reader"}, [CREATED, ("no.such", {}), given("permanent")]),
    ],
    ids=["for good in place of a time", "all at once", "one of two", "a newer version's event"],
)
def test_what_somebody_is_in_follows_from_the_events(held: dict[str, str], events: list[tuple[str, dict[str, Any]]]) -> None:
    if events[1][0] != "no.such" and "in /a by permanent" in held:
        held = held | {"in /a by r1": "reader until 9"}
    assert problems("person", PERSON | held, *events) == []


def test_an_event_of_another_kind_is_a_break() -> None:
    assert problems("person", PERSON, CREATED, ("group.moved", {"parent_id": "/"})) == [(2, "group.moved is no event of such a record")]


@pytest.mark.parametrize(
    ("kind", "action", "data"),
    [
        ("person", "user.granted", {}),
        ("person", "user.granted", {"group_id": "/a", "claim": "r1"}),
        ("token", "token.created", {"tracks": 7}),
        ("ruleset", "rules.applied", {"version": 1, "order": [7]}),
    ],
)
def test_an_event_with_other_data_is_a_break_and_no_crash(kind: str, action: str, data: dict[str, Any]) -> None:
    assert problems(kind, {}, (action, data)) == [(1, f"its data are not those of {action}")]


def test_an_item_of_what_is_gone_is_a_break() -> None:
    assert problems("person", PERSON, CREATED, ("user.deleted", {})) == [(2, "there is an item of what is gone")]


HOUR = 3600
NOON = int(START.timestamp())
GRANTED = ("approval.granted", {"key": "k", "expires_at": NOON + 3 * HOUR})


@pytest.mark.parametrize(
    ("holders", "events"),
    [
        (["direct", "r1"], [GRANTED, ("approval.held", {"claim": "r1", "expires_at": 9})]),
        (["r1"], [GRANTED, ("approval.extended", {"expires_at": NOON + HOUR}), ("approval.held", {"claim": "r1", "expires_at": 9})]),
        # Whether it was over is a matter of milliseconds.
        (
            ["whoever"],
            [GRANTED, ("approval.extended", {"expires_at": NOON + 3 * HOUR}), ("approval.held", {"claim": "r1", "expires_at": 9})],
        ),
        (
            ["r2"],
            [
                GRANTED,
                *(("approval.held", {"claim": one, "expires_at": 9}) for one in ("r1", "r2")),
                ("approval.released", {"claim": "r1", "expires_at": 9}),
            ],
        ),
    ],
)
def test_who_holds_an_approval_follows_as_far_as_it_is_told(holders: list[str], events: list[tuple[str, dict[str, Any]]]) -> None:
    assert problems("approval", {"key": "k", "expires_at": 9, "holders": holders}, *events) == []


def test_who_had_an_account_may_have_it_again_or_not() -> None:
    back = {"fence": 2, "state": "dirty", "lease": "l1", "user": "alice@example.com"}
    events = [("account.added", {"fence": 1, "state": "initial", "pool": "labs"}), ("account.given_back", back)]
    facts = {"fence": 2, "state": "dirty", "pool": "labs", "name": ""}

    assert problems("account", facts | {"lease_id": "l1", "user": "alice@example.com"}, *events) == []
    assert problems("account", facts | {"lease_id": "", "user": ""}, *events) == []
    assert problems("account", facts | {"lease_id": "l1", "user": "mallory@example.com"}, *events) == [
        (2, "user is mallory@example.com, and the events tell alice@example.com or nothing")
    ]
