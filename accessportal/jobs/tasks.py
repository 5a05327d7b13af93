"""What the queue runs. Each is thin, may run at any time, twice, and beside itself: correctness is the domain's."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import Any, ParamSpec

import structlog
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import close_old_connections

from accessportal.access_requests import operations as requests
from accessportal.access_requests.states import AccessRequest, ReconcileReport
from accessportal.assignments.states import Remedy
from accessportal.audit import operations as audit
from accessportal.audit.operations import topic_sender
from accessportal.audit.queries import count_unpublished
from accessportal.authz import operations as authz
from accessportal.catalog import operations as catalog
from accessportal.evidence.config import current as current_signer
from accessportal.evidence.operations import export
from accessportal.evidence.queries import evidence_files
from accessportal.evidence.retention import remove_old, segment_of
from accessportal.evidence.states import RemovalReport
from accessportal.history import operations as history
from accessportal.identity import erasing, former_people
from accessportal.identity.queries import actor_named
from accessportal.jobs.schedules import Line
from accessportal.kernel import runs
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import Conflict, InvalidRequest, NotFound
from accessportal.kernel.ports import after_commit
from accessportal.kernel.runs import Report
from accessportal.leases import operations as leases
from accessportal.leases import states as leases_states
from accessportal.mirror import operations as mirror
from accessportal.mirror.queries import is_mirrored
from accessportal.observe import heartbeats
from accessportal.observe.heartbeats import DRIFT, FINISHED_AT, NEWEST_DAY_AT, Beat
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes import states as sandboxes_states
from accessportal.sandboxes.states import Run, SyncStopped
from accessportal.upstream import client as upstream

log = structlog.get_logger(__name__)
_CLOCK = SystemClock()
_NO_PROVIDER = "no provider is set"
# Before a tick is sure to look again.
_SOON = timedelta(seconds=100)
_MOST_FINDINGS = 100
_FOUND = ("missing", "unknown", "left_over", "dead_claims", "unread", "unreadable", "not_ours")
# Well below the time after which the job is killed: a step that was begun before may take minutes when nothing answers.
_PART_OF_COMPARISON = timedelta(minutes=4)
_PART_OF_EXPORT = timedelta(minutes=10)
_PART_OF_REMOVAL = timedelta(minutes=50)
_PART_OF_HISTORY = timedelta(seconds=100)


P = ParamSpec("P")


class ItemsFailed(Exception):
    """A job did all it could and some of its items failed: raised at its end, so that monitoring sees it."""


def job(run: Callable[P, Report | str]) -> Callable[P, str]:
    """Make a task of ``run``: what it reports is beaten, logged and told, and raises ItemsFailed when some items failed or the rest was
    left; words are told as they are. One that is ended by an error or its time limit, even before its heartbeat, is told to have failed."""
    part = run.__name__

    @functools.wraps(run)
    def task(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            done = run(*args, **kwargs)
            return done if isinstance(done, str) else _told(part, done)
        except BaseException:
            try:
                close_old_connections()
                heartbeats.fail(part, now=_CLOCK.now())
            except DatabaseError:
                # Then nobody can read it either.
                log.exception("jobs.failure_not_told", job=part)
            raise

    return task


def _told(part: str, report: Report) -> str:
    _beat(part, report.counts | report.moments, is_ok=report.is_ok)
    words = _words(report.counts)
    for failure in report.failures:
        log.error("jobs.item_failed", job=part, item=failure.item, error=failure.error)
    if report.stopped:
        log.error("jobs.stopped", job=part, error=report.stopped)
    if not report.is_ok:
        raise ItemsFailed(", ".join(filter(None, [words, report.stopped])))
    return words


def _counted(part: str, counts: Mapping[str, int]) -> str:
    _beat(part, counts, is_ok=True)
    return _words(counts)


def _words(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _beat(part: str, detail: Mapping[str, Any], *, is_ok: bool) -> None:
    # The job may have taken minutes: a connection that the server closed meanwhile must not fail it at its very end.
    close_old_connections()
    heartbeats.beat(part, now=_CLOCK.now(), is_ok=is_ok, detail=detail)


def _idle(part: str, why: str) -> str:
    """Nothing to do, so nothing has failed; an earlier failure is over."""
    heartbeats.mend(part)
    return why


def carry_out(*, request_id: str) -> str:
    """The work of one request is done outside, or was done by somebody else. Shortens the wait; the tick is the guarantee."""
    return _carried_out(partial(requests.carry_out, request_id=request_id))


def carry_out_served(*, request_id: str) -> str:
    """A request that waited in a line goes on with what it was handed over. Shortens the wait; the tick is the guarantee."""
    return _carried_out(partial(requests.carry_out_served, request_id=request_id))


def _carried_out(work: Callable[..., AccessRequest]) -> str:
    try:
        request = work(clock=_CLOCK)
    except Conflict as error:
        # A tick was faster; that is how they meet.
        return error.message
    if request.work_due_at is not None and request.work_due_at - _CLOCK.now() < _SOON:
        # A second try within seconds must not wait for the next tick; a watcher that is there already says so at once.
        after_commit("watch_ends", until=request.work_due_at.isoformat())
    return f"{request.status.value}, {'work left' if request.work else 'nothing left'}"


def show_line(*, line: str) -> str:
    """What is put into ``line`` is done."""
    heartbeats.beat(Line(line).part, now=_CLOCK.now())
    return "shown"


@job
def tick() -> Report:
    """Everything due is done or has a later due time, up to the look-ahead."""
    return requests.tick(clock=_CLOCK)


@job
def end_departed() -> Report:
    """What hung on people and groups that lost something is being ended. Shortens the wait; the tick is the guarantee."""
    return requests.end_departed(clock=_CLOCK)


@job
def compare_subjects() -> Report:
    """Every open request has been held against the directory, which other programs write, too."""
    return requests.compare_subjects(actor=system("compare_subjects"), clock=_CLOCK)


@job
def freeze_leases() -> Report:
    """The access of every lease that was frozen or unfrozen is so, or it is tried again later."""
    return requests.freeze_leases(clock=_CLOCK)


@job
def watch_ends(*, until: str) -> Report | str:
    """Access that ends before the next tick is sure to look is taken back at its end."""
    report = requests.watch_ends(until=datetime.fromisoformat(until), clock=_CLOCK)
    return "another watcher covers that time" if report is None else report


@job
def reconcile_assignments() -> str:
    """Do a part of the comparison of what Identity Center holds with the claims; the next part waits in the queue. Reports only: applying
    is an operator's command. ItemsFailed at the end of a whole comparison, when some could not be had."""
    try:
        comparison = requests.compare_assignments(until=_CLOCK.now() + _PART_OF_COMPARISON, clock=_CLOCK)
    except Conflict as error:
        return error.message
    report = requests.last_report(clock=_CLOCK) if comparison.finished_at is not None else None
    former = heartbeats.last_beat("reconcile_assignments")
    # A part tells how far it is, beside what the last whole comparison found.
    told: Mapping[str, Any] = _told_by(report, former) if report is not None else former.detail if former is not None else {}
    progress = {"pairs": comparison.pairs, "pairs_read": comparison.pairs_read, "begun_at": comparison.begun_at.timestamp()}
    is_ok = not any(told.get(name) for name in _FOUND if name != "not_ours")
    _beat("reconcile_assignments", {**told, **progress}, is_ok=is_ok)
    if report is None:
        # The rest goes to the end of its line, so that others come between.
        after_commit("reconcile_assignments")
        return f"{comparison.pairs_read} of {comparison.pairs} pairs read"
    found = {name: report.counts[name] for name in _FOUND}
    unread = [f"{one.permission_set_arn} in {one.account_id}: {one.error}" for one in report.unread]
    for words in (*unread, *report.unreadable):
        log.error("jobs.item_failed", job="reconcile_assignments", error=words)
    if report.unread or report.unreadable:
        raise ItemsFailed(_words(found))
    return _words(found)


