"""Who may decide, end, see and list: computed live, with allow and deny side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from accessportal.access_requests import operations, queries
from accessportal.access_requests.models import RequestItem
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.directory import operations as directory
from accessportal.directory import queries as directory_queries
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import GroupRole, State
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.counts import Count
from accessportal.kernel.durations import LONGEST_SECONDS
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, NotFound, PortalError
from accessportal.rules import operations as rules
from tests.fixtures_story import RULES, Story

SETUP = system("setup")


def disable(story: Story, email: str) -> None:
    directory.set_person_state(email=email, state=State.DISABLED, actor=SETUP, now=story.clock.now())


def names(story: Story, request: AccessRequest) -> list[str]:
    return sorted(person.email for person in queries.ApproverBook(now=story.clock.now()).of_request(request).people)


def test_approvers_are_those_who_can_decide_now(story: Story) -> None:
    asked = story.ask_for_prod()
    assert names(story, asked) == ["bob@example.com", "sam@example.com"]
    assert not queries.ApproverBook(now=story.clock.now()).of_request(asked).is_fallback

    disable(story, "bob@example.com")

    assert names(story, asked) == ["sam@example.com"]
    with pytest.raises(NotFound):
        story.approve(asked)
    assert story.approve(asked, actor=story.sam).status is Status.ACTIVE


def test_operators_stand_in_when_a_rule_has_too_few_approvers_left(story: Story) -> None:
    asked = story.ask(account="payments-prod")
    with pytest.raises(NotAllowed, match="Only an approver"):
        story.approve(asked, actor=story.olga)
    disable(story, "sam@example.com")

    approvers = queries.ApproverBook(now=story.clock.now()).of_request(asked)

    assert (approvers.is_fallback, approvers.quorum) == (True, 2)
    assert names(story, asked) == ["bob@example.com", "olga@example.com"]
    assert [request.request_id for request in queries.list_undecidable(actor=story.olga, now=story.clock.now()).items] == [asked.request_id]
    story.approve(asked)
    assert story.approve(asked, actor=story.olga).status is Status.ACTIVE


def test_a_deleted_approver_group_is_said_at_submit_and_decided_by_operators(story: Story) -> None:
    for email in ("bob@example.com", "sam@example.com"):
        directory.revoke_membership(email=email, group_id="/security", actor=SETUP, now=story.clock.now())
    directory.delete_group(group_id="/security", actor=SETUP, now=story.clock.now())

    seen = queries.preview(
        kind="aws_account",
        subject_id=None,
        target={"account": "payments-prod", "permission_set": "ReadOnlyAccess"},
        duration_seconds=3600,
        ticket_id="CHG-1",
        actor=story.alice,
        book=queries.ApproverBook(now=story.clock.now()),
    )
    asked = story.ask_for_prod()

    assert seen.approvers is not None
    assert (seen.approvers.is_fallback, seen.approvers.missing_groups) == (True, ("/security",))
    assert names(story, asked) == ["olga@example.com"]
    assert story.approve(asked, actor=story.olga).decided_by == "olga@example.com"


def test_an_approval_of_somebody_disabled_since_does_not_count(story: Story) -> None:
    directory.create_person(email="mei@example.com", name="Mei Chen", actor=SETUP, now=story.clock.now())
    directory.grant_membership(
        email="mei@example.com", group_id="/security", role=GroupRole.CONTRIBUTOR, actor=SETUP, now=story.clock.now()
    )
    asked = story.ask(account="payments-prod")
    story.approve(asked)
    disable(story, "bob@example.com")

    second = story.approve(asked, actor=story.sam)

    assert (second.status, second.approvals) == (Status.PENDING, frozenset({"bob@example.com", "sam@example.com"}))


def test_nobody_decides_on_their_own_request(story: Story) -> None:
    rules.apply_rules(
        text=RULES.replace("subjects: {groups: [/engineering]}", "subjects: {groups: [/engineering, /security]}"),
        actor=SETUP,
        now=story.clock.now(),
    )
    asked = story.ask_for_prod(actor=story.bob)

    for decide in (story.approve, story.deny):
        with pytest.raises(NotAllowed, match="own request"):
            decide(asked, actor=story.bob)
    assert names(story, asked) == ["sam@example.com"]
    assert story.approve(asked, actor=story.sam).status is Status.ACTIVE


def test_nobody_decides_for_a_group_that_would_serve_them(story: Story) -> None:
    directory.grant_membership(
        email="bob@example.com", group_id="/engineering/payments", role=GroupRole.READER, actor=SETUP, now=story.clock.now()
    )
    asked = story.ask(account="payments-prod", permission_set="ReadOnlyAccess", ticket="CHG-1", subject_id="/engineering/payments")

    with pytest.raises(NotAllowed, match="through the group"):
        story.approve(asked)
    assert names(story, asked) == ["sam@example.com"]
    granted = story.carry_out(story.approve(asked, actor=story.sam))
    assert granted.is_granted
    assert {row[0] for row in story.twin.assignments()} == {"GROUP"}


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_group_is_given_nothing_in_the_name_of_somebody_gone(story: Story, *, is_deleted: bool) -> None:
    asked = story.ask(account="payments-prod", permission_set="ReadOnlyAccess", ticket="CHG-1", subject_id="/engineering/payments")
    if is_deleted:
        directory.delete_person(email="alice@example.com", actor=SETUP, now=story.clock.now())
    else:
        directory.set_person_state(email="alice@example.com", state=State.DISABLED, actor=SETUP, now=story.clock.now())

    with pytest.raises(Conflict, match="asked for it") as refused:
        story.approve(asked)
    assert refused.value.code == "requester_gone"
    assert story.deny(asked).status is Status.DENIED


def test_only_members_ask_for_a_group(story: Story) -> None:
    with pytest.raises(NotAllowed, match="not in /engineering/payments"):
        story.ask(actor=story.mallory, subject_id="/engineering/payments")
    with pytest.raises(NotAllowed, match="for yourself"):
        story.ask(actor=story.mallory, subject_id="alice@example.com")
    assert story.ask(subject_id="/engineering/payments").subject_id == "/engineering/payments"


@pytest.mark.parametrize(
    ("who", "refusal"),
    [("alice", None), ("bob", None), ("olga", None), ("ana", NotAllowed), ("mallory", NotFound)],
)
def test_holder_approver_and_operator_end_early(story: Story, who: str, refusal: type[PortalError] | None) -> None:
    granted = story.carry_out(story.approve(story.ask_for_prod()))
    actor: Actor = getattr(story, who)

    if refusal is not None:
        with pytest.raises(refusal):
            story.end(granted, actor=actor)
        assert story.now_of(granted).is_granted
    else:
        ended = story.end(granted, actor=actor)
        assert (ended.ended_by, ended.expires_at) == (actor.name, story.clock.now().replace(microsecond=0))
        assert story.carry_out(ended).status is Status.REVOKED


@pytest.mark.parametrize("verb", ["cancel", "extend"])
def test_only_the_holder_cancels_and_extends(story: Story, verb: str) -> None:
    actions: dict[str, Callable[[Actor], AccessRequest]] = {
        "cancel": lambda actor: story.cancel(pending, actor=actor),
        "extend": lambda actor: story.extend(active, 7200, actor=actor),
    }
    pending = story.ask_for_prod()
    active = story.carry_out(story.ask())

    for actor in (story.bob, story.olga, story.ana, story.mallory):
        with pytest.raises((NotAllowed, NotFound)):
            actions[verb](actor)
    assert actions[verb](story.alice).requested_by == "alice@example.com"


def test_lists_of_others_are_for_readers(story: Story) -> None:
    story.ask_for_prod()

    for actor in (story.bob, story.olga, story.ana):
        assert len(queries.list_pending(actor=actor, now=story.clock.now()).items) == 1
    for actor in (story.alice, story.mallory):
        with pytest.raises(NotAllowed):
            queries.list_pending(actor=actor, now=story.clock.now())
    assert queries.count_waiting_for(actor=story.bob, now=story.clock.now()) == Count(1)
    assert queries.count_waiting_for(actor=story.alice, now=story.clock.now()) == Count(0)


def test_a_request_is_visible_to_whom_it_concerns(story: Story) -> None:
    asked = story.ask_for_prod()

    for actor in (story.alice, story.bob, story.olga, story.ana):
        assert queries.get(request_id=asked.request_id, actor=actor, now=story.clock.now()) == asked
    with pytest.raises(NotFound) as hidden:
        queries.get(request_id=asked.request_id, actor=story.mallory, now=story.clock.now())
    with pytest.raises(NotFound) as absent:
        queries.get(request_id="no-such-request", actor=story.mallory, now=story.clock.now())
    assert str(hidden.value) == str(absent.value)


def test_a_rule_that_turned_into_a_deny_stops_an_approval(story: Story) -> None:
    asked = story.ask_for_prod()
    rules.apply_rules(text=RULES.replace("ous: [/Security]", "ous: [/Security, /Workloads/Prod]"), actor=SETUP, now=story.clock.now())

    with pytest.raises(Conflict, match="no longer allow"):
        story.approve(asked)
    assert story.deny(asked).status is Status.DENIED


def test_a_disabled_person_asks_for_nothing_and_gets_nothing(story: Story) -> None:
    asked = story.ask_for_prod()
    disable(story, "alice@example.com")

    with pytest.raises(NotAllowed, match="disabled"):
        story.ask()
    with pytest.raises(Conflict, match="disabled"):
        story.approve(asked)


def test_an_extension_must_reach_further(story: Story) -> None:
    granted = story.carry_out(story.ask(seconds=3600))

    with pytest.raises(InvalidRequest, match="no later than what you already hold") as refused:
        story.extend(granted, 600)
    seen = queries.preview(
        kind="aws_account",
        subject_id=None,
        target={"account": "payments-dev", "permission_set": "PowerUserAccess"},
        duration_seconds=600,
        ticket_id=None,
        extends=granted,
        actor=story.alice,
        book=queries.ApproverBook(now=story.clock.now()),
    )

    assert refused.value.field == "duration"
    assert (seen.outcome, seen.reason) == ("impossible", refused.value.message)
    story.end(granted)
    with pytest.raises(Conflict, match="Only access that is active"):
        operations.extend(request_id=granted.request_id, duration_seconds=7200, submission_id="x", actor=story.alice, now=story.clock.now())


@pytest.mark.parametrize("seconds", [LONGEST_SECONDS, 9_999_999 * 86_400, 10**18])
def test_an_absurd_duration_is_refused_and_overflows_nothing(story: Story, seconds: int) -> None:
    granted = story.carry_out(story.ask(seconds=3600))

    with pytest.raises(InvalidRequest, match="at most 366 d") as refused:
        story.extend(granted, seconds)
    seen = queries.preview(
        kind="aws_account",
        subject_id=None,
        target={"account": "payments-dev", "permission_set": "PowerUserAccess"},
        duration_seconds=seconds,
        ticket_id=None,
        extends=granted,
        actor=story.alice,
        book=queries.ApproverBook(now=story.clock.now()),
    )

    assert refused.value.field == "duration"
    assert (seen.outcome, seen.field) == ("impossible", "duration")
    assert "more than the longest 4 h" in seen.reason


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("account", "no-such-account", "There is no account"),
        ("account", "", "An account is needed"),
        ("account", "management", "management account|There is no account"),
        ("permission_set", "NoSuchSet", "There is no permission set"),
        ("seconds", 0, "at least 1 min"),
        ("seconds", -5, "at least 1 min"),
        ("seconds", 10**12, "at most 366 d"),
        ("seconds", 4 * 3600 + 1, "4 h"),
        ("reason", "  ", "A reason is needed"),
        ("reason", "x" * 1_000_000, "1,000,000 characters; 2,000 is the most"),
        ("reason", "a\x00b", r"U\+0000"),
        ("reason", "\ud800", r"U\+D800"),
        ("reason", "pay\u202egnp.exe", r"U\+202E"),
        ("reason", " \u200b\u3000", "A reason is needed"),
        ("ticket", "CHG-1\n", "must be one line"),
        ("submission_id", "x" * 101, "open it anew"),
    ],
)
def test_bad_input_names_field_rule_and_remedy_and_writes_nothing(story: Story, field: str, value: str | int, rule: str) -> None:
    good: dict[str, object] = {"account": "payments-dev", "permission_set": "PowerUserAccess", "seconds": 3600, "reason": "Incident"}

    with pytest.raises(InvalidRequest, match=rule) as refused:
        story.ask(**good | {field: value})  # type: ignore[arg-type]

    assert refused.value.field in {field, {"seconds": "duration", "ticket": "ticket_id"}.get(field)}
    assert queries.list_open(subject_id="alice@example.com") == ()
    assert story.ask(**good).status is Status.ACTIVE  # type: ignore[arg-type]


def test_odd_but_honest_text_is_kept_as_it_is(story: Story) -> None:
    reason = "Ünïcødé ☃ 𝕏 عربى\nzweite Zeile 👩🏽‍🚀"
    assert story.now_of(story.ask(reason=reason)).reason == reason


@pytest.mark.parametrize("ticket", ["CHG-1", " CHG-1 ", "CHG-1\n", "CHG-1\u202e", "", "JIRA-1", "x" * 201])
@pytest.mark.parametrize("seconds", [59, 60, 8 * 3600, 8 * 3600 + 1])
@pytest.mark.parametrize("account", ["payments-prod", "payments-dev", "security-audit"])
def test_a_form_that_is_sent_ends_as_its_preview_said(story: Story, account: str, seconds: int, ticket: str) -> None:
    foreseen = queries.preview(
        kind="aws_account",
        subject_id=None,
        target={"account": account, "permission_set": "ReadOnlyAccess"},
        duration_seconds=seconds,
        ticket_id=ticket,
        actor=story.alice,
        book=queries.ApproverBook(now=story.clock.now()),
    )
    try:
        asked = story.ask(account=account, permission_set="ReadOnlyAccess", seconds=seconds, ticket=ticket)
    except PortalError:
        outcome = "impossible"
    else:
        outcome = "needs_approval" if asked.status is Status.PENDING else "at_once"

    assert outcome == foreseen.outcome


def test_a_ticket_that_does_not_match_is_refused_with_its_pattern(story: Story) -> None:
    with pytest.raises(InvalidRequest, match="CHG-") as refused:
        story.ask(account="payments-prod", permission_set="ReadOnlyAccess", ticket="JIRA-1")
    assert refused.value.field == "ticket_id"


def test_what_a_deny_rule_covers_is_refused_with_its_name(story: Story) -> None:
    with pytest.raises(InvalidRequest, match="security-accounts") as refused:
        story.ask(account="security-audit", permission_set="ReadOnlyAccess")
    assert (refused.value.field, refused.value.code) == ("account", "denied_by_rule")


def test_approvers_of_one_group_alone_and_subjects_too(story: Story) -> None:
    """Gina, admin of a group below, would otherwise make approvers and served people of whomever she likes."""
    now = story.clock.now()
    directory.create_group(group_id="/security/lab", name="Lab", description="", actor=SETUP, now=now)
    directory.grant_membership(email="mallory@example.com", group_id="/security/lab", role=GroupRole.READER, actor=SETUP, now=now)
    narrow = RULES.replace("approvers: {groups: [/security]}", "approvers: {groups_only: [/security]}")
    narrow = narrow.replace("subjects: {groups: [/engineering/payments]}", "subjects: {groups_only: [/engineering]}")
    asked = story.ask_for_prod()
    assert queries.ApproverBook(now=now).is_approver(asked, "mallory@example.com")
    assert not queries.ApproverBook(now=now).of_request(asked).is_whole
    rules.apply_rules(text=narrow, actor=SETUP, now=now)

    assert names(story, asked) == ["bob@example.com", "sam@example.com"]
    assert not queries.ApproverBook(now=now).is_approver(asked, "mallory@example.com")
    assert queries.ApproverBook(now=now).of_request(asked).is_whole
    assert not queries.ApproverBook(now=now).approved_rules(story.mallory)
    assert queries.ApproverBook(now=now).approved_rules(story.bob)
    with pytest.raises(NotAllowed, match="none of the groups"):
        story.ask()
    assert story.ask_for_prod().approval.groups_only == ("/security",)


def test_operators_decide_only_where_nobody_does_in_any_group_below(story: Story) -> None:
    asked, now = story.ask_for_prod(), story.clock.now()
    for number in range(7):
        directory.create_group(group_id=f"/security/lab{number}", name="Lab", description="", actor=SETUP, now=now)
    directory.grant_membership(email="mallory@example.com", group_id="/security/lab6", role=GroupRole.READER, actor=SETUP, now=now)
    for email in ("bob@example.com", "sam@example.com"):
        disable(story, email)

    approvers = queries.ApproverBook(now=now).of_request(asked)

    assert ([one.email for one in approvers.people], approvers.is_fallback, approvers.is_whole) == (["mallory@example.com"], False, True)
    with pytest.raises(NotAllowed, match="Only an approver"):
        story.approve(asked, actor=story.olga)
    disable(story, "mallory@example.com")
    approvers = queries.ApproverBook(now=now).of_request(asked)
    assert ([one.email for one in approvers.people], approvers.is_fallback) == (["olga@example.com"], True)
    assert story.approve(asked, actor=story.olga).status is Status.ACTIVE


ONE, TWO = "https://login.example.com#1", "https://login.example.com#2"


def comes_in(story: Story, actor: Actor, identity: str) -> None:
    directory.record_sign_in(email=actor.name, identity=identity, method="openid_connect", actor=actor, now=story.clock.now())


def moves_on(story: Story, actor: Actor, identity: str) -> None:
    """Whoever had the account of ``identity`` is ``actor`` from now on."""
    for one in (story.alice, story.bob, story.sam):
        found = directory_queries.find_person(email=one.name)
        if found is not None and found.identity == identity:
            directory.forget_identity(email=one.name, actor=SETUP, now=story.clock.now())
    comes_in(story, actor, identity)


def is_of_the_version_before(request: AccessRequest) -> None:
    RequestItem(request.request_id).update(actions=[RequestItem.identities.remove()])


def bound_as_before(actor: Actor, identity: str) -> None:
    """Earlier versions bound one account to any number of people."""
    DirectoryItem(f"U:{actor.name}", f"U:{actor.name}").update(actions=[DirectoryItem.identity.set(identity)])


def test_an_account_that_moved_on_counts_once_and_never_for_its_own_request(story: Story) -> None:
    comes_in(story, story.alice, ONE)
    comes_in(story, story.bob, TWO)
    asked = story.ask(account="payments-prod")
    assert story.approve(asked).status is Status.PENDING

    moves_on(story, story.sam, TWO)
    with pytest.raises(Conflict, match="by another address"):
        story.approve(asked, actor=story.sam)
    assert "approve" not in queries.verbs_for(request=story.now_of(asked), actor=story.sam, now=story.clock.now())

    directory.forget_identity(email="sam@example.com", actor=SETUP, now=story.clock.now())
    moves_on(story, story.sam, ONE)
    with pytest.raises(NotAllowed, match="came in with the same account"):
        story.approve(asked, actor=story.sam)
    with pytest.raises(NotAllowed, match="came in with the same account"):
        operations.deny(request_id=asked.request_id, reason="No.", actor=story.sam, now=story.clock.now())
    assert story.now_of(asked).status is Status.PENDING


@pytest.mark.parametrize("who", ["the requester", "another approver"])
def test_two_people_with_one_account_of_the_version_before_are_one(story: Story, who: str) -> None:
    bound_as_before(story.alice if who == "the requester" else story.bob, ONE)
    bound_as_before(story.sam, ONE)
    asked = story.ask(account="payments-prod")
    story.approve(asked)
    is_of_the_version_before(asked)

    with pytest.raises(PortalError) as refused:
        story.approve(asked, actor=story.sam)
    assert refused.value.code == ("own_request" if who == "the requester" else "already_approved")


def test_without_accounts_addresses_tell_people_apart(story: Story) -> None:
    asked = story.ask(account="payments-prod")
    story.approve(asked)
    assert story.approve(asked, actor=story.sam).status is Status.ACTIVE


def test_approvals_of_one_account_count_once(story: Story) -> None:
    asked = story.ask(account="payments-prod")
    both = replace(asked, approvals=frozenset({"bob@example.com", "sam@example.com"}))
    book = queries.ApproverBook(now=story.clock.now())

    def given(**identities: str) -> int:
        known = {f"{name}@example.com": identity for name, identity in identities.items()}
        return book.tally(replace(both, identities=known)).given

    assert given() == given(bob=ONE) == given(bob=ONE, sam=TWO) == 2
    assert given(bob=ONE, sam=ONE) == 1
    assert given(bob=ONE, sam=TWO, alice=TWO) == 1
