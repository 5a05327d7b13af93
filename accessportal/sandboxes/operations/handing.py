"""Handing over: whatever becomes free goes, in the write that makes it free, to the first in the line whom it fits."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar

from accessportal.kernel.actors import Actor, system
from accessportal.kernel.clock import Clock, whole_second
from accessportal.kernel.errors import NoAnswer
from accessportal.kernel.pages import as_far
from accessportal.kernel.ports import after_commit
from accessportal.kernel.runs import Run
from accessportal.sandboxes import queries
from accessportal.sandboxes.config import current
from accessportal.sandboxes.operations.probing import probe
from accessportal.sandboxes.operations.taking import Asked, lent_to, told_of_taking, try_entry
from accessportal.sandboxes.states import Holder, Sandbox, ServeReport
from accessportal.sandboxes.store import free_list, keys, rows
from accessportal.sandboxes.store.free_list import FreeEntry
from accessportal.sandboxes.store.rows import Onward
from accessportal.store.transactions import Step
from accessportal.upstream.provider import Provider
from accessportal.waiting import operations as waiting
from accessportal.waiting import queries as line
from accessportal.waiting.states import SANDBOXES, Line, Place, Turn

T = TypeVar("T", Sandbox, Sandbox | None)
SERVE = system("serve_line")
_MOST_TRIES = 25


class Write(Protocol):
    """Writes that a sandbox becomes free and goes on to whom ``then`` says, with the ``further`` steps; what it comes to."""

    def __call__(self, *, then: Onward | None, further: Sequence[Step]) -> Sandbox: ...


def make_free(free: Sandbox, write: Write, *, actor: Actor, now: datetime) -> Sandbox:
    """Have ``write`` make it ``free``, or hand it over to the first in the line whom it fits: the one way in which a sandbox becomes free.
    While nobody waits it costs no read. :raises Overtaken: when the sandbox changed since it was read."""
    if current().programs_first:
        return write(then=None, further=())
    with suppress(rows.FurtherFailed):
        return write(then=None, further=(line.nobody_waits(SANDBOXES),))
    return _until_the_line_stands_still(partial(_make_free, free, write, actor, now))


def _make_free(free: Sandbox, write: Write, actor: Actor, now: datetime) -> Sandbox:
    seen, asked = _next_for(free, actor, now)
    if asked is None:
        return write(then=None, further=(line.has_not_moved(seen),))
    lent = lent_to(free, asked)
    onward = Onward(lent, told_of_taking(lent), keys.open_key(None, key=asked.key, request_hash=asked.hash, sandbox=lent))
    handed = write(then=onward, further=asked.further(lent))
    _tell(handed)
    return handed


def serve_line(*, provider: Provider | None = None, clock: Clock, actor: Actor = SERVE) -> ServeReport:
    """Hand over what is free while somebody waits for it: each to the first whom it fits. While nobody waits it costs one read."""
    if not line.get_line(SANDBOXES).waiting:
        return ServeReport()
    run = _Serving(provider=provider, clock=clock, actor=actor)
    places = line.places(SANDBOXES, past=run.pass_over)
    for place in places:
        run.unit(place.claim, partial(run.note_wish, place))
    for entry in run.free():
        if not run.prefixes:
            break
        if entry.name.startswith(tuple(run.prefixes.values())):
            run.unit(entry.sandbox_id, partial(run.serve, entry))
    return ServeReport(served=tuple(run.served), failures=run.failed)


@dataclass
class _Serving(Run):
    """``prefixes``: what the names begin with that those want who wait and can still get one, by claim."""

    passes = (rows.Overtaken,)
    provider: Provider | None
    clock: Clock
    actor: Actor
    served: list[str] = field(default_factory=list)
    prefixes: dict[str, str] = field(default_factory=dict)

    def note_wish(self, place: Place) -> None:
        self.prefixes[place.claim] = queries.wanted_at(place).name_prefix

    def free(self) -> Iterator[FreeEntry]:
        for shard in free_list.shards():
            entries = free_list.every_entry(shard, past=self.pass_over)
            yield from as_far(entries, told=partial(self.fail, "the free list"))

    def serve(self, entry: FreeEntry) -> None:
        free = entry.sandbox or rows.get(entry.sandbox_id)
        handed = None if free is None else _until_the_line_stands_still(partial(self._hand_over, entry, free))
        if handed is not None:
            self.served.append(handed.sandbox_id)
            for claim in handed.claims:
                self.prefixes.pop(claim, None)
            _tell(handed)

    def _hand_over(self, entry: FreeEntry, free: Sandbox) -> Sandbox | None:
        now = self.clock.now()
        _, asked = _next_for(free, self.actor, now, provider=self.provider)
        if asked is None:
            # Nobody whom it fits may have one more.
            self.prefixes = {claim: prefix for claim, prefix in self.prefixes.items() if not free.name.startswith(prefix)}
            return None
        return try_entry(entry, asked, None)


def _until_the_line_stands_still(attempt: Callable[[], T]) -> T:
    """What comes of ``attempt``, again from the start whenever the line, or what its first holds, moved meanwhile."""
    for number in range(_MOST_TRIES):
        try:
            return attempt()
        except (rows.FurtherFailed, rows.KeyOvertaken):
            time.sleep(random.uniform(0, 0.005) * number)
    raise NoAnswer("Too many others are joining or leaving the line right now. Try again.", code="line_contended")


def _next_for(free: Sandbox, actor: Actor, now: datetime, *, provider: Provider | None = None) -> tuple[Line, Asked | None]:
    """The line as it is, and what the first in it asks for whom ``free`` fits and who may have one more."""
    ready: dict[int, tuple[Holder, Mapping[str, str]]] = {}

    def fits(place: Place) -> bool:
        held = _ready(place, actor, now) if free.name.startswith(queries.wanted_at(place).name_prefix) else None
        ready.update({} if held is None else {place.number: held})
        return held is not None

    seen, turn = line.first_that_fits(line=SANDBOXES, fits=fits, now=now)
    return seen, None if turn is None else _asked(turn, *ready[turn.place.number], actor, now, provider)


def _ready(place: Place, actor: Actor, now: datetime) -> tuple[Holder, Mapping[str, str]] | None:
    """What the person has, if they may have one more now."""
    wanted = queries.wanted_at(place)
    seen = keys.look_up(wanted.key, holder=wanted.track)
    if seen.record is not None:
        # It was served already: the tables were restored to a moment at which it still waited. The line moves by that.
        waiting.leave(line=SANDBOXES, claim=place.claim, actor=actor, now=now)
        return None
    holds = standing_holds(seen.holder, now)
    return None if seen.is_held or len(holds) >= wanted.most_held else (seen.holder, holds)


def _asked(turn: Turn, holder: Holder, holds: Mapping[str, str], actor: Actor, now: datetime, provider: Provider | None) -> Asked:
    place, wanted = turn.place, queries.wanted_at(turn.place)

    def further(lent: Sandbox) -> list[Step]:
        served = waiting.served(turn, thing=lent.sandbox_id, actor=actor, now=now)
        return [*served, keys.hold_for(holder, {**holds, lent.key: lent.sandbox_id})]

    return Asked(
        key=wanted.key,
        track=wanted.track,
        name_prefix=wanted.name_prefix,
        duration_seconds=None,
        actor=actor,
        now=now,
        claims={place.claim: whole_second(now) + timedelta(seconds=place.duration_seconds)},
        further=further,
        check=partial(probe, provider, actor=actor, now=now),
    )


def _tell(handed: Sandbox) -> None:
    """Its request learns of it at once; without that, at its next look."""
    for claim in handed.claims:
        after_commit("carry_out_served", request_id=claim)


def standing_holds(holder: Holder, now: datetime) -> dict[str, str]:
    """What the holder still has: whatever ended an allocation, its key tells; past its grace it is over, noted or not."""
    found = queries.find_by_keys(keys=holder.holds)
    return {key: one.sandbox_id for key, one in found.items() if is_of(one, holder.track) and not one.is_over(now)}


def is_of(sandbox: Sandbox, track: str) -> bool:
    """Whether ``track`` has it for its claims."""
    return sandbox.track == track and bool(sandbox.claims)
