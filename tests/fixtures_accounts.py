"""The story with a pool of accounts: engineers borrow a small one for three days at once, and any for a week with an approval."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from accessportal.access_requests import operations
from accessportal.access_requests.states import AccessRequest
from accessportal.catalog import operations as catalog
from accessportal.directory import operations as directory
from accessportal.kernel.actors import Actor, person, system
from accessportal.leases import queries
from accessportal.leases.states import Lease
from accessportal.rules import operations as rules
from tests.fixtures_story import RULES, Story
from tests.fixtures_twin import create_account, create_user
from tests.leases.conftest import AccountsPool

DAY = 86_400
LEASE_RULES = """
  - name: small-accounts
    kind: account_lease
    effect: allow
    subjects: {groups: [/]}
    targets: {pools: [labs], sizes: [small]}
    permission_sets: [PowerUserAccess]
    duration: {min: 1m, default: 1d, max: 3d, max_total: 7d}
    approval: {required: false}
    most_per_person: 2
  - name: any-account
    kind: account_lease
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {pools: [labs]}
    permission_sets: [PowerUserAccess, AdministratorAccess]
    duration: {min: 1m, default: 3d, max: 7d}
    approval: {required: true, approvers: {groups: [/security]}}
    extend: always
    budget: {usd: 50, warn_percent: 50, at_limit: freeze}
"""
SETUP = system("setup")


@dataclass
class Borrowed:
    """Short words for what happens to the pool, at the story's time."""

    story: Story
    pool: AccountsPool

    def fill(self, count: int, *, size: str = "small") -> list[str]:
        """So many accounts of the organization, clean and free."""
        twin, known = self.story.twin, len(self.story.twin.accounts)
        ids = [
            create_account(twin.organizations, twin.organizational_units, f"lab-{number}", "/Labs", {"env": "lab"})
            for number in range(known, known + count)
        ]
        twin.accounts.update({f"lab-{number}": account_id for number, account_id in enumerate(ids, known)})
        self.pool.add(ids, pool="labs", size=size, tags={"env": "lab"})
        for account_id in ids:
            self.pool.clean(account_id)
        return ids

    def people(self, count: int) -> list[Actor]:
        """So many, known to the directory and to Identity Center."""
        story = self.story
        emails = [f"person{number}@example.com" for number in range(count)]
        for email in emails:
            directory.create_person(email=email, name=email, group_id=None, role=None, actor=SETUP, now=story.clock.now())
            story.twin.users[email] = create_user(story.twin.identity_store, story.twin.identity_store_id, email, "Some Body")
        story.clock.advance(60)
        catalog.sync_catalog(now=story.clock.now(), clock=story.clock)
        return [person(email) for email in emails]

    def ask(
        self,
        *,
        size: str = "small",
        permission_set: str = "PowerUserAccess",
        seconds: int = DAY,
        actor: Actor | None = None,
        submission_id: str = "",
    ) -> AccessRequest:
        """A small one is approved at once."""
        self.story._submissions += 1
        return operations.submit(
            kind="account_lease",
            subject_id=None,
            target={"pool": "labs", "size": size, "tags": "", "permission_set": permission_set},
            duration_seconds=seconds,
            reason="Try the new landing zone",
            ticket_id="",
            submission_id=submission_id or f"form-{self.story._submissions}",
            actor=actor or self.story.alice,
            now=self.story.clock.now(),
        )

    def held(self, *, seconds: int = DAY, actor: Actor | None = None) -> AccessRequest:
        """Asked, and has one."""
        return self.story.carry_out(self.ask(seconds=seconds, actor=actor))

    def give_back(self, request: AccessRequest) -> AccessRequest:
        return self.story.carry_out(self.story.end(request))

    def lease_of(self, request: AccessRequest) -> Lease:
        return queries.get_lease(lease_id=str(request.target["continues"] or request.request_id))

    def has_access(self, request: AccessRequest, *, email: str = "alice@example.com") -> bool:
        """What Identity Center itself says."""
        return any(key[1] == self.story.twin.users[email] and key[2] == request.account_id for key in self.story.twin.assignments())


@pytest.fixture
def borrowed(story: Story) -> Borrowed:
    """Rules let engineers ask; no account yet."""
    rules.apply_rules(text=RULES + LEASE_RULES, actor=SETUP, now=story.clock.now())
    return Borrowed(story, AccountsPool(story.clock))
