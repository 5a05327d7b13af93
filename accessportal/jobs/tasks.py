"""What the queue runs. Each is thin, may run at any time, twice, and beside itself: correctness is the domain's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, ParamSpec

import structlog
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import close_old_connections

from accessportal.access_requests import operations as requests
from accessportal.access_requests.states import ReconcileReport, SubjectsReport, TickReport
from accessportal.audit import operations as audit
from accessportal.audit.effects import topic_sender
from accessportal.audit.queries import count_unpublished
from accessportal.catalog import operations as catalog
from accessportal.jobs.lines import Line
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import Conflict, NotFound, Unavailable
from accessportal.kernel.ports import after_commit
from accessportal.mirror import operations as mirror
from accessportal.mirror.queries import is_mirrored
from accessportal.observe import heartbeats
from accessportal.observe.heartbeats import DRIFT
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes.states import Failure as SandboxFailure
from accessportal.sandboxes.states import Run, SyncStopped
from accessportal.upstream import client as upstream

log = structlog.get_logger(__name__)
_CLOCK = SystemClock()
_NO_PROVIDER = "no provider is set"
# Before a tick is sure to look again.
_SOON = timedelta(seconds=100)
_MOST_FINDINGS = 100
# Well below the time after which the job is killed: a step that was begun before may take minutes when nothing answers.
_PART_OF_COMPARISON = timedelta(minutes=4)


P = ParamSpec("P")


class ItemsFailed(Exception):
    """A job did all it could and some of its items failed: raised at its end, so that monitoring sees it."""


def tells_failure(job: Callable[P, str]) -> Callable[P, str]:
    """``job``, whose last run is told to have failed when it is ended by an error or its time limit, even before its heartbeat."""

    @functools.wraps(job)
    def run(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return job(*args, **kwargs)
        except BaseException:
            try:
                close_old_connections()
                heartbeats.fail(job.__name__, now=_CLOCK.now())
            except DatabaseError:
                # Then nobody can read it either.
                log.exception("jobs.failure_not_told", job=job.__name__)
            raise

    return run


def carry_out(*, request_id: str) -> str:
    """The work of one request is done outside, or was done by somebody else. Shortens the wait; the tick is the guarantee."""
    try:
        request = requests.carry_out(request_id=request_id, clock=_CLOCK)
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


@tells_failure
def tick() -> str:
    """Everything due is done or has a later due time, up to the look-ahead.

    :raises ItemsFailed: at its end, when some items failed.
    """
    return _told("tick", requests.tick(clock=_CLOCK))


@tells_failure
def end_departed() -> str:
    """What hung on people and groups that lost something is being ended. Shortens the wait; the tick is the guarantee.

    :raises ItemsFailed: at its end, when some items failed.
    """
    return _told_of_subjects("end_departed", requests.end_departed(clock=_CLOCK))


@tells_failure
def compare_subjects() -> str:
    """Every open request has been held against the directory, which other programs write, too.

    :raises ItemsFailed: at its end, when some could not be looked at or ended, or the brake held it back: an operator decides.
    """
    return _told_of_subjects("compare_subjects", requests.compare_subjects(actor=system("compare_subjects"), clock=_CLOCK))


@tells_failure
def watch_ends(*, until: str) -> str:
    """Access that ends before the next tick is sure to look is taken back at its end.

    :raises ItemsFailed: at its end, when some items failed.
    """
    report = requests.watch_ends(until=datetime.fromisoformat(until), clock=_CLOCK)
    return "another watcher covers that time" if report is None else _told("watch_ends", report)


@tells_failure
def reconcile_assignments() -> str:
    """A part of the comparison of what IAM Identity Center holds with the claims is done; the next part waits in the queue. Reports only:
    applying is an operator's command.

    :raises ItemsFailed: at the end of a whole comparison, when some could not be had; the others have been compared.
    """
    try:
        comparison = requests.compare_assignments(until=_CLOCK.now() + _PART_OF_COMPARISON, clock=_CLOCK)
    except Conflict as error:
        return error.message
    report = requests.last_report(clock=_CLOCK)
    counts = _counts_of(report) if report is not None else {}
    progress = {"pairs": comparison.pairs, "pairs_read": comparison.pairs_read, "begun_at": comparison.begun_at.timestamp()}
    drift = _drift(report)[:_MOST_FINDINGS] if report is not None else []
    failed = sum(count for name, count in counts.items() if name not in ("not_ours", "finished_at"))
    _beat("reconcile_assignments", {**counts, **progress, DRIFT: drift}, is_ok=not failed)
    if report is None or comparison.finished_at is None:
        # The rest goes to the end of its line, so that others come between.
        after_commit("reconcile_assignments")
        return f"{comparison.pairs_read} of {comparison.pairs} pairs read"
    for one in report.unread:
        log.error(
            "jobs.item_failed", job="reconcile_assignments", account=one.account_id, permission_set=one.permission_set_arn, error=one.error
        )
    for item in report.unreadable:
        log.error("jobs.item_failed", job="reconcile_assignments", error=item)
    words = _words({name: count for name, count in counts.items() if name != "finished_at"})
    if report.unread or report.unreadable:
        raise ItemsFailed(words)
    return words


def _counts_of(report: ReconcileReport) -> dict[str, float]:
    finished_at = report.comparison.finished_at
    return {
        "missing": len(report.missing),
        "unknown": len(report.unknown),
        "left_over": len(report.left_over),
        "dead_claims": len(report.dead_claims),
        "unread": len(report.unread),
        "unreadable": len(report.unreadable),
        "not_ours": len(report.not_ours),
        "finished_at": finished_at.timestamp() if finished_at is not None else 0.0,
    }


def _drift(report: ReconcileReport) -> list[dict[str, Any]]:
    """What differs, for the pages: kept until the next comparison."""
    found = [(one.drift.value, one.key, one.claims, one.finding_id) for one in (*report.missing, *report.unknown, *report.left_over)]
    found += [("dead_claim", one.key, (one.request_id,), one.finding_id) for one in report.dead_claims]
    return [{"drift": drift, **asdict(key), "claims": list(claims), "finding_id": name} for drift, key, claims, name in found]


@tells_failure
def publish_events() -> str:
    """What waits in the outbox is with the topic of events; without a topic it is kept, which is said.

    :raises ItemsFailed: at its end, when events could not be published; the next run tries them again.
    """
    report = audit.publish_outbox(send=topic_sender(settings.EVENTS_TOPIC_ARN), actor=system("publish_events"), clock=_CLOCK)
    if not report.has_topic:
        waiting = count_unpublished()
        _beat("publish_events", {"published": 0, "failed": 0, "kept": waiting.count, "kept_is_lower_bound": waiting.is_more}, is_ok=True)
        return f"kept {waiting.count}{' or more' if waiting.is_more else ''}, because PORTAL_EVENTS_TOPIC_ARN is not set"
    counts = {"published": report.published, "repeated": report.repeated, "failed": len(report.failures)}
    _beat("publish_events", counts, is_ok=report.is_ok)
    for failure in report.failures:
        log.error("jobs.item_failed", job="publish_events", entity=failure.entity, sequence=failure.sequence, error=failure.error)
    if not report.is_ok:
        raise ItemsFailed(", ".join(filter(None, [_words(counts), report.stopped])))
    return _words(counts)


@tells_failure
def mirror_directory() -> str:
    """Cognito has followed every change of the directory that was due, or it is tried again later.

    :raises ItemsFailed: at its end, when some failed repeatedly.
    """
    report = mirror.sweep_mirror(clock=_CLOCK)
    counts = {"done": report.done, "waiting": report.waiting, "failed": len(report.failures)}
    _beat("mirror_directory", counts, is_ok=not report.failures)
    for failure in report.failures:
        log.error("jobs.item_failed", job="mirror_directory", entity=failure.entity, error=failure.error)
    if report.failures:
        raise ItemsFailed(_words(counts))
    return _words(counts)


@tells_failure
def compare_directory() -> str:
    """The whole directory has been held against the whole user pool, and the pool made equal.

    :raises ItemsFailed: at its end, when something could not be read again or mended, or the brake held it back.
    """
    if not is_mirrored():
        return _idle("compare_directory", "no user pool is set")
    comparison = mirror.compare_mirror(apply=True, actor=system("mirror"), clock=_CLOCK)
    counts = {"differences": len(comparison.differences), "mended": comparison.mended, "waiting": len(comparison.waiting)}
    for difference in comparison.differences:
        # None is expected: each is a trace of a crash, or of somebody else's hands in the pool.
        log.warning("jobs.directory_differed", entity=difference.entity, differences=difference.differences)
    for waiting in comparison.waiting:
        log.error("jobs.item_failed", job="compare_directory", entity=waiting.entity, error=waiting.error)
    is_ok = not comparison.stopped and not comparison.waiting
    _beat("compare_directory", counts, is_ok=is_ok)
    if not is_ok:
        raise ItemsFailed(", ".join(filter(None, [_words(counts), comparison.stopped])))
    return _words(counts)


@tells_failure
def sync_catalog() -> str:
    """The catalog is as AWS has it now."""
    freshness = catalog.sync_catalog(now=_CLOCK.now(), clock=_CLOCK)
    counts = {"accounts": freshness.accounts, "permission_sets": freshness.permission_sets, "principals": freshness.principals}
    _beat("sync_catalog", counts, is_ok=True)
    return _words(counts)


@tells_failure
def expire_sandboxes() -> str:
    """Every sandbox past its deadline and grace is taken back; without a provider, too: its holder's time does not depend on one.

    :raises ItemsFailed: at its end, when some failed.
    """
    report = sandboxes.expire(clock=_CLOCK)
    return _told_of_sandboxes("expire_sandboxes", {"expired": len(report.expired), "mended": len(report.mended)}, report.failures)


@tells_failure
def clean_sandboxes() -> str:
    """What was given back is deleted at the provider and free again. Without a provider there is nothing to do.

    :raises ItemsFailed: at its end, when some failed, or the provider does not answer.
    """
    if not upstream.is_set():
        return _idle("clean_sandboxes", _NO_PROVIDER)
    report = sandboxes.clean(provider=upstream.provider(), clock=_CLOCK)
    stopped = [SandboxFailure("provider", report.stopped)] if report.stopped else []
    counts = {
        "cleaned": len(report.cleaned),
        "removed": len(report.removed),
        "waiting": len(report.waiting),
        "quarantined": len(report.quarantined),
    }
    return _told_of_sandboxes("clean_sandboxes", counts, [*report.failures, *stopped])


@tells_failure
def sync_sandboxes() -> str:
    """The pool is as the provider's list says, unless the brake stopped it; then and without a provider sandboxes are counted all the same.

    :raises ItemsFailed: at its end, when some failed.
    :raises SyncStopped: when the list would take too much away: an operator decides.
    """
    if not upstream.is_set():
        return _idle("sync_sandboxes", f"{_NO_PROVIDER}; {sandboxes.count(clock=_CLOCK).total} sandboxes counted")
    try:
        plan = sandboxes.sync(provider=upstream.provider(), apply=True, clock=_CLOCK)
    except (SyncStopped, Unavailable) as error:
        _beat("sync_sandboxes", {}, is_ok=False)
        log.error("jobs.sync_stopped", error=error.message)
        raise
    counts = {
        "new": len(plan.new),
        "missing": len(plan.missing),
        "stale": len(plan.going_stale) + len(plan.not_ready),
        "seen_again": len(plan.seen_again),
    }
    return _told_of_sandboxes("sync_sandboxes", counts, plan.failures)


@tells_failure
def run_sandbox_work(*, run_id: str = "") -> str:
    """The run that was ordered has ended; without ``run_id``: every run that waits or whose performer died, and old ones are gone."""
    provider = upstream.provider() if upstream.is_set() else None
    if run_id:
        try:
            runs: Sequence[Run] = [sandboxes.perform_run(run_id=run_id, provider=provider, clock=_CLOCK)]
        except (Conflict, NotFound) as error:
            # The sweep was faster, or the queue came back to it long after its end.
            return error.message
        forgotten = 0
    else:
        runs = sandboxes.perform_due_runs(provider=provider, clock=_CLOCK)
        forgotten = sandboxes.forget_old(now=_CLOCK.now())
    for run in runs:
        if run.error:
            # Whoever ordered it is shown the words; that is no failure of this job.
            log.warning("jobs.run_failed", run=run.run_id, kind=run.kind.value, ordered_by=run.ordered_by, error=run.error)
    counts = {"done": sum(not run.error for run in runs), "failed": sum(bool(run.error) for run in runs), "forgotten": forgotten}
    _beat("run_sandbox_work", counts, is_ok=True)
    return _words(counts)


def _told_of_sandboxes(part: str, counts: Mapping[str, int], failures: Sequence[SandboxFailure]) -> str:
    _beat(part, {**counts, "failed": len(failures)}, is_ok=not failures)
    for failure in failures:
        log.error("jobs.item_failed", job=part, sandbox=failure.sandbox_id, error=failure.error)
    words = _words({**counts, "failed": len(failures)})
    if failures:
        raise ItemsFailed(words)
    return words


def _told_of_subjects(part: str, report: SubjectsReport) -> str:
    counts = {"checked": report.checked, "ended": report.ended, "cancelled": report.cancelled, "failed": len(report.failures)}
    is_ok = not report.failures and not report.stopped
    _beat(part, counts, is_ok=is_ok)
    for failure in report.failures:
        log.error("jobs.item_failed", job=part, item=failure.request_id, error=failure.error)
    if report.stopped:
        log.error("jobs.comparison_stopped", job=part, error=report.stopped)
    if not is_ok:
        raise ItemsFailed(", ".join(filter(None, [_words(counts), report.stopped])))
    return _words(counts)


def _told(part: str, report: TickReport) -> str:
    counts = {
        "lapsed": report.lapsed,
        "expired": report.expired,
        "granted": report.granted,
        "revoked": report.revoked,
        "departed": report.departed,
        "waiting": report.waiting,
        "failed": len(report.failures),
    }
    _beat(part, counts, is_ok=not report.failures)
    for failure in report.failures:
        log.error("jobs.item_failed", job=part, access_request=failure.request_id, error=failure.error)
    if report.failures:
        raise ItemsFailed(_words(counts))
    return _words(counts)


def _beat(part: str, counts: Mapping[str, Any], *, is_ok: bool) -> None:
    # The job may have taken minutes: a connection that the server closed meanwhile must not fail it at its very end.
    close_old_connections()
    heartbeats.beat(part, now=_CLOCK.now(), is_ok=is_ok, detail=counts)


def _idle(part: str, why: str) -> str:
    """Nothing to do, so nothing has failed; an earlier failure is over."""
    heartbeats.mend(part)
    return why


def _words(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