def _told_by(report: ReconcileReport, former: Beat | None) -> dict[str, Any]:
    finished_at = report.comparison.finished_at
    seen = {one["finding_id"]: one.get("since") for one in (former.detail.get(DRIFT, []) if former else [])}
    counts = {name: report.counts[name] for name in _FOUND}
    ended = finished_at.timestamp() if finished_at else 0.0
    drift = [{**one, "since": seen.get(one["finding_id"]) or ended} for one in _drift(report)[:_MOST_FINDINGS]]
    return {**counts, FINISHED_AT: ended, DRIFT: drift}


def _drift(report: ReconcileReport) -> list[dict[str, Any]]:
    """What differs, for the pages: kept until the next comparison."""
    found = [(one.drift.value, one.key, one.claims, one.finding_id) for one in (*report.missing, *report.unknown, *report.left_over)]
    found += [("dead_claim", one.key, (one.request_id,), one.finding_id) for one in report.dead_claims]
    return [{"drift": drift, **asdict(key), "claims": list(claims), "finding_id": name} for drift, key, claims, name in found]


def mend_difference(*, finding_id: str, remedy: str, operator: str) -> str:
    """What an operator ordered about one finding of the last comparison is done, or the reason why not stands beside it. An order that is
    lost costs ordering it again."""
    now = _CLOCK.now()
    actor = actor_named(email=operator, now=now)
    if not actor.is_operator:
        return f"{operator} is no operator any more"
    try:
        done = requests.reconcile_assignments(remedies=[Remedy(remedy)], chosen=[finding_id], actor=actor, clock=_CLOCK)
        why = done.stopped or "; ".join(map(str, (*done.waiting, *done.unreadable)))
    except InvalidRequest as error:
        # Another comparison has ended since, and did not find it.
        return error.message
    close_old_connections()
    heartbeats.tell_of_difference(finding_id, why)
    return why or "mended"


