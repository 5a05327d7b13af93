"""Approvals and relationships by request: asked by form, judged, granted, shared, extended, ended and proved gone."""

from __future__ import annotations

import uuid
from datetime import timedelta
from html import unescape
from typing import Any

import boto3
import pytest

from accessportal.access_requests import operations, queries, store
from accessportal.access_requests.kind import KINDS, kind_named
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.audit import queries as audit
from accessportal.authz.operations import IfExists, begin_deletion, carry_out_deletions, grant, revoke, set_policy
from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, Caller, caller_of, check, read_scope
from accessportal.authz.states import Approval, Relationship, RelationType, TtlPolicy
from accessportal.directory import operations as directory
from accessportal.directory.states import State
from accessportal.kernel.actors import client, system
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.kernel.lasting import Right
from accessportal.rules import operations as rules
from tests.fixtures_records import APPROVAL, RECORD_RULES, RELATIONSHIP, SCOPE, Case, ask, record_of
from tests.fixtures_story import RULES, Story
from tests.fixtures_twin import REGION
from tests.portal.conftest import SignedIn, signed_in
from tests.portal.test_journey import HTMX, text_of
from tests.sandboxes.test_requests import requests

__all__ = ["signed_in"]

SETUP = system("setup")
CASES = pytest.mark.parametrize("case", [APPROVAL, RELATIONSHIP], ids=lambda case: case.kind)


@pytest.fixture(autouse=True)
def record_rules(story: Story) -> None:
    rules.apply_rules(text=RULES + RECORD_RULES, actor=story.olga, now=story.clock.now())


def held(story: Story, case: Case, **given: Any) -> AccessRequest:
    return story.carry_out(ask(story, case, **given))


def grant_directly(story: Story, case: Case, *, ttl: int | None, if_exists: IfExists = IfExists.REFUSE) -> None:
    now, scope, who = story.clock.now(), read_scope(case.scope), "olga@example.com"
    wanted: Any = Approval(scope, *case.names, who, now)
    if case.kind == "relationship":
        wanted = Relationship(scope, *case.names, RelationType.ROLE, who, now)
    grant(case.ledger, wanted, ttl_seconds=ttl, if_exists=if_exists, caller=caller_of(story.olga), now=now)


def set_limits(story: Story, scope: str, *, most: int, is_enforced: bool = True) -> None:
    policy = TtlPolicy(None, 60, most, is_enforced=is_enforced)
    set_policy(scope=read_scope(scope), policy=policy, caller=caller_of(story.olga), now=story.clock.now())


@CASES
@pytest.mark.django_db
def test_alice_asks_by_the_form_and_every_page_tells_it_until_it_is_proved_gone(story: Story, signed_in: SignedIn, case: Case) -> None:
    form = f"/requests/new/{case.kind}/"
    alice = signed_in("alice")
    assert f'href="{form}"' in alice.get("/requests/new/").content.decode()
    assert "to see who decides, and how long it may last" in text_of(alice.get(form))
    seen = text_of(alice.get(f"{form}preview/", {**case.target, "duration": "1h"}, headers=HTMX))
    assert "Approved at once" in seen
    typed = {**case.target, "duration": "1h", "ticket_id": "", "reason": "Write the plan", "submission_id": str(uuid.uuid4())}
    unsaid = text_of(alice.get(f"{form}preview/", {**case.target, **case.wrong, "duration": "1h"}, headers=HTMX))
    assert case.refused in unsaid
    assert "Why each rule says no" in unsaid
    refused = alice.post(form, typed | case.wrong)
    assert refused.status_code in {403, 422}
    assert case.refused in text_of(refused)

    alice.post(form, typed)
    (asked,) = queries.list_mine(actor=story.alice).items
    address = f"/requests/{asked.request_id}/"
    assert case.words in text_of(alice.get(address))
    granted = story.carry_out(asked)

    assert granted.is_granted
    record = record_of(case)
    assert record.expires_at == granted.expires_at
    assert dict(record.held_until) == {granted.request_id: int(granted.expires_at.timestamp())}
    assert (record.metadata["request"], record.ttl_seconds) == (granted.request_id, 3_600)
    page = text_of(alice.get(address))
    assert f"proved present in the table of {case.kind}s" in page
    assert case.title in text_of(alice.get("/"))
    assert "It is taken back at once." in text_of(alice.get(f"{address}end/"))

    story.clock.advance(3_600)
    story.tick()
    ended = story.now_of(asked)
    assert ended.status is Status.REVOKED
    assert record_of(case) is None
    assert f"proved gone from the table of {case.kind}s" in text_of(alice.get(address))
    again = alice.get("/").content.decode()
    assert f"{form}?scope=tenant%3Aacme-corp&amp;" in again
    told = [event.action for event in audit.history(record.entity, newest_first=False).items]
    assert told == [f"{case.kind}.granted", f"{case.kind}.revoked"]
    assert audit.check_head(asked.entity, version=ended.version, audit_head=ended.audit_head) == []


