"""Cleaning: every sandbox that was given back is deleted at the provider, looked at again, and only then free for others."""

from __future__ import annotations

import dataclasses
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice

from accessportal.kernel.actors import Actor, system
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import PortalError
from accessportal.kernel.pages import every
from accessportal.sandboxes import effects, policy, store
from accessportal.sandboxes.config import current
from accessportal.sandboxes.effects import Fate
from accessportal.sandboxes.operations.shared import told, unheld, unreadable_failure
from accessportal.sandboxes.operations.tending import quarantine_loaded
from accessportal.sandboxes.states import CleanReport, Due, Failure, Sandbox, Status, Unreadable
from accessportal.upstream.errors import BreakerOpen, UpstreamError
from accessportal.upstream.provider import Provider

CLEAN = system("clean_sandboxes")
_PAGE = 100
# What is not begun by then is left to the next run, so that the job is not killed in the middle of much.
_LAST_STARTS_SECONDS = 60.0


def clean(
    *,
    provider: Provider,
    clock: Clock,
    limit: int = 500,
    pace_seconds: float | None = None,
    workers: int = 4,
    actor: Actor = CLEAN,
) -> CleanReport:
    """What is due for cleaning is deleted at the provider and looked at again: ready, it is free; gone, it leaves the pool.

    At most ``limit`` sandboxes, deletions ``pace_seconds`` apart (of all workers together; the setting, if not given), earliest
    due first. A failure puts a sandbox off with a growing gap and delays nobody else; after eight in a row it goes to
    quarantine. Where the provider as a whole is in trouble, no sandbox has failed: the run stops, and says why. Any number of
    runs may go on at once: each sandbox is one cleaner's at a time.

    :raises Unavailable: when what is due can't be read.
    """
    run = _Run(provider, clock, current().clean_gap_seconds if pace_seconds is None else pace_seconds, actor)
    now = clock.now()
    due = islice(every(lambda cursor: store.page_due(Due.CLEAN, until=now, cursor=cursor, limit=_PAGE)), limit)
    if workers == 1:
        for seen in due:
            run.unit(seen)
    else:
        with ThreadPoolExecutor(workers) as pool:
            for future in [pool.submit(run.unit, seen) for seen in due]:
                future.result()
    return run.report()


@dataclass
class _Run:
    """One run under way. Each sandbox by itself: its failure is noted and stops nobody else."""

    provider: Provider
    clock: Clock
    gap_seconds: float
    actor: Actor
    holder: str = field(default_factory=lambda: str(uuid.uuid4()))
    cleaned: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    quarantined: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    stopped: str = ""
    _began: float = field(default_factory=time.monotonic)
    _pacing: threading.Lock = field(default_factory=threading.Lock)
    _trouble: str | None = None

    def report(self) -> CleanReport:
        return CleanReport(
            cleaned=tuple(self.cleaned),
            removed=tuple(self.removed),
            waiting=tuple(self.waiting),
            quarantined=tuple(self.quarantined),
            failures=tuple(self.failures),
            stopped=self.stopped,
        )

    def unit(self, seen: Sandbox | Unreadable) -> None:
        if isinstance(seen, Unreadable):
            self.failures.append(unreadable_failure(seen))
            return
        if self.stopped or time.monotonic() - self._began > _LAST_STARTS_SECONDS:
            return
        try:
            self._clean(seen.sandbox_id)
        except store.Overtaken:
            # Another cleaner, an operator or another program has it now.
            return
        except PortalError as error:
            self.failures.append(Failure(seen.sandbox_id, error.message))

    def _clean(self, sandbox_id: str) -> None:
        held = self._acquire(sandbox_id)
        if held is None:
            return
        try:
            sent = self._delete(held)
            if sent is None:
                return
            found = effects.look(self.provider, sent)
        except UpstreamError as error:
            self._failed(sandbox_id, error)
            return
        if found.fate is Fate.GONE:
            self._remove(sent)
        elif found.fate is Fate.READY:
            self._make_free(sent)
        else:
            again = self.clock.now() + timedelta(seconds=policy.LOOK_AGAIN_SECONDS)
            store.note(sent, dataclasses.replace(sent, due_at=again, held_by="", held_until=None))
            self.waiting.append(sandbox_id)

    def _acquire(self, sandbox_id: str) -> Sandbox | None:
        sandbox, now = store.get(sandbox_id), self.clock.now()
        if sandbox is None or sandbox.status is not Status.PENDING_DELETION or sandbox.due is not Due.CLEAN:
            return None
        if sandbox.due_at is None or sandbox.due_at > now:
            return None
        return store.lease(sandbox, holder=self.holder, until=now + timedelta(seconds=policy.HOLD_SECONDS), now=now)

    def _delete(self, held: Sandbox) -> Sandbox | None:
        """The sandbox with its deletion sent and noted; ``None`` when the hold is nearly over."""
        if not policy.needs_deletion(held, self.clock.now()):
            return held
        found = self.provider.get_sandbox(held.external_id)
        generation = "" if found is None else found.generation
        # Before it is sent: whoever comes after a crash must not take the former life for the new one.
        intent = dataclasses.replace(held, delete_generation=generation)
        store.note(held, intent)
        self._wait_for_turn()
        if not effects.send_deletion(self.provider, intent, generation=generation, clock=self.clock):
            return None
        sent = dataclasses.replace(intent, delete_sent_at=self.clock.now())
        store.note(intent, sent)
        return sent

    def _wait_for_turn(self) -> None:
        if self.gap_seconds:
            with self._pacing:
                self.clock.sleep(self.gap_seconds)

    def _make_free(self, sandbox: Sandbox) -> None:
        after = unheld(sandbox, Status.AVAILABLE)
        now = self.clock.now()
        store.change(sandbox, after, draft=told("sandbox.cleaned", after, status=after.status.value), actor=self.actor, now=now)
        self.cleaned.append(sandbox.sandbox_id)

    def _remove(self, sandbox: Sandbox) -> None:
        draft = told("sandbox.removed", sandbox, external_id=sandbox.external_id)
        store.remove(sandbox, draft=draft, actor=self.actor, now=self.clock.now())
        self.removed.append(sandbox.sandbox_id)

    def _failed(self, sandbox_id: str, error: UpstreamError) -> None:
        """Count it against the sandbox, unless it is the provider that is down."""
        sandbox = store.get(sandbox_id)
        if sandbox is None or sandbox.held_by != self.holder:
            return
        trouble = f"The provider does not answer: {error}" if isinstance(error, BreakerOpen) else self._trouble_of_provider()
        if trouble:
            self.stopped = trouble
            store.note(sandbox, dataclasses.replace(sandbox, due_at=self.clock.now(), held_by="", held_until=None, clean_error=str(error)))
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
        store.change(sandbox, after, draft=draft, actor=self.actor, now=now)

    def _trouble_of_provider(self) -> str:
        """Asked once in a run: whether the failure of one sandbox is its own."""
        if self._trouble is None:
            self._trouble = effects.trouble(self.provider)
        return self._trouble
