"""The ledger finds what it is there to find."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accessportal.audit.states import AuditEvent
from accessportal.kernel.errors import InvalidRequest
from accessportal.sandboxes import ledger
from accessportal.sandboxes.ledger import Receipt

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
T0 = START.timestamp()


def history(*told: tuple[str, int, dict[str, Any]]) -> tuple[AuditEvent, ...]:
    """Events a minute apart."""
    return tuple(
        AuditEvent(
            entity="sandbox#s",
            sequence=number,
            event_id=str(number),
            at=START + timedelta(minutes=number),
            action=f"sandbox.{action}",
            actor="a",
            subject="s",
            scope="",
            data={"fence": fence, **data},
            prev_hash="",
            hash="",
        )
        for number, (action, fence, data) in enumerate(told, start=1)
    )


FREE = {"status": "available"}
TAKEN = {"status": "allocated", "track": "track-1"}
BACK = {"status": "pending_deletion", "track": "track-1"}


@pytest.mark.parametrize(
    ("told", "kinds"),
    [
        ([("added", 0, FREE), ("taken", 1, TAKEN), ("released", 1, BACK), ("cleaned", 1, FREE), ("removed", 1, {})], []),
        ([("added", 0, FREE), ("taken", 1, TAKEN), ("taken", 2, TAKEN), ("expired", 2, BACK)], ["overlap"]),
        ([("added", 0, FREE), ("taken", 2, TAKEN), ("released", 2, BACK)], ["gap"]),
        ([("added", 0, FREE), ("taken", 1, TAKEN), ("released", 0, BACK)], ["gap"]),
        ([("added", 0, FREE), ("taken", 1, TAKEN)], ["orphan"]),
        ([("added", 0, FREE), ("adopted", 1, TAKEN), ("clean_failed", 1, {}), ("released", 1, BACK)], []),
        ([("added", 0, FREE), ("released", 1, BACK | {"is_outside": True}), ("cleaned", 1, FREE)], []),
    ],
)
def test_events_by_themselves(told: list[tuple[str, int, dict[str, Any]]], kinds: list[str]) -> None:
    assert [problem.kind for problem in ledger.problems_of_events(history(*told), None)] == kinds


def took(fence: int, at: float, *, track: str = "track-1", key: str = "k") -> Receipt:
    return Receipt("taken", track, T0 + at - 1, T0 + at, "s", fence, key)


def gave(fence: int, at: float, *, track: str = "track-1") -> Receipt:
    return Receipt("released", track, T0 + at, T0 + at + 1, "s", fence)


def none(at: float) -> Receipt:
    return Receipt("none", "track-9", T0 + at, T0 + at + 1)


# Free from 60 on, lent at 120, back at 180, free at 240, lent at 300, back at 360.
EVENTS = history(
    ("added", 0, FREE), ("taken", 1, TAKEN), ("released", 1, BACK), ("cleaned", 1, FREE), ("taken", 2, TAKEN), ("released", 2, BACK)
)


@pytest.mark.parametrize(
    ("receipts", "kinds"),
    [
        ([took(1, 121), gave(1, 179), took(2, 301), gave(2, 359)], []),
        ([took(1, 121), gave(1, 350), took(2, 301), gave(2, 359)], ["overlap"]),
        ([took(1, 121), took(2, 301)], []),
        ([took(1, 121), took(1, 122, track="track-1", key="other")], ["overlap"]),
        ([took(3, 301)], ["orphan"]),
        ([took(1, 121, track="track-2")], ["orphan"]),
        ([none(130), none(200), none(310), none(400)], []),
        ([none(250)], ["refused"]),
        ([none(59), none(119.5), none(241)], []),
    ],
)
def test_receipts_against_events(receipts: list[Receipt], kinds: list[str]) -> None:
    assert [problem.kind for problem in ledger.problems_of_receipts(receipts, {"s": EVENTS}, slack_seconds=2)] == kinds


def test_a_none_is_right_only_if_no_chain_of_free_sandboxes_covers_it() -> None:
    spans = [(0.0, 10.0), (9.0, 20.0), (30.0, 40.0)]

    def found(at: float) -> int:
        return len(list(ledger.refused_while_free([Receipt("none", "t", at, at + 4)], spans)))

    assert [found(at) for at in (8, 15, 18, 25, 31, 38)] == [1, 1, 0, 0, 1, 0]


def test_an_unreadable_line_is_named() -> None:
    good = '{"kind": "none", "track": "t", "asked_at": 1, "answered_at": 2}'
    assert len(ledger.read_receipts([good, "", good])) == 2
    for bad in ("nonsense", "{}", '{"kind": "stolen", "track": "t"}', good.replace("1,", '"x",')):
        with pytest.raises(InvalidRequest, match="Line 2"):
            ledger.read_receipts([good, bad])