@pytest.mark.django_db
def test_what_can_be_asked_for_is_told_with_one_read_of_the_rules(
    story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = signed_in("alice")
    with requests(monkeypatch) as asked:
        page = alice.get("/requests/new/").content.decode()
    assert [kind for kind in KINDS if f"/requests/new/{kind}/" in page] == ["aws_account", "group", "approval", "relationship"]
    # Who she is, in whose place she may decide, the rules, and what she asked for lately.
    assert sorted(asked) == ["BatchGetItem", "GetItem", "Query", "Query", "Query"]


@CASES
def test_two_requests_share_a_record_and_it_goes_with_the_last(story: Story, case: Case) -> None:
    first = held(story, case)
    second = held(story, case, seconds=7_200)
    assert record_of(case).expires_at == second.expires_at
    assert second.receipts[-1].kept_by == (first.request_id,)

    ended = story.carry_out(story.end(second))
    assert ended.receipts[-1].kept_by == (first.request_id,)
    assert record_of(case).expires_at == first.expires_at
    assert story.carry_out(story.end(first)).status is Status.REVOKED
    assert record_of(case) is None


def test_an_extension_keeps_it_without_a_gap(story: Story) -> None:
    first = held(story, RELATIONSHIP)
    story.clock.advance(1_800)
    further = story.carry_out(story.extend(first, 7_200))
    assert record_of(RELATIONSHIP).expires_at == further.expires_at
    story.clock.advance(1_800)
    story.tick()
    assert story.now_of(first).status is Status.REVOKED
    assert story.now_of(first).receipts[-1].kept_by == (further.request_id,)
    assert list(record_of(RELATIONSHIP).held_until) == [further.request_id]


@pytest.mark.django_db
@pytest.mark.parametrize("ttl", [86_400, None], ids=["with an end", "for good"])
def test_what_was_granted_directly_stays_when_the_request_ends(story: Story, signed_in: SignedIn, ttl: int | None) -> None:
    set_limits(story, SCOPE, most=864_000, is_enforced=False)
    first = held(story, APPROVAL)
    grant_directly(story, APPROVAL, ttl=ttl, if_exists=IfExists.REPLACE)
    alice, address = signed_in("alice"), f"/requests/{first.request_id}/"
    assert "The approval that an operator or a program gave directly stays." in text_of(alice.get(f"{address}end/"))
    ended = story.carry_out(story.end(first))
    assert ended.status is Status.REVOKED
    assert ended.receipts[-1].kept_by == ("direct",)
    record = record_of(APPROVAL)
    assert list(record.held_until) == ["direct"]
    assert record.expires_at == (None if ttl is None else story.clock.now() + timedelta(seconds=ttl))
    page = text_of(alice.get(address))
    assert "the approval itself stays, given directly by an operator or a program" in page
    assert "Also held by a direct gift of an operator or a program" in page


def test_who_has_it_for_good_need_not_ask(story: Story) -> None:
    set_limits(story, SCOPE, most=864_000, is_enforced=False)
    grant_directly(story, RELATIONSHIP, ttl=None)
    with pytest.raises(NotAllowed, match="counts already, and without an end"):
        ask(story, RELATIONSHIP)


def test_a_limit_of_the_scopes_policy_refuses_at_asking_naming_it_and_whose_it_is(story: Story) -> None:
    set_limits(story, SCOPE, most=1_800)
    with pytest.raises(
        NotAllowed, match=r"The longest time is 30 min from the first grant, by the policy of tenant:acme-corp\."
    ) as refused:
        ask(story, APPROVAL)
    assert refused.value.code == "ttl_outside_policy"
    book = queries.ApproverBook(now=story.clock.now())
    target = APPROVAL.target
    foreseen = queries.preview(
        kind=APPROVAL.kind, subject_id=None, target=target, duration_seconds=3_600, ticket_id=None, actor=story.alice, book=book
    )
    assert (foreseen.outcome, foreseen.reason) == ("impossible", f"{refused.value.message}")
    assert held(story, APPROVAL, seconds=1_800).is_granted
    story.clock.advance(60)
    with pytest.raises(NotAllowed, match="from the first grant"):
        ask(story, APPROVAL, seconds=1_800)


def test_a_limit_that_came_since_refuses_at_the_grant_and_the_request_ends_with_the_reason(story: Story) -> None:
    asked = ask(story, RELATIONSHIP)
    set_limits(story, "global", most=1_800)
    ended = story.carry_out(story.carry_out(asked))
    assert (ended.status, ended.granted_at) == (Status.REVOKED, None)
    assert record_of(RELATIONSHIP) is None
    (reason,) = [event.data["reason"] for event in queries.history(request=ended) if event.action == "request.end_asked"]
    assert reason.startswith("It can't be granted any more: The longest time is 30 min from the first grant, by the policy of global.")


def test_a_late_grant_is_within_the_limit_that_the_asking_met(story: Story) -> None:
    set_limits(story, SCOPE, most=3_600)
    asked = ask(story, APPROVAL)
    story.clock.advance(600)
    granted = story.carry_out(asked)
    assert granted.is_granted
    assert record_of(APPROVAL).expires_at == granted.expires_at


def test_nothing_is_asked_for_or_granted_in_a_scope_that_is_being_deleted(story: Story) -> None:
    held(story, RELATIONSHIP)
    asked = ask(story, RELATIONSHIP, seconds=7_200)
    begin_deletion(scope=read_scope(SCOPE), typed=SCOPE, caller=caller_of(story.olga), now=story.clock.now())
    with pytest.raises(NotAllowed, match="tenant:acme-corp is being deleted"):
        ask(story, RELATIONSHIP)
    ended = story.carry_out(story.carry_out(asked))
    assert (ended.status, ended.granted_at) == (Status.REVOKED, None)
    (reason,) = [event.data["reason"] for event in queries.history(request=ended) if event.action == "request.end_asked"]
    assert "tenant:acme-corp is being deleted" in reason


@CASES
@pytest.mark.django_db
def test_what_somebody_revoked_or_deleted_with_its_scope_ends_within_the_hour_with_the_reason(
    story: Story, signed_in: SignedIn, case: Case
) -> None:
    first, second = held(story, case), held(story, case, seconds=7_200)
    other = held(story, case, **case.other)
    assert operations.compare_subjects(actor=SETUP, clock=story.clock).counts == {"checked": 3, "ended": 0, "cancelled": 0, "failed": 0}
    taken = f"The {case.kind} was taken away: somebody revoked it, or deleted its scope."
    alice, address = signed_in("alice"), f"/requests/{first.request_id}/"
    assert taken not in text_of(alice.get(address))
    revoke(case.ledger, read_scope(SCOPE), case.names, caller=caller_of(story.olga), now=story.clock.now())
    assert f"{taken} The request is ended within an hour." in text_of(alice.get(address))

    assert operations.compare_subjects(actor=SETUP, clock=story.clock).ended == 2
    for one in (first, second):
        ended = story.carry_out(one)
        assert (ended.status, ended.ended_by) == (Status.REVOKED, SETUP.name)
        (reason,) = [event.data["reason"] for event in queries.history(request=ended) if event.action == "request.end_asked"]
        assert reason == taken
    page = text_of(alice.get(address))
    assert taken in page
    assert "within an hour" not in page
    assert story.now_of(other).is_granted

    begin_deletion(scope=read_scope(SCOPE), typed=SCOPE, caller=caller_of(story.olga), now=story.clock.now())
    assert len(carry_out_deletions(actor=SETUP, clock=story.clock).failures) == 0
    again = operations.compare_subjects(actor=SETUP, clock=story.clock)
    assert (again.checked, again.ended, again.stopped) == (1, 1, "")
    assert story.carry_out(other).status is Status.REVOKED


def test_an_emptied_table_of_records_ends_no_crowd_of_requests_and_holds_up_no_other_end(story: Story) -> None:
    requests = [held(story, APPROVAL, resource=f"docs/{number}") for number in range(7)]
    gina = story.carry_out(story.ask_to_join(actor=story.gina, group="/engineering/payments"))
    for number in range(7):
        names = ("alice@example.com", f"docs/{number}", "GET")
        revoke(APPROVALS, read_scope(SCOPE), names, caller=caller_of(story.olga), now=story.clock.now())
    directory.set_person_state(email="gina@example.com", state=State.DISABLED, actor=story.olga, now=story.clock.now())

    stopped = operations.compare_subjects(actor=SETUP, clock=story.clock)

    assert stopped.stopped.startswith("7 of 8 open requests would end because what they were granted was taken away, more than the share")
    assert (stopped.checked, stopped.ended, stopped.failures) == (8, 1, ())
    assert story.carry_out(gina).status is Status.REVOKED
    assert all(story.now_of(one).is_granted for one in requests)
    assert operations.compare_subjects(most_share=1, actor=story.olga, clock=story.clock).ended == 7


@pytest.mark.django_db
def test_a_record_that_can_not_be_read_is_told_and_ends_no_request(story: Story, signed_in: SignedIn) -> None:
    broken, sound = held(story, APPROVAL), held(story, RELATIONSHIP)
    table = boto3.resource("dynamodb", region_name=REGION).Table("Approvals")
    (item,) = table.scan()["Items"]
    table.put_item(Item=item | {"expires_at": "nonsense"})
    revoke(RELATIONSHIPS, read_scope(SCOPE), RELATIONSHIP.names, caller=caller_of(story.olga), now=story.clock.now())

    report = operations.compare_subjects(actor=SETUP, clock=story.clock)

    assert ([failure.item for failure in report.failures], report.ended) == ([broken.request_id], 1)
    assert (story.now_of(broken).is_granted, story.carry_out(sound).status) == (True, Status.REVOKED)
    page = text_of(signed_in("alice").get(f"/requests/{broken.request_id}/"))
    assert report.failures[0].error in unescape(page)
    assert "within an hour" not in page


def test_what_is_over_and_still_lies_there_is_begun_anew(story: Story) -> None:
    grant_directly(story, APPROVAL, ttl=60)
    story.clock.advance(60)
    again = held(story, APPROVAL)
    record = record_of(APPROVAL)
    assert list(record.held_until) == [again.request_id]
    assert record.began_at == again.decided_at
    assert record.metadata["request"] == again.request_id


def test_who_leaves_the_company_loses_it(story: Story) -> None:
    granted = held(story, APPROVAL)
    directory.set_person_state(email="alice@example.com", state=State.DISABLED, actor=story.olga, now=story.clock.now())
    story.clock.advance(61)
    story.tick()
    assert story.now_of(granted).status is Status.REVOKED
    assert record_of(APPROVAL) is None


def test_a_relation_is_of_one_type(story: Story) -> None:
    held(story, RELATIONSHIP)
    with pytest.raises(NotAllowed, match="It is there already as a relation of the type role"):
        ask(story, RELATIONSHIP, relation_type="trust")
    with pytest.raises(InvalidRequest, match="“friend” is no type of relation"):
        ask(story, RELATIONSHIP, relation_type="friend")


def test_another_type_that_came_since_ends_the_request_with_the_reason(story: Story) -> None:
    asked = ask(story, RELATIONSHIP, relation_type="trust")
    held(story, RELATIONSHIP)
    ended = story.carry_out(story.carry_out(story.approve(asked)))
    assert (ended.status, ended.granted_at) == (Status.REVOKED, None)
    assert record_of(RELATIONSHIP).relation_type is RelationType.ROLE


@pytest.mark.parametrize(
    ("target", "field", "message"),
    [
        ({"scope": ""}, "scope", "A scope is needed, like tenant:acme-corp:env:prod."),
        ({"scope": "acme"}, "scope", "This is no scope"),
        ({"resource": " "}, "resource", "Resource is missing"),
        ({"resource": "x" * 257}, "resource", "Resource has 257 characters; 256 is the most."),
        ({"action": "GE\x00T"}, "action", "Action"),
    ],
)
def test_a_part_that_can_not_be_is_named_with_its_remedy(story: Story, target: dict[str, str], field: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as refused:
        ask(story, APPROVAL, seconds=3_600, **target)
    assert refused.value.field == field


def test_who_may_not_ask_learns_nothing_about_a_scope(story: Story) -> None:
    """The same answer whether or not there is a policy, a record, or a deletion."""
    foreign = "tenant:widgets-inc"

    def refusal() -> str:
        with pytest.raises(InvalidRequest) as refused:
            ask(story, APPROVAL, scope=foreign)
        return refused.value.message

    before = refusal()
    set_limits(story, foreign, most=60)
    begin_deletion(scope=read_scope(foreign), typed=foreign, caller=caller_of(story.olga), now=story.clock.now())
    assert refusal() == before


def test_it_is_for_a_person(story: Story) -> None:
    with pytest.raises(InvalidRequest, match="An approval is for a person"):
        operations.submit(
            kind="approval",
            subject_id="/engineering/payments",
            target=APPROVAL.target,
            duration_seconds=3_600,
            reason="Write the plan",
            ticket_id="",
            submission_id="group",
            actor=story.alice,
            now=story.clock.now(),
        )


def test_use_moves_no_end_that_a_request_holds_and_revives_no_grant_that_is_over(story: Story) -> None:
    policy = TtlPolicy(300, 60, 864_000, refresh_seconds=600)
    set_policy(scope=read_scope(SCOPE), policy=policy, caller=caller_of(story.olga), now=story.clock.now())
    grant_directly(story, APPROVAL, ttl=60)
    granted = held(story, APPROVAL)
    story.clock.advance(3_590)
    bot = Caller(client("acme00000000"), read_scope(SCOPE), may_write=False, right=Right("a program", None))
    answer = check(APPROVALS, read_scope(SCOPE), APPROVAL.names, caller=bot, clock=story.clock)
    assert answer.until == granted.expires_at
    story.clock.advance(10)
    assert not check(APPROVALS, read_scope(SCOPE), APPROVAL.names, caller=bot, clock=story.clock).is_allowed
    story.tick()
    assert record_of(APPROVAL) is None


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "shared"])
def test_a_worker_that_comes_after_the_end_takes_no_claim(story: Story, *, is_there: bool) -> None:
    if is_there:
        grant_directly(story, APPROVAL, ttl=7_200)
    asked = ask(story, APPROVAL)
    story.carry_out(story.end(asked))
    guards = [store.still_to_be_granted(asked.request_id)]
    with pytest.raises(Conflict) as overtaken:
        kind_named("approval").grant.grant(request=asked, guards=guards, actor=system("worker"), clock=story.clock)
    assert overtaken.value.code == "guard_failed"
    assert (record_of(APPROVAL).held_until.keys() if is_there else record_of(APPROVAL)) == ({"direct"} if is_there else None)


@pytest.mark.django_db
def test_the_page_of_a_rule_tells_its_targets(story: Story, signed_in: SignedIn) -> None:
    ana = signed_in("ana")
    approval, relationship = (text_of(ana.get(f"/admin/rules/{name}/")) for name in ("read-docs", "trust"))
    assert "Scopes tenant:acme-corp, tenant:acme-corp:* Resources docs/* Actions GET" in approval
    assert "Scopes tenant:acme-corp Objects docs/* Relations editor Types role or trust" in relationship
