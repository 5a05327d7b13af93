"""Membership for a time, end to end: asked, decided by the group's admins, member, and no longer member at its end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from accessportal.access_requests import operations, queries
from accessportal.access_requests.states import AccessRequest, Preview, Status, Work
from accessportal.audit import queries as audit
from accessportal.aws import cognito
from accessportal.directory import operations as directory
from accessportal.directory import queries as directory_queries
from accessportal.directory.states import PERMANENT, GroupRole, State
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.counts import Count
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from tests.access_requests.test_crashes import fill_pool
from tests.fixtures_story import Story

SETUP = system("setup")
ALICE, GINA = "alice@example.com", "gina@example.com"
PLATFORM = "/engineering/platform"


@pytest.fixture(autouse=True)
def platform(story: Story) -> None:
    """A group below Gina's, in which Alice is not."""
    directory.create_group(group_id=PLATFORM, name="Platform", description="", actor=SETUP, now=story.clock.now())


def preview(
    story: Story,
    group: str = PLATFORM,
    role: str = "contributor",
    *,
    seconds: int = 3600,
    actor: Actor | None = None,
    subject: str | None = None,
) -> Preview:
    return queries.preview(
        kind="group",
        subject_id=subject,
        target={"group": group, "role": role},
        duration_seconds=seconds,
        ticket_id=None,
        actor=actor or story.alice,
        book=queries.ApproverBook(now=story.clock.now()),
    )


def groups_of(story: Story, email: str = ALICE) -> frozenset[str]:
    return directory_queries.groups_of(email=email, now=story.clock.now())


def advance_to_end_of(story: Story, request: AccessRequest, *, seconds: float = 0) -> None:
    story.clock.advance((request.expires_at - story.clock.now()).total_seconds() + seconds)


def join(story: Story, role: str = "contributor", *, seconds: int = 3600) -> AccessRequest:
    asked = story.ask_to_join(PLATFORM, role, seconds=seconds)
    if asked.status is Status.PENDING:
        asked = story.approve(asked, actor=story.gina)
    return story.carry_out(asked)


def test_alice_helps_out_in_another_group_until_the_end(story: Story) -> None:
    foreseen = preview(story)
    assert (foreseen.outcome, foreseen.rule_name, foreseen.quorum) == ("needs_approval", "help-out", 1)
    assert foreseen.approvers is not None
    assert [person.email for person in foreseen.approvers.people] == [GINA, "olga@example.com"]
    assert foreseen.facts == {"group_id": PLATFORM, "group_name": "Platform", "role": "contributor"}

    asked = story.ask_to_join(PLATFORM, "contributor")
    assert (asked.status, asked.work, asked.approval.admins_of, asked.scope) == (Status.PENDING, None, PLATFORM, PLATFORM)
    assert queries.describe(request=asked).title == "Platform · contributor"
    assert queries.describe(request=asked).facts == (("Group", "Platform"), ("Path", PLATFORM), ("Role", "contributor"))
    with pytest.raises(NotFound):
        story.approve(asked, actor=story.mallory)
    approved = story.approve(asked, actor=story.gina)
    assert (approved.status, approved.work, approved.decided_by) == (Status.ACTIVE, Work.GRANT, GINA)
    assert PLATFORM not in groups_of(story)

    granted = story.carry_out(approved)

    assert granted.is_granted
    assert story.role_of(ALICE, PLATFORM) is GroupRole.CONTRIBUTOR
    assert PLATFORM in groups_of(story)
    membership = directory_queries.find_membership(email=ALICE, group_id=PLATFORM)
    assert membership is not None
    assert [(claim.claim_id, claim.ends_at) for claim in membership.claims] == [(asked.request_id, granted.expires_at)]
    advance_to_end_of(story, granted, seconds=-1)
    assert story.tick().expired == 0
    assert PLATFORM in groups_of(story)

    story.clock.advance(1)
    assert PLATFORM not in groups_of(story), "the end holds before anybody has tidied up"
    assert story.role_of(ALICE, PLATFORM) is None
    report = story.tick()

    assert (report.expired, report.revoked, report.failures) == (1, 1, ())
    assert directory_queries.find_membership(email=ALICE, group_id=PLATFORM) is None
    revoked = story.now_of(granted)
    assert (revoked.status, revoked.receipts[-1].work, revoked.receipts[-1].lateness_seconds) == (Status.REVOKED, Work.REVOKE, 0.0)
    events = [event.action for event in queries.history(request=revoked)]
    assert events == ["request.submitted", "request.approved", "request.granted", "request.expired", "request.revoked"]
    assert audit.check_head(revoked.entity, version=revoked.version, audit_head=revoked.audit_head) == []
    alice = directory_queries.find_person(email=ALICE)
    assert alice is not None
    assert alice.is_enabled
    assert audit.check_head(alice.entity, version=alice.version, audit_head=alice.audit_head) == []


