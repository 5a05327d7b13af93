"""Bringing Cognito up to date with what is pending."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from accessportal.directory import operations as directory
from accessportal.directory.states import person_entity
from accessportal.directory.store.reading import get_person
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import NoAnswer
from accessportal.kernel.moments import is_due
from accessportal.kernel.pages import as_far
from accessportal.kernel.runs import Failure, Run, each
from accessportal.mirror import policy, store
from accessportal.mirror.effects.converging import Attempt, converge
from accessportal.mirror.states import MirrorReport, MirrorWork

# The sweep comes every minute.
SWEEP_SECONDS = 50.0
WORKERS = 4
# A throttled call or a lost answer is nobody's business; what fails so often is.
_FAILURES_TO_TELL = 3


def sweep_mirror(*, clock: Clock, limit_seconds: float | None = SWEEP_SECONDS, workers: int = WORKERS) -> MirrorReport:
    """Have Cognito follow every change that is due; what fails gets a later due time and the reason. Nothing new is begun after
    ``limit_seconds``. One item that fails stops nobody; those are told that broke or failed repeatedly. It may run beside itself."""
    run = Following(clock, until=None if limit_seconds is None else clock.now() + timedelta(seconds=limit_seconds))
    missed = partial(run.fail, "the list of what waits")
    seen: set[tuple[str, str, int]] = set()
    while not run.is_over:
        # Once each as it stands: what failed comes again when it is due, what was asked for meanwhile at once.
        due = [work for work in run.readable(as_far(store.every_work(), told=missed)) if _is_due(work, clock) and _mark(work) not in seen]
        if not due:
            break
        seen.update(map(_mark, due))
        run.bring_up([work.entity for work in due], workers=workers)
    left = sum(1 for _ in as_far(store.every_work(), told=missed))
    told = {failure.item: failure for failure in (*run.failures, *filter(_fails_often, run.errors))}
    return MirrorReport(done=len(run.done), waiting=left, failures=tuple(told.values()))


@dataclass
class Following(Run):
    """People and groups brought up to date. Nothing new is begun after ``until``; ``errors`` are what Cognito answered."""

    passes = ()
    clock: Clock
    until: datetime | None
    done: list[str] = field(default_factory=list)
    waiting: list[Failure] = field(default_factory=list)
    errors: list[Failure] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return self.until is not None and self.clock.now() > self.until

    def bring_up(self, entities: Collection[str], *, workers: int) -> None:
        """Groups before people, who would only wait for the groups that they go into."""
        people = [entity for entity in entities if is_person(entity)]
        for part in ([entity for entity in entities if not is_person(entity)], people):
            each(part, self._bring_up_in_time, workers=workers, name="mirror")

    def readable(self, found: Iterable[MirrorWork | Failure]) -> Iterator[MirrorWork]:
        """The work among what was found; each of the others is a failure."""
        for one in found:
            if isinstance(one, MirrorWork):
                yield one
            else:
                self.failures.append(one)

    def _bring_up_in_time(self, entity: str) -> None:
        if not self.is_over:
            self.unit(entity, partial(self._bring_up, entity))

    def _bring_up(self, entity: str) -> None:
        attempt = bring_up(entity=entity, clock=self.clock)
        if attempt.is_done:
            self.done.append(entity)
        else:
            told = self.errors if attempt.is_error else self.waiting
            told.append(Failure(entity, attempt.reason))


def bring_up(*, entity: str, clock: Clock) -> Attempt:
    """Finish deleting the person if that was begun, then :func:`converge`."""
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


def _fails_often(failure: Failure) -> bool:
    try:
        work = store.find_pending(failure.item)
    except NoAnswer:
        return True
    return work is not None and work.attempts >= _FAILURES_TO_TELL
