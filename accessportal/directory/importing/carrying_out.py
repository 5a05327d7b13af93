"""Carrying out an import. What is there already is left alone, so a second run goes on where the first one stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import chain, zip_longest

from accessportal.directory import operations
from accessportal.directory.importing.file import WantedMembership
from accessportal.directory.importing.plan import THREADS, Plan, Step
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict, PortalError, Unavailable

# More than this is no accident of single rows: the store, or the way to it, is down.
_GIVE_UP_AFTER = 25

Progress = Callable[[str, int, int], None]
"""Told what is being made, how many are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A row that could not be carried out, for a reason that was not there when the file was checked."""

    line: int
    code: str
    message: str


@dataclass(slots=True)
class Imported:
    """What was made. ``was_stopped``: not everything was tried, and another run goes on; ``outages`` rows had no answer."""

    groups: int = 0
    people: int = 0
    memberships: int = 0
    failures: list[Failure] = field(default_factory=list)
    outages: int = 0
    was_stopped: bool = False

    def add(self, other: Imported) -> None:
        self.groups += other.groups
        self.people += other.people
        self.memberships += other.memberships
        self.failures += other.failures
        self.outages += other.outages


def carry_out(plan: Plan, *, actor: Actor, clock: Clock, progress: Progress) -> Imported:
    """Make the groups, parents first, then the people side by side; tell what was made and what failed. Ctrl-C and an outage stop it: what
    was begun is finished, nothing else is begun."""
    total = Imported()
    try:
        for one in chain(_groups(plan, actor, clock, progress), _people(plan, actor, clock, progress)):
            total.add(one)
            if total.outages > _GIVE_UP_AFTER:
                total.was_stopped = True
                break
    except KeyboardInterrupt:
        total.was_stopped = True
    total.failures.sort(key=lambda failure: failure.line)
    return total


def _groups(plan: Plan, actor: Actor, clock: Clock, progress: Progress) -> Iterator[Imported]:
    """All new groups change one counter, and their parents: side by side they would only wait for each other."""
    for done, (group_id, line) in enumerate(plan.groups.items(), start=1):
        made = Imported()
        with operations.following_later():
            try:
                made.groups += _create_group(group_id, actor, clock)
            except PortalError as error:
                _note(made, line, error)
        progress("groups", done, len(plan.groups))
        yield made


def _people(plan: Plan, actor: Actor, clock: Clock, progress: Progress) -> Iterator[Imported]:
    with ThreadPoolExecutor(THREADS, thread_name_prefix="import") as pool:
        futures: list[Future[Imported]] = [pool.submit(_person, step, actor, clock) for step in _spread(plan.steps)]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                progress("people", done, len(futures))
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _spread(steps: list[Step]) -> list[Step]:
    """Neighbours are of different groups where that can be: writes of one group would wait for each other."""
    by_group: dict[str, list[Step]] = {}
    for step in steps:
        by_group.setdefault(step.memberships[0].group_id if step.memberships else "", []).append(step)
    return [step for row in zip_longest(*by_group.values()) for step in row if step is not None]


def _person(step: Step, actor: Actor, clock: Clock) -> Imported:
    """The person with their first membership in one transaction, then the other memberships one by one."""
    made = Imported()
    is_there = not step.is_new
    with operations.following_later():
        for wanted in step.memberships or (None,):
            try:
                if not is_there:
                    made.add(_create_person(step, wanted, actor, clock))
                    is_there = True
                elif wanted is not None:
                    made.memberships += _grant(step, wanted, actor, clock)
            except PortalError as error:
                _note(made, wanted.line if wanted else step.person.line, error)
    return made


def _create_group(group_id: str, actor: Actor, clock: Clock) -> int:
    try:
        operations.create_group(group_id=group_id, name=group_id.rpartition("/")[2], description="", actor=actor, now=clock.now())
    except Conflict as error:
        _unless("group_exists", error)
        return 0
    return 1


def _create_person(step: Step, wanted: WantedMembership | None, actor: Actor, clock: Clock) -> Imported:
    try:
        operations.create_person(
            email=step.person.email,
            name=step.person.name,
            group_id=wanted.group_id if wanted else None,
            role=wanted.role if wanted else None,
            actor=actor,
            now=clock.now(),
        )
    except Conflict as error:
        _unless("person_exists", error)
        return Imported(memberships=_grant(step, wanted, actor, clock) if wanted else 0)
    return Imported(people=1, memberships=1 if wanted else 0)


def _grant(step: Step, wanted: WantedMembership, actor: Actor, clock: Clock) -> int:
    try:
        operations.grant_membership(email=step.person.key, group_id=wanted.group_id, role=wanted.role, actor=actor, now=clock.now())
    except Conflict as error:
        _unless("membership_exists", error)
        return 0
    return 1


def _unless(code: str, error: Conflict) -> None:
    """Somebody, or an earlier run, was there first: then it is as it should be."""
    if error.code != code:
        raise error


def _note(made: Imported, line: int, error: PortalError) -> None:
    made.failures.append(Failure(line, error.code, error.message))
    made.outages += isinstance(error, Unavailable)
