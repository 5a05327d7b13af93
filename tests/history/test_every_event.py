"""One story in which every event is written that the history reads: at each of their moments it says what all events say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from pynamodb.expressions.condition import Condition

from accessportal.access_requests import operations as requests
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.audit.actions import ACTIONS
from accessportal.authz import operations as authz
from accessportal.authz.queries import caller_of, read_scope
from accessportal.authz.states import Approval, Relationship, RelationType
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole, State
from accessportal.history import operations, store
from accessportal.history.models import HistoryItem
from accessportal.history.policy import readers
from accessportal.history.states import Interval
from accessportal.kernel.actors import system
from accessportal.kernel.clock import from_epoch
from accessportal.kernel.pages import Page
from accessportal.leases import operations as leases
from accessportal.rules import operations as rules
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes import queries as pool
from accessportal.store.listing import Listing
from tests.fixtures_accounts import LEASE_RULES, Borrowed
from tests.fixtures_pool import POOL_RULES, Labs
from tests.fixtures_records import APPROVAL, RECORD_RULES, RELATIONSHIP, SCOPE, Case, ask
from tests.fixtures_story import RULES
from tests.history.comparing import check, check_periods, rows
from tests.history.reading import every_event
from tests.sandboxes.cleaning_by_hand import free_again

JOB = system("job")
OTHER, LAST = "tenant:acme-corp:env:dev", "tenant:other"
JUST = timedelta(milliseconds=1)
PEOPLE = ("alice@example.com", "bob@example.com", "gina@example.com", "sam@example.com", "mallory@example.com", "new@example.com")
GUILD, TOOLS = "/engineering/payments/guild", "/engineering/payments/guild/tools"
# Of pools that a provider or AWS changes behind the portal's back, which have tests of their own.
ELSEWHERE = {"assignment.adopted", "sandbox.adopted", "sandbox.removed"}


def is_read(action: str) -> bool:
    entity, _, verb = action.partition(".")
    return verb in readers._READERS.get("person" if entity == "user" else entity, readers._NOBODY)[0]


@dataclass
class Script:
    """What happens, each deed at a moment of its own."""

    borrowed: Borrowed
    labs: Labs

    def __post_init__(self) -> None:
        self.story, self.clock = self.borrowed.story, self.borrowed.story.clock

    @property
    def how(self) -> dict[str, Any]:
        """By the operator, a second after what was before."""
        self.clock.advance(1)
        return {"actor": self.story.olga, "now": self.clock.now()}

    def done(self, request: AccessRequest) -> AccessRequest:
        self.clock.advance(1)
        request = self.story.approve(request) if request.status is Status.PENDING else request
        return self.story.carry_out(request)

    def take_back(self, request: AccessRequest) -> AccessRequest:
        """Given back with all that was extended, one after the other, and taken back."""
        self.story.end(request)
        self.wait(1)
        self.clock.advance(30)
        return self.done(requests.take_back(request_id=request.request_id, actor=self.story.alice, now=self.clock.now()))

    def wait(self, seconds: int) -> None:
        """So that what is over then is tidied away."""
        self.clock.advance(seconds)
        self.story.tick()

    def accounts(self) -> None:
        """Extended by a second claim, ended early, and at its time; one for a group."""
        first = self.done(self.story.ask(seconds=600))
        further = self.done(self.story.extend(first, 3_600))
        self.done(self.story.ask(subject_id="/engineering/payments"))
        self.wait(700)
        self.done(self.story.end(further))
        self.done(self.story.end(self.done(self.story.ask_for_prod())))

    def groups(self) -> None:
        """With a group's account, there and elsewhere; renamed, moved with what is below, disabled, and deleted."""
        for group_id in (GUILD, TOOLS):
            directory.create_group(group_id=group_id, name="Guild", description="", **self.how)
        member: dict[str, Any] = {"email": "new@example.com", "group_id": TOOLS, "role": GroupRole.READER}
        directory.create_person(**member, name="New", **self.how)
        self.done(self.story.ask_to_join("/engineering", seconds=900))
        directory.rename_group(group_id=GUILD, name="Tools", description="", **self.how)
        for parent_id in ("/security", "/engineering/payments"):
            directory.move_group(group_id=GUILD, parent_id=parent_id, **self.how)
        for group_id in (TOOLS, GUILD, "/engineering/payments"):
            for state in (State.DISABLED, State.ENABLED):
                directory.set_group_state(group_id=group_id, state=state, **self.how)
        directory.move_group(group_id=TOOLS, parent_id="/security", **self.how)
        directory.grant_membership(**member | {"group_id": "/engineering/payments"}, **self.how)
        directory.revoke_membership(email="new@example.com", group_id=TOOLS, **self.how)
        for group_id in (TOOLS, GUILD):
            directory.delete_group(group_id=group_id, **self.how)

    def people(self) -> None:
        """Renamed, with another role, with a claim beside and in place of a request's, disabled, and deleted."""
        directory.rename_person(email="alice@example.com", name="Alice P.", **self.how)
        joined = self.done(self.story.ask_to_join("/engineering", seconds=900))
        self.done(self.story.extend(joined, 1_800))
        directory.grant_membership(email="alice@example.com", group_id="/engineering", role=GroupRole.CONTRIBUTOR, **self.how)
        directory.grant_membership(email="alice@example.com", group_id="/engineering", role=GroupRole.READER, **self.how)
        self.wait(1_000)
        directory.revoke_membership(email="alice@example.com", group_id="/engineering", **self.how)
        self.done(self.story.ask())
        for email in ("alice@example.com", "new@example.com"):
            directory.set_person_state(email=email, state=State.DISABLED, **self.how)
        requests.end_departed(clock=self.clock)
        directory.set_person_state(email="alice@example.com", state=State.ENABLED, **self.how)
        directory.set_person_state(email="new@example.com", state=State.ENABLED, **self.how)
        directory.delete_person(email="new@example.com", **self.how)
        directory.create_person(email="new@example.com", name="New", group_id="/security", role=GroupRole.READER, **self.how)

    def leases(self) -> None:
        """Frozen and not, lent for longer and for less, given back and taken back."""
        held = self.done(self.borrowed.ask(seconds=3_600))
        for _ in range(2):
            leases.freeze(lease_id=held.request_id, reason="Mines", **self.how)
            self.clock.advance(5)
            requests.freeze_leases(clock=self.clock, workers=1)
            leases.unfreeze(lease_id=held.request_id, **self.how)
            self.clock.advance(5)
            requests.freeze_leases(clock=self.clock, workers=1)
        again = self.take_back(self.done(self.story.extend(held, 7_200)))
        leases.freeze(lease_id=again.request_id, reason="Mines", **self.how)
        requests.freeze_leases(clock=self.clock, workers=1)
        self.wait(3_600)

    def sandboxes(self) -> None:
        """Lent for longer and for less, given back and taken back, to its end; to a program, and put in quarantine."""
        held = self.done(self.labs.ask(seconds=600))
        self.take_back(self.done(self.story.extend(held, 1_200)))
        taken = self.labs.take_elsewhere()
        self.clock.advance(12 * 3_600)
        sandboxes.expire(clock=self.clock)
        self.clock.advance(60)
        free_again(pool.get(sandbox_id=taken.sandbox_id), now=self.clock.now())
        sandboxes.quarantine(sandbox_id=self.labs.take_elsewhere().sandbox_id, reason="Odd", **self.how)

    def records(self, case: Case, wanted: Any) -> None:
        """Granted, extended, replaced, held by requests beside it and alone, revoked, over, moved, and deleted with their scope."""
        ledger, caller = case.ledger, caller_of(self.story.olga)

        def now() -> dict[str, Any]:
            self.clock.advance(1)
            return {"caller": caller, "now": self.clock.now()}

        def grant(scope: str = SCOPE, **more: Any) -> None:
            authz.grant(ledger, wanted(read_scope(scope), self.clock.now()), ttl_seconds=900, **more, **now())

        grant()
        grant(if_exists=authz.IfExists.REPLACE)
        authz.extend(ledger, read_scope(SCOPE), case.names, ttl_seconds=1_200, **now())
        held = self.done(ask(self.story, case, seconds=3_600))
        other = self.done(ask(self.story, case, seconds=7_200))
        self.done(self.story.end(held))
        self.wait(1_300)
        self.done(self.story.end(other))
        grant()
        authz.revoke(ledger, read_scope(SCOPE), case.names, **now())
        grant()
        self.clock.advance(1_000)
        authz.sweep(actor=JOB, clock=self.clock, workers=1)
        grant(OTHER)
        authz.move_records(source=read_scope(OTHER), to=read_scope(LAST), apply=True, caller=caller, clock=self.clock)
        authz.begin_deletion(scope=read_scope(LAST), typed=LAST, **now())
        for _ in range(2):
            authz.carry_out_deletions(actor=JOB, clock=self.clock, workers=1)
            self.clock.advance(90)


