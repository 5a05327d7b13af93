"""Where the pool meets those who wait for an account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from accessportal.kernel.actors import Actor
from accessportal.leases import policy
from accessportal.leases.states import Account, Person
from accessportal.leases.store import rows
from accessportal.store.transactions import ConditionFailed, Guard, Overtaken
from accessportal.waiting import operations as waiting
from accessportal.waiting import queries as line
from accessportal.waiting.states import ACCOUNTS, Line, Place, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody asks for: their request ``claim`` is to hold a lease of its own id."""

    claim: str
    lease_id: str
    user: str
    pool: str
    permission_set: str
    duration_seconds: int
    most_held: int
    size: str = ""
    tags: Mapping[str, Any] = field(default_factory=dict)

    def is_met_by(self, account: Account) -> bool:
        """Whether the account is one of those that are asked for."""
        return policy.fits(account, pool=self.pool, size=self.size, tags=self.tags)

    def is_one_too_many(self, person: Person | None) -> bool:
        """Whether the person has as many accounts as their rule lets them have."""
        return person is not None and len(person.leases) >= self.most_held


_OF_THE_PLACE = ("claim", "duration_seconds")


def asked_at(place: Place) -> Asked:
    """What whoever has the place asks for.

    :raises UnreadableItem: when somebody else has changed it.
    """
    try:
        wants = {**place.wants, "most_held": int(place.wants["most_held"]), "tags": dict(place.wants["tags"])}
        asked = Asked(claim=place.claim, duration_seconds=place.duration_seconds, **wants)
        texts = (asked.lease_id, asked.user, asked.pool, asked.permission_set, asked.size)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("only numbers and tags are no texts")
        return asked
    except (LookupError, TypeError, ValueError) as error:
        raise line.unreadable_wants(place, error) from error


def join(asked: Asked, *, lapses_at: datetime, guards: Sequence[Guard], actor: Actor, now: datetime) -> None:
    """Give the request the last place of the line, unless it has one.

    :raises Overtaken: when it was served since it was looked for.
    """
    unserved = rows.not_lent(asked.lease_id)
    try:
        waiting.join(
            line=ACCOUNTS,
            claim=asked.claim,
            wants={name: value for name, value in asdict(asked).items() if name not in _OF_THE_PLACE},
            duration_seconds=asked.duration_seconds,
            lapses_at=lapses_at,
            guards=[*guards, unserved],
            actor=actor,
            now=now,
        )
    except ConditionFailed as error:
        if error.step is unserved:
            raise Overtaken from error
        raise


def next_turn(account: Account, *, now: datetime) -> tuple[Line, Turn | None]:
    """Whose turn it is to have the account: the first whom it fits, and who has not as many as they may."""

    def fits(place: Place) -> bool:
        asked = asked_at(place)
        return asked.is_met_by(account) and not asked.is_one_too_many(rows.get_person(asked.user))

    return line.first_that_fits(line=ACCOUNTS, fits=fits, now=now)
