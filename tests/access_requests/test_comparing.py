"""A comparison as big as a company's: it goes on where it was stopped, keeps to its share of the calls, and judges what is ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from accessportal.access_requests import operations
from accessportal.access_requests.states import ReconcileReport
from accessportal.assignments import policy, queries
from accessportal.assignments.states import Assignment, AssignmentKey, AssignmentState, Comparison, Drift, Remedy
from accessportal.catalog.states import PrincipalType
from accessportal.kernel.actors import system
from accessportal.kernel.errors import Conflict, InvalidRequest, Unavailable
from tests.crashing import Killed
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION, when

ACCOUNTS = [f"{number:012d}" for number in range(1, 61)]
# Two permission sets are given by rules.
PAIRS = 2 * len(ACCOUNTS)
STRANGERS = ACCOUNTS[7], ACCOUNTS[30], ACCOUNTS[59]


class Company:
    """60 accounts, and in three of them somebody whom the portal gave nothing. ``fail`` says what to do at a list's n-th call."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self.calls: Counter[tuple[str, str]] = Counter()
        self.all_calls = 0
        self.fatal = -1
        self.throttled: dict[tuple[str, str], int] = {}

    def accounts(self, parameters: dict[str, Any]) -> Any:
        return {"AccountIds": ACCOUNTS}

    def assignments(self, parameters: dict[str, Any]) -> Any:
        account_id, arn = parameters["AccountId"], parameters["PermissionSetArn"]
        self.all_calls += 1
        if self.all_calls == self.fatal:
            raise Killed
        self.calls[arn, account_id] += 1
        if self.throttled.get((arn, account_id), 0) >= self.calls[arn, account_id]:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "ListAccountAssignments")
        who = {"AccountId": account_id, "PermissionSetArn": arn, "PrincipalId": self._story.twin.users["mallory@example.com"]}
        is_there = account_id in STRANGERS and arn == self.arn
        group = {**who, "PrincipalType": "GROUP", "PrincipalId": self._story.twin.groups["/engineering/payments"]}
        return {"AccountAssignments": [group, *([{**who, "PrincipalType": "USER"}] if is_there else [])]}

    @property
    def arn(self) -> str:
        return self._story.twin.permission_sets["ReadOnlyAccess"]


@pytest.fixture
def company(story: Story) -> Iterator[Company]:
    found = Company(story)
    with when("ListAccountsForProvisionedPermissionSet", found.accounts), when("ListAccountAssignments", found.assignments):
        yield found


def compare(story: Story, *, until: datetime | None = None) -> Comparison:
    return operations.compare_assignments(until=until, clock=story.clock)


def report(story: Story) -> ReconcileReport:
    found = operations.last_report(clock=story.clock)
    assert found is not None
    return found


def strangers(found: ReconcileReport) -> set[str]:
    return {one.key.account_id for one in found.unknown}


def test_everything_is_read_once_within_the_share_of_the_calls(story: Story, company: Company) -> None:
    began = story.clock.now()

    comparison = compare(story)

    assert (comparison.pairs, comparison.pairs_read, comparison.listed) == (PAIRS, PAIRS, PAIRS + len(STRANGERS))
    # Where something differs it is looked at twice.
    assert company.all_calls == PAIRS + len(STRANGERS)
    assert (story.clock.now() - began).total_seconds() >= company.all_calls / (18.0 * 0.5)
    assert strangers(report(story)) == set(STRANGERS)
    assert len(report(story).not_ours) == PAIRS


@pytest.mark.parametrize("fatal", [1, 20, 21, 63, 122])
def test_a_killed_comparison_goes_on_and_loses_at_most_one_page(story: Story, company: Company, fatal: int) -> None:
    company.fatal = fatal
    with pytest.raises(Killed):
        compare(story)
    with pytest.raises(Conflict, match="Another worker"):
        compare(story)
    story.clock.advance(241)

    comparison = compare(story)

    assert (comparison.pairs_read, comparison.listed) == (PAIRS, PAIRS + len(STRANGERS))
    assert company.all_calls <= PAIRS + len(STRANGERS) + 20 + 1
    assert max(company.calls.values()) <= 4
    assert strangers(report(story)) == set(STRANGERS)
    assert len(report(story).not_ours) == PAIRS


def test_killed_again_and_again_it_still_comes_to_its_end(story: Story, company: Company) -> None:
    lives = 0
    while True:
        company.fatal = company.all_calls + 33
        try:
            comparison = compare(story)
        except Killed:
            lives += 1
            story.clock.advance(241)
        else:
            break

    assert 3 < lives <= 1 + PAIRS // 12
    assert (comparison.pairs_read, len(report(story).not_ours), strangers(report(story))) == (PAIRS, PAIRS, set(STRANGERS))


