"""The steps by which one assignment comes to what its claims want, through IAM Identity Center's asynchronous jobs.

Intent is written before a call, its job id after it, and a state is left only on proof: the list read back. Every step can be
repeated, so a worker that dies anywhere is continued by the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from accessportal.assignments import store
from accessportal.assignments.config import current
from accessportal.assignments.effects.call_queue import SharedPace
from accessportal.assignments.policy import CALL_MARGIN_SECONDS, LISTED_WITHIN_SECONDS, PATIENCE_SECONDS, Step, next_step, poll_gap_seconds
from accessportal.assignments.states import Assignment, AssignmentKey, AssignmentState
from accessportal.assignments.waits import WITHOUT_PROOF, never, no_seat, out_of_time, sorted_wait, wait
from accessportal.audit.states import Draft
from accessportal.aws.errors import Gone, OutsideError, Refused, Throttled, Transient
from accessportal.aws.identity_center import AssignmentTarget, IdentityCenter, Job, JobStatus
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.moments import is_recent
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.store.restores import held_back, held_restore
from accessportal.store.transactions import Overtaken


class _PaceWhileHeld:
    """The shared pace, for as long as the assignment is ours: the wait for a turn may be what uses the time up."""

    def __init__(self, clock: Clock, *, held_until: datetime) -> None:
        self._clock = clock
        self._pace = SharedPace(clock)
        self._last_call_at = held_until - timedelta(seconds=CALL_MARGIN_SECONDS)

    def wait_for_turn(self, *, is_urgent: bool = False) -> bool:
        is_our_turn = self._pace.wait_for_turn(is_urgent=is_urgent)
        if self._clock.now() > self._last_call_at:
            raise HandBack(out_of_time(self._clock.now()))
        return is_our_turn


class HandBack(Exception):
    """Stop driving for now."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__(waiting.reason)
        self.waiting = waiting


class LateCall(Exception):
    """A call was sent by a worker that no longer held the assignment: the process, or the whole machine, had stood still
    between its look at the clock and the call. Whoever took over may have proved the opposite before that call."""


