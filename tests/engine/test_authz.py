"""Approvals under many hands at once: what the chains of events tell, in their order, is what every check, list and count says."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import cast

import pytest

from accessportal.audit import queries as audit
from accessportal.authz import operations
from accessportal.authz.operations import IfExists, sweep
from accessportal.authz.policy.scopes import read_scope
from accessportal.authz.states import Approval, Names, Scope, entity_of
from accessportal.authz.store import APPROVALS
from accessportal.kernel.actors import system
from accessportal.kernel.clock import Clock, SystemClock, whole_second
from accessportal.kernel.errors import PortalError
from tests.authz.conftest import OLGA, Service
from tests.conftest import FakeClock
from tests.depth import examples
from tests.engine.stage import at_once, lost

SCOPES = tuple(map(read_scope, ("tenant:acme", "tenant:acme-corp", "tenant:acme:env:prod")))
RECORDS: list[tuple[Scope, Names]] = [(scope, (who, "docs/1", "GET")) for scope in SCOPES for who in ("a", "a:b")]
JOB = system("job")
THREADS, ROUNDS = 16, examples(12)


@dataclass
class StandingClock:
    """Moved by the story alone, so that nothing ends between two looks. It begins now: the engine's own clock purges what is long over."""

    at: datetime = field(default_factory=lambda: whole_second(SystemClock().now()))

    def now(self) -> datetime:
        return self.at

    def sleep(self, _seconds: float) -> None:
        """Nobody waits for it."""


@pytest.mark.usefixtures("engine")
def test_whatever_many_do_at_once_every_answer_is_what_the_events_tell() -> None:
    clock, chance = StandingClock(), random.Random(10)
    service = Service(cast("FakeClock", clock))
    for _ in range(ROUNDS):
        outcomes = at_once([_deed(service, chance) for _ in range(THREADS)])
        assert [error for error in lost(outcomes) if not isinstance(error, PortalError)] == []
        clock.at += timedelta(seconds=chance.choice([1, 60, 1_800]))
        live = {record for record in RECORDS if _counts(*record, clock)}

        for scope, names in RECORDS:
            assert service.check(*names, scope=scope).is_allowed is ((scope, names) in live), (scope, names)
            assert audit.find_breaks(entity_of("approval", scope, names)) == []
        for scope in SCOPES:
            assert service.all_in(scope) == {(str(one), *names) for one, names in live if one == scope}
            assert service.count(scope) == len([one for one, _ in live if one == scope])
        assert service.count("tenant:acme", is_wide=True) == len([one for one, _ in live if one != "tenant:acme-corp"])


def _counts(scope: Scope, names: Names, clock: Clock) -> bool:
    """By the last event of its chain alone."""
    last = audit.chain_of(entity_of("approval", scope, names))[-1:]
    ends = [event.data.get("expires_at") for event in last if event.action in _KEPT]
    return any(isinstance(end, int) and end > clock.now().timestamp() for end in ends)


_KEPT = {f"approval.{verb}" for verb in ("granted", "extended", "replaced", "held", "released")}


def _deed(service: Service, chance: random.Random) -> Callable[[], object]:
    scope, names = chance.choice(RECORDS)
    now, claim = service.clock.now(), f"request-{chance.randrange(2)}"
    ends_at = now + timedelta(seconds=chance.choice([600, 3_600]))
    wanted = Approval(scope, *names, "olga@example.com", now)
    deeds: list[Callable[[], object]] = [
        partial(service.grant, *names, scope=scope, ttl=chance.choice([600, 3_600]), if_exists=chance.choice(list(IfExists))),
        partial(operations.extend, APPROVALS, scope, names, ttl_seconds=1_200, caller=OLGA, now=now),
        partial(service.revoke, *names, scope=scope),
        partial(operations.hold, APPROVALS, wanted, claim=claim, ends_at=ends_at, guards=(), actor=JOB, clock=service.clock),
        partial(operations.let_go, APPROVALS, scope, names, claim=claim, actor=JOB, clock=service.clock),
        partial(sweep, clock=service.clock, actor=JOB),
    ]
    return chance.choice(deeds)
