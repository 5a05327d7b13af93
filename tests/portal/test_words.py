"""The words for states, times and texts: plain tables."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accessportal.access_requests.states import AccessRequest, ApprovalDemand, Status, Work
from accessportal.web.presenting import Tone, aws_address, mark_of, phase_of, seconds_to_next_look, typed_duration, words_for_time

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
REQUEST = AccessRequest(
    request_id="7f1c0000-0000-4000-8000-0000000000e2",
    kind="aws_account",
    subject_id="alice@example.com",
    requested_by="alice@example.com",
    target={},
    account_id="222222222222",
    permission_set="ReadOnlyAccess",
    reason="Incident 4711",
    ticket_id="",
    duration_seconds=3600,
    submission_id="form-1",
    rule_name="dev-power",
    rule_hash="",
    approval=ApprovalDemand(required=False, quorum=0, groups=(), users=()),
    evidence={},
    scope="account/222222222222",
    status=Status.ACTIVE,
    requested_at=NOW,
    expires_at=NOW + timedelta(hours=1),
    extends="",
    approvals=frozenset(),
    decided_by="",
    decided_at=None,
    decision_reason="",
    granted_at=NOW,
    ended_by="",
    revoked_at=None,
    work=None,
    work_due_at=None,
    work_attempts=0,
    work_error="",
    receipts=(),
    version=2,
    audit_head="",
)


@pytest.mark.parametrize(
    ("change", "minutes", "word", "tone", "look"),
    [
        ({}, 0, "Active", Tone.LIVE, 15),
        ({}, 59, "Active", Tone.LIVE, 2),
        ({}, 60, "Ending", Tone.WAIT, 2),
        ({"work": Work.GRANT, "granted_at": None}, 0, "Being granted", Tone.WAIT, 2),
        ({"work": Work.GRANT, "granted_at": None, "work_attempts": 3, "work_error": "throttled"}, 0, "Grant delayed", Tone.STOP, 2),
        ({"work": Work.REVOKE}, 60, "Ending", Tone.WAIT, 2),
        ({"work": Work.REVOKE, "work_attempts": 2, "work_error": "conflict"}, 60, "End delayed", Tone.STOP, 2),
        ({"status": Status.PENDING, "granted_at": None}, 0, "Waiting for approval", Tone.WAIT, 2),
        ({"status": Status.PENDING, "granted_at": None}, 60, "Too late to decide", Tone.WAIT, 2),
        ({"status": Status.REVOKED, "revoked_at": NOW}, 0, "Ended", Tone.DONE, None),
        ({"status": Status.REVOKED, "granted_at": None, "revoked_at": NOW}, 0, "Ended", Tone.DONE, None),
        ({"status": Status.DENIED}, 0, "Denied", Tone.STOP, None),
        ({"status": Status.CANCELLED}, 0, "Cancelled", Tone.DONE, None),
        ({"status": Status.LAPSED}, 0, "Lapsed", Tone.DONE, None),
    ],
)
def test_every_state_has_a_word_a_tone_and_a_pace(change: dict[str, Any], minutes: int, word: str, tone: Tone, look: int | None) -> None:
    request, now = dataclasses.replace(REQUEST, **change), NOW + timedelta(minutes=minutes)

    assert (phase_of(request, now).word, phase_of(request, now).tone, seconds_to_next_look(request, now)) == (word, tone, look)


def test_the_mark_changes_with_time_alone() -> None:
    assert mark_of(REQUEST, NOW) == mark_of(REQUEST, NOW + timedelta(minutes=30))
    assert len({mark_of(REQUEST, NOW + timedelta(minutes=minutes)) for minutes in (0, 59, 60)}) == 3


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (45.9, "45 s"),
        (60, "1 min"),
        (270, "4 min 30 s"),
        (301, "5 min"),
        (3600, "1 h"),
        (7920, "2 h 12 min"),
        (86_400, "1 d"),
        (273_600, "3 d 4 h"),
    ],
)
def test_time_left_as_people_say_it(seconds: float, words: str) -> None:
    assert words_for_time(seconds) == words


def test_a_length_goes_back_into_the_form_as_typed() -> None:
    assert [typed_duration(seconds) for seconds in (1800, 9000, 172_800, 90_061)] == ["30m", "2h30m", "2d", "1d1h1m1s"]


def test_aws_opens_at_the_account_and_permission_set() -> None:
    assert aws_address("https://d-1.awsapps.com/start/", REQUEST) == (
        "https://d-1.awsapps.com/start/#/console?account_id=222222222222&role_name=ReadOnlyAccess"
    )
