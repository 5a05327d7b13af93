"""The comparison after a fault sees what is planted, one thing at a time, and nothing in a story that went well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from accessportal.access_requests.states import AccessRequest, Status
from benchmarks.chaos_people import Saying, Told
from benchmarks.chaos_truth import Job, Truth, contradictions, differences, key_of, late_works, lateness, read, taken_early
from tests.fixtures_story import Story

ALICE, BOB = "alice@example.com", "bob@example.com"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """The twin in this process has none."""
    path = tmp_path / "twin.journal"
    path.write_text('{"kind": "journal", "format": 1}\n')
    return path


@pytest.fixture
def look(story: Story, journal: Path) -> Callable[[], Truth]:
    return lambda: replace(read(journal), at=story.clock.now())


def granted(story: Story) -> AccessRequest:
    return story.carry_out(story.ask(submission_id="form"))


def said(
    story: Story, told: Told, *, verb: str = "ask", attempt: int = 1, shown: str = "302", request_id: str = "", by: str = ALICE
) -> Saying:
    at = story.clock.now().timestamp()
    return Saying(at, by, verb, told, shown, attempt, submission_id="form" if verb == "ask" else "", request_id=request_id)


def test_nothing_is_found_where_all_is_well(story: Story, look: Callable[[], Truth]) -> None:
    request, other = granted(story), story.ask_for_prod()
    story.approve(other)
    story.carry_out(other)
    sayings = [
        said(story, Told.UNKNOWN, shown="no answer"),
        said(story, Told.DONE, attempt=2, request_id=request.request_id),
        said(story, Told.DONE, verb="approve", request_id=other.request_id, by=BOB),
        said(story, Told.DONE, verb="end", request_id=request.request_id),
    ]
    story.end(request)
    story.carry_out(request)
    truth = look()

    assert [one.status for one in truth.requests] == [Status.ACTIVE, Status.REVOKED]
    assert truth.real == {key_of(other)}
    assert list(differences(truth)) == []
    assert list(contradictions(truth, sayings)) == []


def test_a_lost_access_is_seen(story: Story, look: Callable[[], Truth]) -> None:
    request = granted(story)
    truth = look()

    (found,) = differences(replace(truth, real=frozenset()))
    assert found == f"{request.request_id} was granted to {ALICE} and is lost: claimed by {[request.request_id]}, not there"
    (found,) = differences(replace(truth, claims={}))
    assert found == f"{request.request_id} was granted to {ALICE} and is lost: claimed by nobody, there"


def test_what_is_left_after_its_end_is_seen(story: Story, look: Callable[[], Truth]) -> None:
    request = granted(story)
    held = look()
    story.end(request)
    story.carry_out(request)
    truth = look()

    assert list(differences(truth)) == []
    (found,) = differences(replace(truth, real=held.real))
    assert found.endswith("is there, and no request holds it: claimed by nobody, there")
    (found,) = differences(replace(truth, claims=held.claims))
    assert found.endswith(f"is claimed by {request.request_id}, which is over")


def test_what_is_not_done_with_is_seen(story: Story, look: Callable[[], Truth]) -> None:
    request = story.ask()
    (found,) = differences(look())
    assert found.startswith(f"{request.request_id} is not done with: GRANT due ")


def test_a_grant_without_a_request_is_seen_also_when_it_is_gone_again(story: Story, look: Callable[[], Truth]) -> None:
    request = granted(story)
    began, ended = request.requested_at.timestamp(), request.expires_at.timestamp()

    def job_at(moment: float) -> list[str]:
        return list(differences(replace(look(), jobs={"job-1": Job("CREATE", key_of(request), moment)})))

    assert job_at(began) == job_at(ended) == []
    for moment in (began - 60, ended + 60):
        (found,) = job_at(moment)
        assert found.endswith("was granted by job job-1 while no request was active")


def test_lateness_is_told_by_identity_centers_clock(story: Story, look: Callable[[], Truth]) -> None:
    request = granted(story)
    story.clock.advance(3600 + 30)
    story.tick()
    truth = look()
    (row,) = truth.requests
    moment = request.expires_at.timestamp()

    def taken_at(seconds: float) -> Truth:
        return replace(truth, jobs={row.receipts[-1].job_id: Job("DELETE", key_of(row), moment + seconds)})

    assert [late for _, late in lateness(taken_at(12))] == [12]
    assert list(differences(taken_at(12))) == []
    assert list(taken_early(taken_at(12), since=0)) == []
    assert list(taken_early(taken_at(-100), since=moment - 100)) == [f"{row.request_id} was taken back 100 s before its end"]
    assert list(taken_early(taken_at(-100), since=moment - 99)) == []
    found_gone = replace(row, receipts=(replace(row.receipts[-1], job_id="", called_at=None),))
    assert [late for _, late in lateness(replace(taken_at(12), requests=(found_gone,)))] == [12]
    assert list(lateness(replace(truth, requests=(found_gone,), jobs={}))) == []
    assert row.revoked_at is not None
    assert list(late_works(truth)) == [row.revoked_at.timestamp()]
    assert list(late_works(replace(truth, at=row.expires_at))) == []


@pytest.mark.parametrize("attempt", [1, 2])
def test_an_accepted_request_that_is_not_there_contradicts(story: Story, look: Callable[[], Truth], attempt: int) -> None:
    (found,) = contradictions(look(), [said(story, Told.DONE, attempt=attempt, request_id="request-1")])
    assert found == f"{ALICE} was told by 302 to ask request-1: accepted as request-1, and there is nothing"


@pytest.mark.parametrize(
    ("attempt", "shown", "contradicts"),
    [(1, "400", True), (1, "302", True), (2, "422", True), (2, "302", False), (2, "409", False)],
)
def test_a_refusal_of_what_was_written_contradicts(
    story: Story, look: Callable[[], Truth], attempt: int, shown: str, contradicts: bool
) -> None:
    request = granted(story)
    found = list(contradictions(look(), [said(story, Told.REFUSED, attempt=attempt, shown=shown)]))
    assert found == ([f"{ALICE} was told by {shown} to ask form: refused, and there is {request.request_id}"] if contradicts else [])


def test_one_form_that_became_two_requests_contradicts(story: Story, look: Callable[[], Truth]) -> None:
    request = granted(story)
    truth = look()
    twice = replace(truth, requests=(*truth.requests, replace(request, request_id="request-2")))
    (found,) = contradictions(twice, [said(story, Told.DONE, request_id=request.request_id)])
    assert "one request, and there are" in found


def test_decisions_and_ends_that_are_not_so_contradict(story: Story, look: Callable[[], Truth]) -> None:
    waiting, held = story.ask_for_prod(), granted(story)
    done = [
        said(story, Told.DONE, verb="approve", request_id=waiting.request_id, by=BOB),
        said(story, Told.DONE, verb="end", request_id=held.request_id),
    ]
    refused = [replace(one, told=Told.REFUSED) for one in done]
    assert len(list(contradictions(look(), done))) == 2
    assert list(contradictions(look(), refused)) == []

    story.approve(waiting)
    story.end(held)
    assert list(contradictions(look(), done)) == []
    assert len(list(contradictions(look(), refused))) == 2
    # Somebody who was left in doubt, or had done it before, is refused with good reason.
    assert list(contradictions(look(), [*done, *refused])) == []
