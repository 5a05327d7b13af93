"""The world of the races: the stories' people and rules on DynamoDB Local, the twin for everything else, real threads, real time."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

from botocore.awsrequest import AWSPreparedRequest
from django.db import connections
from moto.core.models import botocore_stubber

from accessportal.access_requests import operations, queries
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.assignments import queries as assignments
from accessportal.assignments.states import Assignment, AssignmentState
from accessportal.audit import queries as audit
from accessportal.aws.clients import forget_clients
from accessportal.catalog import operations as catalog
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole
from accessportal.kernel.actors import Actor, person, system
from accessportal.kernel.errors import Unavailable
from accessportal.kernel.pages import every
from accessportal.rules import operations as rules
from accessportal.twin.identity_center import IdentityCenterTwin
from accessportal.twin.inprocess import twin_in_process
from accessportal.twin.settings import TwinSettings
from tests.conftest import FakeClock
from tests.fixtures_story import GROUPS, PEOPLE, RULES
from tests.fixtures_twin import Twin, small_world

T = TypeVar("T")
ALICE = person("alice@example.com")
BOB = person("bob@example.com")
SAM = person("sam@example.com")
DEV_ACCOUNTS = tuple(f"team-{number:02}-dev" for number in range(12))
APPROVERS = tuple(person(f"approver{number:02}@example.com") for number in range(50))


class JumpClock:
    """Real time, which can be moved forward for everybody at once: the portal's, and the twin's."""

    def __init__(self) -> None:
        self._ahead = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)

    def jump(self, seconds: float) -> None:
        self._ahead += timedelta(seconds=seconds)


@dataclass
class Stage:
    """Short words for what people do, at the moment of the call. Every request made here is checked by ``check_whole``."""

    twin: Twin
    clock: JumpClock
    requests: set[str] = field(default_factory=set)
    _forms: Iterator[int] = field(default_factory=itertools.count)

    def open(self) -> None:
        """Read the catalog (its database is emptied after every test) and put the rules in force, if they are not yet."""
        catalog.sync_catalog(now=self.clock.now(), clock=self.clock)
        rules.apply_rules(text=RULES, actor=system("setup"), now=self.clock.now())

    def ask(
        self,
        *,
        actor: Actor = ALICE,
        account: str = "payments-dev",
        permission_set: str = "PowerUserAccess",
        seconds: int = 3600,
        ticket: str = "",
        submission_id: str = "",
    ) -> AccessRequest:
        asked = operations.submit(
            kind="aws_account",
            subject_id=None,
            target={"account": account, "permission_set": permission_set},
            duration_seconds=seconds,
            reason="Incident 4711",
            ticket_id=ticket,
            submission_id=submission_id or f"form-{next(self._forms)}",
            actor=actor,
            now=self.clock.now(),
        )
        self.requests.add(asked.request_id)
        return asked

    def ask_for_prod(self, *, permission_set: str = "ReadOnlyAccess") -> AccessRequest:
        """Waits for one approval from security (``PowerUserAccess``: two)."""
        return self.ask(account="payments-prod", permission_set=permission_set, ticket="CHG-20817")

    def extend(self, request: AccessRequest, seconds: int) -> AccessRequest:
        extension = operations.extend(
            request_id=request.request_id,
            duration_seconds=seconds,
            submission_id=f"form-{next(self._forms)}",
            actor=ALICE,
            now=self.clock.now(),
        )
        self.requests.add(extension.request_id)
        return extension

    def approve(self, request: AccessRequest, *, actor: Actor = BOB) -> AccessRequest:
        return operations.approve(request_id=request.request_id, actor=actor, now=self.clock.now())

    def deny(self, request: AccessRequest, *, actor: Actor = SAM) -> AccessRequest:
        return operations.deny(request_id=request.request_id, reason="Not today", actor=actor, now=self.clock.now())

    def cancel(self, request: AccessRequest) -> AccessRequest:
        return operations.cancel(request_id=request.request_id, actor=ALICE, now=self.clock.now())

    def end(self, request: AccessRequest) -> AccessRequest:
        return operations.end(request_id=request.request_id, actor=ALICE, now=self.clock.now())

    def carry_out(self, request: AccessRequest) -> AccessRequest:
        return operations.carry_out(request_id=request.request_id, clock=self.clock)

    def granted(self, request: AccessRequest) -> AccessRequest:
        """Carry the grant out to its proof."""
        done = self.carry_out(request)
        assert done.is_granted, done
        return done

    def now_of(self, request: AccessRequest) -> AccessRequest:
        return queries.get(request_id=request.request_id, actor=system("test"), now=self.clock.now())

    def settle(self) -> None:
        """Carry everything out that is left, however often the others were in the way."""
        for _ in range(60):
            left = [request for request in self._all() if request.work is not None]
            if not left:
                return
            self.clock.jump(max(0.0, *((_due(request) - self.clock.now()).total_seconds() for request in left)))
            report = operations.tick(clock=self.clock, lookahead_seconds=0, workers=4)
            assert report.failures == ()
        raise AssertionError(f"still to be carried out: {left}")

    def end_everything(self) -> None:
        """For the next round: nobody holds or waits for anything."""
        for request in self._all():
            if request.status is Status.PENDING:
                self.cancel(request)
            elif request.status is Status.ACTIVE and request.work is not Work.REVOKE:
                self.end(request)
        self.settle()
        self.check_whole()
        assert self.twin.assignments() == set()
        self.requests.clear()

    def check_whole(self) -> None:
        """Every audit chain is whole and ends where its item says; claims, requests and Identity Center tell the same."""
        granted = set()
        for request in self._all():
            assert audit.check_head(request.entity, version=request.version, audit_head=request.audit_head) == []
            assert request.work is None, "call settle() first"
            if request.status is Status.ACTIVE:
                assert request.is_granted
                granted.add(request.request_id)
        held = set()
        for assignment in self.all_assignments():
            assert audit.check_head(assignment.entity, version=assignment.version, audit_head=assignment.audit_head) == []
            assert (assignment.state is AssignmentState.PRESENT) == assignment.is_wanted
            granted -= assignment.claims
            held |= {_twin_key(assignment)} if assignment.is_wanted else set()
        assert granted == set(), "granted, but nothing is claimed for it"
        assert self.twin.assignments() == held

    def all_assignments(self) -> list[Assignment]:
        return [one for state in AssignmentState for one in every(lambda cursor, state=state: _page(state, cursor))]  # type: ignore[misc]

    def events_of(self, request: AccessRequest) -> list[str]:
        return [event.action for event in queries.history(request=request)]

    def _all(self) -> list[AccessRequest]:
        return [queries.get(request_id=one, actor=system("test"), now=self.clock.now()) for one in self.requests]


def at_once(actions: Sequence[Callable[[], T]]) -> list[T | Exception]:
    """What each of ``actions`` returned or raised, all started at the same moment, each in a thread of its own."""
    barrier = threading.Barrier(len(actions))
    outcomes: list[T | Exception | None] = [None] * len(actions)

    def run(position: int, action: Callable[[], T]) -> None:
        barrier.wait()
        try:
            outcomes[position] = action()
        except Exception as error:
            outcomes[position] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive(), "a thread hangs"
    return cast("list[T | Exception]", outcomes)


def patient(action: Callable[[], T]) -> T:
    """Who has collided twelve times is told that nothing was done and to try again; who does what it says is served."""
    try:
        return action()
    except Unavailable as error:
        if error.code != "store_contended":
            raise
        return action()


def won(outcomes: Sequence[T | Exception]) -> list[T]:
    return [outcome for outcome in outcomes if not isinstance(outcome, Exception)]


def lost(outcomes: Sequence[Any]) -> list[Exception]:
    return [outcome for outcome in outcomes if isinstance(outcome, Exception)]


@contextmanager
def stage_on(engine_url: str) -> Iterator[Stage]:
    """The twin answers for everything but DynamoDB, whose calls go on to the engine; the world is built."""
    clock = JumpClock()
    with twin_in_process(clock=clock, settings=TwinSettings(job_seconds=0.2)) as front, _dynamodb_passes(engine_url):
        forget_clients()
        front.settings.calls_per_second = 0
        world = small_world(front, cast("FakeClock", clock))
        for name in DEV_ACCOUNTS:
            _add_account(world, name)
        _build_directory(clock)
        front.settings.calls_per_second = TwinSettings().calls_per_second
        try:
            yield Stage(world, clock)
        finally:
            forget_clients()


@contextmanager
def _dynamodb_passes(engine_url: str) -> Iterator[None]:
    """moto's handler lets the engine's calls go, before the twin's lock: they must really run in parallel."""
    inner = botocore_stubber.process_request

    def process_request(request: AWSPreparedRequest) -> Any:
        return None if request.url.startswith(engine_url) else inner(request)

    botocore_stubber.process_request = process_request  # type: ignore[method-assign]
    try:
        yield
    finally:
        botocore_stubber.process_request = inner  # type: ignore[method-assign]


