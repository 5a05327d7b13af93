"""The queue: what waits for a decision, for approvers and operators alike, and what somebody has decided."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from accessportal.access_requests import queries
from accessportal.access_requests.kind import KINDS
from accessportal.access_requests.states import AccessRequest
from accessportal.console.resource import Ask, Column, Parameter, Pattern, Right

_TALLY_UP_TO = 25

WHY = Column("Why", "console/cells/why.html", "col-what")
WHO = Column("Who", "console/cells/who.html", "col-who")
AROUND = Column("To know", "console/cells/around.html", "col-context")
DECIDED = Column("Decision", "console/cells/decision.html", "col-context")
STATE = Column("State", "console/cells/state.html", "col-state")

_SEARCH = Parameter("Search", "Reason, ticket…", required=False)
_NARROWED_BY = (
    Parameter("Kind", required=False, name="kind", choices=(("", "Any"), *((kind.name, kind.fields.name) for kind in KINDS.values()))),
    Parameter("Rule", "Its whole name", required=False, name="rule"),
    Parameter("Person or group", "Name or address", required=False, name="person"),
)
_queue = partial(
    Pattern,
    is_live=True,
    takes_all=True,
    parameter=_SEARCH,
    more=_NARROWED_BY,
    columns=(WHY, WHO, AROUND),
    bulk=("approve", "deny"),
    row_deeds=("approve", "deny"),
)


def wanted_of(ask: Ask) -> Callable[[AccessRequest], bool] | None:
    """What of the queue the inputs ask for; ``None``: all of it."""
    text, person = (words.casefold() for words in (ask.parameter, ask.more.get("person", "")))
    kind, rule = ask.more.get("kind", ""), ask.more.get("rule", "")
    if not (text or person or kind or rule):
        return None

    def is_wanted(request: AccessRequest) -> bool:
        told = queries.describe(request=request)
        who = f"{told.subject_name} {request.subject_id} {request.requested_by}".casefold()
        what = f"{told.title} {request.reason} {request.ticket_id} {who}".casefold()
        return kind in ("", request.kind) and rule in ("", request.rule_name) and person in who and text in what

    return is_wanted


WAITING = _queue(
    name="waiting",
    label="Waiting for me",
    fetch=lambda ask: queries.list_waiting_for(book=ask.book, wanted=wanted_of(ask), **ask.part_seen),
    right=Right.DECIDERS,
    goes_on=True,
    is_in_bar=True,
    tally=lambda ask: queries.count_waiting_for(actor=ask.actor, now=ask.now, up_to=_TALLY_UP_TO, book=ask.book),
    empty_title="Nothing waits for you",
    empty_hint="When somebody asks for access that you may approve, it appears here, nearest deadline first.",
)
PENDING = _queue(
    name="pending",
    label="All pending",
    fetch=lambda ask: queries.list_pending(wanted=wanted_of(ask), **ask.part_seen),
    goes_on=True,
    empty_title="Nobody waits for a decision",
    empty_hint="Every request has been decided, withdrawn or has lapsed.",
)
UNDECIDABLE = Pattern(
    name="undecidable",
    label="Nobody can decide",
    fetch=lambda ask: queries.list_undecidable(book=ask.book, **ask.part_seen),
    goes_on=True,
    columns=(WHY, WHO, AROUND),
    bulk=("approve", "deny"),
    empty_title="Every pending request has somebody who can decide it",
    empty_hint="A request lands here when its approvers' group is gone or too few of them are enabled; then the operators decide.",
)
DECIDED_BY_ME = Pattern(
    name="decided",
    label="Decided by me",
    fetch=lambda ask: queries.list_decided_by(actor=ask.actor, **ask.part),
    right=Right.DECIDERS,
    columns=(WHY, WHO, DECIDED, STATE),
    empty_title="You have decided nothing yet",
    empty_hint="What you approve or deny appears here, as it stands now, the last decision first.",
)
