"""Operators, programs, time, jobs and deaths in every order that hypothesis can think of, beside a plain dictionary."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from accessportal.authz import operations, store
from accessportal.authz.operations import IfExists, begin_deletion, carry_out_deletions, move_records, set_policy, sweep
from accessportal.authz.policy.scopes import line_of, reaches, read_scope
from accessportal.authz.queries import Answer, Asked, check_many
from accessportal.authz.states import PRESETS, NoSuchRecord, RelationType, Scope, ScopeDeleting, ScopeState, TtlPolicy
from accessportal.authz.store import APPROVALS
from accessportal.kernel.actors import system
from accessportal.kernel.errors import Conflict, InvalidRequest
from tests.authz.conftest import OLGA, Service
from tests.crashing import Killed, Process, living
from tests.depth import examples
from tests.fixtures_twin import REGION

SCOPES = tuple(map(read_scope, ("global", "tenant:acme", "tenant:acme-corp", "tenant:acme:env:prod", "custom:a:b")))
NAMES = ("a", "a:b", "b", "c")
JOB = system("job")
READS = frozenset({"GetItem", "BatchGetItem", "Query"})
Key = tuple[Scope, str, str]
_scopes, _names = st.sampled_from(SCOPES), st.sampled_from(NAMES)
_seconds = st.sampled_from([30, 60, 3_600, 86_400, 7 * 86_400])
# So many writes are survived.
_lives = st.sampled_from([None, None, None, 0, 1, 3])


@dataclass(frozen=True)
class Kept:
    """What the model knows of a record."""

    began_at: datetime
    ends_at: datetime


class Machine(RuleBasedStateMachine):
    """``approvals`` by scope, identity and resource; ``links`` of trust by scope, subject and object. Whatever dies is done again."""

    service: Service
    patch: pytest.MonkeyPatch
    empty: Any

    def __init__(self) -> None:
        super().__init__()
        dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables = copy.deepcopy(self.empty)
        self.approvals: dict[Key, Kept] = {}
        self.links: dict[Key, Kept] = {}
        self.policies: dict[Scope, TtlPolicy] = {}
        self.deleting: set[Scope] = set()
        self.known: set[Scope] = set()

    @property
    def now(self) -> datetime:
        return self.service.clock.now()

    def living(self, act: Callable[[], Any], lives: int | None) -> Any:
        """What ``act`` answers; when it dies after so many writes, it is done once more."""
        if lives is None:
            return act()
        process = Process(fatal=lives, after=True)
        try:
            with living(process, self.patch, reads=READS):
                return act()
        except Killed:
            return act()

    def end(self, scope: Scope, seconds: int, began_at: datetime) -> datetime | None:
        """``None``: the policy refuses."""
        policy = next((self.policies[one] for one in line_of(scope) if one in self.policies), TtlPolicy())
        ends_at = self.now + timedelta(seconds=seconds)
        within = policy.min_seconds <= seconds and (ends_at - began_at).total_seconds() <= policy.max_seconds
        return ends_at if within else None

    def is_live(self, kept: Kept | None) -> bool:
        return kept is not None and kept.ends_at > self.now

    @rule(scope=_scopes, one=_names, other=_names, seconds=_seconds, again=st.sampled_from(IfExists), lives=_lives)
    def grant(self, scope: Scope, one: str, other: str, seconds: int, again: IfExists, lives: int | None) -> None:
        self._add(self.approvals, (scope, one, other), seconds, again, lives)

    @rule(scope=_scopes, one=_names, other=_names, seconds=_seconds)
    def add(self, scope: Scope, one: str, other: str, seconds: int) -> None:
        self._add(self.links, (scope, one, other), seconds, IfExists.REFUSE, None)

    def _add(self, records: dict[Key, Kept], key: Key, seconds: int, again: IfExists, lives: int | None) -> None:
        scope, one, other = key
        before = records.get(key) if self.is_live(records.get(key)) else None
        began_at = before.began_at if before is not None and again is IfExists.EXTEND else self.now
        ends_at = self.end(scope, seconds, began_at)

        def act() -> object:
            if records is self.links:
                return self.service.add(one, "trusts", other, scope=scope, ttl=seconds, kind=RelationType.TRUST)
            return self.service.grant(one, other, "GET", scope=scope, ttl=seconds, if_exists=again)

        try:
            self.living(act, lives)
        except ScopeDeleting:
            assert scope in self.deleting
        except InvalidRequest:
            assert ends_at is None
            return
        except Conflict:
            # Or its first life has written it.
            assert again is IfExists.REFUSE
            assert before is not None or lives is not None
        assert (scope in self.deleting) or ends_at is not None or before is not None
        if scope in self.deleting or (before is not None and again is IfExists.REFUSE):
            return
        assert ends_at is not None
        self.known.add(scope)
        latest = max(ends_at, before.ends_at) if before is not None and again is IfExists.EXTEND else ends_at
        records[key] = Kept(began_at, latest)

    @rule(scope=_scopes, one=_names, other=_names, seconds=_seconds, lives=_lives)
    def extend(self, scope: Scope, one: str, other: str, seconds: int, lives: int | None) -> None:
        key = (scope, one, other)
        before = self.approvals.get(key)
        ends_at = None if before is None else self.end(scope, seconds, before.began_at)

        def act() -> object:
            return operations.extend(APPROVALS, scope, (one, other, "GET"), ttl_seconds=seconds, caller=OLGA, now=self.now)

        try:
            self.living(act, lives)
        except NoSuchRecord:
            assert not self.is_live(before)
        except ScopeDeleting:
            assert scope in self.deleting
        except InvalidRequest:
            assert ends_at is None
        else:
            assert before is not None
            assert ends_at is not None
            self.approvals[key] = replace(before, ends_at=ends_at)

    @rule(scope=_scopes, one=_names, other=_names, lives=_lives)
    def revoke(self, scope: Scope, one: str, other: str, lives: int | None) -> None:
        was_live = self.is_live(self.approvals.get((scope, one, other)))
        try:
            self.living(lambda: self.service.revoke(one, other, "GET", scope=scope), lives)
        except NoSuchRecord:
            # Or its first life has done it.
            assert not was_live or lives is not None
        self.approvals.pop((scope, one, other), None)

    @rule(seconds=st.sampled_from([1, 30, 59, 3_600, 86_400]))
    def time_passes(self, seconds: int) -> None:
        self.service.clock.advance(seconds)

    @rule(scope=_scopes, policy=st.sampled_from([None, *PRESETS.values()]))
    def policy(self, scope: Scope, policy: TtlPolicy | None) -> None:
        try:
            set_policy(scope=scope, policy=policy, caller=OLGA, now=self.now)
        except ScopeDeleting:
            assert scope in self.deleting
            return
        self.known.add(scope)
        self.policies.pop(scope, None)
        if policy is not None:
            self.policies[scope] = policy

    @rule(lives=_lives)
    def sweep(self, lives: int | None) -> None:
        self.living(lambda: sweep(actor=JOB, clock=self.service.clock, workers=1), lives)

    @rule(scope=_scopes)
    def begin_deletion(self, scope: Scope) -> None:
        try:
            begin_deletion(scope=scope, typed=scope, caller=OLGA, now=self.now)
        except Conflict:
            assert scope not in self.known
            return
        self.deleting.add(scope)

    @rule(lives=_lives)
    def go_on_deleting(self, lives: int | None) -> None:
        """All that are being deleted are empty after it; those that were ordered a minute ago or more have their receipt."""
        report = self.living(lambda: carry_out_deletions(actor=JOB, clock=self.service.clock, workers=1), lives)
        assert not report.failures
        for records in (self.approvals, self.links):
            for key in [key for key in records if key[0] in self.deleting]:
                del records[key]
        for scope in list(self.deleting):
            facts = store.get_scope(scope)
            if facts is not None and facts.state is ScopeState.DELETED:
                self.deleting.discard(scope)
                self.policies.pop(scope, None)

    @rule(source=_scopes, to=_scopes, lives=_lives)
    def move(self, source: Scope, to: Scope, lives: int | None) -> None:
        if source == to:
            return
        try:
            self.living(lambda: move_records(source=source, to=to, apply=True, caller=OLGA, clock=self.service.clock), lives)
        except ScopeDeleting:
            assert to in self.deleting
            return
        self.known.add(to)
        for records in (self.approvals, self.links):
            for key in [key for key in records if key[0] == source and self.is_live(records[key])]:
                if not self.is_live(records.get((to, *key[1:]))):
                    records[to, key[1], key[2]] = records.pop(key)

    @invariant()
    def agrees(self) -> None:
        live = {key for key, kept in self.approvals.items() if self.is_live(kept)}
        keys = [(scope, one, other) for scope in SCOPES for one in NAMES for other in NAMES]
        asked = [Asked(APPROVALS, scope, (one, other, "GET")) for scope, one, other in keys]
        answers = check_many(asked, caller=OLGA, clock=self.service.clock)
        for key, answer in zip(keys, answers, strict=True):
            assert isinstance(answer, Answer)
            assert answer.is_allowed is (key in live), key
            assert answer.until == (self.approvals[key].ends_at if key in live else None)
        for scope in {*self.known, SCOPES[1]}:
            within = {key for key in live if reaches(scope, key[0])} if scope != "global" else {key for key in live if key[0] == scope}
            assert self.service.count(scope) == len([key for key in live if key[0] == scope])
            assert self.service.all_in(scope, is_wide=True, limit=50) == {(*key, "GET") for key in within}

    @invariant()
    def chains_agree(self) -> None:
        live = {key for key, kept in self.links.items() if self.is_live(kept)}
        for scope in {key[0] for key in live}:
            for one in NAMES:
                found, level = set[str](), {one}
                while level := {key[2] for key in live if key[0] == scope and key[1] in level} - found:
                    found |= level
                for other in NAMES:
                    assert self.service.chain(one, "trusts", other, scope=scope).is_allowed is (other in found)


@pytest.mark.deep
@pytest.mark.slow
def test_in_any_order_every_answer_is_that_of_a_dictionary(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    Machine.service, Machine.patch = service, monkeypatch
    Machine.empty = copy.deepcopy(dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables)
    run_state_machine_as_test(
        Machine,
        settings=settings(max_examples=examples(2), stateful_step_count=12, suppress_health_check=list(HealthCheck)),
    )
