"""Stand-ins from a terminal."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from accessportal.access_requests import operations, queries
from accessportal.access_requests.stand_in import StandIn
from accessportal.commands.base import command, document_of, first
from accessportal.commands.flags import Flag, Limit
from accessportal.commands.terminal import Document, Facts, Listing, moment
from accessportal.kernel.actors import Actor

_show = Facts(hidden={"audit_head"})
_LISTING = Listing(
    "stand_ins",
    {
        "who": "stand_in",
        "in place of": "approver",
        "state": "state",
        "from": moment("starts_at"),
        "until": moment("ends_at"),
        "id": "stand_in_id",
    },
)


def _document(one: StandIn, now: datetime) -> Document:
    return document_of(one) | {"state": one.state(now)}


@command("--as olga@example.com", show=_LISTING)
def list_stand_ins(
    *,
    with_past: Annotated[bool, Flag("those that are over or were taken back, too", name="--all")] = False,
    limit: Limit = 200,
    actor: Actor,
    now: datetime,
) -> Document:
    """List who decides in whose place, now or later, last end first. For operators and auditors."""
    ends_after = None if with_past else now
    found, has_more = first(limit, lambda cursor: queries.list_stand_ins(ends_after=ends_after, actor=actor, cursor=cursor))
    shown = [one for one in found if with_past or not one.state(now).is_for_good]
    return {"stand_ins": [_document(one, now) for one in shown], "has_more": has_more}


@command('carol@example.com 1797120000-0123456789abcdef0123 --reason "Phone was stolen" --as olga@example.com', show=_show)
def end_stand_in(
    email: Annotated[str, Flag("who stands in", "EMAIL")],
    stand_in_id: Annotated[str, Flag("as list_stand_ins shows it", "ID")],
    *,
    reason: Annotated[str, Flag("kept in the history", "TEXT")] = "",
    actor: Actor,
    now: datetime,
) -> Document:
    """Take a stand-in back: from now on they decide in nobody's place by it. The approver, the stand-in and operators may."""
    return _document(operations.end_stand_in(stand_in=email, stand_in_id=stand_in_id, reason=reason, actor=actor, now=now), now)