@job
def publish_events() -> Report | str:
    """What waits in the outbox is with the topic of events; without a topic it is kept, which is said."""
    report = audit.publish_outbox(send=topic_sender(settings.EVENTS_TOPIC_ARN), actor=system("publish_events"), clock=_CLOCK)
    if report.has_topic:
        return report
    waiting = count_unpublished()
    _beat("publish_events", {"published": 0, "failed": 0, "kept": waiting.count, "kept_is_lower_bound": waiting.is_more}, is_ok=True)
    return f"kept {waiting.count}{' or more' if waiting.is_more else ''}, because PORTAL_EVENTS_TOPIC_ARN is not set"


@job
def export_evidence() -> Report | str:
    """Every day that is over has its file and its signed digest."""
    signer = current_signer()
    if signer is None:
        heartbeats.forget("export_evidence")
        return "no store of evidence is set"
    actor = system("export_evidence")
    report = export(files=evidence_files(), signer=signer, until=_CLOCK.now() + _PART_OF_EXPORT, actor=actor, clock=_CLOCK)
    newest_at = datetime.combine(report.newest, time.min, UTC).timestamp() if report.newest else None
    _beat("export_evidence", {**report.counts, NEWEST_DAY_AT: newest_at, "locked": int(not report.unlocked)}, is_ok=report.is_ok)
    if report.stopped:
        log.error("jobs.stopped", job="export_evidence", error=report.stopped)
        raise ItemsFailed(report.stopped)
    return _words(report.counts)


@job
def remove_old_events() -> Report | str:
    """Of a part of the audit log, another one each day, nothing is left that is older than it has to stay and stands in evidence."""
    if settings.AUDIT_KEEP_DAYS is None:
        heartbeats.forget("remove_old_events")
        return "PORTAL_AUDIT_KEEP_DAYS is not set"
    signer, now = current_signer(), _CLOCK.now()
    if signer is None:
        return RemovalReport(stopped="nothing can go, because no evidence is set up (docs/evidence.md)")
    return remove_old(
        files=evidence_files(),
        public_keys=[signer.public_key.encode()],
        keep_days=settings.AUDIT_KEEP_DAYS,
        segments=[segment_of(now)],
        until=now + _PART_OF_REMOVAL,
        keeps_unpublished=bool(settings.EVENTS_TOPIC_ARN),
        actor=system("remove_old_events"),
        clock=_CLOCK,
    )


@job
def follow_history() -> Report:
    """Who had what is known up to a moment ago; made from nothing, a part of the log at a time, where it is not there."""
    return history.follow(until=_CLOCK.now() + _PART_OF_HISTORY, clock=_CLOCK)


@job
def mirror_directory() -> Report:
    """Cognito has followed every change of the directory that was due, or it is tried again later."""
    return mirror.sweep_mirror(clock=_CLOCK)


@job
def compare_directory() -> Report | str:
    """The whole directory has been held against the whole user pool, and the pool made equal."""
    if not is_mirrored():
        return _idle("compare_directory", "no user pool is set")
    comparison = mirror.compare_mirror(apply=True, actor=system("mirror"), clock=_CLOCK)
    for difference in comparison.differences:
        # None is expected: each is a trace of a crash, or of somebody else's hands in the pool.
        log.warning("jobs.directory_differed", entity=difference.entity, differences=difference.differences)
    return comparison


@job
def sync_catalog() -> str:
    """The catalog is as AWS has it now."""
    freshness = catalog.sync_catalog(now=_CLOCK.now(), clock=_CLOCK)
    counts = {"accounts": freshness.accounts, "permission_sets": freshness.permission_sets, "principals": freshness.principals}
    return _counted("sync_catalog", counts)


@job
def sweep_authz() -> Report:
    """Approvals and relationships that are over are gone, each with its event."""
    return authz.sweep(actor=system("sweep_authz"), clock=_CLOCK)


@job
def delete_scopes() -> Report:
    """What is in scopes that are being deleted goes; of which none is left, the receipt is written."""
    return authz.carry_out_deletions(actor=system("delete_scopes"), clock=_CLOCK)


@job
def go_on_erasing() -> Report:
    """Nothing names the people any more whose erasing was begun."""
    return erasing.go_on_erasing(actor=system("go_on_erasing"), clock=_CLOCK)


