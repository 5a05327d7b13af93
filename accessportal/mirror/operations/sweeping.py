"""Bringing Cognito up to date with what is pending."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from accessportal.directory import operations as directory
from accessportal.directory.states import person_entity
from accessportal.directory.store import get_person
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import NoAnswer
from accessportal.kernel.moments import is_due
from accessportal.kernel.pages import as_far
from accessportal.mirror import policy, store
from accessportal.mirror.effects.converging import Attempt, converge
from accessportal.mirror.states import MirrorFailure, MirrorReport, MirrorWork

# The sweep comes every minute.
SWEEP_SECONDS = 50.0
WORKERS = 4
# A throttled call or a lost answer is nobody's business; what fails so often is.
_FAILURES_TO_TELL = 3


def sweep_mirror(*, clock: Clock, limit_seconds: float | None = SWEEP_SECONDS, workers: int = WORKERS) -> MirrorReport:
    """Cognito has followed every change that is due, or the change has a later due time and the reason.

    Nothing new is begun after ``limit_seconds`` (``None``: no limit). One item that fails stops nobody; ``failures`` are those
    that broke or that failed repeatedly. May run at any time, twice, and beside itself.
    """
    run = Run(clock, until=None if limit_seconds is None else clock.now() + timedelta(seconds=limit_seconds))
    seen: set[tuple[str, str, int]] = set()
    while not run.is_over:
        # Once each as it stands: what failed comes again when it is due, what was asked for meanwhile at once.
        due = [work for work in run.readable(as_far(store.every_work(), told=run.miss)) if _is_due(work, clock) and _mark(work) not in seen]
        if not due:
            break
        seen.update(map(_mark, due))
        run.bring_up([work.entity for work in due], workers=workers)
    left = sum(1 for _ in as_far(store.every_work(), told=run.miss))
    told = {failure.entity: failure for failure in run.failures if failure.entity in run.broken or _fails_often(failure)}
    return MirrorReport(done=len(run.done), waiting=left, failures=tuple(told.values()))


@dataclass
class Run:
    """People and groups brought up to date, each by itself. Nothing new is begun after ``until``."""

    clock: Clock
    until: datetime | None
    done: list[str] = field(default_factory=list)
    waiting: list[MirrorFailure] = field(default_factory=list)
    failures: list[MirrorFailure] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        return self.until is not None and self.clock.now() > self.until

    def bring_up(self, entities: Collection[str], *, workers: int) -> None:
        """Groups before people, who would only wait for the groups that they go into."""
        people = [entity for entity in entities if is_person(entity)]
        for part in ([entity for entity in entities if not is_person(entity)], people):
            if workers == 1:
                for entity in part:
                    self._unit(entity)
            else:
                with ThreadPoolExecutor(workers, thread_name_prefix="mirror") as executor:
                    for future in [executor.submit(self._unit, entity) for entity in part]:
                        future.result()

    def readable(self, found: Iterable[MirrorWork | MirrorFailure]) -> Iterator[MirrorWork]:
        """The work among what was found; each of the others is a failure, told once."""
        for one in found:
            if isinstance(one, MirrorWork):
                yield one
            elif one.entity not in self.broken:
                self._break(one)

    def _unit(self, entity: str) -> None:
        if self.is_over:
            return
        try:
            attempt = bring_up(entity=entity, clock=self.clock)
        except Exception as error:  # noqa: BLE001 - a poisoned item must not stop the others; it is reported and fails the job
            self._break(MirrorFailure(entity, f"{type(error).__name__}: {error}"))
            return
        if attempt.is_done:
            self.done.append(entity)
        else:
            told = self.failures if attempt.is_error else self.waiting
            told.append(MirrorFailure(entity, attempt.reason))

    def miss(self, error: NoAnswer) -> None:
        self._break(MirrorFailure("the list of what waits", error.message))

    def _break(self, failure: MirrorFailure) -> None:
        self.broken.add(failure.entity)
        self.failures.append(failure)


def bring_up(*, entity: str, clock: Clock) -> Attempt:
    """As :func:`converge`; deleting a person that was begun is finished first.

    :raises Unavailable: when our store did not answer.
    """
    if is_person(entity):
        key = entity.partition("#")[2]
        person = get_person(key)
        if person is not None and person.is_deleting:
            directory.continue_deleting(key=key, now=clock.now())
    return converge(entity=entity, clock=clock)


def is_person(entity: str) -> bool:
    return entity.startswith(person_entity(""))


def _is_due(work: MirrorWork, clock: Clock) -> bool:
    now = clock.now()
    return is_due(work.due_at, now=now, longest=policy.LONGEST_GAP) and is_due(work.lease_until, now=now, longest=policy.LEASE)


def _mark(work: MirrorWork) -> tuple[str, str, int]:
    return work.entity, work.token, work.attempts


def _fails_often(failure: MirrorFailure) -> bool:
    try:
        work = store.find_pending(failure.entity)
    except NoAnswer:
        return True
    return work is not None and work.attempts >= _FAILURES_TO_TELL
