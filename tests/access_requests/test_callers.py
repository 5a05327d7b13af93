"""The whole story from the management account and from a delegated administrator's: which call is whose, the twin knows."""

from __future__ import annotations

import pytest

from accessportal.access_requests import operations, queries
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.assignments.states import Remedy
from accessportal.catalog import operations as catalog
from accessportal.catalog import queries as accounts
from accessportal.kernel.actors import system
from accessportal.twin.callers import CALLERS
from tests.fixtures_story import Story


@pytest.fixture(params=CALLERS)
def from_account(story: Story, request: pytest.FixtureRequest) -> Story:
    """The story, told by the portal from this account."""
    story.twin.settings.change({"caller": request.param})
    return story


def keys(story: Story, *requests: AccessRequest) -> set[tuple[str, ...]]:
    names = ("principal_type", "principal_id", "account_id", "permission_set_arn")
    return {tuple(str(one.target[name]) for name in names) for one in requests}


def test_all_is_asked_granted_proved_compared_ended_and_proved_gone(from_account: Story) -> None:
    story = from_account
    synced = catalog.sync_catalog(now=story.clock.now(), clock=story.clock)
    assert (synced.last_error, synced.accounts) == ("", 4)
    assert accounts.get_account(account="payments-dev").tags == {"env": "dev", "team": "payments"}
    own = story.ask(seconds=600)
    groups = story.ask(subject_id="/engineering/payments", permission_set="ReadOnlyAccess", seconds=600)
    prod = story.approve(story.ask_for_prod(seconds=7200))
    everything = (own, groups, prod)

    story.tick()

    assert all(story.now_of(one).is_granted for one in everything)
    assert [story.now_of(own).receipts[-1].work, story.now_of(own).receipts[-1].job_status] == [Work.GRANT, "SUCCEEDED"]
    assert story.twin.assignments() == keys(story, *everything)

    story.twin.sso.create_account_assignment(**story.twin.key("mallory@example.com", "payments-dev", "PowerUserAccess"))
    story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-prod", "ReadOnlyAccess"))
    story.clock.advance(3)
    compared = operations.reconcile_assignments(
        remedies=(Remedy.REPAIR, Remedy.REMOVE_UNKNOWN), most_share=1.0, actor=system("reconcile"), clock=story.clock
    )
    assert (len(compared.missing), len(compared.unknown), compared.mended, compared.unread) == (1, 1, 2, ())
    assert story.twin.assignments() == keys(story, *everything)

    story.end(prod)
    story.clock.advance(601)
    story.tick()

    assert [story.now_of(one).status for one in everything] == [Status.REVOKED] * 3
    assert all(story.now_of(one).receipts[-1].called_at is not None for one in everything)
    assert story.twin.assignments() == set()
    assert queries.list_stuck(actor=story.olga, now=story.clock.now()).items == ()


def test_a_permission_set_of_the_management_account_waits_with_the_reason(story: Story) -> None:
    """What a delegated administrator may not touch: neither hidden nor taken for done, and it holds no place among the creations."""
    story.twin.sso.create_account_assignment(**story.twin.key("olga@example.com", "management", "PowerUserAccess"))
    story.clock.advance(3)
    story.twin.settings.change({"caller": "delegated"})
    asked = story.ask(seconds=600)
    for _ in range(3):
        story.tick()
        story.clock.advance(30)

    (stuck,) = queries.list_stuck(actor=story.olga, now=story.clock.now()).items

    assert (stuck.request_id, stuck.work) == (asked.request_id, Work.GRANT)
    assert "AccessDeniedException" in stuck.work_error
    story.clock.advance(600)
    story.tick()
    assert story.now_of(asked).status is Status.REVOKED
