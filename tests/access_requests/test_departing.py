"""Whoever is disabled, gone, or no longer served keeps nothing: ended within a tick, with proof; and nothing ends by a mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import boto3
import pytest
from pynamodb.connection.base import Connection

from accessportal.access_requests import operations, queries
from accessportal.access_requests.operations import asking, departing
from accessportal.access_requests.queries import subjects
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.audit import queries as audit
from accessportal.directory import operations as directory
from accessportal.directory import queries as directory_queries
from accessportal.directory.states import GroupRole, State
from accessportal.kernel.actors import person, system
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.errors import NotAllowed, Unavailable
from accessportal.rules import operations as rules
from tests.crashing import MOMENTS, Killed, Process, living
from tests.fixtures_pool import Labs
from tests.fixtures_story import RULES, Story
from tests.fixtures_twin import REGION

SETUP = system("setup")
ALICE = "alice@example.com"
ENGINEERING, PAYMENTS, PLATFORM = "/engineering", "/engineering/payments", "/engineering/platform"
_READS = frozenset({"GetItem", "Query", "BatchGetItem", "TransactGetItems", "DescribeTable"})


def set_person(story: Story, state: State, email: str = ALICE) -> None:
    directory.set_person_state(email=email, state=state, actor=SETUP, now=story.clock.now())


def set_group(story: Story, state: State, group_id: str) -> None:
    directory.set_group_state(group_id=group_id, state=state, actor=SETUP, now=story.clock.now())


def disable(story: Story) -> None:
    set_person(story, State.DISABLED)


def delete(story: Story) -> None:
    directory.delete_person(email=ALICE, actor=SETUP, now=story.clock.now())


def make_anew(story: Story) -> None:
    delete(story)
    story.clock.advance(1)
    directory.create_person(
        email=ALICE, name="Alice Next", group_id=PAYMENTS, role=GroupRole.CONTRIBUTOR, actor=SETUP, now=story.clock.now()
    )


def leave(story: Story, group_id: str = PAYMENTS, email: str = ALICE) -> None:
    directory.revoke_membership(email=email, group_id=group_id, actor=SETUP, now=story.clock.now())


def join(story: Story, group_id: str, email: str = ALICE) -> None:
    directory.grant_membership(email=email, group_id=group_id, role=GroupRole.READER, actor=SETUP, now=story.clock.now())


def make_group(story: Story, group_id: str) -> None:
    directory.create_group(group_id=group_id, name=group_id.rpartition("/")[2], description="", actor=SETUP, now=story.clock.now())


def load(story: Story, *changes: tuple[str, str]) -> None:
    text = RULES
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    rules.apply_rules(text=text, actor=SETUP, now=story.clock.now())


def check_taken_back(story: Story, request: AccessRequest, reason: str) -> None:
    after = story.now_of(request)
    assert (after.status, after.work) == (Status.REVOKED, None)
    assert after.receipts[-1].work is Work.REVOKE
    told = {event.action: event for event in queries.history(request=after)}
    assert reason in told["request.end_asked"].data["reason"]
    assert told["request.end_asked"].actor == "system:tick"
    assert audit.check_head(after.entity, version=after.version, audit_head=after.audit_head) == []


GONE: list[tuple[Callable[[Story], None], str]] = [
    (disable, f"{ALICE} is disabled in the directory."),
    (delete, f"{ALICE} is gone from the directory."),
    (make_anew, f"{ALICE} was deleted and made anew after this was asked for."),
]


@pytest.mark.parametrize(("go", "reason"), GONE, ids=["disabled", "deleted", "made anew"])
@pytest.mark.parametrize("kind", ["aws_account", "group", "sandbox"])
def test_every_kind_of_access_ends_with_its_person(labs: Labs, kind: str, go: Callable[[Story], None], reason: str) -> None:
    story = labs.story
    labs.fill("lab-1")
    asks: dict[str, Callable[[], AccessRequest]] = {"aws_account": story.ask, "group": story.ask_to_join, "sandbox": labs.ask}
    ask = asks[kind]
    held = story.carry_out(ask())
    assert held.is_granted

    go(story)
    assert ("end_departed", {}) in story.asked
    report = story.tick()

    assert (report.departed, report.revoked, report.failures) == (1, 1, ())
    check_taken_back(story, held, reason)
    lateness = story.now_of(held).receipts[-1].lateness_seconds
    assert lateness is not None
    assert lateness < 2
    assert not story.is_assigned()
    assert story.role_of(ALICE, ENGINEERING) is None


@pytest.mark.parametrize(("go", "reason"), GONE, ids=["disabled", "deleted", "made anew"])
def test_what_waits_for_a_decision_is_cancelled_with_the_reason(story: Story, go: Callable[[Story], None], reason: str) -> None:
    asked = story.ask_for_prod()

    go(story)
    report = story.tick()

    after = story.now_of(asked)
    assert (report.departed, after.status, after.decision_reason) == (1, Status.CANCELLED, reason)
    assert after.purge_at is not None
    told = {"status": "CANCELLED", "reason": reason, "purge_at": to_epoch(after.purge_at)}
    assert queries.history(request=after)[-1].data == told
    assert story.pending_of(ALICE) == []


def delete_payments(story: Story) -> None:
    leave(story)
    directory.delete_group(group_id=PAYMENTS, actor=SETUP, now=story.clock.now())


@pytest.mark.parametrize(
    ("go", "reason"),
    [
        (lambda story: set_group(story, State.DISABLED, PAYMENTS), f"{PAYMENTS} is disabled in the directory."),
        (delete_payments, f"{PAYMENTS} is gone from the directory."),
    ],
    ids=["disabled", "deleted"],
)
def test_access_of_a_group_ends_with_the_group(story: Story, go: Callable[[Story], None], reason: str) -> None:
    held = story.carry_out(story.ask(subject_id=PAYMENTS))
    waiting = story.ask(account="payments-prod", permission_set="ReadOnlyAccess", ticket="CHG-1", subject_id=PAYMENTS)
    assert held.is_granted

    go(story)
    report = story.tick()

    assert (report.departed, report.revoked, report.failures) == (2, 1, ())
    check_taken_back(story, held, reason)
    assert story.now_of(waiting).status is Status.CANCELLED


def move_payments(story: Story) -> None:
    directory.move_group(group_id=PAYMENTS, parent_id="/security", actor=SETUP, now=story.clock.now())


@pytest.mark.parametrize(
    "go",
    [
        leave,
        lambda story: set_group(story, State.DISABLED, PAYMENTS),
        lambda story: set_group(story, State.DISABLED, ENGINEERING),
        move_payments,
    ],
    ids=["left", "disabled", "the one above disabled", "moved"],
)
def test_access_ends_with_the_membership_by_which_a_rule_gave_it(story: Story, go: Callable[[Story], None]) -> None:
    join(story, "/security")
    held = story.carry_out(story.approve(story.ask_for_prod()))
    waiting = story.ask_for_prod()

    go(story)
    report = story.tick()

    assert (report.departed, report.revoked, report.failures) == (2, 1, ())
    check_taken_back(story, held, f"{ALICE} is no longer in a group that rule prod-readonly serves ({ENGINEERING}).")
    assert story.now_of(waiting).status is Status.CANCELLED


def stay_by_another_group(story: Story) -> None:
    make_group(story, PLATFORM)
    join(story, PLATFORM)


@pytest.mark.parametrize(
    ("change", "prepare"),
    [
        (("permission_sets: [ReadOnlyAccess]\n    duration: {default: 1h, max: 8h}", "X"), None),
        (("", ""), stay_by_another_group),
        (("subjects: {groups: [/engineering]}\n    targets: {ous: [/Workloads/Prod]}\n    permission_sets: [ReadOnly", "Y"), None),
        (("subjects: {groups: [/engineering]}\n    targets: {ous: [/Workloads/Prod]}\n    permission_sets: [ReadOnly", "Z"), None),
    ],
    ids=["ends_with: time", "another group", "named by address", "everybody"],
)
def test_access_stays_while_the_rule_has_a_reason_left(
    story: Story, change: tuple[str, str], prepare: Callable[[Story], None] | None
) -> None:
    old, new = change
    new = {
        "X": f"{old}\n    ends_with: time",
        "Y": old.replace("{groups: [/engineering]}", "{groups: [/engineering], users: [Alice@example.com]}"),
        "Z": old.replace("[/engineering]", "[/]"),
        "": "",
    }[new]
    if old:
        load(story, (old, new))
    join(story, "/security")
    if prepare is not None:
        prepare(story)
    held = story.carry_out(story.approve(story.ask_for_prod(), actor=story.sam))

    leave(story)
    report = story.tick()

    assert (report.departed, report.failures) == (0, ())
    assert story.now_of(held).is_granted


def test_what_was_asked_by_an_earlier_version_ends_with_its_person_alone(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "is_served_by_membership", lambda rule, subject: False)
    held = story.carry_out(story.ask())
    join(story, "/security")

    leave(story)
    assert story.tick().departed == 0
    disable(story)

    assert story.tick().departed == 1
    assert story.now_of(held).status is Status.REVOKED


def test_a_membership_by_request_is_ground_until_it_ends(story: Story) -> None:
    """Alice is a member of payments for an hour, and takes its access for four; a second request keeps her there for longer."""
    join(story, "/security")
    leave(story)
    load(story, ("subjects: {groups: [/engineering]}\n    targets: {subtrees: [/engineering]}\n    roles: [reader]", JOINABLE))
    member = story.carry_out(story.ask_to_join(PAYMENTS, seconds=3600))
    held = story.carry_out(story.ask(seconds=4 * 3600))
    assert held.is_granted
    assert member.is_granted
    story.clock.advance(1800)
    further = story.carry_out(story.ask_to_join(PAYMENTS, seconds=3600))

    story.clock.advance(1801)
    for _ in range(2):
        story.tick()
    assert story.now_of(member).status is Status.REVOKED
    assert story.now_of(held).is_granted

    story.clock.advance(1800)
    for _ in range(2):
        story.tick()

    assert story.now_of(further).status is Status.REVOKED
    check_taken_back(story, held, f"{ALICE} is no longer in a group that rule dev-power serves ({PAYMENTS}).")


JOINABLE = "subjects: {groups: [/engineering, /security]}\n    targets: {subtrees: [/engineering]}\n    roles: [reader]"


def test_no_membership_is_its_own_ground(story: Story) -> None:
    """Alice's requests put her below the very group that the rule serves; when she leaves, they don't carry each other."""
    make_group(story, PLATFORM)
    join(story, "/security")
    one = story.carry_out(story.ask_to_join(PLATFORM))
    other = story.carry_out(story.ask_to_join(ENGINEERING))
    assert one.is_granted
    assert other.is_granted

    leave(story)
    story.tick()

    for request in (one, other):
        check_taken_back(story, request, f"{ALICE} is no longer in a group that rule look-around serves ({ENGINEERING}).")


def test_whoever_is_enabled_again_before_the_look_keeps_what_they_hold(story: Story) -> None:
    held = story.carry_out(story.ask())

    disable(story)
    set_person(story, State.ENABLED)
    report = story.tick()

    assert (report.departed, report.failures) == (0, ())
    assert story.now_of(held).is_granted


def test_what_was_extended_meanwhile_ends_as_well(story: Story) -> None:
    held = story.carry_out(story.ask(seconds=600))
    further = story.carry_out(story.extend(held, 1200))

    disable(story)
    story.tick()

    for request in (held, further):
        check_taken_back(story, request, "is disabled")
    assert not story.is_assigned()


def test_an_approval_beside_the_departure_is_ended(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look finds it undecided; somebody approved it before the cancellation is written."""
    asked = story.ask_for_prod()
    disable(story)
    look = subjects.presence_of
    approved: list[AccessRequest] = []

    def presence_of(*args: Any, **options: Any) -> Any:
        present = look(*args, **options)
        if not approved:
            set_person(story, State.ENABLED)
            approved.append(story.approve(asked))
            disable(story)
        return present

    monkeypatch.setattr(departing, "presence_of", presence_of)
    story.tick()

    assert story.now_of(asked).status is Status.REVOKED


