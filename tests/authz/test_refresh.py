"""A check that says yes to a program moves the end, where the policy says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from accessportal.audit import queries as audit
from accessportal.authz import store
from accessportal.authz.operations import set_policy
from accessportal.authz.policy.rights import Caller
from accessportal.authz.policy.scopes import read_scope
from accessportal.authz.queries import check_many
from accessportal.authz.queries.checks import Asked
from accessportal.authz.states import Approval, RelationType, TtlPolicy
from accessportal.authz.store import APPROVALS, RELATIONSHIPS
from accessportal.kernel.errors import NoAnswer
from accessportal.kernel.lasting import Right
from accessportal.store.transactions import Overtaken
from tests.authz.conftest import OLGA, Service, program

ACME = "tenant:acme"
ALICE = ("alice", "doc", "GET")
MINUTE = timedelta(minutes=1)


@pytest.fixture
def bot(service: Service) -> Service:
    """A program of a tenant whose records live for five minutes after each use, and for an hour at most; one is there."""
    policy = TtlPolicy(300, 60, 3_600, refresh_seconds=300)
    set_policy(scope=read_scope(ACME), policy=policy, caller=OLGA, now=service.clock.now())
    service.grant(*ALICE, scope=ACME, ttl=300)
    service.clock.advance(120)
    return replace(service, caller=program(ACME, may_write=False))


def record_of(service: Service) -> Approval:
    found = APPROVALS.get(read_scope(ACME), ALICE)
    assert found is not None
    return found


def test_it_moves_with_use_and_is_told_with_both_ends(bot: Service) -> None:
    answer = bot.check(*ALICE, scope=ACME)

    assert answer.until == record_of(bot).expires_at == bot.clock.now() + 5 * MINUTE
    event = audit.history(record_of(bot).entity).items[0]
    assert (event.action, event.actor) == ("approval.extended", "client:acme00000000")
    assert event.data["expires_at"] - event.data["old_expires_at"] == 120


def test_it_moves_once_a_minute_at_most_and_never_past_the_maximum(bot: Service) -> None:
    began_at = record_of(bot).granted_at
    for _ in range(40):
        bot.check(*ALICE, scope=ACME)
        bot.clock.advance(30)
    assert len(audit.history(record_of(bot).entity).items) == 21
    for _ in range(39):
        bot.check(*ALICE, scope=ACME)
        bot.clock.advance(60)
    assert record_of(bot).expires_at == began_at + 60 * MINUTE
    assert not bot.check(*ALICE, scope=ACME).is_allowed


def test_batches_and_chains_are_use_too(bot: Service) -> None:
    olga = replace(bot, caller=OLGA)
    for link in (("leaf", "middle"), ("middle", "root")):
        olga.add(link[0], "trusts", link[1], scope=ACME, ttl=60, kind=RelationType.TRUST)

    [one] = check_many([Asked(APPROVALS, read_scope(ACME), ALICE)], caller=bot.caller, clock=bot.clock)
    chain = bot.chain("leaf", "trusts", "root", scope=ACME)

    assert not isinstance(one, Exception)
    assert one.until == chain.until == bot.clock.now() + 5 * MINUTE
    assert RELATIONSHIPS.get(read_scope(ACME), ("leaf", "trusts", "middle")) == chain.by[0]


def test_the_same_record_twice_in_a_batch_is_used_once(bot: Service) -> None:
    one, other = check_many([Asked(APPROVALS, read_scope(ACME), ALICE)] * 2, caller=bot.caller, clock=bot.clock)

    assert not isinstance(one, Exception)
    assert (one, one.until) == (other, record_of(bot).expires_at)


@pytest.mark.parametrize("who", ["operator", "for a time", "policy without"])
def test_it_stays(bot: Service, who: str) -> None:
    """When people look, when it ends with its giver's right, and when the policy does not say so any more."""
    olga = replace(bot, caller=OLGA)
    if who == "for a time":
        right = Right("an operator", bot.clock.now() + MINUTE)
        olga.revoke(*ALICE, scope=ACME)
        replace(bot, caller=Caller(OLGA.actor, OLGA.scope, may_write=True, right=right)).grant(*ALICE, scope=ACME, ttl=300)
    elif who == "policy without":
        set_policy(scope=read_scope(ACME), policy=TtlPolicy(300, 60, 3_600), caller=OLGA, now=bot.clock.now())
    before = record_of(bot)

    asker = olga if who == "operator" else bot
    assert asker.check(*ALICE, scope=ACME).is_allowed
    assert record_of(bot) == before


@pytest.mark.parametrize("error", [NoAnswer("The database did not answer.", code="store_unavailable"), Overtaken()])
def test_that_it_fails_changes_no_yes(bot: Service, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> Callable[[], None]:
        raise error

    monkeypatch.setattr(store.Ledger, "change", fail)

    assert bot.check(*ALICE, scope=ACME).is_allowed
