"""The queue, the schedules and the tasks."""

from __future__ import annotations

import ast
import functools
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest
from django.core.management import call_command
from django.db import OperationalError
from django.utils.module_loading import import_string
from django_q.conf import Conf
from django_q.exceptions import TimeoutException
from django_q.models import OrmQ, Schedule
from django_q.tasks import async_task
from pytest_django.fixtures import Settings

from accessportal.access_requests import operations as requests
from accessportal.access_requests.states import Status, SubjectsReport, Work
from accessportal.directory import operations as directory
from accessportal.directory.states import State
from accessportal.jobs import queue, tasks
from accessportal.jobs.broker import LineBroker
from accessportal.jobs.queue import enqueue
from accessportal.jobs.schedules import JOBS, SCHEDULES, Line, apply_schedules
from accessportal.jobs.worker import places
from accessportal.kernel import ports
from accessportal.kernel.actors import system
from accessportal.kernel.errors import NotFound, Unavailable
from accessportal.mirror import operations as mirror
from accessportal.observe import heartbeats
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes import queries as pool
from accessportal.sandboxes.operations.runs import HOLD
from accessportal.sandboxes.states import Run, RunKind, RunState, Sandbox
from accessportal.sandboxes.states import Status as PoolStatus
from tests.fixtures_story import Story
from tests.fixtures_twin import refuse, when

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def test_the_port_of_the_kernel_is_filled_at_start_up() -> None:
    assert ports._after_commit is enqueue


@pytest.mark.django_db
def test_every_task_exists() -> None:
    for task in JOBS.values():
        assert callable(import_string(task.path))


@pytest.mark.django_db
def test_a_change_queues_its_task() -> None:
    enqueue("carry_out", request_id="r-1")

    (queued,) = OrmQ.objects.all()
    assert queued.task["func"] == "accessportal.jobs.tasks.carry_out"
    assert queued.task["kwargs"] == {"request_id": "r-1"}
    assert queued.task["timeout"] == 150
    assert queued.key == "urgent"


