"""The demo's past: twelve weeks of requests, each with its outcome, in order and with whole chains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from accessportal.access_requests import queries
from accessportal.access_requests.operations import compare_assignments, last_report
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.demo.loading import load_demo
from accessportal.demo.past import PAST_DAYS, read_past
from accessportal.kernel.actors import Role, person
from accessportal.kernel.durations import parse_duration
from tests.commands.conftest import run
from tests.conftest import FakeClock
from tests.demo.test_load_demo import bare_twin  # noqa: F401

_OLGA = person("olga@example.com", roles=frozenset({Role.OPERATOR}))
_BECAME = {"expired": Status.REVOKED, "ended": Status.REVOKED, "stuck": Status.ACTIVE, "active": Status.ACTIVE}


def test_every_line_of_the_past_is_younger_than_the_company() -> None:
    told = read_past()

    assert max(parse_duration(one["ago"]) for one in told) < PAST_DAYS * 86_400
    assert Counter(one["outcome"] for one in told).keys() == _BECAME.keys() | {"denied", "cancelled", "lapsed", "pending"}
    # What waits is told on the day it is first started, however late.
    assert max(parse_duration(one["ago"]) for one in told if one["outcome"] == "pending") <= 9 * 3600


def test_everything_became_what_it_says_and_every_chain_is_whole(bare_twin: None, clock: FakeClock) -> None:  # noqa: F811
    load_demo(past_days=PAST_DAYS, clock=clock)

    made = {(email, one.reason): one for email in _people() for one in _asked_by(email, clock)}
    for told in read_past():
        one = made[f"{told['who']}@example.com", told["reason"]]
        assert one.status is (_BECAME.get(told["outcome"]) or Status[told["outcome"].upper()]), told
        assert (one.granted_at is not None) is (told["outcome"] in _BECAME), told
    (stuck,) = [one for one in made.values() if one.work is Work.REVOKE]
    assert stuck.work_attempts >= 6
    assert "could not delete it" in stuck.work_error
    waiting = queries.list_waiting_for(actor=person("priya@example.com"), now=clock.now(), limit=50).items
    assert Counter(one.reason for one in waiting).most_common(1)[0][1] == 12
    assert len(waiting) >= 20
    compare_assignments(until=None, clock=clock)
    report = last_report(clock=clock)
    assert report is not None
    # Left over is what can't be taken back.
    assert [len(found) for found in (report.missing, report.unknown, report.left_over, report.dead_claims)] == [1, 1, 1, 0]
    assert run("verify_audit").code == 0
    assert run("check_pool").code == 0


def _people() -> set[str]:
    return {f"{one['who']}@example.com" for one in read_past()}


def _asked_by(email: str, clock: FakeClock) -> Sequence[AccessRequest]:
    return queries.list_by_subject(subject_id=email, actor=_OLGA, now=clock.now(), limit=100).items
