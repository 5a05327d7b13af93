"""Cleaning: every sandbox that was given back is deleted at the provider, looked at again, and only then free for others."""

from __future__ import annotations

import dataclasses
import threading
import time
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice

from accessportal.kernel.actors import Actor, system
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import NoAnswer
from accessportal.kernel.moments import furthest, is_due, is_recent
from accessportal.kernel.pages import as_far, every
from accessportal.kernel.runs import Failure, Run, each
from accessportal.sandboxes import effects, policy
from accessportal.sandboxes.config import current
from accessportal.sandboxes.effects import Fate, Sending
from accessportal.sandboxes.operations.handing import make_free
from accessportal.sandboxes.operations.shared import told, unheld, unreadable_failure
from accessportal.sandboxes.operations.tending import quarantine_loaded
from accessportal.sandboxes.states import CleanReport, Due, Sandbox, Status, Unreadable
from accessportal.sandboxes.store import pages, rows
from accessportal.upstream.errors import BreakerOpen, Throttled, UpstreamError
from accessportal.upstream.provider import Provider
from accessportal.waiting.operations import note_cleanings
from accessportal.waiting.states import SANDBOXES

CLEAN = system("clean_sandboxes")
_PAGE = 100
# What is not begun by then is left to the next run, so that the job is not killed in the middle of much.
_LAST_STARTS_SECONDS = 60.0
# After so many failures without a success the rest is not tried: as often as the provider's breaker allows calls to fail.
_MOST_SUSPECTS = 5
# For so long one that went to quarantine speaks for the provider's trouble when the next one fails.
_REMEMBERED = timedelta(days=1)


def clean(
    *,
    provider: Provider,
    clock: Clock,
    limit: int = 500,
    pace_seconds: float | None = None,
    workers: int = 4,
    actor: Actor = CLEAN,
) -> CleanReport:
    """Delete at the provider what is due, and look again: ready, it is free; gone, it leaves the pool. At most ``limit``, earliest due
    first, deletions ``pace_seconds`` apart for all workers. Whose a failure is: docs/decisions/0020-what-cleaning-proves.md."""
    run = _Run(provider, clock, current().clean_gap_seconds if pace_seconds is None else pace_seconds, actor)
    now = clock.now()
    beyond = furthest(now, longest=policy.LONGEST_GAP)
    due = every(lambda cursor: pages.due(Due.CLEAN, until=now, cursor=cursor, limit=_PAGE))
    left_ahead = every(lambda cursor: pages.due(Due.CLEAN, beyond=beyond, cursor=cursor, limit=_PAGE))
    missed = partial(run.fail, "the list of what is to be cleaned")
    some = islice(chain(as_far(due, told=missed), as_far(left_ahead, told=missed)), limit)
    each(some, run.look_at, workers=workers, name="clean")
    try:
        run.settle()
        note_cleanings(line=SANDBOXES, seconds=run.seconds)
    except NoAnswer as error:
        missed(error)
    return run.report()


