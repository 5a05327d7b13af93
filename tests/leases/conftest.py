"""The pool of accounts at the test's own time: Olga operates, Alice and Carl lease."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from accessportal.kernel.actors import Role, person, system
from accessportal.kernel.clock import Clock
from accessportal.kernel.proofs import Waiting
from accessportal.leases import operations, queries
from accessportal.leases.operations import NewAccount
from accessportal.leases.states import Account, Lease, LetGo
from accessportal.store.transactions import Guard
from tests.conftest import FakeClock

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
        return operations.take(
            claim=claim,
            lease_id=claim,
            user=user,
            pool=pool,
            size=size,
            tags=tags,
            permission_set="PowerUserAccess",
            duration_seconds=seconds,
            most_held=most_held,
            lapses_at=self.clock.now() + timedelta(hours=72),
            guards=guards,
            actor=JOB,
            clock=self.clock,
        )

    def taken(self, user: str = ALICE, **wanted: Any) -> Lease:
        found = self.take(user, **wanted)
        assert isinstance(found, Lease), found
        return found

    def start(self, lease: Lease, **changed: Any) -> Lease:
        asked: dict[str, Any] = {"lease_id": lease.lease_id, "claim": lease.lease_id, "proved_at": self.clock.now(), **changed}
        return operations.start(**asked, actor=JOB, now=self.clock.now())

    def started(self, user: str = ALICE, **wanted: Any) -> Lease:
        return self.start(self.taken(user, **wanted))

    def let_go(self, lease: Lease, claim: str = "") -> LetGo:
        return operations.let_go(lease_id=lease.lease_id, claim=claim or lease.lease_id, actor=JOB, now=self.clock.now())

    def revive(self, lease: Lease, claim: str, **changed: Any) -> Lease:
        wanted: dict[str, Any] = {
            "account_id": lease.account_id,
            "ended_lease_id": lease.lease_id,
            "lease_id": claim,
            "claim": claim,
            "user": lease.user,
            "permission_set": lease.permission_set,
            "duration_seconds": 3_600,
            "most_held": 3,
            **changed,
        }
        return operations.revive(**wanted, actor=JOB, now=self.clock.now())


@pytest.fixture
def accounts(tables: None, clock: FakeClock) -> AccountsPool:
    return AccountsPool(clock)
