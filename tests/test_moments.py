"""A clock that was two hours ahead, and is right again: whatever it wrote holds nothing back for longer than it ever may.

Each story writes at the wrong time, and says what must work at the right one (decision 0038 has the list).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from django.test import Client
from django_q.models import OrmQ, Schedule
from django_q.tasks import async_task

from accessportal.access_requests import policy as requests_policy
from accessportal.access_requests import store as requests_store
from accessportal.access_requests.states import Status
from accessportal.assignments import store as assignments_store
from accessportal.assignments.policy import HOLD_SECONDS, is_settling
from accessportal.assignments.states import AssignmentState
from accessportal.audit import queries as audit
from accessportal.authz import operations as authz
from accessportal.authz.queries import APPROVALS, caller_of, read_scope
from accessportal.authz.states import Approval
from accessportal.directory.states import person_entity
from accessportal.identity.memory import SteadyMemory
from accessportal.identity.operations import ensure_demo_user, record_refusal
from accessportal.identity.sessions import SEEN_AT, SIGNED_IN_AT
from accessportal.jobs.broker import LineBroker
from accessportal.jobs.keeper import Slot, Stopping
from accessportal.jobs.schedules import SCHEDULES, apply_schedules
from accessportal.jobs.worker import _keep_schedules
from accessportal.kernel.actors import system
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.moments import SKEW, furthest, is_due, is_recent
from accessportal.mirror import policy as mirror_policy
from accessportal.mirror import store as mirror_store
from accessportal.mirror.operations import sweeping as mirror_sweeping
from accessportal.mirror.states import MirrorWork
from accessportal.observe import heartbeats
from accessportal.observe.health import work
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes import policy as sandbox_policy
from accessportal.sandboxes import queries as pool
from accessportal.sandboxes.states import RunKind, RunState, Stats
from accessportal.sandboxes.states import Status as PoolStatus
from accessportal.sandboxes.store import pool as pool_facts
from accessportal.sandboxes.store import rows, runs
from accessportal.store.coordination import claim_watch
from accessportal.tokens import operations as tokens
from accessportal.tokens import store as clients_store
from accessportal.tokens.states import Scope
from accessportal.twin.sandbox_provider import SandboxProviderTwin
from accessportal.upstream.breaker import Breaker
from accessportal.upstream.client import HttpProvider
from tests.conftest import START
from tests.fixtures_pool import Labs
from tests.fixtures_story import Story

AHEAD = timedelta(hours=2)
MINUTE = timedelta(minutes=1)


@dataclass
class Wrong:
    """The world; its clock is ahead until :meth:`right`."""

    labs: Labs
    provider: HttpProvider

    @property
    def story(self) -> Story:
        return self.labs.story

    def now(self) -> datetime:
        return self.story.clock.now()

    def right(self) -> None:
        self.story.clock.advance(-AHEAD.total_seconds())


Works = Callable[[], bool]
STORIES: list[Callable[[Wrong], Works]] = []


def story_of(told: Callable[[Wrong], Works]) -> Callable[[Wrong], Works]:
    STORIES.append(told)
    return told


@story_of
def schedules(at: Wrong) -> Works:
    apply_schedules(now=at.now())

    def works() -> bool:
        apply_schedules(now=at.now())
        return not Schedule.objects.filter(next_run__gt=at.now()).exclude(minutes__gt=120).exists()

    return works


@story_of
def a_queued_task(at: Wrong) -> Works:
    async_task("tests.jobs.probes.touch", "nowhere", q_options={"cluster": "sweep"})
    (row,) = OrmQ.objects.all()

    return lambda: LineBroker("sweep").dequeue() == [(row.pk, row.payload)]


@story_of
def the_process_of_the_schedules(at: Wrong) -> Works:
    """A worker's own, with a wrong clock for a minute and a half, and then with the right one, which finds the next tick due."""
    _look_at_schedules(at)
    assert "tick" in _queued()
    OrmQ.objects.all().delete()

    def works() -> bool:
        _look_at_schedules(at)
        return _queued() == {job.name for job in SCHEDULES}

    return works


def _look_at_schedules(at: Wrong) -> None:
    """The process of the schedules looks twice: as it does each minute, and five seconds later."""
    for _ in range(2):
        _keep_schedules([], Slot(), cast(Stopping, _Once()))
        at.story.clock.advance(5)


class _Once:
    """Asked to stop after one look."""

    def __init__(self) -> None:
        self._answers = iter([False])

    def __bool__(self) -> bool:
        return next(self._answers, True)


def _queued() -> set[str]:
    return {str(row.task["group"]) for row in OrmQ.objects.all()}


