"""A long time in which everybody does everything by chance: verify_audit finds nothing, with each day's evidence, from month to month.

Two weeks in every run; a deep one (``PORTAL_TESTS_DEPTH=26``) is a year.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from accessportal.access_requests import operations, queries
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.audit import operations as audit
from accessportal.audit import queries as audit_queries
from accessportal.authz import operations as authz
from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, caller_of, read_scope
from accessportal.authz.states import Approval, Relationship, RelationType, TtlPolicy
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole, State
from accessportal.kernel.actors import system
from accessportal.kernel.errors import PortalError
from accessportal.leases import operations as leases
from accessportal.leases import queries as lent
from accessportal.mirror import operations as mirror
from accessportal.rules import operations as rules
from accessportal.tokens import operations as tokens
from accessportal.tokens import queries as token_queries
from accessportal.tokens.states import Scope
from tests.audit.test_after_restore import labs  # noqa: F401
from tests.commands.conftest import run
from tests.depth import examples
from tests.evidence.conftest import Office
from tests.fixtures_accounts import LEASE_RULES, Borrowed
from tests.fixtures_pool import POOL_RULES
from tests.fixtures_records import RECORD_RULES, SCOPE
from tests.fixtures_story import RULES, Story
from tests.sandboxes.conftest import Upstream

WEEKS = examples(2)
ALL_RULES = RULES + POOL_RULES + RECORD_RULES + LEASE_RULES
HOUR, DAY = 3600, 86_400
SETUP = system("setup")


@dataclass
class Year:
    """Deeds by chance, each at the story's time. What is refused is refused."""

    story: Story
    pool: Upstream
    accounts: Borrowed
    chance: random.Random
    done: Counter[str] = field(default_factory=Counter)
    guests: int = 0

    def one(self) -> None:
        deed = self.chance.choice(self.deeds())
        with suppress(PortalError, IndexError):
            deed()
            self.done[deed.__name__] += 1
        self.story.clock.advance(self.chance.choice((1, 60, 900, 2 * HOUR)))

    def deeds(self) -> list[Callable[[], object]]:
        often = [self.ask, self.ask, self.decide, self.decide, self.end, self.extend]
        return [
            *often,
            self.join,
            self.lend,
            self.take,
            self.record,
            self.grant,
            self.guest,
            self.person,
            self.group,
            self.token,
            self.freeze,
        ]

    def open(self) -> AccessRequest:
        """One of Alice's that is not over."""
        return self.chance.choice(queries.list_open(subject_id="alice@example.com") or [self.story.ask()])

    def ask(self) -> None:
        asked = self.chance.choice((self.story.ask, self.story.ask_for_prod))(seconds=self.chance.choice((HOUR, 4 * HOUR)))
        if asked.status is Status.ACTIVE:
            self.story.carry_out(asked)

    def decide(self) -> None:
        waiting = [one for one in queries.list_open(subject_id="alice@example.com") if one.status is Status.PENDING]
        verb = self.chance.choice((self.story.approve, self.story.approve, self.story.deny, self.story.cancel))
        decided = verb(self.chance.choice(waiting or [self.story.ask_for_prod()]))
        if decided.status is Status.ACTIVE:
            self.story.carry_out(decided)

    def end(self) -> None:
        ended = self.story.carry_out(self.story.end(self.open()))
        if self.chance.random() < 0.3:
            self.story.carry_out(operations.take_back(request_id=ended.request_id, actor=self.story.alice, now=self.story.clock.now()))

    def extend(self) -> None:
        extension = self.story.extend(self.open(), 4 * HOUR)
        self.story.carry_out(self.story.approve(extension) if extension.status is Status.PENDING else extension)

    def join(self) -> None:
        asked = self.story.ask_to_join(role=self.chance.choice(("reader", "contributor", "admin")))
        self.story.carry_out(self.story.approve(asked, actor=self.story.gina) if asked.status is Status.PENDING else asked)

    def lend(self) -> None:
        self.accounts.held(seconds=self.chance.choice((HOUR, DAY)))

    def freeze(self) -> None:
        lease = self.chance.choice(lent.list_leases().items)
        order: dict[str, Any] = {"lease_id": lease.lease_id, "actor": SETUP, "now": self.story.clock.now()}
        if lease.state == "active":
            leases.freeze(reason="Too much", **order)
        else:
            leases.unfreeze(**order)
        operations.freeze_leases(clock=self.story.clock, workers=1)

    def take(self) -> None:
        track = f"track-{self.chance.randrange(3)}"
        sandbox = self.pool.pool.take(track).sandbox
        if self.chance.random() < 0.5:
            self.pool.pool.release(sandbox, track)

    def record(self) -> None:
        asked = operations.submit(
            kind="approval",
            subject_id=None,
            target={"scope": SCOPE, "resource": f"docs/{self.chance.randrange(2)}", "action": "GET"},
            duration_seconds=self.chance.choice((HOUR, 8 * HOUR)),
            reason="Reading",
            ticket_id="",
            submission_id=f"record-{self.done.total()}",
            actor=self.story.alice,
            now=self.story.clock.now(),
        )
        self.story.carry_out(asked)

    def grant(self) -> None:
        now, caller, scope = self.story.clock.now(), caller_of(self.story.olga), read_scope(self.chance.choice((SCOPE, "tenant:other")))
        names = (self.chance.choice(("alice@example.com", "bob@example.com")), f"docs/{self.chance.randrange(2)}", "GET")
        what = self.chance.choice(("grant", "extend", "replace", "revoke", "relation", "move", "policy", "delete"))
        if what in ("grant", "extend", "replace"):
            approval = Approval(scope, *names, granted_by="olga@example.com", granted_at=now)
            if_exists = authz.IfExists("refuse" if what == "grant" else what)
            authz.grant(APPROVALS, approval, ttl_seconds=self.chance.choice((HOUR, DAY)), if_exists=if_exists, caller=caller, now=now)
        elif what == "revoke":
            authz.revoke(APPROVALS, scope, names, caller=caller, now=now)
        elif what == "relation":
            relation = Relationship(scope, names[0], "editor", names[1], RelationType.ROLE, created_by="olga@example.com", created_at=now)
            authz.grant(RELATIONSHIPS, relation, ttl_seconds=HOUR, caller=caller, now=now)
        elif what == "move":
            authz.move_records(source=read_scope("tenant:other"), to=read_scope(SCOPE), apply=True, caller=caller, clock=self.story.clock)
        elif what == "policy":
            authz.set_policy(scope=scope, policy=self.chance.choice((TtlPolicy(), None)), caller=caller, now=now)
        else:
            authz.begin_deletion(scope=read_scope("tenant:other"), typed="tenant:other", caller=caller, now=now)
            authz.carry_out_deletions(actor=SETUP, clock=self.story.clock, workers=1)

    def guest(self) -> None:
        self.guests += 1
        how: dict[str, Any] = {"actor": self.story.olga, "now": self.story.clock.now()}
        email = f"guest{self.guests % 7}@example.com"
        directory.create_person(email=email, name="Guest", group_id="/security", role=GroupRole.READER, **how)
        if self.chance.random() < 0.5:
            directory.grant_membership(email=email, group_id="/engineering", role=GroupRole.CONTRIBUTOR, **how)
        if self.chance.random() < 0.3:
            directory.revoke_membership(email=email, group_id="/security", **how)
        if self.chance.random() < 0.8:
            directory.delete_person(email=email, **how)

    def person(self) -> None:
        how: dict[str, Any] = {"email": "mallory@example.com", "actor": self.story.olga, "now": self.story.clock.now()}
        directory.set_person_state(state=self.chance.choice(tuple(State)), **how)
        directory.rename_person(name=f"Mallory {self.done.total()}", **how)
        directory.grant_membership(group_id="/security", role=self.chance.choice(tuple(GroupRole)), **how)

    def group(self) -> None:
        how: dict[str, Any] = {"actor": self.story.olga, "now": self.story.clock.now()}
        name = f"/guild{self.chance.randrange(3)}"
        what = self.chance.choice(("create", "move", "rename", "state", "delete"))
        if what == "create":
            directory.create_group(group_id=name, name="Guild", description="", **how)
        elif what == "move":
            directory.move_group(group_id=name, parent_id=self.chance.choice(("/", "/security", "/engineering", "/guild0")), **how)
        elif what == "rename":
            directory.rename_group(group_id=name, name=f"Guild {self.done.total()}", description="", **how)
        elif what == "state":
            directory.set_group_state(group_id=name, state=self.chance.choice(tuple(State)), **how)
        else:
            directory.delete_group(group_id=name, **how)

    def token(self) -> None:
        now = self.story.clock.now()
        tokens.create_token(name="ci", scope=Scope.TRACK, expires_at=now + timedelta(days=9), actor=self.story.olga, now=now)
        if self.chance.random() < 0.5:
            token_id = self.chance.choice(token_queries.list_unrevoked().items).token_id
            tokens.revoke_token(token_id=token_id, actor=self.story.olga, now=now)

    def jobs(self) -> None:
        """What runs by itself."""
        self.story.tick()
        operations.end_departed(clock=self.story.clock)
        authz.sweep(actor=SETUP, clock=self.story.clock, workers=1)
        self.pool.clean()
        self.pool.later(30)
        self.pool.clean()
        for account in lent.list_accounts().items:
            if account.state.is_cleaned_next:
                self.accounts.pool.clean(account.account_id)
        leases.serve_line(actor=SETUP, clock=self.story.clock)

    def now_and_then(self, week: int) -> None:
        """What operators do once in a while."""
        if week % 4 == 0:
            changed = ALL_RULES.replace("max: 8h", f"max: {8 + week % 5}h")
            rules.apply_rules(text=changed, actor=self.story.olga, now=self.story.clock.now())
            run("reconcile_assignments", "--apply")
        if week % 26 == 1:
            at = self.story.clock.now() - timedelta(hours=1)
            audit.begin_restore(restored_to=at, actor=self.story.olga, now=self.story.clock.now())
            told = run("after_restore", "--restored-to", f"{at:%Y-%m-%dT%H:%M:%SZ}", "--as", "olga@example.com")
            assert told.code == 0, told.problem
            assert run("after_restore", "--confirm", "--as", "olga@example.com").code == 0


