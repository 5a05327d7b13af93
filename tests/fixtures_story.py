"""The world of the stories: Alice asks, Bob may approve, Mallory is a stranger; Olga operates, Ana audits.

Olga founded the directory and is admin of everything; Bob is admin of ``/security``, Gina of ``/engineering``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.apps import apps
from django.db.models import Model
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from accessportal.access_requests import operations, queries
from accessportal.access_requests.operations import departing, sweeping
from accessportal.access_requests.states import AccessRequest, Status, TickReport
from accessportal.assignments.effects.call_queue import SharedPace
from accessportal.catalog import operations as catalog
from accessportal.directory import operations as directory
from accessportal.directory import queries as directory_queries
from accessportal.directory.states import GroupRole
from accessportal.kernel.actors import Actor, Role, person, system
from accessportal.kernel.ports import set_after_commit
from accessportal.mirror.operations import comparing as mirror_comparing
from accessportal.rules import operations as rules
from accessportal.rules import store as rule_store
from tests.conftest import FakeClock
from tests.fixtures_twin import REGION, Twin

GROUPS = {
    "/engineering": "Engineering",
    "/engineering/payments": "Payments",
    "/security": "Security",
}
PEOPLE = {
    "alice@example.com": ("Alice Park", "/engineering/payments", GroupRole.CONTRIBUTOR),
    "bob@example.com": ("Bob Ito", "/security", GroupRole.ADMIN),
    "sam@example.com": ("Sam Osei", "/security", GroupRole.CONTRIBUTOR),
    "gina@example.com": ("Gina Falk", "/engineering", GroupRole.ADMIN),
    "mallory@example.com": ("Mallory Moss", None, None),
    "ana@example.com": ("Ana Lima", "/portal/auditors", GroupRole.READER),
}
RULES = """
rules:
  - name: security-accounts
    kind: aws_account
    effect: deny
    subjects: {groups: [/]}
    targets: {ous: [/Security]}
  - name: dev-power
    kind: aws_account
    effect: allow
    subjects: {groups: [/engineering/payments]}
    targets: {ous: [/Workloads/Dev]}
    permission_sets: [PowerUserAccess, ReadOnlyAccess]
    duration: {min: 1m, default: 1h, max: 4h}
    approval: {required: false}
  - name: prod-readonly
    kind: aws_account
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {ous: [/Workloads/Prod]}
    permission_sets: [ReadOnlyAccess]
    duration: {default: 1h, max: 8h}
    approval: {required: true, quorum: 1, approvers: {groups: [/security]}}
    ticket: {required: true, pattern: "CHG-[0-9]+"}
  - name: prod-power
    kind: aws_account
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {ous: [/Workloads/Prod]}
    permission_sets: [PowerUserAccess]
    duration: {default: 1h, max: 4h}
    approval: {required: true, quorum: 2, approvers: {groups: [/security]}}
  - name: look-around
    kind: group
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {subtrees: [/engineering]}
    roles: [reader]
    duration: {min: 1m, default: 1h, max: 8h}
    approval: {required: false}
  - name: help-out
    kind: group
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {subtrees: [/engineering]}
    roles: [reader, contributor, admin]
    duration: {min: 1m, default: 1d, max: 7d}
    approval: {required: true}
  - name: stand-in-operators
    kind: group
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {groups: [/portal/operators]}
    roles: [contributor]
    duration: {max: 4h}
    approval: {required: true, approvers: {groups: [/security]}}
