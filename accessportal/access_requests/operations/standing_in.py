"""Stand-ins: an approver names who decides in their place for a time, and anybody whom it concerns takes it back."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from accessportal.access_requests import policy, store
from accessportal.access_requests.config import current
from accessportal.access_requests.operations.shared import purge_moment
from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.queries.stand_ins import find_stand_in, may_name_stand_in
from accessportal.access_requests.stand_in import LONGEST_NOTE, StandIn
from accessportal.audit.states import Draft
from accessportal.directory.states import Person
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.clock import to_epoch, whole_second
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import Conflict, InvalidRequest, NoAnswer
from accessportal.kernel.pages import Unreadable
from accessportal.kernel.texts import check_reason, clean_text
from accessportal.store.transactions import Overtaken, until_written


def name_stand_in(
    *, email: str, starts_at: datetime, ends_at: datetime, note: str = "", submission_id: str, actor: Actor, now: datetime
) -> StandIn:
    """Let somebody decide in the actor's place from ``starts_at`` (from now on, where that has passed) until ``ends_at``. The same form
    sent twice names them once.

    :raises NotAllowed: unless a rule names the actor as an approver.
    :raises InvalidRequest: for somebody who is not there, is the actor, or stands in for too many; and for a period that can't be.
    :raises Conflict: when it was taken back since the same form was sent first.
    """
    book = ApproverBook(now=now)
    may_name_stand_in(actor=actor, book=book).require()
    now = whole_second(now)
    starts_at, ends_at = max(whole_second(starts_at), now), whole_second(ends_at)
    policy.check_stand_in_period(starts_at=starts_at, ends_at=ends_at, now=now, longest=timedelta(days=current().stand_in_days))
    person = _find(email, actor, book)
    one = StandIn(
        stand_in_id=_id_for(person.key, ends_at, submission_id, actor),
        stand_in=person.key,
        approver=actor.name,
        note=clean_text(note, field="note", name="The note", longest=LONGEST_NOTE),
        named_at=now,
        starts_at=starts_at,
        ends_at=ends_at,
        purge_at=purge_moment(ends_at),
    )
    present = store.find_stand_in(one.stand_in, one.stand_in_id)
    if present is not None:
        return _named_before(present)
    policy.check_stood_in_for(store.stand_ins_of(person.key, now=now, past=_gives_nothing), one)
    data = {"starts_at": to_epoch(starts_at), "ends_at": to_epoch(ends_at), "note": one.note}
    try:
        return store.insert_stand_in(one, draft=Draft("stand_in.named", one.stand_in, data), actor=actor, now=now)
    except Overtaken:
        # Sent twice at once.
        return _named_before(find_stand_in(stand_in=one.stand_in, stand_in_id=one.stand_in_id, actor=actor))


def end_stand_in(*, stand_in: str, stand_in_id: str, reason: str = "", actor: Actor, now: datetime) -> StandIn:
    """Take it back: they decide in nobody's place by it from now on. ``stand_in`` is the address of who stands in.

    :raises NotFound: when there is none, or the actor may not see it.
    :raises NotAllowed: unless the actor is the approver, the stand-in or an operator.
    :raises Conflict: when it is over.
    """
    reason = check_reason(reason)

    def attempt() -> StandIn:
        one = find_stand_in(stand_in=fold_email(stand_in), stand_in_id=stand_in_id, actor=actor)
        _require_end(policy.may_end_stand_in(one, actor, now), one)
        draft = Draft("stand_in.ended", one.stand_in, {"approver": one.approver, "reason": reason})
        return store.end_stand_in(one, draft=draft, actor=actor, now=now)

    contended = NoAnswer("Others are changing this at the same moment. Try again.", code="stand_in_contended")
    return until_written(attempt, contended=contended)


def _named_before(one: StandIn) -> StandIn:
    if one.ended_at is not None:
        text = f"This form named {one.stand_in} before, and {one.ended_by} took it back. Open the form anew to name them again."
        raise Conflict(text, code="stand_in_over", present=one)
    return one


def _require_end(decision: Decision, one: StandIn) -> None:
    if decision.code == "stand_in_over":
        raise Conflict(decision.reason, code=decision.code, present=one)
    decision.require()


def _find(email: str, actor: Actor, book: ApproverBook) -> Person:
    """Whoever has the address, by whom the actor is to be replaced."""
    person, _ = book.directory.held_by(email)
    if person is None or not person.is_enabled:
        text = "Nobody in the directory has this address, or they are disabled. Name somebody who can sign in."
        raise InvalidRequest(text, code="person_unknown", field="email")
    own = book.identities_of([actor.name]).get(actor.name)
    if person.key == actor.name or (own and own == person.identity):
        raise InvalidRequest("That is you. Name somebody else.", code="stand_in_is_oneself", field="email")
    return person


def _id_for(stand_in: str, ends_at: datetime, submission_id: str, actor: Actor) -> str:
    """The same for the same form of the same approver; it begins with the end, by which the table is read."""
    sent = f"{actor.name}\n{stand_in}\n{submission_id}"
    return f"{store.id_after(ends_at)}-{hashlib.sha256(sent.encode()).hexdigest()[:20]}"


def _gives_nothing(_one: Unreadable) -> None:
    """The pages with stand-ins name it."""