@pytest.mark.django_db
def test_an_unknown_name_and_a_broken_queue_are_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    enqueue("brew_coffee", strength="strong")

    def broken(*_args: object, **_kwargs: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(queue, "async_task", broken)
    enqueue("carry_out", request_id="r-1")

    assert not OrmQ.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("line", Line)
def test_a_line_is_shown_to_be_served_by_a_task_that_waits_in_it(line: Line) -> None:
    apply_schedules(now=NOW)
    row = Schedule.objects.get(name=f"show_{line.part}")
    arguments = ast.literal_eval(str(row.kwargs))
    assert arguments.pop("q_options")["cluster"] == line.value

    import_string(row.func)(**arguments)

    assert heartbeats.last_beat(line.part) is not None


def test_a_worker_host_holds_as_many_connections_as_operations_are_told() -> None:
    """One for each process (docs/operations.md, PostgreSQL)."""
    assert len(places()) == 2 * Conf.WORKERS + 4


def test_what_ends_access_waits_behind_nothing_else() -> None:
    of_sweep = {name for name, task in JOBS.items() if task.line is Line.SWEEP}

    assert of_sweep == {"tick", "watch_ends", "freeze_leases", "expire_sandboxes", "show_sweep_line"}
    of_urgent = {name for name, task in JOBS.items() if task.line is Line.URGENT}
    assert of_urgent == {"carry_out", "carry_out_served", "end_departed", "serve_line", "show_urgent_line"}


@pytest.mark.django_db
def test_schedules_are_written_once_and_kept() -> None:
    assert set(apply_schedules(now=NOW).values()) == {"added"}
    Schedule.objects.update(next_run=NOW + timedelta(seconds=40))
    assert set(apply_schedules(now=NOW).values()) == {"kept"}

    assert {row.name for row in Schedule.objects.all()} == {job.name for job in SCHEDULES}
    assert {row.next_run for row in Schedule.objects.all()} == {NOW + timedelta(seconds=40)}
    for row in Schedule.objects.all():
        assert callable(import_string(row.func))
        assert "timeout" in ast.literal_eval(str(row.kwargs))["q_options"]


@pytest.mark.django_db
def test_schedules_are_mended() -> None:
    apply_schedules(now=NOW)
    Schedule.objects.filter(name="tick").update(minutes=60, next_run=NOW + timedelta(days=400))
    Schedule.objects.create(name="tick", func="accessportal.jobs.tasks.tick", schedule_type=Schedule.MINUTES, minutes=1)
    Schedule.objects.create(name="old", func="accessportal.jobs.tasks.carry_out", schedule_type=Schedule.MINUTES, minutes=1)
    Schedule.objects.create(name="theirs", func="other.task", schedule_type=Schedule.MINUTES, minutes=1)

    outcome = apply_schedules(now=NOW)

    assert (outcome["tick"], outcome["old"]) == ("changed", "removed")
    tick = Schedule.objects.get(name="tick")
    assert (tick.minutes, tick.next_run) == (1, NOW)
    assert Schedule.objects.filter(name="theirs").exists()
    assert not Schedule.objects.filter(name="old").exists()


@pytest.mark.django_db
def test_schedules_are_applied_by_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("apply_schedules", "--json")

    assert '"tick": "added"' in capsys.readouterr().out


@pytest.fixture
def on_story_clock(story: Story, monkeypatch: pytest.MonkeyPatch) -> Story:
    """Tasks run on the story's clock and, because the database of the tests is one thread's own, in one thread."""
    monkeypatch.setattr(tasks, "_CLOCK", story.clock)
    monkeypatch.setattr(requests, "tick", functools.partial(requests.tick, lookahead_seconds=0, workers=1))
    return story


def test_the_work_of_one_request_is_carried_out(on_story_clock: Story) -> None:
    story = on_story_clock
    asked = story.ask()

    assert tasks.carry_out(request_id=asked.request_id) == "ACTIVE, nothing left"
    assert story.is_assigned()
    # Delivered twice: nothing happens.
    tasks.carry_out(request_id=asked.request_id)
    assert len(story.now_of(asked).receipts) == 1


def test_a_tick_tells_what_it_did(on_story_clock: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story = on_story_clock
    asked = story.ask(seconds=600)
    story.carry_out(asked)
    story.clock.advance(600)

    tasks.tick()

    assert story.now_of(asked).status is Status.REVOKED
    beat = heartbeats.last_beat("tick")
    assert beat is not None
    assert (beat.is_ok, beat.detail["revoked"], beat.detail["failed"]) == (True, 1, 0)


def test_a_job_with_a_failed_item_fails_at_its_end(on_story_clock: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story = on_story_clock
    story.ask()

    def poisoned(**_kwargs: object) -> None:
        raise ValueError("poisoned")

    monkeypatch.setattr("accessportal.access_requests.operations.sweeping.carry_out", poisoned)

    with pytest.raises(tasks.ItemsFailed, match="failed 1"):
        tasks.tick()
    beat = heartbeats.last_beat("tick")
    assert beat is not None
    assert not beat.is_ok


def test_a_list_of_assignments_that_can_not_be_read_fails_the_job(on_story_clock: Story) -> None:
    story = on_story_clock
    story.carry_out(story.ask())

    with when("ListAccountAssignments", refuse("AccessDeniedException")), pytest.raises(tasks.ItemsFailed, match="unread 1"):
        tasks.reconcile_assignments()

    beat = heartbeats.last_beat("reconcile_assignments")
    assert beat is not None
    assert (beat.is_ok, beat.detail["unread"], beat.detail["missing"]) == (False, 1, 0)


def test_a_long_comparison_is_done_in_parts_that_ask_for_the_next(on_story_clock: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story = on_story_clock
    story.carry_out(story.ask())
    tasks.reconcile_assignments()
    story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
    story.clock.advance(3)
    finished_at = story.clock.now().timestamp()
    monkeypatch.setattr(tasks, "_PART_OF_COMPARISON", timedelta(milliseconds=1))
    looked = Mock(wraps=requests.last_report)
    monkeypatch.setattr(requests, "last_report", looked)
    story.asked.clear()
    told = [tasks.reconcile_assignments()]
    beat = heartbeats.last_beat("reconcile_assignments")
    assert beat is not None
    # Of the one that is under way how far it is, of the last finished one what it found.
    assert (beat.is_ok, beat.detail["missing"], beat.detail["finished_at"] < finished_at) == (True, 0, True)

    while told[-1].endswith("pairs read"):
        assert story.asked == [("reconcile_assignments", {})] * len(told)
        told.append(tasks.reconcile_assignments())

    assert len(told) > 2
    beat = heartbeats.last_beat("reconcile_assignments")
    assert beat is not None
    assert (beat.is_ok, beat.detail["missing"], beat.detail["pairs_read"], beat.detail["pairs"]) == (False, 1, 1, 1)
    assert beat.detail["finished_at"] >= finished_at
    assert len(story.asked) == len(told) - 1
    assert looked.call_count == 1, "only the last part looks through all records"


def test_what_the_portal_does_not_make_keeps_no_alarm_on(on_story_clock: Story) -> None:
    story = on_story_clock
    group = {"PrincipalType": "GROUP", "PrincipalId": story.twin.groups["/engineering/payments"]}
    story.twin.sso.create_account_assignment(**{**story.twin.key("alice@example.com", "payments-dev", "ReadOnlyAccess"), **group})
    story.clock.advance(3)

    assert tasks.reconcile_assignments() == "missing 0, unknown 0, left_over 0, dead_claims 0, unread 0, unreadable 0, not_ours 1"

    beat = heartbeats.last_beat("reconcile_assignments")
    assert beat is not None
    assert (beat.is_ok, beat.detail["not_ours"], beat.detail["drift"]) == (True, 1, [])


def test_what_somebody_disabled_holds_is_ended_at_once(on_story_clock: Story) -> None:
    story = on_story_clock
    held = story.carry_out(story.ask())
    directory.set_person_state(email=held.subject_id, state=State.DISABLED, actor=system("setup"), now=story.clock.now())
    name, payload = story.asked[-1]

    assert (name, payload) == ("end_departed", {})
    assert JOBS[name].path == "accessportal.jobs.tasks.end_departed"
    assert tasks.end_departed() == "checked 1, ended 1, cancelled 0, failed 0"

    assert story.now_of(held).work is Work.REVOKE
    assert story.asked[-1] == ("carry_out", {"request_id": held.request_id})


def test_a_comparison_that_the_brake_stopped_fails_and_says_why(on_story_clock: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tasks.compare_subjects() == "checked 0, ended 0, cancelled 0, failed 0"
    stopped = SubjectsReport(checked=9, ended=0, cancelled=0, failures=(), stopped="9 of 9 open requests would end.")
    monkeypatch.setattr(requests, "compare_subjects", lambda **_options: stopped)

    with pytest.raises(tasks.ItemsFailed, match="checked 9, ended 0, cancelled 0, failed 0, 9 of 9 open requests would end"):
        tasks.compare_subjects()
    beat = heartbeats.last_beat("compare_subjects")
    assert beat is not None
    assert not beat.is_ok


def test_a_watch_that_another_covers_does_nothing(on_story_clock: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "watch_ends", lambda *, until, clock: None)

    assert tasks.watch_ends(until=NOW.isoformat()) == "another watcher covers that time"


def test_the_catalog_is_synced(on_story_clock: Story) -> None:
    assert tasks.sync_catalog().startswith("accounts 4, permission_sets 3")
    beat = heartbeats.last_beat("sync_catalog")
    assert beat is not None
    assert beat.detail["accounts"] == 4


def test_work_that_has_to_be_tried_again_soon_is_watched(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_CLOCK", story.clock)
    asked = story.ask(seconds=3600)
    story.asked.clear()
    story.twin.settings.change({"fail_job": 1.0})

    tasks.carry_out(request_id=asked.request_id)

    (watched,) = story.asked
    assert watched[0] == "watch_ends"
    story.twin.settings.change({"fail_job": 0.0})
    tasks.watch_ends(**watched[1])
    assert story.now_of(asked).is_granted


@pytest.fixture
def lab(on_story_clock: Story) -> Sandbox:
    """Lent to track-1, for a minute."""
    now = on_story_clock.clock.now()
    sandboxes.add(external_id="ext-1", name="lab-1", lab_duration_hours=4, actor=on_story_clock.olga, now=now)
    return sandboxes.take(key="t", track="track-1", duration_seconds=60, actor=on_story_clock.olga, now=now).sandbox


def ordered(story: Story) -> Run:
    return sandboxes.order_run(kind=RunKind.CLEANUP, actor=story.olga, now=story.clock.now())


def test_what_is_over_is_taken_back_without_a_provider(on_story_clock: Story, lab: Sandbox) -> None:
    on_story_clock.clock.advance(60 + 300)

    assert tasks.expire_sandboxes() == "expired 1, mended 0, failed 0"
    assert pool.get(sandbox_id=lab.sandbox_id).status is PoolStatus.PENDING_DELETION


def test_an_ordered_run_is_performed_once_and_told(on_story_clock: Story, lab: Sandbox) -> None:
    run = ordered(on_story_clock)
    assert ("run_sandbox_work", {"run_id": run.run_id}) in on_story_clock.asked

    assert tasks.run_sandbox_work(run_id=run.run_id) == "done 0, failed 1, forgotten 0"
    ended = pool.get_run(run_id=run.run_id)
    assert (ended.state, ended.error[:23]) == (RunState.FAILED, "No sandbox provider is ")
    # Delivered twice, and long after.
    tasks.run_sandbox_work(run_id=run.run_id)
    assert pool.get_run(run_id=run.run_id) == ended
    assert "no such run" in tasks.run_sandbox_work(run_id="gone")
    beat = heartbeats.last_beat("run_sandbox_work")
    assert beat is not None
    assert beat.is_ok


def test_the_sweep_performs_what_waits_and_forgets_what_is_old(on_story_clock: Story) -> None:
    run = ordered(on_story_clock)
    assert tasks.run_sandbox_work() == "done 0, failed 1, forgotten 0"
    assert tasks.run_sandbox_work() == "done 0, failed 0, forgotten 0"
    on_story_clock.clock.advance(8 * 24 * 3600)

    assert tasks.run_sandbox_work() == "done 0, failed 0, forgotten 1"
    with pytest.raises(NotFound):
        pool.get_run(run_id=run.run_id)


def test_a_run_is_held_for_longer_than_its_task_may_live() -> None:
    assert JOBS["run_sandbox_work"].timeout_seconds < HOLD.total_seconds()


class Broken:
    """In the place of a room: whatever is asked of it fails."""

    def __getattr__(self, name: str) -> object:
        raise Unavailable(f"{name} does not answer", code="store_unavailable")


BEATING = sorted({job.name for job in SCHEDULES if not job.name.startswith("show_")} | {"end_departed", "watch_ends"})


@pytest.mark.parametrize("known", [True, False], ids=["ran before", "first run"])
@pytest.mark.parametrize("name", BEATING)
def test_a_job_that_fails_before_its_heartbeat_is_told_to_have_failed(
    on_story_clock: Story, monkeypatch: pytest.MonkeyPatch, settings: Settings, name: str, known: bool
) -> None:
    """And when it last came to its end is not renewed by that: an alarm by its age goes off all the same."""
    began = on_story_clock.clock.now()
    settings.AUDIT_KEEP_DAYS = 90
    if known:
        heartbeats.beat(name, now=began, detail={"done": 3})
    on_story_clock.clock.advance(60)
    for room in (
        "requests",
        "audit",
        "authz",
        "catalog",
        "erasing",
        "history",
        "leases",
        "mirror",
        "sandboxes",
        "upstream",
        "is_mirrored",
        "topic_sender",
        "current_signer",
    ):
        monkeypatch.setattr(tasks, room, Broken())
    until = {"until": began.isoformat()} if name == "watch_ends" else {}

    with pytest.raises((Unavailable, TypeError)):
        import_string(JOBS[name].path)(**until)

    beat = heartbeats.last_beat(name)
    assert beat is not None
    assert (beat.is_ok, beat.beat_at) == (False, began if known else on_story_clock.clock.now())
    assert beat.detail == ({"done": 3} if known else {})


def test_a_job_that_is_ended_by_its_time_limit_is_told_to_have_failed(on_story_clock: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeats.beat("sync_catalog", now=on_story_clock.clock.now())

    def last_for_ever(**_: object) -> None:
        raise TimeoutException

    monkeypatch.setattr("accessportal.catalog.operations.sync_catalog", last_for_ever)

    with pytest.raises(TimeoutException):
        tasks.sync_catalog()

    beat = heartbeats.last_beat("sync_catalog")
    assert beat is not None
    assert not beat.is_ok


IDLE = ["compare_directory", "clean_sandboxes", "export_evidence", "sync_sandboxes", "clean_accounts", "sync_pool", "read_spend"]


@pytest.mark.parametrize("name", [*IDLE, "remove_old_events"])
def test_a_job_with_nothing_to_do_has_failed_no_longer(on_story_clock: Story, name: str) -> None:
    mirror.configure(mirror.MirrorSettings())
    heartbeats.fail(name, now=on_story_clock.clock.now())

    import_string(JOBS[name].path)()

    beat = heartbeats.last_beat(name)
    assert beat is not None
    assert beat.is_ok


@pytest.mark.django_db
def test_a_job_of_a_newer_version_stays_for_a_worker_that_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line.URGENT.value
    newer = {
        "accessportal.jobs.tasks.brew_coffee": {},
        "accessportal.newer.tasks.tick": {},
        "accessportal.jobs.tasks.carry_out": {"request_id": "r-1", "strength": "strong"},
    }
    for func, payload in newer.items():
        async_task(func, **payload, q_options={"cluster": line})
    enqueue("carry_out", request_id="r-2")
    locks = list(OrmQ.objects.order_by("pk").values_list("lock", flat=True))
    broker = LineBroker(line)

    taken = [broker.dequeue() for _ in range(4)]

    assert taken[:3] == [[], [], []]
    [(row, _)] = taken[3] or [(0, "")]
    assert OrmQ.objects.get(pk=row).task["kwargs"] == {"request_id": "r-2"}
    left = OrmQ.objects.exclude(pk=row).order_by("pk")
    assert [one.task["func"] for one in left] == list(newer)
    assert list(left.values_list("lock", flat=True)) == locks[:3], "not held either"
    monkeypatch.setattr(tasks, "brew_coffee", lambda: "brewed", raising=False)
    [(known, _)] = LineBroker(line).dequeue() or [(0, "")]
    assert OrmQ.objects.get(pk=known).task["func"] == "accessportal.jobs.tasks.brew_coffee"


@pytest.mark.django_db
def test_a_schedule_of_a_newer_version_is_left_alone_unless_nobody_runs_one() -> None:
    Schedule.objects.create(name="brew", func="accessportal.jobs.tasks.brew_coffee", schedule_type=Schedule.MINUTES, minutes=1)

    Schedule.objects.update(next_run=NOW)

    assert apply_schedules(now=NOW)["brew"] == "left alone"
    assert Schedule.objects.get(name="brew").next_run == NOW + timedelta(minutes=10), "nobody here does what it would queue"
    call_command("apply_schedules", "--remove-unknown")
    assert not Schedule.objects.filter(name="brew").exists()