def test_slices_end_in_time_and_the_next_one_goes_on_at_once(story: Story, company: Company) -> None:
    slices: list[Comparison] = []
    while not slices or slices[-1].finished_at is None:
        began = story.clock.now()
        slices.append(compare(story, until=began + timedelta(seconds=5)))
        assert story.clock.now() - began < timedelta(seconds=10)

    assert len(slices) > 2
    assert [one.pairs_read for one in slices] == sorted({one.pairs_read for one in slices})
    assert company.all_calls == PAIRS + len(STRANGERS)
    assert len({one.comparison_id for one in slices}) == 1
    assert queries.comparisons().open is None


def test_until_it_is_finished_the_last_one_is_told(story: Story, company: Company) -> None:
    first = compare(story)
    part = compare(story, until=story.clock.now() + timedelta(seconds=5))

    assert (part.comparison_id != first.comparison_id, part.finished_at) == (True, None)
    assert report(story).comparison.comparison_id == first.comparison_id
    now = queries.comparisons()
    assert now.open is not None
    assert now.open.comparison_id == part.comparison_id


@pytest.mark.parametrize(("times", "unread"), [(1, 0), (4, 0), (5, 1), (999, 1)])
def test_a_throttled_list_is_asked_for_again_and_then_named(story: Story, company: Company, times: int, unread: int) -> None:
    company.throttled = {(company.arn, ACCOUNTS[31]): times}

    comparison = compare(story)

    assert comparison.pairs_read == PAIRS
    assert [one.account_id for one in report(story).unread] == [ACCOUNTS[31]] * unread
    assert strangers(report(story)) == set(STRANGERS)


def test_throttled_calls_everywhere_end_nothing(story: Story, company: Company) -> None:
    company.throttled = {(arn, account_id): 1 for arn in story.twin.permission_sets.values() for account_id in ACCOUNTS[::3]}

    compare(story)

    assert (report(story).unread, strangers(report(story))) == ((), set(STRANGERS))


def test_an_outage_names_no_list_and_loses_no_place(story: Story, company: Company) -> None:
    company.throttled = {(company.arn, account_id): 5 for account_id in ACCOUNTS[30:51]}
    reads = []
    for _ in range(20):
        with suppress(Unavailable):
            compare(story)
        now = queries.comparisons()
        reads.append((now.open or now.last or pytest.fail("there is no comparison")).pairs_read)
        if now.open is None:
            break

    assert len(reads) > 2
    assert reads == sorted(reads)
    assert (reads[-1], report(story).unread) == (PAIRS, ())


def test_what_stands_for_groups_keeps_no_alarm_on_and_is_touched_only_by_name(story: Story) -> None:
    story.twin.sso.create_account_assignment(
        **{
            **story.twin.key("alice@example.com", "payments-dev", "ReadOnlyAccess"),
            "PrincipalType": "GROUP",
            "PrincipalId": story.twin.groups["/engineering/payments"],
        }
    )
    story.clock.advance(3)
    everything = (Remedy.REPAIR, Remedy.REMOVE_UNKNOWN)

    found = reconcile(story, *everything)

    assert [len(found.not_ours), len(found.unknown), len(found.left_over), found.mended] == [1, 0, 0, 0]
    assert len(story.twin.assignments()) == 1
    assert reconcile(story, *everything, chosen=[found.not_ours[0].finding_id]).mended == 1
    assert story.twin.assignments() == set()


def test_findings_are_chosen_one_by_one(story: Story) -> None:
    for email in ("alice@example.com", "mallory@example.com"):
        story.twin.sso.create_account_assignment(**story.twin.key(email, "payments-dev", "ReadOnlyAccess"))
        story.clock.advance(3)
    ids = {one.key.principal_id: one.finding_id for one in reconcile(story).unknown}
    assert {one.key.principal_id: one.finding_id for one in reconcile(story).unknown} == ids
    mallory = story.twin.users["mallory@example.com"]

    with pytest.raises(InvalidRequest, match="found no 123456789abc"):
        reconcile(story, Remedy.REMOVE_UNKNOWN, chosen=["123456789abc", ids[mallory]])
    assert len(story.twin.assignments()) == 2
    assert reconcile(story, Remedy.REMOVE_UNKNOWN, chosen=[ids[mallory]]).mended == 1

    assert {row[1] for row in story.twin.assignments()} == {story.twin.users["alice@example.com"]}
    # It is looked at once more before anything is done.
    assert reconcile(story, Remedy.REMOVE_UNKNOWN, chosen=[ids[mallory]]).mended == 0


def test_a_missing_one_is_made_again_alone_and_a_dead_claim_released_alone(story: Story) -> None:
    story.carry_out(story.ask())
    other = story.carry_out(story.ask(permission_set="ReadOnlyAccess"))
    for name in ("PowerUserAccess", "ReadOnlyAccess"):
        story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-dev", name))
        story.clock.advance(3)
    missing = {one.claims[0]: one.finding_id for one in reconcile(story).missing}

    assert reconcile(story, Remedy.REPAIR, chosen=[missing[other.request_id]]).mended == 1

    assert story.is_assigned(permission_set="ReadOnlyAccess")
    assert not story.is_assigned()


