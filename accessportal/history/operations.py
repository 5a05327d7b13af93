"""The history follows the audit log. Days tell which entities have events; what they tell is read from each entity's own chain.

Each chain is read on from a mark, and what its next events change is written with the mark, all or nothing. So a run may die anywhere, and
two may go at once: the rows are those that the events make.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from itertools import islice
from typing import TypeVar

from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent
from accessportal.history import policy, store
from accessportal.history.policy.readers import fold, tells
from accessportal.history.policy.requests import RequestFacts, facts_of
from accessportal.history.states import FollowReport, Mark, Progress, RestoredSince
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock, whole_second
from accessportal.kernel.errors import Conflict, NoAnswer
from accessportal.kernel.runs import Failure, Run, each
from accessportal.store.transactions import until_written

T = TypeVar("T")
_AT_ONCE = 500
_PAGE = 100
_MOST_UNFOLLOWED = 100
# In the place of further names: an answer stays short, and says that there are more.
_OTHERS = "others"
_CONTENDED = NoAnswer("Others are reading the same events right now. Try again.", code="history_contended")


def follow(*, until: datetime | None = None, workers: int = 8, clock: Clock) -> FollowReport:
    """Read what has reached the log since the last run; first, and where a former version made the history, all of it in parts. Nothing is
    begun after ``until``."""
    run = _Following(clock=clock, until=until, workers=workers)
    progress = store.get_progress()
    if progress is None or progress.is_outdated:
        progress = _begun_after(progress, clock=clock)
    try:
        while progress.parts_done < policy.PARTS and not run.is_over:
            progress = run.read_part(progress)
        if progress.parts_done == policy.PARTS:
            run.try_again(progress)
            for name in policy.LATE:
                if not run.stopped:
                    run.read_days(progress, name)
    except Conflict as error:
        run.stopped = error.message
    now = store.get_progress() or progress
    left = policy.PARTS - now.parts_done
    known_until = None if left else policy.known_until(now)
    return FollowReport(
        events=run.events, entities=run.entities, parts_left=left, known_until=known_until, failures=run.failed, stopped=run.stopped
    )


def rebuild(*, until: datetime | None = None, workers: int = 8, actor: Actor, clock: Clock) -> FollowReport:
    """Make the history from nothing, or go on where that was left. Nothing is answered meanwhile, and what was there before is deleted."""
    policy.may_rebuild(actor).require()
    progress = store.get_progress()
    if progress is None or progress.parts_done == policy.PARTS:
        _begun_after(progress, clock=clock)
    return follow(until=until, workers=workers, clock=clock)


def _begun_after(former: Progress | None, *, clock: Clock) -> Progress:
    """The next generation of the history is begun, by this run or another."""
    generation = former.generation + 1 if former else 1

    def attempt() -> Progress:
        before = store.get_progress()
        if before is not None and before.generation >= generation:
            return before
        begun_at = whole_second(clock.now())
        read_until = {name: begun_at - late for name, late in policy.LATE.items()}
        return store.keep_progress(before, Progress(generation=generation, begun_at=begun_at, read_until=read_until))

    return until_written(attempt, contended=_CONTENDED)


def _moved(progress: Progress, move: Callable[[Progress], Progress]) -> Progress:
    """``progress`` as it is after ``move``, whoever else moves it. :raises Conflict: when the history is being made anew since."""

    def attempt() -> Progress:
        before = store.get_progress()
        if before is None or before.generation != progress.generation:
            raise Conflict("The history is being made anew.", code="history_made_anew")
        after = move(before)
        return before if after == before else store.keep_progress(before, after)

    return until_written(attempt, contended=_CONTENDED)


@dataclass(kw_only=True)
class _Following(Run):
    clock: Clock
    until: datetime | None
    workers: int
    events: int = 0
    entities: int = 0
    stopped: str = ""
    unfollowed: set[str] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        return bool(self.stopped) or (self.until is not None and self.clock.now() >= self.until)

    def read_part(self, progress: Progress) -> Progress:
        """One part of the log as it is now."""
        part = progress.parts_done
        chains = (entity for entity, events in audit.every_chain(segment=part, segments=policy.PARTS) if any(map(tells, events)))
        for some in _together(chains):
            self._read(progress, some)
            if self.is_over:
                return progress
        store.clear(progress.generation, segment=part, segments=policy.PARTS)
        return self._move(progress, lambda before: replace(before, parts_done=max(before.parts_done, part + 1)))

    def try_again(self, progress: Progress) -> None:
        """Those that could not be followed before."""
        self._read(progress, progress.unfollowed)
        mended = set(progress.unfollowed) - self.unfollowed
        if mended and not self.stopped:
            _moved(progress, lambda before: replace(before, unfollowed=tuple(one for one in before.unfollowed if one not in mended)))

    def read_days(self, progress: Progress, name: str) -> None:
        """What happened since this reading was here last, up to as long ago as it looks for late events."""
        begin, end = progress.read_until[name] - policy.MARGIN, whole_second(self.clock.now()) - policy.LATE[name]
        if begin >= end:
            return
        for some in _together(audit.events_between(begin, end)):
            self.events += len(some)
            self._read(progress, dict.fromkeys(event.entity for event in some if tells(event)))
            if self.is_over:
                return
            self._come_to(progress, name, whole_second(some[-1].at))
        self._come_to(progress, name, end)

    def _come_to(self, progress: Progress, name: str, at: datetime) -> None:
        self._move(progress, lambda before: replace(before, read_until={**before.read_until, name: max(at, before.read_until[name])}))

    def _move(self, progress: Progress, move: Callable[[Progress], Progress]) -> Progress:
        """Go on, past whatever could not be followed, which every answer names until it is."""

        def moved(before: Progress) -> Progress:
            return replace(move(before), unfollowed=tuple(sorted({*before.unfollowed, *self.unfollowed})))

        return _moved(progress, moved)

    def _read(self, progress: Progress, entities: Collection[str]) -> None:
        """An entity that has no answer stops the run, or the answers would leave it out; it goes on there next time. So do many that can't
        be followed: then something else is wrong than with these."""

        def one(entity: str) -> None:
            try:
                self._follow(progress, entity)
            except NoAnswer as error:
                self.stopped = f"{entity}: {error.message}"

        each(entities, lambda entity: self.unit(entity, partial(one, entity)), workers=self.workers, name="history")
        self.entities += len(entities)
        if len({*progress.unfollowed, *self.unfollowed}) > _MOST_UNFOLLOWED:
            self.stopped = self.stopped or f"the events of more than {_MOST_UNFOLLOWED} entities could not be followed"

    def fail(self, item: str, error: Exception) -> None:
        super().fail(item, error)
        self.unfollowed.add(item)

    def _follow(self, progress: Progress, entity: str) -> None:
        """All events of an entity that its mark has not come to."""
        generation = progress.generation

        def attempt() -> None:
            mark = store.get_mark(generation, entity)
            while True:
                events = [] if mark.to_write else self._next_events(mark)
                if not (mark.to_write or events):
                    return
                after = fold(mark, events, _looking(), past=partial(self._pass_over, progress)) if events else mark
                mark = store.keep_mark(generation, mark, after)

        until_written(attempt, contended=_CONTENDED)

    def _next_events(self, mark: Mark) -> Sequence[AuditEvent]:
        """:raises Conflict: when the chain is not the one that the mark has come to: the tables were restored."""
        events = audit.history(mark.entity, limit=_PAGE, newest_first=False, since=max(mark.sequence, 1)).items
        if not mark.sequence:
            return events
        if not events or (events[0].sequence, events[0].hash) != (mark.sequence, mark.head):
            raise RestoredSince(mark.entity)
        return events[1:]

    def _pass_over(self, progress: Progress, event: AuditEvent, why: str) -> None:
        """Every answer names it, already when its mark goes past."""

        def noted(before: Progress) -> Progress:
            is_named = event.entity in before.passed_over or len(before.passed_over) < _MOST_UNFOLLOWED
            return replace(before, passed_over=tuple(sorted({*before.passed_over, event.entity if is_named else _OTHERS})))

        _moved(progress, noted)
        self.failures.append(Failure(f"{event.entity}, event {event.sequence}", f"passed over, because it {why}"))


def _together(items: Iterator[T]) -> Iterator[list[T]]:
    return iter(lambda: list(islice(items, _AT_ONCE)), [])


def _looking() -> Callable[[str, datetime], RequestFacts]:
    chain_of = cache(lambda request_id: audit.chain_of(f"request#{request_id}"))
    return lambda request_id, at: facts_of(chain_of(request_id), at=at)
