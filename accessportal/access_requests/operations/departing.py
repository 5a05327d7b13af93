"""Ending what people and groups hold who are disabled, gone, or no longer served: at once after a change of the directory, and by
a comparison of everything, because other programs write the directory, too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from accessportal.access_requests import policy, store
from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.operations.ending import end_without_subject
from accessportal.access_requests.operations.shared import ask_for_work
from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.queries.subjects import presence_of
from accessportal.access_requests.states import AccessRequest, Status, SubjectsReport, Work
from accessportal.directory import operations as directory_operations
from accessportal.directory import queries as directory
from accessportal.directory.states import Departure
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.brakes import MOST_SHARE, brake, check_share
from accessportal.kernel.clock import Clock
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import NotAllowed, NotFound
from accessportal.kernel.runs import Run, each

# By then the index shows every request that was written while its subject was still there, and no form of before is under way.
_SETTLED_AFTER = timedelta(seconds=60)
_TICK = system("tick")
_WORKERS = 8
_OPEN = (Status.ACTIVE, Status.PENDING)

Doomed = tuple[AccessRequest, Decision]


def end_departed(*, clock: Clock) -> SubjectsReport:
    """End what hung on people and groups that lost something, as far as the directory tells now. Every departure is looked at until a
    minute has gone, so that no request slips through beside it. Unavailable when the departures can't be listed."""
    run = Look(_TICK, clock)
    for some in together(directory.list_departures(past=run.pass_over)):
        run.look_after(some)
    return run.report()


def together(departures: Iterable[Departure]) -> list[list[Departure]]:
    """Each person alone, and all groups at once: whoever looks after a group lists everything that is open."""
    found = list(departures)
    groups = [one for one in found if one.is_of_group]
    return [*([one] for one in found if not one.is_of_group), *([groups] if groups else [])]


def compare_subjects(*, most_share: float = MOST_SHARE, actor: Actor, clock: Clock) -> SubjectsReport:
    """Hold every open request against the directory and what it was granted, and end or cancel what has lost its subject, or was taken
    away; more than ``most_share`` of all (and more than a handful) is left, and ``stopped`` says so: a table that was emptied takes
    nobody's access by itself."""
    if not (actor.is_operator or actor.is_system):
        raise NotAllowed("Only operators compare requests with the directory. Ask an operator.", code="operators_only")
    check_share(most_share)
    run = Look(actor, clock)
    held = run.everything_open()
    doomed, lost = run.doomed_among(held.values()), run.lost_among(one for unit in held.values() for one in unit)
    would = "open requests would end because the directory does not know, or serve, whom they are for"
    stopped = run.end_unless_many(doomed, most_share, would=would, remedy="Nothing was ended. Look at the directory")
    would = "open requests would end because what they were granted was taken away"
    remedy = "None of these was ended. Look whether a table was emptied or restored"
    stops = (stopped, run.end_unless_many(lost, most_share, would=would, remedy=remedy))
    return run.report(stopped=" ".join(filter(None, stops)))


