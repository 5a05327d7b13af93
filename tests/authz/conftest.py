"""Approvals and relationships at the test's own time: Olga operates, Ana audits, and the programs of two tenants call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from accessportal.authz import queries
from accessportal.authz.operations import granting
from accessportal.authz.operations.granting import Granted, IfExists
from accessportal.authz.policy.checks import Answer
from accessportal.authz.policy.rights import Caller, caller_of
from accessportal.authz.policy.scopes import read_scope
from accessportal.authz.states import Approval, Relationship, RelationType
from accessportal.authz.store import APPROVALS, RELATIONSHIPS, Ledger
from accessportal.kernel.actors import Role, client, person
from accessportal.kernel.lasting import Right
from accessportal.kernel.pages import every
from tests.conftest import FakeClock

OLGA = caller_of(person("olga@example.com", roles=frozenset({Role.OPERATOR})))
ANA = caller_of(person("ana@example.com", roles=frozenset({Role.AUDITOR})))


def program(scope: str, *, may_write: bool = True) -> Caller:
    return Caller(client("acme00000000"), read_scope(scope), may_write=may_write, right=Right("a program", None))


@dataclass
class Service:
    """Short words for what callers do, at the clock's time."""

    clock: FakeClock
    caller: Caller = OLGA

    def grant(
        self,
        identity: str,
        resource: str,
        action: str,
        *,
        scope: str,
        ttl: int | None = 3_600,
        if_exists: IfExists = IfExists.REFUSE,
        **metadata: str,
    ) -> Granted[Approval]:
        wanted = Approval(read_scope(scope), identity, resource, action, self.caller.actor.name, self.clock.now(), metadata=metadata)
        return granting.grant(APPROVALS, wanted, ttl_seconds=ttl, if_exists=if_exists, caller=self.caller, now=self.clock.now())

    def add(
        self,
        subject: str,
        relation: str,
        target: str,
        *,
        scope: str,
        ttl: int | None = 3_600,
        if_exists: IfExists = IfExists.REFUSE,
        kind: RelationType = RelationType.ROLE,
        **metadata: str,
    ) -> Granted[Relationship]:
        by, now = self.caller.actor.name, self.clock.now()
        wanted = Relationship(read_scope(scope), subject, relation, target, kind, by, now, metadata=metadata)
        return granting.grant(RELATIONSHIPS, wanted, ttl_seconds=ttl, if_exists=if_exists, caller=self.caller, now=now)

    def check(self, *names: str, scope: str, ledger: Ledger[Any] = APPROVALS) -> Answer:
        one, two, three = names
        return queries.check(ledger, read_scope(scope), (one, two, three), caller=self.caller, clock=self.clock)

    def chain(self, *names: str, scope: str) -> Answer:
        one, two, three = names
        return queries.check_chain(read_scope(scope), (one, two, three), caller=self.caller, clock=self.clock)

    def revoke(self, *names: str, scope: str, ledger: Ledger[Any] = APPROVALS) -> None:
        one, two, three = names
        granting.revoke(ledger, read_scope(scope), (one, two, three), caller=self.caller, now=self.clock.now())

    def all_in(self, scope: str, *, ledger: Ledger[Any] = APPROVALS, is_wide: bool = False, limit: int = 2) -> set[tuple[str, ...]]:
        listed = every(
            lambda cursor: queries.list_in_scope(
                ledger, read_scope(scope), is_wide=is_wide, cursor=cursor, limit=limit, caller=self.caller, now=self.clock.now()
            )
        )
        return {(str(one.scope), *one.names) for one in listed}

    def count(self, scope: str, *, ledger: Ledger[Any] = APPROVALS, is_wide: bool = False) -> int:
        return queries.count_in_scope(ledger, read_scope(scope), is_wide=is_wide, caller=self.caller, now=self.clock.now())


@pytest.fixture
def service(tables: None, clock: FakeClock) -> Service:
    return Service(clock)
