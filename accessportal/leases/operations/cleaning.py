"""Cleaning: what was given back, or is new, is cleaned by the cleaner, and only by its certificate free for others.

What is written before what, and why a call that comes late cleans nobody's account: docs/decisions/0076-cleaning-accounts.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

from accessportal.audit.states import Draft
from accessportal.aws.errors import OutsideError, Throttled, Transient
from accessportal.aws.step_functions import Execution
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.clock import Clock, to_epoch
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import Conflict, NoAnswer
from accessportal.kernel.moments import is_due
from accessportal.kernel.pages import as_far
from accessportal.kernel.runs import Failure, Run, each
from accessportal.leases import effects, policy, queries
from accessportal.leases.config import current
from accessportal.leases.effects import Cleaner
from accessportal.leases.operations.freeing import make_available
from accessportal.leases.operations.shared import SCOPE, changed_account, until_written
from accessportal.leases.states import Account, AccountState, CleanReport, NoSuchAccount
from accessportal.leases.store import notes, rows
from accessportal.store.restores import held_restore
from accessportal.store.transactions import Overtaken
from accessportal.waiting import operations as waiting
from accessportal.waiting.states import ACCOUNTS

CLEAN = system("clean_accounts")
_LOOK_AGAIN = timedelta(seconds=45)
# What is not begun by then is left to the next run, so that the job is not killed in the middle of much.
_LAST_STARTS_SECONDS = 60.0
# After so many calls without an answer the rest is not tried.
_MOST_UNANSWERED = 5
# A cleaner that is at work for longer is told as a failure; nobody else begins beside it.
_LONGEST_RUN = timedelta(hours=12)
_LONGEST_ERROR = 500
_HELD = "The tables were restored, and nothing is cleaned until an operator has confirmed that."


def is_cleaner_set() -> bool:
    """Whether there is a cleaner; without one nothing is called."""
    return effects.cleaner() is not None


def require_cleaner() -> Cleaner:
    """:raises Conflict: when no cleaner is set."""
    found = effects.cleaner()
    if found is None:
        raise Conflict("No cleaner is set: PORTAL_LEASES_CLEANER_ARN names its state machine.", code="no_cleaner")
    return found


def clean_accounts(*, cleaner: Cleaner | None = None, clock: Clock, workers: int = 4, actor: Actor = CLEAN) -> CleanReport:
    """Begin to clean what is due, look how the cleaner stands, and let what its certificate proves clean be free; each by itself.

    :raises Conflict: when no cleaner is set.
    """
    run = _Run(cleaner=cleaner or require_cleaner(), clock=clock, actor=actor)
    if held_restore() is not None:
        return CleanReport(stopped=_HELD)
    try:
        run.cleaner.check()
    except OutsideError as error:
        return CleanReport(stopped=_unusable(error))
    missed = partial(run.fail, "the list of what is to be cleaned")
    due = queries.to_clean(now=clock.now(), past=run.pass_over)
    each(as_far(due, told=missed), run.tend, workers=workers, name="clean")
    waiting.note_cleanings(line=ACCOUNTS, seconds=run.seconds)
    return run.report()


def clean_account(*, account_id: str, fence: int | None = None, clock: Clock, actor: Actor) -> CleanReport:
    """Clean one account now, without waiting for its turn; with ``fence`` the one at this hand-over. What must not be cleaned is refused,
    and each refusal is an event.

    :raises Conflict: for one that must not be cleaned, with the reason; and when no cleaner is set, or none that can be worked with.
    :raises NoSuchAccount: for one that is not in the pool.
    """
    policy.may_operate(actor).require()
    policy.check_account_id(account_id)
    run = _Run(cleaner=require_cleaner(), clock=clock, actor=actor)
    if held_restore() is not None:
        raise Conflict(_HELD, code="restore_held")
    account = rows.get_account(account_id)
    if account is None:
        why = {"error_code": "account_not_found", "error": "It is in no pool."}
        until_written(partial(_tell_of_none, account_id, "clean_refused", actor, clock.now(), **why))
        raise NoSuchAccount
    try:
        run.cleaner.check()
    except OutsideError as error:
        raise Conflict(_unusable(error), code="cleaner_unusable") from error
    try:
        refusal = run.refusal(account, fence=fence)
    except OutsideError as error:
        raise NoAnswer(f"AWS does not say where the account is, so it is not cleaned: {error}", code="aws_unavailable") from error
    if refusal is not None:
        until_written(partial(_tell_refusal, account_id, refusal, actor, clock.now()))
        raise Conflict(f"{account_id} is not cleaned. {refusal.reason}", code=refusal.code, present=account)
    run.unit(account_id, partial(run.go_on, account))
    waiting.note_cleanings(line=ACCOUNTS, seconds=run.seconds)
    return run.report()


def _unusable(error: OutsideError) -> str:
    return f"The cleaner can't be worked with: {error}"


def _tell_of_none(account_id: str, verb: str, actor: Actor, now: datetime, **data: str) -> None:
    """The event of an account that is in no pool (any more)."""
    last = rows.last_event(f"account#{account_id}")
    facts = {"fence": 0 if last is None else last.data["fence"], **data}
    notes.tell(f"account#{account_id}", Draft(f"account.{verb}", account_id, facts, scope=SCOPE), actor=actor, now=now)


def _tell_refusal(account_id: str, refusal: Decision, actor: Actor, now: datetime) -> None:
    account = rows.get_account(account_id)
    if account is not None:
        changed_account(account, account, "clean_refused", actor=actor, now=now, error_code=refusal.code, error=refusal.reason)


def _prefix(account: Account) -> str:
    return f"{account.account_id}-{account.fence}-"


@dataclass(kw_only=True)
class _Run(Run):
    """One run under way."""

    # Another cleaner, an operator or its last holder has it now.
    passes = (Overtaken,)
    cleaner: Cleaner
    clock: Clock
    actor: Actor
    begun: list[str] = field(default_factory=list)
    cleaned: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    out_of_use: list[str] = field(default_factory=list)
    seconds: list[int] = field(default_factory=list)
    stopped: str = ""
    _unanswered: int = 0
    _began: float = field(default_factory=time.monotonic)

    def report(self) -> CleanReport:
        return CleanReport(
            begun=tuple(self.begun),
            cleaned=tuple(self.cleaned),
            waiting=tuple(self.waiting),
            refused=tuple(self.refused),
            dropped=tuple(self.dropped),
            out_of_use=tuple(self.out_of_use),
            failures=self.failed,
            stopped=self.stopped,
        )

    def tend(self, seen: Account) -> None:
        """Do the next step for an account of the list."""
        if not self.stopped and time.monotonic() - self._began < _LAST_STARTS_SECONDS:
            self.unit(seen.account_id, partial(self._tend, seen.account_id))

    def _tend(self, account_id: str) -> None:
        account = rows.get_account(account_id)
        if account is None or account.due_at is None or not account.state.is_cleaned_next:
            return
        if is_due(account.due_at, now=self.clock.now(), longest=policy.LONGEST_GAP):
            self.go_on(account)

    def go_on(self, account: Account) -> None:
        """Do the next step for an account as it was just read. What the calls meet is never the account's own failure."""
        step: Callable[[Account], None] = self._look if account.run else self._begin
        try:
            step(account)
            self._unanswered = 0
        except OutsideError as error:
            # One that AWS refuses stops the run: it would refuse them all.
            self._unanswered += 1
            if not isinstance(error, Transient) or self._unanswered >= _MOST_UNANSWERED:
                self.stopped = _unusable(error)
            if not isinstance(error, Throttled):
                self.failures.append(Failure(account.account_id, _unusable(error)))
            notes.note(account, replace(account, due_at=self.clock.now() + _LOOK_AGAIN))

    def refusal(self, account: Account, *, fence: int | None = None) -> Decision | None:
        """Why the account must not be cleaned; ``None`` when it may be.

        :raises OutsideError: when AWS does not say where it is: then it is not cleaned.
        """
        settings, now = current(), self.clock.now()
        lease = rows.find_lease(account.lease_id) if account.lease_id else None
        here = policy.may_clean(account, lease=lease, fence=fence, never=settings.never, undo_seconds=settings.undo_seconds, now=now)
        if not here.allowed:
            return here
        there = policy.may_clean_there(account, effects.whereabouts(account.account_id), units=settings.units_of(account.pool))
        return None if there.allowed else there

    def _begin(self, account: Account) -> None:
        name = self._next_name(account)
        refusal = self.refusal(account)
        if refusal is not None:
            self._refuse(account, refusal)
            return
        # Before it is started: whoever comes after a crash starts it by the same name, or finds it.
        wanted = replace(account, run=name, due_at=self.clock.now() + _LOOK_AGAIN)
        begun = changed_account(account, wanted, "cleaning_begun", actor=self.actor, now=self.clock.now(), run=name)
        self.begun.append(account.account_id)
        self.cleaner.start(name, _given(begun))

    def _next_name(self, account: Account) -> str:
        """The first name of this hand-over whose run has not ended. None is passed over, so that a call that comes late starts nothing
        new: its name was used."""
        names = (f"{_prefix(account)}{number}" for number in count(1))
        return next(name for name in names if (found := self.cleaner.look(name)) is None or found.is_under_way)

    def _look(self, account: Account) -> None:
        found = self.cleaner.look(account.run)
        if found is not None and found.is_under_way:
            self._wait(account, found)
        elif not account.run.startswith(_prefix(account)):
            # After a restore of the tables, that counts its hand-overs on from a higher one.
            self._drop(account, account.run, "the hand-over has changed")
        elif found is None:
            self._start_again(account)
        else:
            until_written(partial(self._conclude, account.account_id, account.run, found))

    def _start_again(self, account: Account) -> None:
        """The call never arrived: whoever was to make it is gone, or late."""
        refusal = self.refusal(account)
        if refusal is not None:
            self._refuse(account, refusal)
            return
        notes.note(account, replace(account, due_at=self.clock.now() + _LOOK_AGAIN))
        self.cleaner.start(account.run, _given(account))

    def _wait(self, account: Account, found: Execution) -> None:
        notes.note(account, replace(account, due_at=self.clock.now() + _LOOK_AGAIN))
        self.waiting.append(account.account_id)
        if self.clock.now() - found.started_at > _LONGEST_RUN:
            words = f"The cleaner is at work since {found.started_at:%Y-%m-%d %H:%M} UTC ({found.name}). Look at it; stop it there."
            self.failures.append(Failure(account.account_id, words))

    def _conclude(self, account_id: str, name: str, found: Execution) -> None:
        """The run has ended: what it says counts only for the account as it was handed to it."""
        account = rows.get_account(account_id)
        is_same = account is not None and account.state.is_cleaned_next and name.startswith(_prefix(account))
        if account is None or not is_same or account.run != name:
            self._drop_for(account_id, account, name)
            return
        certificate, trouble = self._certificate(account, found)
        if trouble:
            self._fail(account, "clean_failed", trouble, certificate)
            return
        make_available(account, certificate=certificate, actor=self.actor, now=self.clock.now())
        self.cleaned.append(account_id)
        self.seconds.append(int((self.clock.now() - account.since).total_seconds()))

    def _certificate(self, account: Account, found: Execution) -> tuple[dict[str, Any], str]:
        if not found.has_succeeded:
            return {}, f"The cleaner ended with {found.status}. {found.cause}"
        if found.input != _given(account):
            return {}, f"The run {found.name} was started by somebody else, with another input"
        try:
            certificate, trouble = policy.read_certificate(found.output, account_id=account.account_id)
        except ValueError as error:
            return {}, f"What the cleaner answered can't be used: {error}"
        ended_at = found.stopped_at or found.started_at
        return {"run": found.name, "started_at": to_epoch(found.started_at), "ended_at": to_epoch(ended_at), **certificate}, trouble

    def _drop_for(self, account_id: str, account: Account | None, name: str) -> None:
        if account is not None:
            self._drop(account, name, "the account has moved on")
            return
        why = "the account has left the pool"
        _tell_of_none(account_id, "result_dropped", self.actor, self.clock.now(), run=name, reason=why)
        self.dropped.append(account_id)

    def _drop(self, account: Account, name: str, reason: str) -> None:
        after = replace(account, run="") if account.run == name else account
        changed_account(account, after, "result_dropped", actor=self.actor, now=self.clock.now(), run=name, reason=reason)
        self.dropped.append(account.account_id)

    def _refuse(self, account: Account, refusal: Decision) -> None:
        self._fail(account, "clean_refused", refusal.reason, {}, code=refusal.code)
        self.refused.append(account.account_id)

    def _fail(self, account: Account, verb: str, error: str, certificate: Mapping[str, Any], code: str = "") -> None:
        """Count a failure of the account itself, and try again ever later; once too often, and nobody gets it before somebody looked."""
        now, failures, error = self.clock.now(), account.attempts + 1, error[:_LONGEST_ERROR]
        kept = replace(account, certificate=certificate or account.certificate)
        after: Account | None = replace(kept, attempts=failures, error=error, due_at=now + policy.retry_gap(failures), run="")
        is_too_often = failures >= current().most_attempts
        if account.is_retiring:
            after = None
        elif is_too_often:
            reason = f"Cleaning failed {failures} times in a row, at last: {error}"
            after = replace(kept.at_rest(AccountState.FAILED, now=now), reason=reason)
        told: dict[str, Any] = {"attempts": failures, "error": error, "error_code": code} if after is not None else {"reason": error}
        told["certificate"] = dict(certificate) or None
        changed_account(account, after, "retired" if after is None else verb, actor=self.actor, now=now, **told)
        self.failures.append(Failure(account.account_id, error))
        if is_too_often and after is not None:
            self.out_of_use.append(account.account_id)


def _given(account: Account) -> str:
    """The input of a run: the same at each call, or the same name would be refused."""
    given = {"account_id": account.account_id, "fence": account.fence, "pool": account.pool, "run": account.run}
    return json.dumps(given, sort_keys=True)
