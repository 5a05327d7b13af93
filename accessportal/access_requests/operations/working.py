"""Carrying out: what a request still needs outside, done by whoever claims it, proved, and written down."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from accessportal.access_requests import policy, store
from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.operations.ending import close_waiting, end_loaded, expire
from accessportal.access_requests.operations.shared import ask_for_work, load, load_for, purge_moment, require, until_written, watch_end
from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.states import AccessRequest, Receipt, Status, Work
from accessportal.directory.queries import Book
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.clock import Clock, to_epoch
from accessportal.kernel.errors import Conflict, NoAnswer
from accessportal.kernel.moments import is_due
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.store.restores import held_back, held_restore
from accessportal.store.transactions import Overtaken

WORKER = system("worker")
# The claim of a worker that died is free again after this; longer than the assignment's own hold (60 s) and its patience.
CLAIM_SECONDS = 75.0
_PATIENCE_SECONDS = 25.0
_AFTER_NO_ANSWER_SECONDS = 3.0


def carry_out(*, request_id: str, clock: Clock) -> AccessRequest:
    """Do what is due for one request: grant or revoke, wait for the proof, write the receipt. Returns it without ``work`` when proved, with
    a later due time and the reason when it must wait, unchanged when nothing was due or another worker has it. Any number of workers may
    call it at any time."""
    request = load(request_id)
    now = clock.now()
    if request.work is Work.GRANT and request.is_over(now):
        try:
            request = expire(request_id=request_id, actor=WORKER, now=now)
        except Conflict:
            request = load(request_id)
    if request.work is None or request.work_due_at is None or not is_due(request.work_due_at, now=now, longest=policy.LONGEST_WAIT):
        return request
    held_until = now + timedelta(seconds=CLAIM_SECONDS)
    try:
        if not store.claim_work(request, until=held_until):
            return load(request_id)
        return _work(request, clock)
    except NoAnswer:
        _give_back(request, held_until, clock)
        raise


def carry_out_served(*, request_id: str, clock: Clock) -> AccessRequest:
    """As :func:`carry_out`, at once for what waited in a line: it has been handed over what it waits for."""
    request = load(request_id)
    if request.work is Work.GRANT and request.work_due_at is not None:
        store.claim_work(request, until=clock.now())
    return carry_out(request_id=request_id, clock=clock)


def _give_back(request: AccessRequest, held_until: datetime, clock: Clock) -> None:
    """This worker lives: its work need not wait until the claim of a dead one would be free."""
    with suppress(NoAnswer):
        store.claim_work(replace(request, work_due_at=held_until), until=clock.now() + timedelta(seconds=_AFTER_NO_ANSWER_SECONDS))


def retry(*, request_id: str, actor: Actor, now: datetime) -> AccessRequest:
    """Make waiting work due at once. Conflict when nothing is to be carried out."""

    def attempt() -> AccessRequest:
        request, _ = load_for(request_id, actor, ApproverBook(now=now))
        require(policy.may_retry(request, actor), request)
        assert request.work is not None
        due = request.to_do(request.work, due_at=now)
        return store.change(request, due, "request.retry_asked", {"work": request.work.value}, actor=actor, now=now)

    asked = until_written(attempt)
    ask_for_work(asked, now)
    return asked


def _work(request: AccessRequest, clock: Clock) -> AccessRequest:
    give_up_at = clock.now() + timedelta(seconds=_PATIENCE_SECONDS)
    while True:
        try:
            outcome = _act(request, clock)
            if isinstance(outcome, Proof):
                return _settle(request, outcome, clock.now())
            if outcome.is_final and request.work is Work.GRANT:
                return _end_ungrantable(request, outcome, clock.now())
            if outcome.is_error:
                return _postpone_failed(request, outcome, clock.now())
            if outcome.is_queued or outcome.retry_at > give_up_at:
                store.postpone_work(request, until=outcome.retry_at, note=outcome.reason)
                return load(request.request_id)
        except Overtaken:
            # Ended or retried by somebody meanwhile: what is wanted now has its own due time, and its own worker.
            return load(request.request_id)
        clock.sleep((outcome.retry_at - clock.now()).total_seconds() + random.uniform(0, 0.5))


def _act(request: AccessRequest, clock: Clock) -> Proof | Waiting:
    kind = kind_named(request.kind).grant
    if request.work is Work.REVOKE:
        return kind.revoke(request=request, actor=WORKER, clock=clock)
    if held_restore() is not None:
        return held_back(clock.now())
    gone = kind.made_anew(request, book=Book(), now=clock.now())
    if gone is not None:
        return gone
    try:
        return kind.grant(request=request, guards=[store.still_to_be_granted(request.request_id)], actor=WORKER, clock=clock)
    except Conflict as error:
        # The guard: it was ended before its claim was taken. Nothing was claimed.
        raise Overtaken from error


def _settle(request: AccessRequest, proof: Proof, now: datetime) -> AccessRequest:
    assert request.work is not None
    receipt = _receipt(request, proof)
    told: dict[str, object] = {"job_id": receipt.job_id, "job_status": receipt.job_status, "kept_by": list(receipt.kept_by)}
    if receipt.lateness_seconds is not None:
        told["lateness_seconds"] = receipt.lateness_seconds
    done = replace(request, work=None, work_due_at=None, work_attempts=0, work_error="", receipts=(*request.receipts, receipt))
    if request.work is Work.GRANT:
        if not proof.is_present:
            raise Overtaken
        return _settle_grant(request, done, proof, told, now)
    revoked = replace(done, status=Status.REVOKED, revoked_at=proof.proved_at, purge_at=purge_moment(now))
    # What was asked for while it was being ended, or was too much for the transaction that ended it.
    close_waiting(request, actor=WORKER, now=now)
    data = {"receipt": told, "status": Status.REVOKED.value}
    return store.change(request, revoked, "request.revoked", data, actor=WORKER, now=now)


def _settle_grant(request: AccessRequest, done: AccessRequest, proof: Proof, told: dict[str, object], now: datetime) -> AccessRequest:
    granted = replace(done, granted_at=proof.proved_at, account_id=proof.account_id or request.account_id)
    data: dict[str, object] = {"receipt": told}
    if proof.account_id:
        data["account_id"] = proof.account_id
    if proof.ends_at is not None:
        # Its time, and what an extension counts as held, run from here.
        granted = replace(granted, expires_at=proof.ends_at, held_since=request.held_since or proof.proved_at)
        data["expires_at"] = to_epoch(proof.ends_at)
    written = store.change(request, granted, "request.granted", data, actor=WORKER, now=now)
    watch_end(written, now)
    return written


def _receipt(request: AccessRequest, proof: Proof) -> Receipt:
    assert request.work is not None
    lateness = None
    if request.work is Work.REVOKE:
        taken_at = proof.called_at or proof.proved_at
        lateness = round(max(0.0, (taken_at - request.expires_at).total_seconds()), 3)
    return Receipt(
        work=request.work,
        job_id=proof.job_id,
        job_status=proof.job_status,
        called_at=proof.called_at,
        proved_at=proof.proved_at,
        lateness_seconds=lateness,
        kept_by=proof.kept_by,
    )


def _end_ungrantable(request: AccessRequest, waiting: Waiting, now: datetime) -> AccessRequest:
    """What can never be granted ends with the reason, instead of being tried until its time is up."""
    reason = f"It can't be granted any more: {waiting.reason}"
    ended = end_loaded(request, reason=reason, code=waiting.code, actor=WORKER, now=now)
    ask_for_work(ended, now)
    return ended


def _postpone_failed(request: AccessRequest, waiting: Waiting, now: datetime) -> AccessRequest:
    """A failure is told in the audit log, and tried again after a growing gap, for ever."""
    assert request.work is not None
    attempts = request.work_attempts + 1
    due_at = now + policy.retry_gap(work=request.work, attempts=attempts, jitter=random.random())
    data = {
        "work": request.work.value,
        "error_code": waiting.code,
        "error": waiting.reason,
        "attempts": attempts,
        "work_due_at": int(due_at.timestamp()),
    }
    delayed = replace(request, work_due_at=due_at, work_attempts=attempts, work_error=waiting.reason)
    return store.change(request, delayed, "request.work_delayed", data, actor=WORKER, now=now)