def test_a_reader_is_admitted_at_once(story: Story) -> None:
    assert preview(story, role="reader").outcome == "at_once"
    asked = story.ask_to_join(PLATFORM, "reader")
    assert (asked.status, asked.work, asked.decided_by) == (Status.ACTIVE, Work.GRANT, "rule:look-around")
    assert story.asked == [("carry_out", {"request_id": asked.request_id})]
    assert story.carry_out(asked).is_granted
    assert story.role_of(ALICE, PLATFORM) is GroupRole.READER


def test_a_permanent_membership_below_a_temporary_one_stays(story: Story) -> None:
    directory.grant_membership(email=ALICE, group_id=PLATFORM, role=GroupRole.READER, actor=SETUP, now=story.clock.now())
    granted = join(story, "contributor")
    assert granted.receipts[-1].kept_by == (PERMANENT,)
    assert story.role_of(ALICE, PLATFORM) is GroupRole.CONTRIBUTOR

    advance_to_end_of(story, granted)
    story.tick()

    ended = story.now_of(granted)
    assert (ended.status, ended.receipts[-1].kept_by) == (Status.REVOKED, (PERMANENT,))
    assert story.role_of(ALICE, PLATFORM) is GroupRole.READER


def test_whoever_has_the_address_next_does_not_get_what_was_approved(story: Story) -> None:
    approved = story.approve(story.ask_to_join(PLATFORM, "contributor"), actor=story.gina)
    directory.delete_person(email=ALICE, actor=SETUP, now=story.clock.now())
    story.clock.advance(1)
    directory.create_person(email=ALICE, name="Alice Next", actor=SETUP, now=story.clock.now())

    ended = story.carry_out(approved)

    assert (ended.is_granted, ended.work) == (False, Work.REVOKE)
    assert "made anew after this was asked for" in queries.history(request=ended)[-1].data["reason"]
    assert groups_of(story) == frozenset()
    assert story.carry_out(ended).status is Status.REVOKED


def test_what_was_approved_for_a_group_is_not_given_in_the_next_one_of_its_path(story: Story) -> None:
    approved = story.approve(story.ask_to_join(PLATFORM, "contributor"), actor=story.gina)
    directory.delete_group(group_id=PLATFORM, actor=SETUP, now=story.clock.now())
    story.clock.advance(1)
    directory.create_group(group_id=PLATFORM, name="Payroll", description="", actor=SETUP, now=story.clock.now())

    ended = story.carry_out(approved)

    assert (ended.is_granted, ended.work) == (False, Work.REVOKE)
    assert "made anew after this was asked for" in queries.history(request=ended)[-1].data["reason"]
    assert PLATFORM not in groups_of(story)
    assert story.carry_out(ended).status is Status.REVOKED


def test_a_group_of_the_same_path_is_not_approved_for_the_former(story: Story) -> None:
    asked = story.ask_to_join(PLATFORM, "contributor")
    directory.delete_group(group_id=PLATFORM, actor=SETUP, now=story.clock.now())
    story.clock.advance(1)
    directory.create_group(group_id=PLATFORM, name="Payroll", description="", actor=SETUP, now=story.clock.now())

    with pytest.raises(Conflict, match="made anew after this was asked for"):
        story.approve(asked, actor=story.gina)


@pytest.mark.parametrize(("held", "asked"), [("contributor", "contributor"), ("contributor", "reader"), ("admin", "reader")])
def test_what_is_held_for_good_is_not_asked_for(story: Story, held: str, asked: str) -> None:
    directory.grant_membership(email=ALICE, group_id=PLATFORM, role=GroupRole(held), actor=SETUP, now=story.clock.now())

    foreseen = preview(story, role=asked)

    assert (foreseen.outcome, foreseen.field) == ("impossible", "group")
    assert f"Alice Park is in Platform already, as {held} and without an end." in foreseen.reason
    with pytest.raises(InvalidRequest, match="without an end"):
        story.ask_to_join(PLATFORM, asked)


