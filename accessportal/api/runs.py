"""Work on the whole pool that programs of scope ``admin`` order: it is done by a job, and polled."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router
from ninja.responses import Status

from accessportal.api.auth import BearerToken, client_of
from accessportal.api.documenting import errors
from accessportal.api.schemas import Job, JobId, JobState
from accessportal.kernel.clock import SystemClock, epoch_of, to_epoch
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import Run, RunKind
from accessportal.tokens.states import Scope

router = Router(auth=BearerToken(Scope.ADMIN), tags=["Admin"])


@router.post("sync", response={202: Job, **errors()}, operation_id="order_sync", summary="Look at the provider's list")
def order_sync(request: HttpRequest, response: HttpResponse) -> Status[Job]:
    """Ordered, and done by a job: poll `status_url`. While an equal order waits, that one is answered."""
    return _ordered(RunKind.SYNC, request, response)


@router.post("cleanup", response={202: Job, **errors()}, operation_id="order_cleanup", summary="Expire and clean what is due")
def order_cleanup(request: HttpRequest, response: HttpResponse) -> Status[Job]:
    """Ordered, and done by a job: poll `status_url`. While an equal order waits, that one is answered."""
    return _ordered(RunKind.CLEANUP, request, response)


@router.get("jobs/{job_id}", response={200: JobState, **errors(404)}, operation_id="get_job", summary="Poll a job")
def get_job(request: HttpRequest, job_id: JobId) -> JobState:
    """Jobs are remembered for a week."""
    run = queries.get_run(run_id=job_id)
    return JobState(
        job_id=run.run_id,
        kind=run.kind,
        state=run.state,
        status_url=_url(run),
        ordered_at=to_epoch(run.ordered_at),
        started_at=epoch_of(run.started_at),
        ended_at=epoch_of(run.ended_at),
        report=dict(run.report),
        error=run.error or None,
    )


def _ordered(kind: RunKind, request: HttpRequest, response: HttpResponse) -> Status[Job]:
    run = operations.order_run(kind=kind, actor=client_of(request).actor, now=SystemClock().now())
    response.headers["Location"] = _url(run)
    return Status(202, Job(job_id=run.run_id, kind=run.kind, state=run.state, status_url=_url(run)))


def _url(run: Run) -> str:
    return reverse("api:get_job", args=[run.run_id])
