"""Whatever people, operators, programs, time and jobs do, in any order: the history says what all events say that were written."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from accessportal.access_requests import operations as requests
from accessportal.access_requests.states import AccessRequest
from accessportal.authz.operations import IfExists, grant, revoke, sweep
from accessportal.authz.queries import APPROVALS, caller_of, read_scope
from accessportal.authz.states import Approval
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole, State
from accessportal.history import operations
from accessportal.kernel.actors import system
from accessportal.kernel.errors import PortalError
from accessportal.kernel.pages import every
from accessportal.leases import operations as leases
from accessportal.leases import queries as lent
from accessportal.rules import operations as rules
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes.queries import list_by_status
from accessportal.sandboxes.states import Sandbox, Status
from tests.depth import examples
from tests.fixtures_accounts import LEASE_RULES, Borrowed
from tests.fixtures_pool import POOL_RULES, Labs
from tests.fixtures_records import RECORD_RULES
from tests.fixtures_story import RULES
from tests.fixtures_twin import REGION
from tests.history.comparing import check, check_pages, check_periods, rows
from tests.sandboxes.cleaning_by_hand import free_again

SCOPE = read_scope("tenant:acme-corp")
DOCS = ("docs/plan", "docs/other")
PEOPLE = ("alice@example.com", "gina@example.com", "sam@example.com", "new@example.com")
GROUPS = ("/engineering", "/engineering/payments", "/security", "/engineering/lab")
ROLES = tuple(GroupRole)
JOB = system("job")


class World:
    """``do`` is one thing that happens; what it is refused, it does not do."""

    def __init__(self, borrowed: Borrowed, labs: Labs) -> None:
        self.borrowed, self.labs, self.story = borrowed, labs, borrowed.story
        self.asked: list[AccessRequest] = []
        self.moments: list[datetime] = []

    @property
    def now(self) -> datetime:
        return self.story.clock.now()

    def do(self, verb: int, one: int, other: int) -> None:
        verbs = sorted(name for name in dir(self) if name.startswith("do_"))
        act: Callable[[int, int], object] = getattr(self, verbs[verb % len(verbs)])
        with suppress(PortalError):
            act(one, other)
        with suppress(PortalError):
            self.story.tick()
        self.moments.append(self.now)
        self.story.clock.advance((1, 60, 1_800, 90_000)[one % 4])

    def do_account(self, one: int, other: int) -> None:
        subject = "/engineering/payments" if other % 3 == 0 else None
        self.asked.append(self.story.ask(seconds=(600, 3_600)[one % 2], subject_id=subject, actor=self.story.alice))

    def do_prod(self, one: int, _other: int) -> None:
        self.asked.append(self.story.approve(self.story.ask_for_prod(seconds=(600, 3_600)[one % 2])))

    def do_join(self, one: int, other: int) -> None:
        self.asked.append(self.story.ask_to_join(GROUPS[one % 2], seconds=(600, 3_600)[other % 2]))

    def do_lease(self, _one: int, _other: int) -> None:
        self.asked.append(self.borrowed.ask(seconds=3_600))

    def do_sandbox(self, one: int, _other: int) -> None:
        if one % 2:
            self.labs.take_elsewhere(f"track-{one % 3}")
        else:
            self.asked.append(self.labs.ask(seconds=600))

    def do_record(self, one: int, other: int) -> None:
        kind, names = ("approval", {"resource": DOCS[one % 2], "action": "GET"})
        if other % 2:
            kind, names = "relationship", {"object": DOCS[one % 2], "relation": "editor", "relation_type": "role"}
        self.story._submissions += 1
        asked = requests.submit(
            kind=kind,
            subject_id=None,
            target={"scope": SCOPE, **names},
            duration_seconds=(600, 3_600)[other % 2],
            reason="Read",
            ticket_id="",
            submission_id=f"form-{self.story._submissions}",
            actor=self.story.alice,
            now=self.now,
        )
        self.asked.append(asked)

    def do_extend(self, one: int, _other: int) -> None:
        self.asked.append(self.story.extend(self.asked[one % len(self.asked)], 1_200)) if self.asked else None

    def do_end(self, one: int, _other: int) -> None:
        _ = self.asked and self.story.end(self.asked[one % len(self.asked)])

    def do_take_back(self, one: int, _other: int) -> None:
        if self.asked:
            request = self.asked[one % len(self.asked)]
            self.asked.append(requests.take_back(request_id=request.request_id, actor=self.story.alice, now=self.now))

    def do_rename(self, one: int, other: int) -> None:
        """Nobody has more or less by it."""
        directory.rename_person(email=PEOPLE[one % 4], name=f"N{other}", actor=self.story.olga, now=self.now)
        directory.rename_group(group_id=GROUPS[one % 4], name=f"G{other}", description="", actor=self.story.olga, now=self.now)

    def do_freeze(self, one: int, other: int) -> None:
        for lease in every(lambda cursor: lent.list_leases(pool="", cursor=cursor, limit=50)):
            if other % 2:
                leases.freeze(lease_id=lease.lease_id, reason="Mines", actor=self.story.olga, now=self.now)
            else:
                leases.unfreeze(lease_id=lease.lease_id, actor=self.story.olga, now=self.now)
        _ = one % 3 and requests.freeze_leases(clock=self.story.clock, workers=1)

    def do_approval(self, one: int, other: int) -> None:
        wanted = Approval(SCOPE, PEOPLE[one % 2], DOCS[other % 2], "GET", "olga@example.com", self.now)
        if one % 5 == 0:
            revoke(APPROVALS, SCOPE, wanted.names, caller=caller_of(self.story.olga), now=self.now)
        else:
            again = list(IfExists)[other % 3]
            ttl = (600, 7_200)[one % 2]
            grant(APPROVALS, wanted, ttl_seconds=ttl, if_exists=again, caller=caller_of(self.story.olga), now=self.now)

    def do_sweep(self, _one: int, _other: int) -> None:
        sweep(actor=JOB, clock=self.story.clock)
        sandboxes.expire(clock=self.story.clock)
        for sandbox in list_by_status(status=Status.PENDING_DELETION, cursor=None, limit=50).items:
            assert isinstance(sandbox, Sandbox)
            free_again(sandbox, now=self.now)

    def do_member(self, one: int, other: int) -> None:
        email, group_id = PEOPLE[one % 4], GROUPS[other % 4]
        if one % 3:
            directory.grant_membership(email=email, group_id=group_id, role=ROLES[other % 3], actor=self.story.olga, now=self.now)
        else:
            directory.revoke_membership(email=email, group_id=group_id, actor=self.story.olga, now=self.now)

    def do_person(self, one: int, other: int) -> None:
        email, olga = PEOPLE[one % 4], self.story.olga
        if other % 4 == 0:
            directory.delete_person(email=email, actor=olga, now=self.now)
        elif other % 4 == 1:
            directory.create_person(email=email.upper(), name="N", group_id=GROUPS[0], role=ROLES[2], actor=olga, now=self.now)
        else:
            state = (State.DISABLED, State.ENABLED)[other % 2]
            directory.set_person_state(email=email, state=state, actor=olga, now=self.now)

    def do_group(self, one: int, other: int) -> None:
        group_id, olga = GROUPS[1 + one % 3], self.story.olga
        if other % 5 == 0:
            directory.create_group(group_id=GROUPS[3], name="Lab", description="", actor=olga, now=self.now)
        elif other % 5 == 1:
            directory.delete_group(group_id=GROUPS[3], actor=olga, now=self.now)
        elif other % 5 == 2:
            state = (State.DISABLED, State.ENABLED)[one % 2]
            directory.set_group_state(group_id=GROUPS[one % 4], state=state, actor=olga, now=self.now)
        else:
            directory.move_group(group_id=group_id, parent_id=GROUPS[other % 3], actor=olga, now=self.now)

    def do_follow(self, _one: int, _other: int) -> None:
        self.follow()

    def follow(self) -> None:
        report = operations.follow(workers=1, clock=self.story.clock)
        assert report.is_ok, report


@pytest.fixture
def world(borrowed: Borrowed, labs: Labs) -> World:
    rules.apply_rules(text=RULES + LEASE_RULES + POOL_RULES + RECORD_RULES, actor=JOB, now=borrowed.story.clock.now())
    borrowed.fill(1)
    labs.fill("lab-1", "lab-2", hours=2)
    return World(borrowed, labs)


ACTS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 11), st.integers(0, 59)), min_size=8, max_size=20)


@pytest.mark.django_db
def test_the_history_says_what_all_events_say(world: World) -> None:
    empty = copy.deepcopy(dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables)

    @settings(
        max_examples=examples(2),
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(ACTS)
    def run(acts: list[tuple[int, int, int]]) -> None:
        dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables = copy.deepcopy(empty)
        world.asked, world.moments = [], []
        world.story.clock.advance(60)
        for act in acts:
            world.do(*act)
        world.story.clock.advance(300)
        world.follow()
        check(world.story, world.moments, PEOPLE)
        check_periods(world.story, world.moments)
        check_pages(world.story, world.moments, PEOPLE)
        before = rows()
        assert operations.rebuild(workers=1, actor=world.story.olga, clock=world.story.clock).is_ok
        assert rows() == before

    run()
