"""Whoever writes to the tables with boto3 alone, and what they find there: one of each record that gives something to somebody."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import boto3

from accessportal.access_requests import operations as requests
from accessportal.access_requests.stand_in import StandIn
from accessportal.access_requests.states import AccessRequest
from accessportal.authz import operations as authz
from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, caller_of, read_scope
from accessportal.authz.states import Approval, Relationship, RelationType
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole, State
from accessportal.kernel.actors import system
from accessportal.leases import operations as leases
from accessportal.leases.operations import NewAccount
from accessportal.sandboxes import operations as sandboxes
from accessportal.tokens import operations as tokens
from accessportal.tokens.states import ApiToken, Scope
from accessportal.waiting import operations as waiting
from accessportal.waiting.states import SANDBOXES
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION

Raw = dict[str, Any]
DOCS = read_scope("tenant:acme-corp")
HOUR = 3600
ACCOUNTS = ("111111111111", "222222222222", "333333333333")


@dataclass
class Tables:
    """``boto3`` and a right to write."""

    client: Any = field(default_factory=lambda: boto3.client("dynamodb", region_name=REGION))

    def find(self, table: str, **told: Raw) -> Raw:
        """The one item with these attributes."""
        items = self.client.scan(TableName=table, ConsistentRead=True)["Items"]
        (found,) = (one for one in items if all(one.get(name) == value for name, value in told.items()))
        return dict(found)

    def put(self, table: str, item: Raw) -> None:
        self.client.put_item(TableName=table, Item=item)

    def delete(self, table: str, item: Raw) -> None:
        key = [one["AttributeName"] for one in self.client.describe_table(TableName=table)["Table"]["KeySchema"]]
        self.client.delete_item(TableName=table, Key={name: item[name] for name in key})

    def event(self, entity: str, sequence: int) -> Raw:
        return self.find("AuditLog", entity={"S": entity}, sequence={"N": str(sequence)})


@dataclass
class World:
    """A story in which somebody has each thing."""

    story: Story
    tables: Tables = field(default_factory=Tables)
    requests: dict[str, AccessRequest] = field(default_factory=dict)
    tokens: dict[str, ApiToken] = field(default_factory=dict)
    stand_ins: dict[str, StandIn] = field(default_factory=dict)

    def disable(self, email: str) -> None:
        directory.set_person_state(email=email, state=State.DISABLED, actor=self.story.olga, now=self.now)

    @property
    def now(self) -> Any:
        return self.story.clock.now()

    def fill(self) -> None:
        """A day's work: requests of every fate, people, tokens, things that are lent, approvals."""
        story = self.story
        for name in ("kept", "longer", "another's", "other reason"):
            self.requests[name] = story.carry_out(story.ask(actor=story.alice, permission_set="PowerUserAccess", seconds=HOUR))
        for name in ("reopened", "never taken back", "approved by another", "deleted", "undecided"):
            self.requests[name] = story.ask_for_prod()
            if name != "undecided":
                self.requests[name] = story.carry_out(story.approve(self.requests[name]))
        story.carry_out(story.end(self.requests["reopened"]))
        story.end(self.requests["never taken back"])
        self._people()
        for name in ("revoked", "raised", "longer", "lost"):
            made = tokens.create_token(
                name=name, scope=Scope.TRACK, expires_at=self.now + timedelta(days=9), actor=story.olga, now=self.now
            ).token
            self.tokens[name] = made
        for email in ("gina@example.com", "mallory@example.com"):
            self.stand_ins[email] = requests.name_stand_in(
                email=email, starts_at=self.now, ends_at=self.now + timedelta(days=9), submission_id="form", actor=story.bob, now=self.now
            )
        one = self.stand_ins["mallory@example.com"]
        requests.end_stand_in(stand_in=one.stand_in, stand_in_id=one.stand_in_id, actor=story.olga, now=self.now)
        tokens.revoke_token(token_id=self.tokens["revoked"].token_id, actor=story.olga, now=self.now)
        self._pools()
        self._records()

    def _people(self) -> None:
        story = self.story
        for name in ("erin", "fay", "gus"):
            directory.create_person(
                email=f"{name}@example.com",
                name=name.title(),
                group_id="/engineering",
                role=GroupRole.READER,
                actor=story.olga,
                now=self.now,
            )
        self.disable("fay@example.com")
        directory.record_sign_in(email="bob@example.com", identity="https://idp.example#bob", method="oidc", actor=story.bob, now=self.now)
        directory.create_group(group_id="/guild", name="Guild", description="", actor=story.olga, now=self.now)
        directory.create_group(group_id="/crowd", name="Crowd", description="", actor=story.olga, now=self.now)
        directory.set_group_state(group_id="/crowd", state=State.DISABLED, actor=story.olga, now=self.now)
        story.carry_out(story.ask_to_join(role="reader"))

    def _pools(self) -> None:
        setup = system("setup")
        for name in ("lab-1", "lab-2"):
            sandboxes.add(external_id=f"ext-{name}", name=name, lab_duration_hours=12, actor=setup, now=self.now)
        sandboxes.take(key="k1", track="track-1", name_prefix="lab-1", actor=setup, now=self.now)
        for account in leases.add_accounts([NewAccount(one) for one in ACCOUNTS], pool="labs", actor=setup, now=self.now):
            leases.make_available(account, certificate={"run": "1"}, actor=setup, now=self.now)
        for number in (1, 2):
            asked = leases.Asked(
                claim=f"claim-{number}",
                lease_id=f"lease-{number}",
                user="alice@example.com",
                pool="labs",
                permission_set="PowerUserAccess",
                duration_seconds=HOUR,
                most_held=2,
            )
            leases.take(asked, lapses_at=self.now + timedelta(hours=1), actor=setup, clock=self.story.clock)
        for claim in ("first", "second"):
            waiting.join(
                line=SANDBOXES,
                claim=claim,
                wants={},
                duration_seconds=60,
                lapses_at=self.now + timedelta(days=1),
                actor=setup,
                now=self.now,
            )

    def _records(self) -> None:
        caller = caller_of(self.story.olga)
        for who in ("alice", "bob"):
            approval = Approval(DOCS, who, "docs/plan", "GET", granted_by="olga@example.com", granted_at=self.now)
            authz.grant(APPROVALS, approval, ttl_seconds=HOUR, caller=caller, now=self.now)
        for who in ("alice", "bob"):
            relation = Relationship(DOCS, who, "editor", "docs/plan", RelationType.ROLE, created_by="olga@example.com", created_at=self.now)
            authz.grant(RELATIONSHIPS, relation, ttl_seconds=HOUR, caller=caller, now=self.now)