@story_of
def what_a_process_remembers_of_the_issuer_and_of_passwords(at: Wrong) -> Works:
    memory = SteadyMemory("of this story", {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accessportal.identity.memory.time", SimpleNamespace(monotonic=lambda: 100.0))
        memory.set("issuer", "down", 5)
        assert memory.get("issuer") == "down"

    def works() -> bool:
        """Six seconds later, whatever the machine's clock says."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("accessportal.identity.memory.time", SimpleNamespace(monotonic=lambda: 106.0))
            return memory.get("issuer") is None and memory.add("issuer", "up", 5)

    return works


@story_of
def heartbeat(at: Wrong) -> Works:
    for part in (*heartbeats.LINES, heartbeats.TICK):
        heartbeats.beat(part, now=at.now())

    def works() -> bool:
        beats = heartbeats.all_beats()
        return not any(beat.is_fresh(at.now()) for beat in beats) and set(work(now=at.now()).missing) == {beat.part for beat in beats}

    return works


@story_of
def work_of_a_request_and_its_claim(at: Wrong) -> Works:
    waits, claimed = at.story.ask(), at.story.ask(permission_set="ReadOnlyAccess")
    assert requests_store.claim_work(claimed, until=at.now() + timedelta(seconds=75))

    def works() -> bool:
        assert at.story.tick().granted == 2
        return at.story.now_of(waits).is_granted and at.story.now_of(claimed).is_granted

    return works


@story_of
def work_that_failed(at: Wrong) -> Works:
    asked = at.story.ask()
    assert requests_store.claim_work(asked, until=at.now() + requests_policy.LONGEST_WAIT)

    def works() -> bool:
        return at.story.carry_out(asked).is_granted

    return works


@story_of
def hold_of_an_assignment(at: Wrong) -> Works:
    at.story.carry_out(at.story.ask())
    (assignment,) = assignments_store.list_by_state(AssignmentState.PRESENT, cursor=None, limit=9).items
    hold = timedelta(seconds=HOLD_SECONDS)

    def take() -> bool:
        return assignments_store.acquire(assignment.assignment_id, now=at.now(), until=at.now() + hold) is not None

    assert take()
    assert not take()

    def works() -> bool:
        assert not is_settling(assignment, at.now())
        return take() and not take()

    return works


@story_of
def work_of_the_mirror(at: Wrong) -> Works:
    entity = person_entity("alice@example.com")
    mirror_store.ask([entity], now=at.now())
    taken = mirror_store.take(entity, now=at.now(), until=at.now() + mirror_policy.LEASE)
    assert taken is not None
    assert mirror_store.take(entity, now=at.now(), until=at.now() + mirror_policy.LEASE) is None
    work: MirrorWork = taken

    def works() -> bool:
        return (
            mirror_sweeping._is_due(work, at.story.clock)
            and mirror_store.take(entity, now=at.now(), until=at.now() + mirror_policy.LEASE) is not None
        )

    return works


@story_of
def a_sandbox_to_be_cleaned_and_its_lease(at: Wrong) -> Works:
    for name in ("lab-1", "lab-2"):
        (row,) = at.labs.fill(name)
        lent = at.labs.take_elsewhere(f"track-{name}", name_prefix=name)
        sandboxes.release(sandbox_id=row.sandbox_id, track=lent.track, actor=at.story.olga, now=at.now())
    hold = timedelta(seconds=sandbox_policy.HOLD_SECONDS)
    held = rows.lease(pool.get(sandbox_id=row.sandbox_id), holder="dead", until=at.now() + hold, now=at.now())
    assert held is not None

    def works() -> bool:
        report = sandboxes.clean(provider=at.provider, clock=at.story.clock, pace_seconds=0, workers=1)
        return not report.failures and len({*report.waiting, *report.removed, *report.cleaned}) == 2

    return works


@story_of
def a_deletion_that_was_sent(at: Wrong) -> Works:
    (row,) = at.labs.fill("lab-1")
    sent = dataclasses.replace(row, delete_sent_at=at.now(), missing_since=at.now())
    return lambda: sandbox_policy.needs_deletion(sent, at.now()) and sandbox_policy.is_missed_anew(sent, at.now())


@story_of
def a_run_and_its_hold(at: Wrong) -> Works:
    waits = sandboxes.order_run(kind=RunKind.SYNC, actor=at.story.olga, now=at.now())
    begun = sandboxes.order_run(kind=RunKind.CLEANUP, actor=at.story.olga, now=at.now())
    runs.begin_run(begun, holder="dead", until=at.now() + timedelta(minutes=15), now=at.now())

    def works() -> bool:
        sandboxes.perform_due_runs(provider=at.provider, clock=at.story.clock)
        return all(pool.get_run(run_id=run.run_id).state not in {RunState.QUEUED, RunState.RUNNING} for run in (waits, begun))

    return works


@story_of
def note_that_none_is_free(at: Wrong) -> Works:
    pool_facts.note_none(at.now())

    def works() -> bool:
        pool_facts.note_none(at.now())
        return pool.none_told_at() == at.now()

    return works


@story_of
def counts_of_the_pool(at: Wrong) -> Works:
    pool_facts.keep_counts(Stats(at.now(), dict.fromkeys(PoolStatus, 0)))

    def works() -> bool:
        at.labs.count()
        kept = pool_facts.last_counts()
        return kept is not None and kept.counted_at == at.now()

    return works


@story_of
def breaker(at: Wrong) -> Works:
    found = Breaker(clock=at.story.clock, failures=1)
    found.failed()
    assert not found.may_call()
    return found.may_call


@story_of
def refusal_of_a_sign_in(at: Wrong) -> Works:
    def told() -> int:
        record_refusal(email="alice@example.com", reason="disabled", method="oidc", now=at.now())
        return len(audit.history("sign_in#alice@example.com").items)

    assert [told(), told()] == [1, 1]
    return lambda: told() == 2


@story_of
def session(at: Wrong) -> Works:
    """It goes on, and lasts no longer for it."""
    client = Client()
    client.force_login(ensure_demo_user(email="alice@example.com", name="Alice Park", password="a-password-for-tests"))

    def works() -> bool:
        client.get("/")
        return {client.session[name] for name in (SIGNED_IN_AT, SEEN_AT)} == {to_epoch(at.now())}

    return works


@story_of
def the_order_to_delete_a_scope(at: Wrong) -> Works:
    acme, caller = read_scope("tenant:acme"), caller_of(system("setup"))
    asked = Approval(acme, "bot", "doc", "GET", "system:setup", at.now())
    authz.grant(APPROVALS, asked, ttl_seconds=3 * 3_600, caller=caller, now=at.now())
    authz.begin_deletion(scope=acme, typed=acme, caller=caller, now=at.now())

    def works() -> bool:
        return authz.carry_out_deletions(actor=system("delete_scopes"), clock=at.story.clock, workers=1).deleted == ("tenant:acme",)

    return works


@story_of
def last_use_of_a_token(at: Wrong) -> Works:
    made = tokens.create_token(name="Lab", scope=Scope.TRACK, rate_per_minute=1, actor=at.story.olga, now=at.now())
    assert clients_store.note_use(made.token.token_id, now=at.now())
    assert not clients_store.note_use(made.token.token_id, now=at.now())
    return lambda: clients_store.note_use(made.token.token_id, now=at.now())


@story_of
def requests_of_a_token_in_a_minute(at: Wrong) -> Works:
    made = tokens.create_token(name="Lab", scope=Scope.TRACK, rate_per_minute=1, actor=at.story.olga, now=at.now())
    assert [tokens.claim_request(token=made.token, now=at.now()) > 0 for _ in range(2)] == [False, True]
    return lambda: tokens.claim_request(token=made.token, now=at.now()) == 0


@story_of
def who_watches_and_who_publishes(at: Wrong) -> Works:
    def claim(name: str, longest: timedelta) -> bool:
        return claim_watch(name, needed_until=at.now() + timedelta(seconds=1), until=at.now() + longest, longest=longest, now=at.now())

    def claims() -> list[bool]:
        return [claim("access-ends", timedelta(seconds=210)), claim("publish:0", MINUTE)]

    assert [claims(), claims()] == [[True, True], [False, False]]
    return lambda: claims() == [True, True]


@pytest.mark.parametrize("told", STORIES, ids=lambda told: told.__name__)
def test_what_a_wrong_clock_wrote_holds_nothing_back(
    told: Callable[[Wrong], Works], labs: Labs, provider: HttpProvider, provider_twin: SandboxProviderTwin
) -> None:
    labs.story.clock.advance(AHEAD.total_seconds())
    wrong = Wrong(labs, provider)
    works = told(wrong)

    wrong.right()

    assert works()


def test_the_bounds_of_a_moment() -> None:
    longest, second = timedelta(minutes=5), timedelta(seconds=1)
    last = furthest(START, longest=longest)
    assert last == START + longest + SKEW

    due = [is_due(moment, now=START, longest=longest) for moment in (None, START - second, START, START + second, last, last + second)]
    assert due == [True, True, True, False, False, True]
    recent = [is_recent(START - ago, now=START, within=longest) for ago in (longest, longest - second, -SKEW, -SKEW - second)]
    assert recent == [False, True, True, False]


def test_access_granted_by_a_wrong_clock_is_still_taken_back(story: Story) -> None:
    """Its end is a decision that people were told, not a wait: it stands, and whoever finds it too late ends it."""
    story.clock.advance(AHEAD.total_seconds())
    asked = story.carry_out(story.ask(seconds=3600))
    story.clock.advance(-AHEAD.total_seconds())

    story.end(asked)
    story.tick()

    assert story.now_of(asked).status is Status.REVOKED