def test_overlapping_requests_keep_the_membership_until_the_last_one_ends(story: Story) -> None:
    short = join(story, "contributor", seconds=600)
    longer = join(story, "reader", seconds=1200)
    assert story.role_of(ALICE, PLATFORM) is GroupRole.CONTRIBUTOR

    advance_to_end_of(story, short)
    story.tick()

    assert story.now_of(short).receipts[-1].kept_by == (longer.request_id,)
    assert story.role_of(ALICE, PLATFORM) is GroupRole.READER
    advance_to_end_of(story, longer)
    story.tick()
    assert story.now_of(longer).status is Status.REVOKED
    assert story.role_of(ALICE, PLATFORM) is None


def test_an_extension_is_a_second_claim_without_a_gap(story: Story) -> None:
    first = join(story, seconds=600)
    with pytest.raises(InvalidRequest, match="no later than"):
        story.extend(first, 300)
    foreseen = preview(story)
    assert (foreseen.held_until, foreseen.held_by_request) == (first.expires_at, first.request_id)

    second = story.carry_out(story.approve(story.extend(first, 1800), actor=story.gina))

    assert (second.extends, second.target, second.kind) == (first.request_id, first.target, "group")
    advance_to_end_of(story, first)
    story.tick()
    assert story.role_of(ALICE, PLATFORM) is GroupRole.CONTRIBUTOR
    advance_to_end_of(story, second)
    story.tick()
    assert story.role_of(ALICE, PLATFORM) is None


@pytest.mark.parametrize(
    ("who", "refusal"), [("alice", None), ("gina", None), ("olga", None), ("ana", NotAllowed), ("bob", NotFound), ("mallory", NotFound)]
)
def test_holder_admin_and_operator_end_early(story: Story, who: str, refusal: type[Exception] | None) -> None:
    granted = join(story)

    if refusal is not None:
        with pytest.raises(refusal):
            story.end(granted, actor=getattr(story, who))
        assert story.role_of(ALICE, PLATFORM) is GroupRole.CONTRIBUTOR
    else:
        assert story.carry_out(story.end(granted, actor=getattr(story, who))).status is Status.REVOKED
        assert story.role_of(ALICE, PLATFORM) is None


def test_ending_before_the_grant_claims_nothing(story: Story) -> None:
    asked = story.ask_to_join(PLATFORM)
    story.end(asked)

    ended = story.carry_out(asked)

    assert (ended.status, ended.granted_at) == (Status.REVOKED, None)
    assert directory_queries.find_membership(email=ALICE, group_id=PLATFORM) is None


def test_undecided_requests_are_denied_or_lapse(story: Story) -> None:
    denied = story.deny(story.ask_to_join(PLATFORM, "contributor"), actor=story.gina)
    undecided = story.ask_to_join(PLATFORM, "admin")
    story.clock.advance(86_400)
    story.tick()

    assert (denied.status, story.now_of(undecided).status) == (Status.DENIED, Status.LAPSED)
    assert story.role_of(ALICE, PLATFORM) is None


def test_only_the_groups_admins_decide(story: Story) -> None:
    asked = story.ask_to_join(PLATFORM, "contributor")
    for stranger in (story.bob, story.sam, story.mallory):
        with pytest.raises(NotFound):
            story.approve(asked, actor=stranger)
    with pytest.raises(NotAllowed, match="own request"):
        story.approve(asked, actor=story.alice)
    with pytest.raises(NotAllowed, match="Only an approver"):
        story.approve(asked, actor=story.ana)
    assert queries.count_waiting_for(actor=story.gina, now=story.clock.now()) == Count(1)
    assert queries.count_waiting_for(actor=story.bob, now=story.clock.now()) == Count(0)
    assert queries.ApproverBook(now=story.clock.now()).approved_rules(story.gina)
    assert not queries.ApproverBook(now=story.clock.now()).approved_rules(story.alice)


def test_an_admin_does_not_decide_on_their_own_request(story: Story) -> None:
    directory.create_group(group_id="/engineering/web", name="Web", description="", actor=SETUP, now=story.clock.now())
    asked = story.ask_to_join("/engineering/web", "admin", actor=story.gina)

    with pytest.raises(NotAllowed, match="own request"):
        story.approve(asked, actor=story.gina)
    approvers = queries.ApproverBook(now=story.clock.now()).of_request(asked)
    assert ([person.email for person in approvers.people], approvers.is_fallback) == (["olga@example.com"], False)
    assert story.approve(asked, actor=story.olga).status is Status.ACTIVE