class Driver:
    def __init__(self, assignment: Assignment, *, subject: str, actor: Actor, clock: Clock, until: datetime) -> None:
        self._assignment = assignment
        self._subject = subject
        self._actor = actor
        self._clock = clock
        self._held_until = until
        self._give_up_at = clock.now() + timedelta(seconds=PATIENCE_SECONDS)
        self._center = IdentityCenter(pace=_PaceWhileHeld(clock, held_until=until))
        self._may_have_been_sent = True
        self._polls = 0
        self._is_job_over = False
        self._job_status = ""
        self._steps: dict[Step, Callable[[], Proof | None]] = {
            Step.NOTHING: self._proof,
            Step.START_CREATING: self._start_creating,
            Step.SEND_CREATE: self._send_create,
            Step.POLL_CREATION: self._poll_creation,
            Step.CHECK_PRESENT: self._check_present,
            Step.START_DELETING: self._start_deleting,
            Step.SEND_DELETE: self._send_delete,
            Step.POLL_DELETION: self._poll_deletion,
        }

    def run(self) -> Proof:
        while True:
            try:
                proof = self._do(next_step(self._assignment))
            except Overtaken:
                # A claim came or went meanwhile: look again. Nobody else moves the state, we hold it.
                fresh = store.get(self._assignment.assignment_id)
                assert fresh is not None, "assignments are never deleted"
                self._assignment = fresh
                continue
            if proof is not None:
                return proof

    def _do(self, step: Step) -> Proof | None:
        try:
            return self._steps[step]()
        except OutsideError as error:
            if self._goes_on_without_proof():
                return None
            raise HandBack(sorted_wait(error, self._clock.now(), without_proof=WITHOUT_PROOF.get(step, ""))) from error

    def _goes_on_without_proof(self) -> bool:
        """After an error for an answer, say whether there is a way forward at once. A proof that can't be had neither stops the taking back
        (no creation is deleted blindly, a deletion is sent again and again) nor keeps a place among the open creations."""
        assignment = self._assignment
        if assignment.state is AssignmentState.CREATING:
            if assignment.job_id and not assignment.is_wanted:
                self._start_deleting()
                return True
            if self._is_job_over or self._is_long_ago(assignment.called_at or assignment.changed_at):
                store.give_seat_back(assignment)
        elif assignment.state is AssignmentState.DELETING and assignment.job_id and self._is_long_ago(assignment.called_at):
            self._forget_job()
        return False

    # One method for each step. Each returns the proof when all is as wanted, else None to go on.

    def _start_creating(self) -> None:
        self._require_not_held()
        try:
            self._move(AssignmentState.CREATING, "assignment.creating")
        except store.NoSeat:
            raise HandBack(no_seat(self._clock.now(), seats=current().open_creations)) from None
        self._may_have_been_sent = False

    def _start_deleting(self) -> None:
        self._move(AssignmentState.DELETING, "assignment.deleting")

    def _send_create(self) -> None:
        if self._may_have_been_sent:
            self._require_not_held()
            # Its place may have been given back meanwhile.
            try:
                store.take_seat_again(self._assignment, seats=current().open_creations)
            except store.NoSeat:
                raise HandBack(no_seat(self._clock.now(), seats=current().open_creations)) from None
        try:
            self._start_job(self._center.create_assignment)
        except Refused:
            self._give_place_back()
            raise
        except Gone as error:
            self._give_place_back()
            self._center.require_instance(self._target)
            reason = f"Something that it was decided on is not in IAM Identity Center any more ({error.message}). Ask again."
            raise HandBack(never(reason, self._clock.now())) from error

    def _give_place_back(self) -> None:
        """Keep no place for a refused creation while it waits for somebody to mend the cause. Nothing was started, unless an earlier call
        of the same intent had no answer: then only a deletion settles it."""
        if self._may_have_been_sent:
            self._start_deleting()
        else:
            self._move(AssignmentState.ABSENT, "assignment.absent", job_status="REFUSED")

    def _send_delete(self) -> None:
        try:
            self._start_job(self._center.delete_assignment)
        except Gone:
            if self._gives_access():
                self._wait_for_list("deletion")
            else:
                self._settle_absent("NOT_FOUND")

    def _start_job(self, send: Callable[[AssignmentTarget], Job]) -> None:
        self._check_time()
        called_at = self._clock.now()
        try:
            job = send(self._target)
        except Throttled:
            raise
        except Transient as error:
            if self._clock.now() > self._held_until:
                raise LateCall from error
            raise
        try:
            self._note_job(job.job_id, called_at)
        except Overtaken as error:
            raise LateCall from error

    def _poll_creation(self) -> None:
        try:
            job = self._center.creation_job(permission_set_arn=self._target.permission_set_arn, job_id=self._assignment.job_id)
        except Gone:
            self._forget_job()
            return
        self._is_job_over = job.status is not JobStatus.IN_PROGRESS
        if not self._is_job_over:
            self._wait_for_creation()
        elif self._center.is_present(self._target):
            self._job_status = job.status.value
            self._move(AssignmentState.PRESENT, "assignment.present", job_status=job.status.value, proved=True)
        elif job.status is JobStatus.FAILED:
            self._move(AssignmentState.ABSENT, "assignment.absent", job_status="FAILED", proved=True)
            if self._assignment.is_wanted:
                raise HandBack(self._why_not_created(job))
        else:
            self._wait_for_list("creation")

    def _poll_deletion(self) -> None:
        try:
            job = self._center.deletion_job(permission_set_arn=self._target.permission_set_arn, job_id=self._assignment.job_id)
        except Gone:
            self._forget_job()
            return
        if job.status is JobStatus.IN_PROGRESS:
            if self._is_long_ago(self._assignment.called_at):
                self._forget_job()
            self._wait_for_job("deletion")
        elif job.status is JobStatus.SUCCEEDED:
            if self._center.is_present(self._target):
                self._wait_for_list("deletion")
            else:
                self._settle_absent("SUCCEEDED")
        elif self._gives_access():
            self._move(AssignmentState.PRESENT, "assignment.present", job_status="FAILED", proved=True)
            raise HandBack(wait("job_failed", f"IAM Identity Center could not delete it: {job.reason}", self._clock.now(), is_error=True))
        else:
            self._settle_absent("FAILED")

    def _wait_for_creation(self) -> None:
        """It may be said to run for ever: after a while that neither keeps a place nor hinders the taking back. If it does run, AWS
        answers the deletion with a conflict, and a creation too many with a refusal."""
        if self._is_long_ago(self._assignment.called_at):
            if not self._assignment.is_wanted:
                self._start_deleting()
                return
            store.give_seat_back(self._assignment)
        self._wait_for_job("creation")

    def _check_present(self) -> Proof | None:
        if self._center.is_present(self._target):
            return self._proof()
        self._require_not_held()
        # Somebody took it away outside the portal; it is still claimed, so it is made again.
        self._move(AssignmentState.ABSENT, "assignment.absent", job_status="VANISHED", proved=True)
        return None

    def _require_not_held(self) -> None:
        """Right before what leads to a creation: nothing is given while nobody has confirmed a restore of the tables."""
        if held_restore() is not None:
            raise HandBack(held_back(self._clock.now()))

    def _gives_access(self) -> bool:
        """What can't be deleted because its user or group is gone stays listed, and gives access to nobody."""
        return self._center.is_present(self._target) and self._center.has_principal(self._target)

    def _why_not_created(self, job: Job) -> Waiting:
        if self._has_lost_its_principal():
            reason = "IAM Identity Center does not have the user or group any more that it was decided on. Ask again."
            return never(reason, self._clock.now())
        return wait("job_failed", f"IAM Identity Center could not create it: {job.reason}", self._clock.now(), is_error=True)

    def _has_lost_its_principal(self) -> bool:
        """Only when that is certain: what AWS said of the job must not be hidden by another call that fails."""
        try:
            return not self._center.has_principal(self._target)
        except OutsideError:
            return False

    def _settle_absent(self, job_status: str) -> None:
        self._job_status = job_status
        self._move(AssignmentState.ABSENT, "assignment.absent", job_status=job_status, proved=True)

    def _proof(self) -> Proof:
        assignment = self._assignment
        found_present = assignment.state is AssignmentState.PRESENT and not self._job_status
        return Proof(
            is_present=assignment.state is AssignmentState.PRESENT,
            job_id="" if found_present else assignment.job_id,
            job_status=self._job_status or "ALREADY_SO",
            called_at=None if found_present else assignment.called_at,
            proved_at=self._clock.now(),
        )

    # Small moves that the steps share.

    def _move(self, to: AssignmentState, action: str, *, job_status: str = "", proved: bool = False) -> None:
        now = self._clock.now()
        fence = store.next_fence(self._assignment)
        data: dict[str, object] = {"state": to.value, "fence": fence}
        if to in (AssignmentState.PRESENT, AssignmentState.ABSENT):
            data |= {"job_id": self._assignment.job_id, "job_status": job_status}
        self._assignment = store.move(
            self._assignment,
            to,
            fence=fence,
            draft=Draft(action, self._subject, data),
            actor=self._actor,
            now=now,
            seats=current().open_creations,
            proved_at=now if proved else None,
        )

    def _note_job(self, job_id: str, called_at: datetime) -> None:
        """Write the answer of a call down, even if a claim changes at the same moment."""
        while True:
            draft = Draft("assignment.job_started", self._subject, {"job_id": job_id, "fence": self._assignment.fence})
            try:
                self._assignment = store.set_job(
                    self._assignment, job_id=job_id, called_at=called_at, draft=draft, actor=self._actor, now=self._clock.now()
                )
            except Overtaken:
                fresh = store.get(self._assignment.assignment_id)
                assert fresh is not None, "assignments are never deleted"
                if fresh.fence != self._assignment.fence:
                    raise
                self._assignment = fresh
            else:
                return

    def _forget_job(self) -> None:
        draft = Draft("assignment.job_forgotten", self._subject, {"job_id": self._assignment.job_id, "fence": self._assignment.fence})
        self._assignment = store.set_job(self._assignment, job_id="", called_at=None, draft=draft, actor=self._actor, now=self._clock.now())
        self._may_have_been_sent = True
        self._is_job_over = False

    def _wait_for_job(self, what: str) -> None:
        gap = poll_gap_seconds(self._polls)
        self._polls += 1
        now = self._clock.now()
        if now + timedelta(seconds=gap) > self._give_up_at:
            raise HandBack(wait("job_running", f"The {what} job at IAM Identity Center is still running", now, seconds=3))
        self._clock.sleep(gap)

    def _wait_for_list(self, what: str) -> None:
        """The list lags behind the job, and only the list is proof. After a minute that is no lag any more: somebody undid
        outside what the job had done, and only a new call helps."""
        if self._is_long_ago(self._assignment.called_at):
            self._forget_job()
        self._wait_for_job(what)

    def _is_long_ago(self, called_at: datetime | None) -> bool:
        within = timedelta(seconds=LISTED_WITHIN_SECONDS)
        return called_at is not None and not is_recent(called_at, now=self._clock.now(), within=within)

    def _check_time(self) -> None:
        if self._clock.now() > self._give_up_at:
            raise HandBack(out_of_time(self._clock.now()))

    @property
    def _target(self) -> AssignmentTarget:
        return target_of(self._assignment.key)


def target_of(key: AssignmentKey) -> AssignmentTarget:
    return AssignmentTarget(key.principal_type.value, key.principal_id, key.account_id, key.permission_set_arn)
