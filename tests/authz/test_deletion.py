"""A scope is deleted by workers that die, stall, and come back late."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from accessportal.audit import queries as audit
from accessportal.authz import store
from accessportal.authz.operations import begin_deletion, carry_out_deletions
from accessportal.authz.policy.scopes import read_scope
from accessportal.authz.queries import find_scope
from accessportal.authz.states import RelationType, ScopeState
from accessportal.authz.store import APPROVALS
from accessportal.kernel.actors import system
from accessportal.kernel.errors import NoAnswer
from tests.authz.conftest import OLGA, Service
from tests.crashing import MOMENTS, Killed, Process, living

ACME = read_scope("tenant:acme")
NEIGHBOURS = ("tenant:acme-corp", "tenant:acme:env:prod", "tenant:acm", "custom:tenant:acme")
JOB = system("delete_scopes")
READS = frozenset({"GetItem", "BatchGetItem", "Query"})


def fill(service: Service, count: int) -> None:
    for number in range(count):
        for scope in (ACME, *NEIGHBOURS):
            service.grant(f"bot-{number}", "doc", "GET", scope=scope)
            service.add(f"bot-{number}", "member", "team", scope=scope, kind=RelationType.MEMBERSHIP)
    begin_deletion(scope=ACME, typed="tenant:acme", caller=OLGA, now=service.clock.now())


def left(service: Service, scope: str) -> int:
    return sum(service.count(scope, ledger=ledger) for ledger in (store.APPROVALS, store.RELATIONSHIPS))


def receipts() -> list[object]:
    return [event.data["records"] for event in audit.history(f"scope#{ACME}").items if event.action == "authz_scope.deleted"]


@pytest.mark.parametrize("after", MOMENTS, ids=["before" if not one else "after" for one in MOMENTS])
def test_killed_again_and_again_all_goes_and_is_counted_once(service: Service, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    fill(service, 4)
    service.clock.advance(60)
    go_on = partial(carry_out_deletions, actor=JOB, clock=service.clock, workers=1)
    for lives in (0, 1, 0, 2, 0):
        process = Process(fatal=lives, after=after)
        with living(process, monkeypatch, reads=READS), pytest.raises(Killed):
            go_on()
    assert receipts() == []

    assert go_on().deleted == ("tenant:acme",)
    assert (left(service, "tenant:acme"), receipts()) == (0, [8])
    assert [left(service, scope) for scope in NEIGHBOURS] == [8] * 4
    assert go_on().deleted == ()
    assert len(receipts()) == 1


def test_killed_at_its_receipt_it_is_written_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(service, 1)
    service.clock.advance(60)
    with living(Process(fatal=2, after=True), monkeypatch, reads=READS), pytest.raises(Killed):
        carry_out_deletions(actor=JOB, clock=service.clock, workers=1)

    carry_out_deletions(actor=JOB, clock=service.clock, workers=1)
    assert receipts() == [2]


def test_its_progress_is_told_and_its_time_is_kept(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(service, 3)
    removed = store.Ledger.remove_with_scope

    def slowly(*given: object, **options: object) -> None:
        service.clock.advance(20)
        removed(*given, **options)  # type: ignore[arg-type, type-var]

    monkeypatch.setattr(store.Ledger, "remove_with_scope", slowly)
    report = carry_out_deletions(actor=JOB, clock=service.clock, workers=1)

    assert (report.removed, report.deleted, report.under_way, report.is_ok) == (3, (), 1, True)
    facts = find_scope(ACME, caller=OLGA)
    assert (facts.state, facts.removed) == (ScopeState.DELETING, 3)


def test_a_worker_that_comes_late_touches_nothing_that_was_granted_after_it(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(service, 1)
    service.clock.advance(60)
    get = store.Ledger.get

    def stall(ledger: store.Ledger[Any], *given: object) -> object:
        """Between its list and its look another worker ends the deletion, and the same is granted anew."""
        monkeypatch.setattr(store.Ledger, "get", get)
        assert carry_out_deletions(actor=JOB, clock=service.clock, workers=1).deleted == ("tenant:acme",)
        service.grant("bot-0", "doc", "GET", scope="tenant:acme")
        return get(ledger, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(store.Ledger, "get", stall)
    late = carry_out_deletions(actor=JOB, clock=service.clock, workers=1)

    assert (late.removed, late.deleted, late.failures) == (0, (), ())
    assert service.check("bot-0", "doc", "GET", scope="tenant:acme").is_allowed
    assert receipts() == [2]


def test_while_a_record_can_not_be_removed_there_is_no_receipt(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(service, 2)
    service.clock.advance(60)
    get = store.Ledger.get

    def silent(ledger: store.Ledger[Any], scope: object, names: tuple[str, ...]) -> object:
        if names[0] == "bot-1":
            raise NoAnswer("The database did not answer.", code="store_unavailable")
        return get(ledger, scope, names)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(store.Ledger, "get", silent)
        report = carry_out_deletions(actor=JOB, clock=service.clock, workers=1)

    assert (report.removed, report.deleted, len(report.failures)) == (2, (), 2)
    assert carry_out_deletions(actor=JOB, clock=service.clock, workers=1).deleted == ("tenant:acme",)
    assert receipts() == [4]
    assert APPROVALS.get(ACME, ("bot-1", "doc", "GET")) is None