def test_admins_are_looked_up_when_somebody_decides(story: Story) -> None:
    asked = story.ask_to_join(PLATFORM, "contributor")
    directory.grant_membership(email="sam@example.com", group_id=PLATFORM, role=GroupRole.ADMIN, actor=SETUP, now=story.clock.now())
    directory.set_person_state(email=GINA, state=State.DISABLED, actor=SETUP, now=story.clock.now())

    with pytest.raises(NotFound):
        story.approve(asked, actor=story.gina)
    assert story.approve(asked, actor=story.sam).status is Status.ACTIVE


def test_an_admin_for_a_while_decides_only_until_then(story: Story) -> None:
    helper = story.ask_to_join(PLATFORM, "admin", seconds=600)
    story.carry_out(story.approve(helper, actor=story.gina))
    asked = story.ask_to_join(PLATFORM, "contributor", actor=story.gina)
    assert ALICE in [person.email for person in queries.ApproverBook(now=story.clock.now()).of_request(asked).people]

    story.clock.advance(600)

    assert ALICE not in [person.email for person in queries.ApproverBook(now=story.clock.now()).of_request(asked).people]
    with pytest.raises(NotFound):
        story.approve(asked, actor=story.alice)


def test_a_group_rule_may_name_its_approvers(story: Story) -> None:
    asked = story.ask_to_join("/portal/operators", "contributor")
    assert [person.email for person in queries.ApproverBook(now=story.clock.now()).of_request(asked).people] == [
        "bob@example.com",
        "sam@example.com",
    ]
    with pytest.raises(NotAllowed, match="Only an approver"):
        story.approve(asked, actor=story.olga)
    assert story.carry_out(story.approve(asked)).is_granted


REFUSED = [
    pytest.param({"group": "/nowhere"}, "group_unknown", "group", id="no such group"),
    pytest.param({"group": " "}, "group_missing", "group", id="no group"),
    pytest.param({"group": "not a path"}, "group_unknown", "group", id="no path"),
    pytest.param({"role": ""}, "role_missing", "role", id="no role"),
    pytest.param({"role": "owner"}, "role_unknown", "role", id="no such role"),
    pytest.param({"group": "/security"}, "group_not_covered", "group", id="no rule for this group"),
    pytest.param({"group": "/portal/operators", "role": "admin"}, "role_not_offered", "role", id="no rule for this role there"),
]


@pytest.mark.parametrize(("changed", "code", "field"), REFUSED)
def test_what_can_not_be_asked_for_is_said_with_the_input(story: Story, changed: dict[str, str], code: str, field: str) -> None:
    target = {"group": PLATFORM, "role": "reader"} | changed
    with pytest.raises(InvalidRequest) as caught:
        story.ask_to_join(target["group"], target["role"])
    assert (caught.value.code, caught.value.field) == (code, field)
    assert preview(story, target["group"], target["role"]).field == field


def test_membership_is_for_people(story: Story) -> None:
    assert preview(story, subject="/engineering/payments").field == "subject"
    with pytest.raises(NotAllowed, match="for yourself"):
        operations.submit(
            kind="group",
            subject_id=ALICE,
            target={"group": PLATFORM, "role": "reader"},
            duration_seconds=600,
            reason="For Alice",
            ticket_id="",
            submission_id="one",
            actor=story.bob,
            now=story.clock.now(),
        )
    with pytest.raises(NotAllowed, match="none of the groups"):
        story.ask_to_join(PLATFORM, actor=story.mallory)


def disable_group(story: Story) -> None:
    directory.set_group_state(group_id=PLATFORM, state=State.DISABLED, actor=SETUP, now=story.clock.now())


def delete_group(story: Story) -> None:
    directory.delete_group(group_id=PLATFORM, actor=SETUP, now=story.clock.now())


def disable_alice(story: Story) -> None:
    directory.set_person_state(email=ALICE, state=State.DISABLED, actor=SETUP, now=story.clock.now())


@pytest.mark.parametrize("happening", [disable_group, delete_group, disable_alice])
def test_what_happens_while_it_waits_stops_the_approval(story: Story, happening: Callable[[Story], None]) -> None:
    asked = story.ask_to_join(PLATFORM, "contributor")
    happening(story)

    # The admins of a group that is gone are nobody: the operators stand in.
    with pytest.raises(Conflict, match=r"no longer possible|deny the request"):
        story.approve(asked, actor=story.olga)
    assert story.deny(asked, actor=story.olga).status is Status.DENIED


