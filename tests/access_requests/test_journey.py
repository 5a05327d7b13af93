"""The main job, end to end against the twin: asked, decided, granted with proof, taken back with proof."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accessportal.access_requests import operations, queries
from accessportal.access_requests.states import AccessRequest, Search, Status, Work
from accessportal.assignments.states import Remedy
from accessportal.audit import queries as audit
from accessportal.catalog import operations as catalog
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole
from accessportal.kernel.actors import system
from accessportal.kernel.errors import Conflict, NotFound
from accessportal.rules import operations as rules
from tests.fixtures_story import RULES, Story
from tests.fixtures_twin import create_user

SETUP = system("setup")
ALICE, PAYMENTS = "alice@example.com", "/engineering/payments"


def test_alice_gets_dev_access_at_once_and_loses_it_in_time(story: Story) -> None:
    asked = story.ask(seconds=600)
    assert (asked.status, asked.work) == (Status.ACTIVE, Work.GRANT)
    assert story.asked == [("carry_out", {"request_id": asked.request_id})]
    assert not story.is_assigned()

    granted = story.carry_out(asked)

    assert granted.is_granted
    assert story.is_assigned()
    assert [(receipt.work, receipt.job_status) for receipt in granted.receipts] == [(Work.GRANT, "SUCCEEDED")]
    story.clock.advance((granted.expires_at - story.clock.now()).total_seconds() - 1)
    assert story.tick().expired == 0
    assert story.is_assigned()

    story.clock.advance(1)
    report = story.tick()

    assert (report.expired, report.revoked, report.failures) == (1, 1, ())
    assert not story.is_assigned()
    revoked = story.now_of(granted)
    assert revoked.status is Status.REVOKED
    assert revoked.revoked_at is not None
    assert revoked.work is None
    assert revoked.receipts[-1].work is Work.REVOKE
    assert revoked.receipts[-1].lateness_seconds == 0.0
    events = queries.history(request=revoked)
    assert [event.action for event in events] == ["request.auto_approved", "request.granted", "request.expired", "request.revoked"]
    assert audit.check_head(revoked.entity, version=revoked.version, audit_head=revoked.audit_head) == []
    assert story.tick() == story.tick()


def test_bob_approves_and_mallory_can_not_even_see_it(story: Story) -> None:
    asked = story.ask_for_prod()
    assert (asked.status, asked.work) == (Status.PENDING, None)
    assert story.asked == []

    with pytest.raises(NotFound):
        story.approve(asked, actor=story.mallory)
    approved = story.approve(asked)

    assert (approved.status, approved.work, approved.decided_by) == (Status.ACTIVE, Work.GRANT, "bob@example.com")
    assert (approved.expires_at - story.clock.now()).total_seconds() == 3600
    granted = story.carry_out(approved)
    assert granted.is_granted
    assert story.is_assigned(account="payments-prod", permission_set="ReadOnlyAccess")
    with pytest.raises(Conflict, match=r"already approved by bob@example.com"):
        story.approve(asked, actor=story.sam)


def make_alice_anew(story: Story) -> None:
    directory.delete_person(email=ALICE, actor=SETUP, now=story.clock.now())
    story.clock.advance(1)
    directory.create_person(
        email=ALICE, name="Alice Next", group_id=PAYMENTS, role=GroupRole.CONTRIBUTOR, actor=SETUP, now=story.clock.now()
    )


def make_payments_anew(story: Story) -> None:
    """Alice stays who she is, in a group of her own meanwhile."""

    def let_in(group_id: str) -> None:
        directory.grant_membership(email=ALICE, group_id=group_id, role=GroupRole.CONTRIBUTOR, actor=SETUP, now=story.clock.now())

    let_in("/engineering")
    directory.revoke_membership(email=ALICE, group_id=PAYMENTS, actor=SETUP, now=story.clock.now())
    directory.delete_group(group_id=PAYMENTS, actor=SETUP, now=story.clock.now())
    story.clock.advance(1)
    directory.create_group(group_id=PAYMENTS, name="Payroll", description="", actor=SETUP, now=story.clock.now())
    let_in(PAYMENTS)


@pytest.mark.parametrize(("subject_id", "make_anew"), [(ALICE, make_alice_anew), (PAYMENTS, make_payments_anew)])
@pytest.mark.parametrize("is_approved_before", [False, True])
def test_whoever_has_the_address_or_path_next_does_not_get_what_was_asked_for(
    story: Story, subject_id: str, make_anew: Callable[[Story], None], is_approved_before: bool
) -> None:
    def ask() -> AccessRequest:
        return story.ask(account="payments-prod", permission_set="ReadOnlyAccess", ticket="CHG-1", subject_id=subject_id)

    asked = ask()
    if is_approved_before:
        asked = story.approve(asked)
    make_anew(story)

    if is_approved_before:
        check_ended_unasked(story, story.carry_out(asked), f"{subject_id} was deleted and made anew after this was asked for.")
    else:
        with pytest.raises(Conflict, match=f"{subject_id} was deleted and made anew after this was asked for.") as refused:
            story.approve(asked)
        assert refused.value.code == "made_anew"
        story.deny(asked)
    assert story.twin.assignments() == set()
    assert story.carry_out(story.approve(ask())).is_granted


def check_ended_unasked(story: Story, ended: AccessRequest, reason: str) -> None:
    """It could never be granted, says so, and is over."""
    assert (ended.is_granted, ended.work, ended.ended_by) == (False, Work.REVOKE, "system:worker")
    told = queries.history(request=ended)[-1]
    assert told.action == "request.end_asked"
    assert reason in told.data["reason"]
    assert story.carry_out(ended).status is Status.REVOKED


def make_user_anew(story: Story) -> None:
    """The same person, with another user in IAM Identity Center."""
    twin = story.twin
    twin.identity_store.delete_user(IdentityStoreId=twin.identity_store_id, UserId=twin.users[ALICE])
    create_user(twin.identity_store, twin.identity_store_id, ALICE, "Alice Archer")


def make_permission_set_anew(story: Story) -> None:
    twin = story.twin
    twin.sso.delete_permission_set(InstanceArn=twin.instance_arn, PermissionSetArn=twin.permission_sets["ReadOnlyAccess"])
    twin.sso.create_permission_set(InstanceArn=twin.instance_arn, Name="ReadOnlyAccess")


@pytest.mark.parametrize("make_anew", [make_user_anew, make_permission_set_anew])
@pytest.mark.parametrize("when", ["before the approval", "between approvals", "after the approval", "while it is held"])
def test_what_is_made_anew_in_aws_is_not_given_for_what_was_decided_on(story: Story, make_anew: Callable[[Story], None], when: str) -> None:
    quorum = 2 if when == "between approvals" else 1
    rules.apply_rules(
        text=RULES.replace("required: true, quorum: 1", f"required: true, quorum: {quorum}"), actor=SETUP, now=story.clock.now()
    )

    def make_anew_and_sync() -> None:
        make_anew(story)
        catalog.sync_catalog(now=story.clock.now(), clock=story.clock)

    asked = story.ask_for_prod()
    if when in ("before the approval", "between approvals"):
        if when == "between approvals":
            asked = story.approve(asked)
        make_anew_and_sync()
        with pytest.raises(Conflict, match="made anew under the same name") as refused:
            story.approve(asked, actor=story.sam)
        assert refused.value.code == "made_anew"
        story.deny(asked)
    elif when == "after the approval":
        asked = story.approve(asked)
        make_anew_and_sync()
        check_ended_unasked(story, story.carry_out(asked), "Ask again.")
    else:
        asked = story.carry_out(story.approve(asked))
        make_anew_and_sync()
        story.twin.front._assignments.clear()
        operations.reconcile_assignments(remedies=[Remedy.REPAIR], most_share=1.0, actor=SETUP, clock=story.clock)
        check_ended_unasked(story, story.now_of(asked), "Ask again.")


@pytest.mark.parametrize("make_anew", [make_user_anew, make_permission_set_anew])
def test_what_is_made_anew_in_aws_is_no_extension_of_what_was_held(story: Story, make_anew: Callable[[Story], None]) -> None:
    held = story.carry_out(story.ask(permission_set="ReadOnlyAccess"))
    make_anew(story)
    catalog.sync_catalog(now=story.clock.now(), clock=story.clock)

    with pytest.raises(Conflict, match="something else has its name now") as refused:
        story.extend(held, 7200)

    assert refused.value.code == "made_anew"
    assert [one.request_id for one in queries.list_open(subject_id=ALICE)] == [held.request_id]


def test_a_ticket_is_not_another_whose_letters_look_alike(story: Story) -> None:
    one = story.ask(ticket="inc-KEY")
    other = story.ask(ticket="INC-\N{KELVIN SIGN}ey")

    def found(ticket: str) -> list[str]:
        page = queries.search(search=Search(ticket_id=ticket), actor=story.ana, now=story.clock.now())
        return [request.request_id for request in page.items]

    assert found("INC-key") == [one.request_id]
    assert found("inc-\N{KELVIN SIGN}EY") == [other.request_id]
    assert not story.twin.assignments()

    again = story.approve(story.ask_for_prod())
    granted = story.carry_out(story.approve(again, actor=story.sam) if again.work is None else again)
    assert granted.is_granted
    ((_, principal_id, _, arn),) = story.twin.assignments()
    assert (principal_id, arn) == (granted.target["principal_id"], granted.target["permission_set_arn"])


def test_two_approvals_are_needed_for_a_quorum_of_two(story: Story) -> None:
    asked = story.ask(account="payments-prod")

    first = story.approve(asked)
    assert (first.status, first.approvals) == (Status.PENDING, frozenset({"bob@example.com"}))
    with pytest.raises(Conflict, match="approved it already"):
        story.approve(asked)
    second = story.approve(asked, actor=story.sam)

    assert (second.status, second.decided_by) == (Status.ACTIVE, "sam@example.com")


def test_overlapping_claims_keep_the_access_until_the_last_one_ends(story: Story) -> None:
    short = story.carry_out(story.ask(seconds=600))
    longer = story.carry_out(story.extend(short, 1200))
    assert longer.extends == short.request_id
    assert longer.is_granted

    story.clock.advance((short.expires_at - story.clock.now()).total_seconds())
    story.tick()
    ended = story.now_of(short)

    assert ended.status is Status.REVOKED
    assert ended.receipts[-1].kept_by == (longer.request_id,)
    assert story.is_assigned()
    story.clock.advance((longer.expires_at - story.clock.now()).total_seconds())
    story.tick()
    assert story.now_of(longer).status is Status.REVOKED
    assert not story.is_assigned()


def test_ending_while_the_grant_is_under_way_leaves_nothing_behind(story: Story) -> None:
    asked = story.ask()
    story.twin.settings.job_seconds = 300
    waiting = story.carry_out(asked)
    assert waiting.work is Work.GRANT
    assert "still running" in waiting.work_error

    story.end(asked)
    story.twin.settings.job_seconds = 2
    for _ in range(8):
        story.clock.advance(60)
        story.tick()

    assert story.now_of(asked).status is Status.REVOKED
    assert not story.is_assigned()


def test_undecided_requests_lapse(story: Story) -> None:
    asked = story.ask_for_prod()
    story.clock.advance(86_400)

    with pytest.raises(Conflict, match="lapsed"):
        story.approve(asked)
    report = story.tick()

    assert report.lapsed == 1
    assert story.now_of(asked).status is Status.LAPSED
    assert queries.list_open(subject_id="alice@example.com") == ()


def test_the_same_form_sent_twice_gives_one_request(story: Story) -> None:
    first = story.ask(submission_id="once")
    again = story.ask(submission_id="once")

    assert again.request_id == first.request_id
    assert len(queries.list_open(subject_id="alice@example.com")) == 1


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"seconds": 7200}, "with another length. That request stands as it was sent"),
        ({"reason": "Something else"}, "with another reason. "),
        ({"ticket": "CHG-1"}, "with another ticket. "),
        ({"permission_set": "ReadOnlyAccess"}, "with another target. "),
        ({"subject_id": "/engineering/payments"}, "with another target and another subject. "),
        ({"seconds": 7200, "reason": "Something else"}, "with another length and another reason. "),
    ],
    ids=lambda given: " and ".join(given) if isinstance(given, dict) else "",
)
def test_the_same_form_with_another_value_is_never_taken_for_the_first(story: Story, other: dict[str, Any], words: str) -> None:
    first = story.ask(submission_id="once")

    with pytest.raises(Conflict, match=words) as refused:
        story.ask(submission_id="once", **other)

    assert refused.value.present == first
    assert first.request_id not in refused.value.message
    assert story.now_of(first) == first
    assert len(queries.list_open(subject_id="alice@example.com")) == 1


def test_nothing_is_claimed_for_a_request_that_ended_first(story: Story) -> None:
    asked = story.ask()
    story.end(asked)

    ended = story.carry_out(asked)

    assert ended.status is Status.REVOKED
    assert ended.receipts[-1].job_status == "NEVER_CREATED"
    assert story.twin.assignments() == set()