@pytest.mark.deep
@pytest.mark.usefixtures("user_pool")
def test_nothing_of_a_long_time_is_a_break(
    story: Story,
    installed: Office,
    labs: Upstream,  # noqa: F811
    borrowed: Borrowed,
) -> None:
    rules.apply_rules(text=ALL_RULES, actor=SETUP, now=story.clock.now())
    borrowed.fill(3)
    # Cognito knows everybody, or a restore would take them for disabled.
    mirror.compare_mirror(apply=True, most_share=1.0, actor=SETUP, clock=story.clock)
    year = Year(story, labs, borrowed, random.Random(2026))
    for week in range(WEEKS):
        monday = story.clock.now()
        for _ in range(12):
            year.one()
        year.jobs()
        year.now_and_then(week)
        story.clock.advance(max(60.0, 7 * DAY - (story.clock.now() - monday).total_seconds()))
        installed.export()
        if week % 13 == 12:
            assert run("verify_audit", "--json").json["breaks"] == [], (week, year.done)
    events = sum(len(chain) for _, chain in audit_queries.every_chain(segment=0, segments=1))
    told = run("verify_audit", "--json").json
    told_of = {name: told[name] for name in ("chains", "gone", "digests", "heads")}
    logging.getLogger(__name__).info("%s weeks, %s events, %s, %s", WEEKS, events, told_of, dict(year.done))

    assert told["breaks"] == []
    assert installed.breaks() == []
