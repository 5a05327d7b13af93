"""What can be done to a stand-in, and how it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from accessportal.access_requests import operations, queries
from accessportal.access_requests.queries import ApproverBook
from accessportal.access_requests.stand_in import StandIn, StandInState
from accessportal.kernel.actors import Actor
from accessportal.web.deeds import Data, Deed, Told
from accessportal.web.forms import ReasonForm
from accessportal.web.names import Names


@dataclass(frozen=True, slots=True)
class Named:
    """A stand-in with the names of both, and how it stands."""

    record: StandIn
    stand_in: str
    approver: str
    standing: StandInState


def named(found: Sequence[StandIn], book: ApproverBook) -> list[Named]:
    """Those found, with names that are read together."""
    names = Names(book.directory)
    book.directory.people(email for one in found for email in (one.stand_in, one.approver))
    return [Named(one, names(one.stand_in), names(one.approver), one.state(book.now)) for one in found]


def _end(one: StandIn, data: Data, actor: Actor, now: datetime) -> Told:
    operations.end_stand_in(stand_in=one.stand_in, stand_in_id=one.stand_in_id, reason=data["reason"], actor=actor, now=now)
    return Told(f"{one.stand_in} decides in place of {one.approver} no more.")


END_STAND_IN: Deed[StandIn] = Deed(
    name="end",
    label="Take back",
    question=lambda one: f"Let {one.stand_in} decide in place of {one.approver} no more?",
    explain=lambda one: (
        f"From now on {one.stand_in} decides in nobody's place by it. What they have decided stays; "
        f"an approval of theirs that waits for others counts while {one.approver} may decide."
    ),
    keep="Keep it",
    may=queries.may_end_stand_in,
    run=_end,
    form=partial(ReasonForm, is_required=False),
    stale_codes=frozenset({"stand_in_over"}),
    is_destructive=True,
)