def _add_account(world: Twin, name: str) -> None:
    made = world.organizations.create_account(AccountName=name, Email=f"{name}@example.com", Tags=[{"Key": "env", "Value": "dev"}])
    world.accounts[name] = made["CreateAccountStatus"]["AccountId"]
    units = world.organizational_units
    world.organizations.move_account(AccountId=world.accounts[name], SourceParentId=units["/"], DestinationParentId=units["/Workloads/Dev"])


def _build_directory(clock: JumpClock) -> None:
    setup = system("setup")
    directory.found_directory(
        admin_email="olga@example.com",
        admin_name="Olga Berg",
        operator_group="/portal/operators",
        auditor_group="/portal/auditors",
        actor=setup,
        now=clock.now(),
    )
    for group_id, name in GROUPS.items():
        directory.create_group(group_id=group_id, name=name, description="", actor=setup, now=clock.now())
    people = [(email, *rest) for email, rest in PEOPLE.items()]
    people += [(one.name, f"Approver {number}", "/security", GroupRole.CONTRIBUTOR) for number, one in enumerate(APPROVERS)]
    for email, name, place, role in people:
        directory.create_person(email=email, name=name, group_id=place, role=role, actor=setup, now=clock.now())


def jobs_started(front: IdentityCenterTwin) -> list[tuple[str, str]]:
    """Of each job that Identity Center ever started: its verb and the account."""
    return [(job.verb, job.key.account_id) for job in front.jobs()]


def _page(state: AssignmentState, cursor: str | None) -> Any:
    return assignments.list_by_state(state=state, cursor=cursor)


def _twin_key(assignment: Assignment) -> tuple[str, str, str, str]:
    key = assignment.key
    return (key.principal_type.value, key.principal_id, key.account_id, key.permission_set_arn)


def _due(request: AccessRequest) -> datetime:
    assert request.work_due_at is not None
    return request.work_due_at