def test_an_item_that_can_not_be_read_is_named_and_hinders_no_other(story: Story) -> None:
    story.carry_out(story.ask())
    broken = story.carry_out(story.ask(permission_set="ReadOnlyAccess"))

    client = boto3.client("dynamodb", region_name=REGION)
    records = {one.key.permission_set_arn: one for one in queries.list_by_state(state=AssignmentState.PRESENT).items}
    spoilt = records[story.twin.permission_sets["ReadOnlyAccess"]]
    spoil(client, "Assignments", {"assignment_id": {"S": spoilt.assignment_id}}, "fence")
    story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
    story.clock.advance(600)

    found = reconcile(story)

    assert [len(found.missing), len(found.unknown), len(found.left_over)] == [1, 0, 0]
    assert [spoilt.assignment_id in one for one in found.unreadable] == [True]
    spoil(client, "ActiveRequests", {"request_id": {"S": broken.request_id}}, "version")
    assert len(reconcile(story).missing) == 1
    assert found.dead_claims == ()


def test_the_request_of_a_claim_that_can_not_be_read_is_named_and_its_claim_stays(story: Story) -> None:
    held = story.carry_out(story.ask())
    spoil(boto3.client("dynamodb", region_name=REGION), "ActiveRequests", {"request_id": {"S": held.request_id}}, "version")
    story.clock.advance(600)

    found = reconcile(story, Remedy.REPAIR)

    assert (found.dead_claims, [held.request_id in one for one in found.unreadable]) == ((), [True])
    assert story.is_assigned()


NOW = datetime.fromisoformat("2026-03-02T09:00:00+00:00")
USER = AssignmentKey(PrincipalType.USER, "u-1", "1", "arn")
GROUP = replace(USER, principal_type=PrincipalType.GROUP)


def recorded(state: AssignmentState, claims: frozenset[str], seconds: int) -> Assignment:
    return Assignment("id", USER, state, fence=1, changed_at=NOW - timedelta(seconds=seconds), claims=claims, version=1)


JUDGED = [
    # who has it, whether a rule gives the set, our record, and what it is
    (USER, True, None, Drift.UNKNOWN),
    (USER, False, None, Drift.NOT_OURS),
    (GROUP, True, None, Drift.NOT_OURS),
    (GROUP, False, None, Drift.NOT_OURS),
    (USER, True, recorded(AssignmentState.ABSENT, frozenset(), 1), Drift.LEFT_OVER),
    (USER, False, recorded(AssignmentState.ABSENT, frozenset(), 1), Drift.LEFT_OVER),
    (GROUP, True, recorded(AssignmentState.ABSENT, frozenset(), 1), Drift.LEFT_OVER),
    (USER, True, recorded(AssignmentState.DELETING, frozenset(), 299), None),
    (USER, True, recorded(AssignmentState.DELETING, frozenset(), 301), Drift.LEFT_OVER),
    (USER, False, recorded(AssignmentState.PRESENT, frozenset(), 301), Drift.LEFT_OVER),
    (USER, True, recorded(AssignmentState.PRESENT, frozenset({"r"}), 301), None),
    (USER, False, recorded(AssignmentState.PRESENT, frozenset({"r"}), 301), None),
    (GROUP, True, recorded(AssignmentState.PRESENT, frozenset({"outside"}), 301), None),
]


@pytest.mark.parametrize(("key", "is_given", "record", "drift"), JUDGED)
def test_what_is_there_is_judged(key: AssignmentKey, is_given: bool, record: Assignment | None, drift: Drift | None) -> None:
    found = policy.judge(key, record, is_given=is_given, now=NOW)

    assert (found.drift if found else None) is drift


def test_what_is_held_is_compared_though_no_rule_gives_its_set_any_more(story: Story) -> None:
    story.carry_out(story.ask())
    with no_rules():
        assert reconcile(story).listed == 1
        story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
        story.clock.advance(3)
        assert len(reconcile(story).missing) == 1


@contextmanager
def no_rules() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accessportal.access_requests.operations.reconciling._permission_set_arns", list)
        yield


def reconcile(story: Story, *remedies: Remedy, chosen: Any = ()) -> ReconcileReport:
    return operations.reconcile_assignments(remedies=remedies, chosen=chosen, most_share=1.0, actor=system("reconcile"), clock=story.clock)


def spoil(client: Any, table: str, key: dict[str, Any], attribute: str) -> None:
    client.update_item(
        TableName=table,
        Key=key,
        UpdateExpression="SET #name = :value",
        ExpressionAttributeNames={"#name": attribute},
        ExpressionAttributeValues={":value": {"S": "nonsense"}},
    )
