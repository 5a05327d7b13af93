"""The intervals of one entity, event by event. The same events give the same intervals, in however many steps they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from accessportal.audit.actions import ACTIONS
from accessportal.audit.states import AuditEvent
from accessportal.history.policy.requests import RequestFacts
from accessportal.history.states import Interval, Mark, Thing, key_of
from accessportal.kernel.clock import from_epoch
from accessportal.kernel.ids import is_request_id

Look = Callable[[str, datetime], RequestFacts]
"""What a request had told by then."""


class Chain:
    """The intervals of an entity that are open, and those that have changed, while events are read. ``facts`` is for whoever reads them,
    as JSON holds it."""

    def __init__(self, mark: Mark, look: Look) -> None:
        self.entity = mark.entity
        self.facts: dict[str, Any] = dict(mark.facts)
        self.look = look
        self._open = {one.key: one for one in mark.open}
        self._changed: dict[str, Interval] = {}

    @property
    def open(self) -> tuple[Interval, ...]:
        return tuple(self._open.values())

    @property
    def changed(self) -> tuple[Interval, ...]:
        return tuple(self._changed.values())

    def find(self, reason: str, thing: Thing | None = None) -> Interval | None:
        """The open interval for this reason."""
        return next((one for one in self.open if one.reason == reason and thing in (None, one.thing)), None)

    def begin(
        self,
        event: AuditEvent,
        *,
        thing: Thing,
        who: str,
        reason: str,
        right: str = "",
        request_id: str | None = None,
        from_at: datetime | None = None,
        is_proved: bool = True,
        **told: Any,
    ) -> Interval:
        """An interval opens, with what its request tells; without a request the event's actor decided."""
        request_id = (reason if is_request_id(reason) else "") if request_id is None else request_id
        facts = self.look(request_id, event.at) if request_id else RequestFacts(decided_by=(event.actor,))
        begun: dict[str, Any] = {
            "from_at": from_at or event.at,
            "request_id": request_id,
            "rule": facts.rule,
            "asked_by": facts.asked_by,
            "decided_by": facts.decided_by,
            "begun_how": proof_of(event),
            "proved_at": event.at if is_proved else None,
            "until": facts.end(event.at),
        }
        right = right or facts.right
        interval = Interval(
            key=key_of(begun["from_at"], self.entity, str(event.sequence), thing.key, who, right, reason),
            thing=thing,
            who=who,
            reason=reason,
            right=right,
            entity=self.entity,
            sequence=event.sequence,
            **(begun | told),
        )
        self._keep(interval)
        return interval

    def change(self, interval: Interval, **changes: Any) -> None:
        self._keep(replace(interval, **changes))

    def end(self, interval: Interval, event: AuditEvent) -> None:
        """Somebody, or its time, ended it: whether it is gone is not proved yet."""
        facts = self.look(interval.request_id, event.at) if interval.request_id else RequestFacts()
        self.change(interval, ended_at=facts.ended_at or event.at, ended_by=facts.ended_by or event.actor)

    def close(self, intervals: Iterable[Interval | None], event: AuditEvent) -> None:
        """They are proved gone."""
        for key in [interval.key for interval in intervals if interval is not None]:
            if self._open[key].ended_at is None:
                self.end(self._open[key], event)
            ended = self._open.pop(key)
            gone_at = max(event.at, ended.from_at)
            self._changed[key] = replace(ended, gone_at=gone_at, gone_how=proof_of(event), gone_sequence=event.sequence)

    def _keep(self, interval: Interval) -> None:
        self._open[interval.key] = self._changed[interval.key] = interval


def proof_of(event: AuditEvent) -> str:
    """What happened, with the words of AWS where it has some."""
    job = " ".join(filter(None, (str(event.data.get("job_id", "")), str(event.data.get("job_status", "")))))
    return f"{ACTIONS[event.action].title}{f' (job {job})' if job else ''}"


def moment_in(event: AuditEvent, name: str) -> datetime | None:
    """A moment among the facts of an event."""
    seconds = event.data.get(name)
    return None if seconds is None else from_epoch(seconds)