@pytest.mark.parametrize("happening", [disable_group, delete_group, disable_alice])
def test_what_happens_before_the_grant_is_said_and_ends_in_time(story: Story, happening: Callable[[Story], None]) -> None:
    asked = story.ask_to_join(PLATFORM, "reader", seconds=600)
    happening(story)

    waiting = story.carry_out(asked)

    assert (waiting.work, waiting.work_attempts) == (Work.GRANT, 1)
    assert waiting.work_error
    advance_to_end_of(story, asked)
    assert story.tick().failures == ()
    assert story.now_of(asked).status is Status.REVOKED
    assert directory_queries.find_membership(email=ALICE, group_id=PLATFORM) is None


@pytest.mark.parametrize("happening", [disable_group, disable_alice])
def test_what_happens_while_it_is_held_takes_the_membership_at_once(story: Story, happening: Callable[[Story], None]) -> None:
    granted = join(story)
    happening(story)
    assert PLATFORM not in groups_of(story)
    assert story.role_of(ALICE, PLATFORM) is None

    advance_to_end_of(story, granted)
    assert story.tick().failures == ()

    assert story.now_of(granted).status is Status.REVOKED
    assert directory_queries.find_membership(email=ALICE, group_id=PLATFORM) is None


def test_a_person_who_is_deleted_while_they_hold_it_is_no_obstacle(story: Story) -> None:
    granted = join(story)
    directory.delete_person(email=ALICE, actor=SETUP, now=story.clock.now())

    advance_to_end_of(story, granted)
    assert story.tick().failures == ()

    assert story.now_of(granted).status is Status.REVOKED


def test_a_group_that_is_moved_takes_its_requests_along(story: Story) -> None:
    """Rules and admins follow the tree; the path stays what it was."""
    asked = story.ask_to_join(PLATFORM, "contributor")
    directory.move_group(group_id=PLATFORM, parent_id="/security", actor=SETUP, now=story.clock.now())

    assert [person.email for person in queries.ApproverBook(now=story.clock.now()).of_request(asked).people] == [
        "bob@example.com",
        "olga@example.com",
    ]
    with pytest.raises(Conflict, match="no longer allow"):
        story.approve(asked)


def test_cognito_follows_to_the_group_and_out_of_it(story: Story, user_pool: str) -> None:
    fill_pool(story)
    granted = join(story)
    assert granted.is_granted
    at_home = {"/engineering/payments:contributor"}
    assert cognito.groups_of_user(user_pool, ALICE) == at_home | {f"{PLATFORM}:contributor"}

    advance_to_end_of(story, granted)
    story.tick()

    assert story.now_of(granted).status is Status.REVOKED
    assert cognito.groups_of_user(user_pool, ALICE) == at_home


def test_nothing_is_called_revoked_while_cognito_has_not_followed(story: Story, user_pool: str) -> None:
    fill_pool(story)
    granted = join(story)
    advance_to_end_of(story, granted)
    story.twin.settings.cognito_server_error = 1.0
    story.tick()

    waiting = story.now_of(granted)
    assert (waiting.status, waiting.work) == (Status.ACTIVE, Work.REVOKE)
    assert waiting.work_error
    assert PLATFORM not in groups_of(story), "the portal itself goes by the end"
    assert cognito_groups(story, user_pool) > {"/engineering/payments:contributor"}

    story.twin.settings.cognito_server_error = 0.0
    for _ in range(8):
        story.clock.advance(60)
        story.tick()
    assert story.now_of(granted).status is Status.REVOKED
    assert cognito_groups(story, user_pool) == {"/engineering/payments:contributor"}


def cognito_groups(story: Story, user_pool: str) -> frozenset[str]:
    """What Cognito holds, whatever it answers to the portal at the moment."""
    trouble, story.twin.settings.cognito_server_error = story.twin.settings.cognito_server_error, 0.0
    try:
        return cognito.groups_of_user(user_pool, ALICE)
    finally:
        story.twin.settings.cognito_server_error = trouble


def test_reconciling_assignments_leaves_group_requests_alone(story: Story) -> None:
    granted = join(story)
    story.clock.advance(600)

    report = operations.reconcile_assignments(actor=SETUP, clock=story.clock)

    assert (report.missing, report.unknown, report.left_over, report.dead_claims) == ((), (), (), ())
    assert story.now_of(granted) == granted
    assert granted.expires_at - story.clock.now() < timedelta(hours=1)