"""


@dataclass
class Story:
    """The people, and short words for what they do. Time passes only when a story says so."""

    twin: Twin
    clock: FakeClock
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    alice: Actor = field(default_factory=lambda: person("alice@example.com"))
    bob: Actor = field(default_factory=lambda: person("bob@example.com"))
    sam: Actor = field(default_factory=lambda: person("sam@example.com"))
    mallory: Actor = field(default_factory=lambda: person("mallory@example.com"))
    olga: Actor = field(default_factory=lambda: person("olga@example.com", roles=frozenset({Role.OPERATOR})))
    gina: Actor = field(default_factory=lambda: person("gina@example.com"))
    ana: Actor = field(default_factory=lambda: person("ana@example.com", roles=frozenset({Role.AUDITOR})))
    _submissions: int = 0

    def ask(
        self,
        *,
        actor: Actor | None = None,
        account: str = "payments-dev",
        permission_set: str = "PowerUserAccess",
        seconds: int = 3600,
        reason: str = "Incident 4711",
        ticket: str = "",
        submission_id: str = "",
        subject_id: str | None = None,
    ) -> AccessRequest:
        self._submissions += 1
        return operations.submit(
            kind="aws_account",
            subject_id=subject_id,
            target={"account": account, "permission_set": permission_set},
            duration_seconds=seconds,
            reason=reason,
            ticket_id=ticket,
            submission_id=submission_id or f"form-{self._submissions}",
            actor=actor or self.alice,
            now=self.clock.now(),
        )

    def ask_for_prod(self, *, seconds: int = 3600, actor: Actor | None = None) -> AccessRequest:
        """Waits for one approval from security."""
        return self.ask(account="payments-prod", permission_set="ReadOnlyAccess", seconds=seconds, ticket="CHG-20817", actor=actor)

    def ask_to_join(
        self, group: str = "/engineering", role: str = "reader", *, seconds: int = 3600, actor: Actor | None = None, submission_id: str = ""
    ) -> AccessRequest:
        """In ``/engineering`` and below, a reader is admitted at once and others by the group's admins."""
        self._submissions += 1
        return operations.submit(
            kind="group",
            subject_id=None,
            target={"group": group, "role": role},
            duration_seconds=seconds,
            reason="Helping out",
            ticket_id="",
            submission_id=submission_id or f"form-{self._submissions}",
            actor=actor or self.alice,
            now=self.clock.now(),
        )

    def role_of(self, email: str, group: str) -> GroupRole | None:
        """What the directory says now."""
        return directory_queries.role_on(email=email, group_id=group, now=self.clock.now())

    def extend(self, request: AccessRequest, seconds: int, *, actor: Actor | None = None) -> AccessRequest:
        self._submissions += 1
        return operations.extend(
            request_id=request.request_id,
            duration_seconds=seconds,
            submission_id=f"form-{self._submissions}",
            actor=actor or self.alice,
            now=self.clock.now(),
        )

    def approve(self, request: AccessRequest, *, actor: Actor | None = None) -> AccessRequest:
        return operations.approve(request_id=request.request_id, actor=actor or self.bob, now=self.clock.now())

    def deny(self, request: AccessRequest, *, actor: Actor | None = None) -> AccessRequest:
        return operations.deny(request_id=request.request_id, reason="Not today", actor=actor or self.bob, now=self.clock.now())

    def end(self, request: AccessRequest, *, actor: Actor | None = None) -> AccessRequest:
        return operations.end(request_id=request.request_id, actor=actor or self.alice, now=self.clock.now())

    def cancel(self, request: AccessRequest, *, actor: Actor | None = None) -> AccessRequest:
        return operations.cancel(request_id=request.request_id, actor=actor or self.alice, now=self.clock.now())

    def carry_out(self, request: AccessRequest) -> AccessRequest:
        return operations.carry_out(request_id=request.request_id, clock=self.clock)

    def tick(self, *, lookahead_seconds: float = 0) -> TickReport:
        return operations.tick(clock=self.clock, lookahead_seconds=lookahead_seconds, workers=1)

    def now_of(self, request: AccessRequest) -> AccessRequest:
        return queries.get(request_id=request.request_id, actor=system("test"), now=self.clock.now())

    def pending_of(self, email: str) -> list[AccessRequest]:
        return [request for request in queries.list_open(subject_id=email) if request.status is Status.PENDING]

    def start_over(self) -> None:
        """Forget every request, assignment and event; for tests that tell many short stories."""
        dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables = copy.deepcopy(_prepared[0].tables)

    def is_assigned(
        self, *, email: str = "alice@example.com", account: str = "payments-dev", permission_set: str = "PowerUserAccess"
    ) -> bool:
        """What Identity Center itself says."""
        key = ("USER", self.twin.users[email], self.twin.accounts[account], self.twin.permission_sets[permission_set])
        return key in self.twin.assignments()


@pytest.fixture
def shared_pace() -> None:
    """Let a story's calls to Identity Center queue as in service."""


@pytest.fixture
def story(
    twin: Twin, tables: None, clock: FakeClock, db: None, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Story]:
    """Everybody in place, the demo's rules loaded, the catalog synced; no request yet.

    Calls to Identity Center wait for no turn, which costs two writes each, unless a test asks for the ``shared_pace``.
    """
    if "shared_pace" not in request.fixturenames:
        monkeypatch.setattr(SharedPace, "_take_slot", lambda _pace, _longest_wait_seconds: True)
    # Work is carried out in the test's own thread: the clock jumps, and would leave a thread that is still at work behind.
    monkeypatch.setattr(sweeping, "_WORKERS", 1)
    monkeypatch.setattr(departing, "_WORKERS", 1)
    monkeypatch.setattr(mirror_comparing, "WORKERS", 1)
    # A test that plants rules leaves none behind in this process's memory.
    monkeypatch.setattr(rule_store, "_cached", rule_store._cached)
    _prepare(clock)
    told = Story(twin=twin, clock=clock)
    replaced = set_after_commit(lambda name, /, **payload: told.asked.append((name, payload)))
    yield told
    set_after_commit(replaced)


@dataclass(frozen=True)
class _Prepared:
    """The world as it was built once in this process: moto's tables, and the catalog's rows."""

    tables: Any
    rows: dict[type[Model], list[Model]]


_prepared: list[_Prepared] = []


def _prepare(clock: FakeClock) -> None:
    """Build the world, or put back what was built for an earlier test (the twin gives the same ids in every test)."""
    backend = dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION]
    if not _prepared:
        begun = clock.now()
        _build(clock)
        # Waiting by chance on the way must not make the first story start later than the others.
        clock.advance((begun - clock.now()).total_seconds())
        rows = {model: list(model._default_manager.all()) for model in apps.get_app_config("catalog").get_models()}
        _prepared.append(_Prepared(copy.deepcopy(backend.tables), rows))
        return
    backend.tables = copy.deepcopy(_prepared[0].tables)
    for model, kept in _prepared[0].rows.items():
        model._default_manager.bulk_create(kept)


def _build(clock: FakeClock) -> None:
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
    for email, (name, home, role) in PEOPLE.items():
        directory.create_person(email=email, name=name, group_id=home, role=role, actor=setup, now=clock.now())
    catalog.sync_catalog(now=clock.now(), clock=clock)
    rules.apply_rules(text=RULES, actor=setup, now=clock.now())