@dataclass
class Look(Run):
    """One look at what hangs on the directory."""

    actor: Actor
    clock: Clock
    checked: int = 0
    ended: list[AccessRequest] = field(default_factory=list)
    cancelled: list[AccessRequest] = field(default_factory=list)

    def look_after(self, departures: Sequence[Departure]) -> None:
        """End what these (:func:`together`) took the ground from; take away those that are old enough to have shown everything."""
        self.unit(", ".join(one.entity for one in departures), partial(self._look_after, departures))

    def everything_open(self) -> Mapping[str, list[AccessRequest]]:
        """All that is held or waited for, by subject. From the index: it may lag, and each is read again before it is changed."""
        found: dict[str, list[AccessRequest]] = defaultdict(list)
        for status in _OPEN:
            for request in store.every_in(status, past=self.pass_over):
                found[request.subject_id].append(request)
        return found

    def doomed_among(self, held: Iterable[Sequence[AccessRequest]]) -> list[Doomed]:
        """Those that have lost their subject, each with the reason. Every item of ``held`` is all that is open of one subject."""
        units = list(held)
        self.checked += sum(map(len, units))
        found: list[Doomed] = []

        def look_at(unit: Sequence[AccessRequest]) -> None:
            self.unit(unit[0].subject_id, lambda: found.extend(_without_ground(unit, self.clock.now())))

        each(units, look_at, workers=_WORKERS, name="departed")
        return found

    def lost_among(self, requests: Iterable[AccessRequest]) -> list[Doomed]:
        """Those of which somebody took away what they were granted, each with the reason."""
        found: list[Doomed] = []

        def judge(request: AccessRequest) -> None:
            decision = kind_named(request.kind).grant.is_there(request, now=self.clock.now())
            # Judged after the read: what came to its end meanwhile is gone for that.
            if not decision.allowed and not request.is_over(self.clock.now()):
                found.append((request, decision))

        def look_at(request: AccessRequest) -> None:
            self.unit(request.request_id, partial(judge, request))

        each([one for one in requests if one.is_granted], look_at, workers=_WORKERS, name="lost")
        return found

    def end_unless_many(self, doomed: Sequence[Doomed], most_share: float, *, would: str, remedy: str) -> str:
        """End them, or say why so many may not end at once."""
        stopped = brake(len(doomed), self.checked, most_share, would=would, remedy=remedy)
        if not stopped:
            self.end_all(doomed)
        return stopped

    def end_all(self, doomed: Iterable[Doomed]) -> None:
        for request, decision in doomed:
            self.end(request, decision)

    def end(self, request: AccessRequest, why: Decision) -> None:
        """End or cancel it, if it is still open."""
        self.unit(request.request_id, partial(self._end, request, why))

    def report(self, *, stopped: str = "") -> SubjectsReport:
        return SubjectsReport(self.checked, len(self.ended), len(self.cancelled), failures=self.failed, stopped=stopped)

    def _look_after(self, departures: Sequence[Departure]) -> None:
        before, now = len(self.failures), self.clock.now()
        listed = list(self._open_beside(departures))
        is_whole = len(self.failures) == before
        units = [unit for unit in listed if any(_hangs_on(gone, one) for gone in departures for one in unit)]
        doomed = self.doomed_among(units)
        self.end_all((one, decision) for one, decision in doomed if any(_is_explained(gone, one, decision) for gone in departures))
        failed = {failure.item for failure in self.failures[before:]}
        undone = [one for unit in units for one in unit if not failed.isdisjoint((one.subject_id, one.request_id))]
        for departure in departures if is_whole else ():
            if abs(now - departure.since) >= _SETTLED_AFTER and not any(_hangs_on(departure, one) for one in undone):
                directory_operations.settle_departure(departure=departure)

    def _open_beside(self, departures: Sequence[Departure]) -> Iterable[Sequence[AccessRequest]]:
        """What is open of the one person, or of everybody: whoever it is for may be served by the groups."""
        first = departures[0]
        return self.everything_open().values() if first.is_of_group else [list(store.page_open.every(first.name, past=self.pass_over))]

    def _end(self, request: AccessRequest, why: Decision) -> None:
        now = self.clock.now()
        try:
            after = end_without_subject(request_id=request.request_id, why=why, actor=self.actor, now=now)
        except NotFound:
            # Long over, and forgotten.
            return
        if after.status is Status.CANCELLED:
            self.cancelled.append(after)
        else:
            self.ended.append(after)
            ask_for_work(after, now)


def _without_ground(unit: Sequence[AccessRequest], now: datetime) -> list[Doomed]:
    """Return what has lost its ground, of all that is open of one subject. A membership by request is ground only while it has ground
    itself, and never its own: each counts when those that already do carry it."""
    subject_id = unit[0].subject_id
    open_question = {one.request_id for one in unit if _is_membership(one) and one.served_by is not None}
    book = ApproverBook(now=now)
    while True:
        present = presence_of(subject_id, without=open_question, book=book)
        carried = {one.request_id for one in unit if one.request_id in open_question and policy.may_stay(one, present).allowed}
        if not carried:
            decided = [(one, policy.may_stay(one, present)) for one in unit]
            # What is being taken back already does not fill the brake's share.
            return [(one, decision) for one, decision in decided if not decision.allowed and one.work is not Work.REVOKE]
        open_question -= carried


def _is_membership(request: AccessRequest) -> bool:
    return bool(kind_named(request.kind).target.membership(request.target)[0])


def _hangs_on(departure: Departure, request: AccessRequest) -> bool:
    """Whether the request may have lost its ground by what became of a group."""
    if request.subject_id == departure.name:
        return True
    served_by = request.served_by
    return served_by is not None and not departure.lost.isdisjoint((*served_by.groups, *served_by.groups_only))


def _is_explained(departure: Departure, request: AccessRequest, decision: Decision) -> bool:
    """What else is missing beside the group is the comparison's, which has a brake."""
    is_own = request.subject_id == departure.name
    return is_own or (decision.code == "subject_not_served" and _hangs_on(departure, request))
