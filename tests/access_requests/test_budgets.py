"""Budgets of leases: a warning, a freeze and an end at their thresholds, each once; corrected figures, and processes that die."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accessportal.access_requests import operations
from accessportal.access_requests.states import AccessRequest, BudgetReport, Status
from accessportal.audit import queries as audit
from accessportal.leases import operations as leases
from accessportal.leases.states import LeaseState, Verdict
from accessportal.leases.store import notes
from accessportal.rules import operations as rules
from tests.fixtures_accounts import DAY, LEASE_RULES, SETUP, Borrowed
from tests.fixtures_story import RULES
from tests.portal.conftest import SignedIn, signed_in
from tests.portal.test_journey import text_of

__all__ = ["signed_in"]


def cost(borrowed: Borrowed, request: AccessRequest, cents: int, unit: str = "USD") -> BudgetReport:
    """As the figure is read, and what follows."""
    lease = borrowed.lease_of(request)
    notes.note(lease, replace(lease, spent=cents, spent_unit=unit, spent_as_of=borrowed.story.clock.now()))
    return operations.mind_budgets(clock=borrowed.story.clock)


def told(request: AccessRequest) -> list[str]:
    return [event.data["verdict"] for event in audit.chain_of(request.entity) if event.action == "request.budget_reached"]


def hold(borrowed: Borrowed, *, at_limit: str) -> AccessRequest:
    """An account with a budget of 50 USD that warns at half of it."""
    text = RULES + LEASE_RULES.replace("at_limit: freeze", f"at_limit: {at_limit}")
    rules.apply_rules(text=text, actor=SETUP, now=borrowed.story.clock.now())
    borrowed.fill(1)
    return borrowed.story.carry_out(borrowed.story.approve(borrowed.ask(size="")))


@pytest.mark.django_db
def test_a_warning_comes_once_and_is_on_the_page(borrowed: Borrowed, signed_in: SignedIn) -> None:
    held = hold(borrowed, at_limit="warn")
    assert cost(borrowed, held, 2499).warned == ()
    assert cost(borrowed, held, 2500).warned == (held.request_id,)
    assert cost(borrowed, held, 9900) == BudgetReport((), (), ())
    assert told(held) == ["warn"]
    assert borrowed.lease_of(held).reached is Verdict.WARN
    assert "25.00 USD: this is a warning" in text_of(signed_in("alice").get(f"/requests/{held.request_id}/"))
    assert borrowed.has_access(held)


def test_a_freeze_at_the_limit_puts_the_access_off(borrowed: Borrowed) -> None:
    held = hold(borrowed, at_limit="freeze")
    assert cost(borrowed, held, 3000).warned == (held.request_id,)
    assert cost(borrowed, held, 5001).frozen == (held.request_id,)
    assert operations.freeze_leases(clock=borrowed.story.clock, workers=1).frozen == (held.request_id,)
    lease = borrowed.lease_of(held)
    assert lease.state is LeaseState.FROZEN
    assert lease.freeze_reason == "The account has cost 50.01 USD, and the budget of rule any-account is 50 USD."
    assert not borrowed.has_access(held)
    # Corrected downwards: what was drawn stays, until an operator unfreezes it.
    assert cost(borrowed, held, 1000) == BudgetReport((), (), ())
    assert told(held) == ["warn", "freeze"]


def test_an_end_at_the_limit_ends_every_request_on_the_lease_with_the_reason(borrowed: Borrowed) -> None:
    held = hold(borrowed, at_limit="end")
    borrowed.story.clock.advance(3600)
    further = borrowed.story.extend(held, 5 * 86_400)
    further = borrowed.story.carry_out(borrowed.story.approve(further))
    assert cost(borrowed, held, 5000).ended == (held.request_id,)
    borrowed.story.tick()
    assert {borrowed.story.now_of(one).status for one in (held, further)} == {Status.REVOKED}
    reasons = {event.data["reason"] for event in audit.chain_of(held.entity) if event.action == "request.end_asked"}
    assert reasons == {"The account has cost 50.00 USD, and the budget of rule any-account is 50 USD."}
    assert {borrowed.story.now_of(one).end_code for one in (held, further)} == {"over_budget"}
    assert borrowed.story.twin.assignments() == set()


def test_an_end_at_the_limit_ends_also_what_is_granted_while_the_others_end(borrowed: Borrowed) -> None:
    held = hold(borrowed, at_limit="end")
    borrowed.story.clock.advance(3600)
    further = borrowed.story.approve(borrowed.story.extend(held, 5 * 86_400))
    assert cost(borrowed, held, 5000).ended == (held.request_id,)
    borrowed.story.carry_out(further)
    borrowed.story.tick()
    assert borrowed.story.now_of(further).is_granted

    assert operations.mind_budgets(clock=borrowed.story.clock).ended == (held.request_id,)
    assert operations.mind_budgets(clock=borrowed.story.clock).ended == ()
    borrowed.story.tick()
    assert borrowed.story.now_of(further).status is Status.REVOKED
    assert borrowed.story.twin.assignments() == set()


def test_an_extension_by_a_rule_without_a_budget_lifts_none(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.story.carry_out(borrowed.story.approve(borrowed.ask(seconds=4 * DAY)))
    borrowed.story.clock.advance(3.5 * DAY)
    further = borrowed.story.carry_out(borrowed.story.extend(held, DAY))
    assert (held.rule_name, further.rule_name, further.is_granted) == ("any-account", "small-accounts", True)
    assert cost(borrowed, held, 5001).frozen == (held.request_id,)
    assert borrowed.lease_of(held).freeze_reason == "The account has cost 50.01 USD, and the budget of rule any-account is 50 USD."


def test_the_budget_of_the_rule_by_which_it_was_lent_stands_after_that_request_is_over(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.story.carry_out(borrowed.story.approve(borrowed.ask(seconds=4 * DAY)))
    borrowed.story.clock.advance(3.5 * DAY)
    further = borrowed.story.carry_out(borrowed.story.extend(held, DAY))
    borrowed.story.clock.advance(0.6 * DAY)
    borrowed.story.tick()
    assert (borrowed.story.now_of(held).status, borrowed.story.now_of(further).is_granted) == (Status.REVOKED, True)
    assert cost(borrowed, further, 5001).frozen == (held.request_id,)
    assert borrowed.lease_of(further).freeze_reason == "The account has cost 50.01 USD, and the budget of rule any-account is 50 USD."
    assert (told(further), told(held)) == (["freeze"], [])


def test_without_a_budget_or_a_figure_nothing_follows(borrowed: Borrowed) -> None:
    borrowed.fill(1)
    held = borrowed.held()
    assert operations.mind_budgets(clock=borrowed.story.clock) == BudgetReport((), (), ())
    assert cost(borrowed, held, 10**6) == BudgetReport((), (), ())


def test_another_currency_is_told_and_nothing_follows(borrowed: Borrowed) -> None:
    held = hold(borrowed, at_limit="end")
    report = cost(borrowed, held, 6000, unit="EUR")
    assert [failure.item for failure in report.failures] == [held.request_id]
    assert borrowed.story.now_of(held).is_granted


def test_who_dies_before_it_is_noted_is_repeated_and_told_once(borrowed: Borrowed, monkeypatch: pytest.MonkeyPatch) -> None:
    held = hold(borrowed, at_limit="freeze")

    def die(**_: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(leases, "note_verdict", die)
        assert len(cost(borrowed, held, 6000).failures) == 1
    assert operations.mind_budgets(clock=borrowed.story.clock).frozen == (held.request_id,)
    assert told(held) == ["freeze"]