def approval(scope: Any, at: datetime) -> Approval:
    return Approval(scope, *APPROVAL.names, "olga@example.com", at)


def relationship(scope: Any, at: datetime) -> Relationship:
    return Relationship(scope, *RELATIONSHIP.names, RelationType.ROLE, created_by="olga@example.com", created_at=at)


def moments(since: datetime) -> list[datetime]:
    """Just before each event that is read, and at it; so, too, of each end that was written."""
    events = [event for chain in every_event() for event in chain if readers.tells(event)]
    ends = {from_epoch(event.data["expires_at"]) for event in events if event.data.get("expires_at")}
    return sorted(at - before for at in {event.at for event in events} | ends if at > since for before in (JUST, timedelta(0)))


def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written any more: what lies under each key is read from the table once, since the moments are many."""

    def remembered(listing: Listing[HistoryItem, tuple[str, Interval]]) -> Callable[..., Page[tuple[str, Interval]]]:
        places: dict[str, Page[tuple[str, Interval]]] = {}

        def page(place: str, *, where: Condition, cursor: str | None, limit: int, bound: object) -> Page[tuple[str, Interval]]:
            if place not in places:
                places[place] = listing(place, limit=500)
            assert (places[place].next_cursor, cursor) == (None, None)
            first, last = (operand.value["S"] for operand in where.values[1:])
            met = (one for one in places[place].items if first <= f"{one[0]}|{one[1].key}" <= last)
            return Page(tuple(met), None, places[place].unreadable)

        return page

    for name in ("_of_thing", "_of_person"):
        monkeypatch.setattr(store, name, remembered(getattr(store, name)))
    progress = store.get_progress()
    monkeypatch.setattr(store, "get_progress", lambda: progress)


@pytest.mark.django_db
def test_at_every_event_the_history_says_what_all_events_say(borrowed: Borrowed, labs: Labs, monkeypatch: pytest.MonkeyPatch) -> None:
    story, script = borrowed.story, Script(borrowed, labs)
    rules.apply_rules(text=RULES + LEASE_RULES + POOL_RULES + RECORD_RULES, actor=JOB, now=story.clock.now())
    borrowed.fill(1)
    labs.fill("lab-1", "lab-2", hours=2)
    began_at = story.clock.now()
    script.accounts()
    script.groups()
    script.people()
    script.leases()
    script.sandboxes()
    script.records(APPROVAL, approval)
    script.records(RELATIONSHIP, relationship)
    written = {event.action for chain in every_event() for event in chain}
    assert {name for name in ACTIONS if is_read(name)} - written == ELSEWHERE

    story.clock.advance(300)
    assert operations.follow(workers=1, clock=story.clock).is_ok
    with monkeypatch.context() as once:
        read_once(once)
        check(story, moments(began_at), PEOPLE)
        check_periods(story, list(moments(began_at)))
    before = rows()
    assert operations.rebuild(workers=1, actor=story.olga, clock=story.clock).is_ok
    assert rows() == before