def test_a_request_that_slips_in_beside_the_departure_is_found_by_the_next_look(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = subjects.subject_facts(None, story.alice, book=queries.ApproverBook(now=story.clock.now()))
    disable(story)
    assert story.tick().departed == 0
    with monkeypatch.context() as patch:
        patch.setattr(asking, "subject_facts", lambda *args, **options: facts)
        asked = story.ask()
    story.clock.advance(61)

    assert story.tick().departed == 1

    assert story.now_of(asked).status is Status.REVOKED
    assert list(directory_queries.list_departures()) == []


def test_groups_that_go_together_are_looked_after_together(story: Story) -> None:
    """What is open is listed once, however many groups are disabled at once."""
    held = story.carry_out(story.ask(subject_id=PAYMENTS))
    assert held.is_granted
    for number in range(3):
        make_group(story, f"/security/g{number}")
        set_group(story, State.DISABLED, f"/security/g{number}")
    set_group(story, State.DISABLED, PAYMENTS)

    with mock.patch.object(Connection, "dispatch", autospec=True, side_effect=Connection.dispatch) as dispatch:
        report = operations.end_departed(clock=story.clock)

    asked = [call.args[2].get("IndexName") for call in dispatch.call_args_list if call.args[1] == "Query"]
    assert asked.count("ExpirationIndex") == 2
    assert (report.checked, report.ended, report.failures) == (1, 1, ())
    story.clock.advance(61)
    operations.end_departed(clock=story.clock)
    assert list(directory_queries.list_departures()) == []


@pytest.mark.parametrize("broken", ["presence_of", "end_without_subject"])
def test_what_can_not_be_judged_or_ended_keeps_the_groups_that_it_hangs_on_alone(
    story: Story, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    held = story.carry_out(story.ask(subject_id=PAYMENTS))
    make_group(story, "/security/watch")
    set_group(story, State.DISABLED, "/security/watch")
    set_group(story, State.DISABLED, PAYMENTS)
    story.clock.advance(61)

    with monkeypatch.context() as patch:
        patch.setattr(departing, broken, mock.Mock(side_effect=Unavailable("Too busy.", code="busy")))
        report = operations.end_departed(clock=story.clock)

    assert [failure.error for failure in report.failures] == ["Too busy."]
    assert [departure.name for departure in directory_queries.list_departures()] == [PAYMENTS]
    assert operations.end_departed(clock=story.clock).ended == 1
    assert story.now_of(held).work is Work.REVOKE
    assert list(directory_queries.list_departures()) == []


def test_an_unreadable_directory_is_no_absence(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    held = story.carry_out(story.ask())
    disable(story)

    def presence_of(*args: Any, **options: Any) -> Any:
        raise Unavailable("The store does not answer.", code="store_unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(departing, "presence_of", presence_of)
        story.clock.advance(61)
        report = story.tick()
        compared = operations.compare_subjects(actor=SETUP, clock=story.clock)

    assert [failure.item for failure in report.failures] == [ALICE]
    assert [failure.item for failure in compared.failures] == [ALICE]
    assert story.now_of(held).is_granted
    assert story.tick().departed == 1


def forget_behind_our_back(*emails: str) -> None:
    """As another program does: the items are gone, without a word."""
    for email in emails:
        pk = f"U:{email}"
        boto3.resource("dynamodb", region_name=REGION).Table("AccessManagement").delete_item(Key={"pk": pk, "sk": pk})


def test_what_another_program_deletes_is_found_by_the_comparison(story: Story) -> None:
    held, others = story.carry_out(story.ask()), story.carry_out(story.ask_to_join(actor=story.gina, group=PAYMENTS))
    forget_behind_our_back(ALICE)
    assert story.tick().departed == 0

    report = operations.compare_subjects(actor=SETUP, clock=story.clock)

    assert (report.checked, report.ended, report.failures, report.stopped) == (2, 1, (), "")
    assert story.carry_out(held).status is Status.REVOKED
    assert story.now_of(others).is_granted
    with pytest.raises(NotAllowed):
        operations.compare_subjects(actor=story.bob, clock=story.clock)


def test_an_emptied_table_takes_nobodys_access_by_itself(story: Story) -> None:
    emails = [f"dev{number}@example.com" for number in range(7)]
    for email in emails:
        directory.create_person(email=email, name=email, group_id=PAYMENTS, role=GroupRole.READER, actor=SETUP, now=story.clock.now())
    held = [story.ask_to_join(actor=person(email)) for email in emails]
    forget_behind_our_back(*emails)

    stopped = operations.compare_subjects(actor=SETUP, clock=story.clock)

    assert (stopped.checked, stopped.ended) == (7, 0)
    assert stopped.stopped.startswith("7 of 7 open requests would end because the directory does not know, or serve,")
    assert all(story.now_of(one).work is Work.GRANT for one in held)
    assert operations.compare_subjects(most_share=1, actor=story.olga, clock=story.clock).ended == 7
    # What is being taken back, however long that takes, holds nothing else up.
    again = operations.compare_subjects(actor=SETUP, clock=story.clock)
    assert (again.checked, again.ended, again.stopped) == (7, 0, "")


def test_one_broken_request_hinders_no_other(story: Story) -> None:
    held, broken = story.carry_out(story.ask()), story.ask_for_prod()
    requests = boto3.resource("dynamodb", region_name=REGION).Table("ActiveRequests")
    requests.update_item(Key={"request_id": broken.request_id}, UpdateExpression="REMOVE approval")

    disable(story)
    report = story.tick()

    assert broken.request_id in {failure.item for failure in report.failures}
    assert story.now_of(held).status is Status.REVOKED


@pytest.mark.deep
@pytest.mark.parametrize("after", MOMENTS, ids=lambda after: "after" if after else "before")
def test_a_crash_at_any_step_leaves_work_for_the_next_tick(story: Story, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
    fatal = 0
    while True:
        story.start_over()
        held, waiting = story.carry_out(story.ask()), story.ask_for_prod()
        process = Process(fatal=fatal, after=after)
        with living(process, monkeypatch, reads=_READS):
            for action in (lambda: disable(story), *(story.tick,) * 4):
                try:
                    action()
                except Killed:
                    process.reboot()
                if directory_queries.find_person(email=ALICE).is_enabled:  # type: ignore[union-attr]
                    disable(story)
                story.clock.advance(80)
        assert story.now_of(held).status is Status.REVOKED, process.names
        assert story.now_of(waiting).status is Status.CANCELLED, process.names
        assert not story.is_assigned()
        assert list(directory_queries.list_departures()) == []
        if not process.died:
            assert fatal >= len(process.names) >= 5
            return
        fatal += 1