@dataclass
class _Run(Run):
    """One run under way. ``seconds``: how long each that is free now took since it was given back. ``own``: failures after which another
    sandbox was cleaned. ``suspects``: those since then, which may be the provider's. ``gone``: those that the provider does not know, if
    its list says so too."""

    # Another cleaner, an operator or another program has it now.
    passes = (rows.Overtaken,)
    provider: Provider
    clock: Clock
    gap_seconds: float
    actor: Actor
    holder: str = field(default_factory=lambda: str(uuid.uuid4()))
    cleaned: list[str] = field(default_factory=list)
    seconds: list[int] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    quarantined: list[str] = field(default_factory=list)
    stopped: str = ""
    own: dict[str, UpstreamError] = field(default_factory=dict)
    suspects: dict[str, UpstreamError] = field(default_factory=dict)
    gone: list[Sandbox] = field(default_factory=list)
    _has_cleaned: bool = False
    _began: float = field(default_factory=time.monotonic)
    _pacing: threading.Lock = field(default_factory=threading.Lock)
    _judging: threading.Lock = field(default_factory=threading.Lock)

    def report(self) -> CleanReport:
        return CleanReport(
            cleaned=tuple(self.cleaned),
            removed=tuple(self.removed),
            waiting=tuple(self.waiting),
            quarantined=tuple(self.quarantined),
            failures=self.failed,
            stopped=self.stopped,
        )

    def look_at(self, seen: Sandbox | Unreadable) -> None:
        if isinstance(seen, Unreadable):
            self.failures.append(unreadable_failure(seen))
            return
        if self.stopped or len(self.suspects) >= _MOST_SUSPECTS or time.monotonic() - self._began > _LAST_STARTS_SECONDS:
            return
        self.unit(seen.sandbox_id, partial(self._clean, seen.sandbox_id))

    def settle(self) -> None:
        """After all were tried: whose the failures are is known only by what became of the others."""
        if self.gone:
            self._settle_gone()
        suspects = self.suspects
        if suspects and not self.stopped:
            self.stopped = effects.trouble(self.provider) or self._common_failure()
        if not self.stopped:
            self.own |= suspects
            suspects = {}
        for sandbox_id, error in self.own.items():
            self.unit(sandbox_id, partial(self._count, sandbox_id, error))
        for sandbox_id, error in suspects.items():
            self.unit(sandbox_id, partial(self._put_off, sandbox_id, error))

    def _settle_gone(self) -> None:
        """404 is also what a wrong address answers: nobody leaves the pool without, or against, the provider's list."""
        listed = None
        try:
            listed = effects.listed(self.provider)
        except UpstreamError as error:
            self.stopped = f"None leaves the pool while the provider's list can't be read: {error}"
        for sandbox in self.gone:
            is_gone = listed is not None and sandbox.external_id not in listed
            settle = self._remove if is_gone else self._look_again
            self.unit(sandbox.sandbox_id, partial(settle, sandbox))

    def _clean(self, sandbox_id: str) -> None:
        held = self._acquire(sandbox_id)
        if held is None:
            return
        try:
            sent = self._delete(held)
            if sent is None:
                return
            found = effects.look(self.provider, sent)
        except (BreakerOpen, Throttled) as error:
            self.stopped = f"The provider does not answer, or asks for fewer calls: {error}"
            self._put_off(sandbox_id, error)
            return
        except UpstreamError as error:
            with self._judging:
                self.suspects[sandbox_id] = error
            return
        if sent.delete_sent_at != held.delete_sent_at:
            self._cleaning_works()
        if found.fate is Fate.GONE:
            self.gone.append(sent)
        elif found.fate is Fate.READY:
            self._make_free(sent, found.generation)
        else:
            self._look_again(sent)

    def _acquire(self, sandbox_id: str) -> Sandbox | None:
        sandbox, now = rows.get(sandbox_id), self.clock.now()
        if sandbox is None or sandbox.status is not Status.PENDING_DELETION or sandbox.due is not Due.CLEAN:
            return None
        if sandbox.due_at is None or not is_due(sandbox.due_at, now=now, longest=policy.LONGEST_GAP):
            return None
        return rows.lease(sandbox, holder=self.holder, until=now + timedelta(seconds=policy.HOLD_SECONDS), now=now)

    def _delete(self, held: Sandbox) -> Sandbox | None:
        """The sandbox with its deletion sent and noted; ``None`` when the provider does not know it, or the hold is nearly over."""
        if not policy.needs_deletion(held, self.clock.now()):
            return held
        found = self.provider.get_sandbox(held.external_id)
        generation = "" if found is None else found.generation
        # Before it is sent: whoever comes after a crash must not take the former life for the new one.
        intent = dataclasses.replace(held, delete_generation=generation)
        rows.note(held, intent)
        self._wait_for_turn()
        sending = effects.send_deletion(self.provider, intent, generation=generation, clock=self.clock)
        if sending is Sending.UNKNOWN_THERE:
            self.gone.append(intent)
        if sending is not Sending.DONE:
            return None
        sent = dataclasses.replace(intent, delete_sent_at=self.clock.now())
        rows.note(intent, sent)
        return sent

    def _wait_for_turn(self) -> None:
        if self.gap_seconds:
            with self._pacing:
                self.clock.sleep(self.gap_seconds)

    def _make_free(self, sandbox: Sandbox, generation: str) -> None:
        after = dataclasses.replace(unheld(sandbox, Status.AVAILABLE), generation=generation)
        now = self.clock.now()
        draft = told("sandbox.cleaned", after, status=after.status.value)
        make_free(after, partial(rows.change, sandbox, after, draft=draft, actor=self.actor, now=now), actor=self.actor, now=now)
        self.cleaned.append(sandbox.sandbox_id)
        if sandbox.deletion_requested_at is not None:
            self.seconds.append(max(0, int((now - sandbox.deletion_requested_at).total_seconds())))

    def _look_again(self, sandbox: Sandbox) -> None:
        again = self.clock.now() + timedelta(seconds=policy.LOOK_AGAIN_SECONDS)
        rows.note(sandbox, dataclasses.replace(sandbox, due_at=again, held_by="", held_until=None, clean_error=""))
        self.waiting.append(sandbox.sandbox_id)

    def _remove(self, sandbox: Sandbox) -> None:
        draft = told("sandbox.removed", sandbox, external_id=sandbox.external_id)
        rows.remove(sandbox, draft=draft, actor=self.actor, now=self.clock.now())
        self.removed.append(sandbox.sandbox_id)

    def _cleaning_works(self) -> None:
        """One was deleted and looked at in this run: what failed before it failed by itself."""
        with self._judging:
            self._has_cleaned = True
            self.own |= self.suspects
            self.suspects.clear()

    def _common_failure(self) -> str:
        """Why the suspects' failures are the provider's, although it answers; empty when the only one is bad by itself."""
        *others, last = self.suspects
        if not others and (self._has_cleaned or not _is_another_failing(last, now=self.clock.now())):
            return ""
        return f"Cleaning fails for one sandbox after another, so the cause is the provider: {self.suspects[last]}"

    def _put_off(self, sandbox_id: str, error: UpstreamError) -> None:
        """The failure is not its own. Due again behind all that were due before it, so that the next run begins with others."""
        sandbox = self._still_held(sandbox_id)
        if sandbox is not None:
            after = dataclasses.replace(sandbox, due_at=self.clock.now(), held_by="", held_until=None, clean_error=str(error))
            rows.note(sandbox, after)

    def _count(self, sandbox_id: str, error: UpstreamError) -> None:
        sandbox = self._still_held(sandbox_id)
        if sandbox is None:
            return
        failures = sandbox.deletion_retry_count + 1
        self.failures.append(Failure(sandbox_id, str(error)))
        if failures >= policy.MOST_FAILURES:
            reason = f"Cleaning failed {failures} times in a row, at last with: {error}."
            quarantine_loaded(sandbox, reason=reason, actor=self.actor, now=self.clock.now())
            self.quarantined.append(sandbox_id)
            return
        now = self.clock.now()
        after = dataclasses.replace(
            sandbox,
            deletion_retry_count=failures,
            clean_error=str(error),
            due_at=now + timedelta(seconds=policy.retry_gap_seconds(failures)),
            held_by="",
            held_until=None,
        )
        draft = told("sandbox.clean_failed", after, attempts=failures, error_code=error.code, error=error.message)
        rows.change(sandbox, after, draft=draft, actor=self.actor, now=now)

    def _still_held(self, sandbox_id: str) -> Sandbox | None:
        sandbox = rows.get(sandbox_id)
        return None if sandbox is None or sandbox.held_by != self.holder else sandbox


def _is_another_failing(sandbox_id: str, *, now: datetime) -> bool:
    """Whether another one waits because its cleaning failed, or went to quarantine for that of late; of each a page is read."""
    waiting = pages.due(Due.CLEAN, until=None, cursor=None, limit=_PAGE).items
    quarantined = pages.by_status(Status.QUARANTINED, cursor=None, limit=_PAGE).items
    return any(
        isinstance(one, Sandbox)
        and one.sandbox_id != sandbox_id
        and bool(one.clean_error)
        and (one.status is not Status.QUARANTINED or is_recent(one.updated_at, now=now, within=_REMEMBERED))
        for one in (*waiting, *quarantined)
    )
