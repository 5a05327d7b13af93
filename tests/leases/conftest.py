"""The pool of accounts at the test's own time: Olga operates, Alice and Carl lease."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import boto3
import pytest
from moto.core import DEFAULT_ACCOUNT_ID

from accessportal.kernel.actors import Role, person, system
from accessportal.kernel.clock import Clock
from accessportal.kernel.pages import every
from accessportal.kernel.proofs import Waiting
from accessportal.leases import operations, queries
from accessportal.leases.config import current
from accessportal.leases.effects import flaw_of
from accessportal.leases.operations import LeaseSettings, NewAccount
from accessportal.leases.states import Account, AccountState, CleanReport, Lease, LentTo
from accessportal.store.transactions import Guard
from tests.conftest import FakeClock
from tests.fixtures_twin import REGION, Twin, create_account

OLGA = person("olga@example.com", roles=frozenset({Role.OPERATOR}))
MALLORY = person("mallory@example.com")
JOB = system("job")
ALICE, CARL = "alice@example.com", "carl@example.com"
DAY = 86_400
CERTIFICATE = {"found": 3, "removed": 3, "left": 0}


def account_ids(count: int) -> list[str]:
    return [f"{number * 111_111_111_111:012d}" if number < 10 else f"{10**11 + number:012d}" for number in range(1, count + 1)]


@dataclass
class AccountsPool:
    """Short words for what happens to the pool, at the clock's time."""

    clock: Clock

    def fill(self, count: int, *, pool: str = "default", size: str = "", tags: Mapping[str, str] | None = None) -> list[str]:
        """So many accounts, clean and free."""
        ids = account_ids(count)
        self.add(ids, pool=pool, size=size, tags=tags)
        for account_id in ids:
            self.clean(account_id)
        return ids

    def add(self, ids: Sequence[str], *, pool: str = "default", size: str = "", tags: Mapping[str, str] | None = None) -> None:
        new = [NewAccount(one, name=f"lab {one}", size=size, tags=tags or {}) for one in ids]
        operations.add_accounts(new, pool=pool, actor=OLGA, now=self.clock.now())

    def clean(self, account_id: str) -> None:
        operations.make_available(self.get(account_id), certificate=CERTIFICATE, actor=JOB, now=self.clock.now())

    def get(self, account_id: str) -> Account:
        return queries.get_account(account_id=account_id)

    def take(
        self,
        user: str = ALICE,
        *,
        claim: str = "",
        pool: str = "default",
        size: str = "",
        tags: Mapping[str, str] | None = None,
        seconds: int = DAY,
        most_held: int = 3,
        guards: Sequence[Guard] = (),
    ) -> Lease | Waiting:
        claim = claim or str(uuid.uuid4())
        asked = operations.Asked(
            claim=claim,
            lease_id=claim,
            user=user,
            pool=pool,
            size=size,
            tags=tags or {},
            permission_set="PowerUserAccess",
            duration_seconds=seconds,
            most_held=most_held,
        )
        lapses_at = self.clock.now() + timedelta(hours=72)
        return operations.take(asked, lapses_at=lapses_at, guards=guards, actor=JOB, clock=self.clock)

    def taken(self, user: str = ALICE, **wanted: Any) -> Lease:
        found = self.take(user, **wanted)
        assert isinstance(found, Lease), found
        return found

    def start(self, lease: Lease, **changed: Any) -> Lease:
        asked: dict[str, Any] = {"lease_id": lease.lease_id, "claim": lease.lease_id, "proved_at": self.clock.now(), **changed}
        return operations.start(**asked, actor=JOB, now=self.clock.now())

    def started(self, user: str = ALICE, **wanted: Any) -> Lease:
        return self.start(self.taken(user, **wanted))

    def let_go(self, lease: Lease, claim: str = "") -> LentTo:
        return operations.let_go(lease_id=lease.lease_id, claim=claim or lease.lease_id, actor=JOB, now=self.clock.now())

    def revive(self, lease: Lease, claim: str, **changed: Any) -> Lease:
        asked: dict[str, Any] = {"user": lease.user, "permission_set": lease.permission_set, "duration_seconds": 3_600, "most_held": 3}
        of: dict[str, Any] = {"account_id": lease.account_id, "ended_lease_id": lease.lease_id}
        for name, value in changed.items():
            (of if name in {*of, "guards"} else asked)[name] = value
        wanted = operations.Asked(claim=claim, lease_id=claim, pool=lease.pool, **asked)
        return operations.revive(wanted, **of, actor=JOB, now=self.clock.now())


@pytest.fixture
def accounts(tables: None, clock: FakeClock) -> AccountsPool:
    return AccountsPool(clock)


@dataclass
class Cleaning:
    """The pool beside its cleaner, and the organization that its accounts are in."""

    accounts: AccountsPool
    twin: Twin
    clock: FakeClock

    def make(self, *names: str, path: str = "/Pool") -> list[str]:
        """New accounts of the organization, in the pool's unit."""
        units = self.twin.organizational_units
        return [create_account(self.twin.organizations, units, name, path, {}) for name in names]

    def fill(self, *names: str) -> list[str]:
        """New accounts, in the pool, to be cleaned."""
        ids = self.make(*names)
        self.accounts.add(ids)
        return ids

    def set(self, **values: Any) -> None:
        operations.configure(replace(current(), **values))

    def run(self) -> CleanReport:
        return operations.clean_accounts(clock=self.clock, workers=1)

    def clean(self, account_id: str) -> None:
        """Until it is free."""
        for _ in range(30):
            self.run()
            if self.state_of(account_id) is AccountState.AVAILABLE:
                return
            self.clock.advance(60)
        raise AssertionError(f"still {self.accounts.get(account_id)}")

    def state_of(self, account_id: str) -> AccountState:
        return self.accounts.get(account_id).state

    def runs(self) -> list[str]:
        """The names of all runs that the cleaner ever began, in order."""
        return [one.name for one in self.twin.front.cleaner.executions()]

    def events(self, account_id: str, *actions: str) -> list[dict[str, Any]]:
        """The data of its events of these actions, oldest first."""
        found = every(lambda cursor: queries.history_of_account(account_id=account_id, cursor=cursor))
        return [event.data for event in found if event.action.removeprefix("account.") in actions][::-1]

    def actions(self, account_id: str) -> list[str]:
        found = every(lambda cursor: queries.history_of_account(account_id=account_id, cursor=cursor))
        return [event.action.removeprefix("account.") for event in found][::-1]

    def move(self, account_id: str, path: str) -> None:
        """To another organizational unit, as somebody does in AWS."""
        units = self.twin.organizational_units
        (parent,) = self.twin.organizations.list_parents(ChildId=account_id)["Parents"]
        self.twin.organizations.move_account(AccountId=account_id, SourceParentId=parent["Id"], DestinationParentId=units[path])


@pytest.fixture
def cleaning(accounts: AccountsPool, twin: Twin, clock: FakeClock) -> Iterator[Cleaning]:
    """A cleaner and a unit for the pool ``default``; no account yet."""
    found = Cleaning(accounts, twin, clock)
    found.make("first", path="/Pool")
    definition = json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}})
    role = f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/cleaner"
    made = boto3.client("stepfunctions", region_name=REGION).create_state_machine(name="cleaner", definition=definition, roleArn=role)
    unit = twin.organizational_units["/Pool"]
    operations.configure(LeaseSettings(cleaner_arn=made["stateMachineArn"], units={unit: "default"}, flaw_of=flaw_of))
    yield found
    operations.configure(LeaseSettings())