def erase_former(*, pseudonym: str, operator: str) -> str:
    """Whom an operator ordered to erase is erased, or the reason why not stands on their page. An order that is lost costs ordering it
    again; what was begun, ``go_on_erasing`` finishes."""
    now, why = _CLOCK.now(), "It was ended by an error, or its time limit. Look at the worker’s log, and order it again."
    try:
        why = former_people.erase_former(pseudonym=pseudonym, actor=actor_named(email=operator, now=now), clock=_CLOCK)
    finally:
        close_old_connections()
        heartbeats.tell_of(heartbeats.ERASING, pseudonym, why and f"Not erased. {why}", now=now)
    return why or "erased"


@job
def expire_sandboxes() -> Report:
    """Every sandbox past its deadline and grace is taken back; without a provider, too: its holder's time does not depend on one."""
    return sandboxes.expire(clock=_CLOCK)


@job
def serve_line() -> Report:
    """Nobody waits in a line for what is free and fits them. What becomes free is handed over at once; this finds what slipped by."""
    run, served = runs.Run(), list[str]()

    def note(report: sandboxes_states.ServeReport | leases_states.ServeReport) -> None:
        served.extend(report.served)
        run.failures.extend(report.failures)

    provider = upstream.provider() if upstream.is_set() else None
    # What is wrong with one line keeps nobody waiting in the other.
    run.unit("the line for accounts", lambda: note(leases.serve_line(actor=system("serve_line"), clock=_CLOCK)))
    run.unit("the line for sandboxes", lambda: note(sandboxes.serve_line(provider=provider, clock=_CLOCK)))
    return sandboxes_states.ServeReport(served=tuple(served), failures=run.failed)


@job
def clean_sandboxes() -> Report | str:
    """What was given back is deleted at the provider and free again. Without a provider there is nothing to do."""
    if not upstream.is_set():
        return _idle("clean_sandboxes", _NO_PROVIDER)
    return sandboxes.clean(provider=upstream.provider(), clock=_CLOCK)


@job
def sync_sandboxes() -> Report | str:
    """The pool is as the provider's list says, unless the brake stopped it; then and without a provider sandboxes are counted all the
    same."""
    if not upstream.is_set():
        return _idle("sync_sandboxes", f"{_NO_PROVIDER}; {sandboxes.count(clock=_CLOCK).total} sandboxes counted")
    try:
        return sandboxes.sync(provider=upstream.provider(), apply=True, clock=_CLOCK)
    except SyncStopped as error:
        return dataclasses.replace(error.plan, stopped=error.message)


@job
def clean_accounts() -> Report | str:
    """The cleaner has begun with the accounts that are due, and what it has proved clean is free. Without one nothing is called."""
    if not leases.is_cleaner_set():
        return _idle("clean_accounts", "no cleaner is set")
    return leases.clean_accounts(clock=_CLOCK)


@job
def sync_pool() -> Report | str:
    """The accounts of the pools are those below their organizational units, unless the brake stopped it."""
    if not leases.has_units():
        return _idle("sync_pool", "no organizational unit is set")
    return leases.sync_pool(apply=True, clock=_CLOCK)


@job
def mind_budgets() -> Report:
    """Whoever holds a lease that costs too much was warned, or it is being frozen or ended, as its rule says."""
    return requests.mind_budgets(clock=_CLOCK)


@job
def read_spend() -> Report | str:
    """What the leases have cost is known, as far as AWS knows it. Nothing is called where that is not switched on."""
    if not leases.is_spend_read():
        return _idle("read_spend", "PORTAL_LEASES_COSTS is off")
    return leases.read_spend(clock=_CLOCK)


@job
def count_accounts() -> str:
    """The pages of the pool of accounts have something to tell, to draw and to foretell from."""
    count = leases.count_accounts(clock=_CLOCK)
    return _counted("count_accounts", {**{state.value: number for state, number in count.counts.items()}, "unreadable": count.unreadable})


@job
def run_sandbox_work(*, run_id: str = "") -> str:
    """The run that was ordered has ended; without ``run_id``: every run that waits or whose performer died, and old ones are gone."""
    provider = upstream.provider() if upstream.is_set() else None
    forgotten = 0
    if run_id:
        try:
            runs: Sequence[Run] = [sandboxes.perform_run(run_id=run_id, provider=provider, clock=_CLOCK)]
        except (Conflict, NotFound) as error:
            # The sweep was faster, or the queue came back to it long after its end.
            return error.message
    else:
        runs = sandboxes.perform_due_runs(provider=provider, clock=_CLOCK)
        forgotten = sandboxes.forget_old(now=_CLOCK.now())
    failed = [run for run in runs if run.error]
    for run in failed:
        # Whoever ordered it is shown the words; that is no failure of this job.
        log.warning("jobs.run_failed", run=run.run_id, kind=run.kind.value, ordered_by=run.ordered_by, error=run.error)
    return _counted("run_sandbox_work", {"done": len(runs) - len(failed), "failed": len(failed), "forgotten": forgotten})
