"""Stand-ins: who may decide in whose place, and until when. Carol stands in for Bob."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import boto3
import pytest

from accessportal.access_requests import operations, queries
from accessportal.access_requests.config import current
from accessportal.access_requests.operations import deciding
from accessportal.access_requests.stand_in import StandIn
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.audit import queries as audit
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole, State
from accessportal.identity.queries import actor_named
from accessportal.kernel.actors import Actor, client, person, system
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, NotFound, PortalError
from accessportal.rules import operations as rules
from tests.access_requests.test_crashes import _READS as READS
from tests.access_requests.test_crashes import survive
from tests.console.test_costs import cost_of
from tests.crashing import Process, living
from tests.fixtures_story import RULES, Story
from tests.fixtures_twin import REGION

SETUP = system("setup")
BOB, SAM, CAROL = "bob@example.com", "sam@example.com", "carol@example.com"
carol = person(CAROL)


@pytest.fixture(autouse=True)
def carol_is_there(story: Story) -> None:
    add(story, "carol")
    story.clock.advance(5)


def add(story: Story, name: str) -> None:
    directory.create_person(email=f"{name}@example.com", name=f"{name.capitalize()} Diaz", actor=SETUP, now=story.clock.now())


def join(story: Story, email: str, group_id: str, role: GroupRole = GroupRole.READER) -> None:
    directory.grant_membership(email=email, group_id=group_id, role=role, actor=SETUP, now=story.clock.now())


def leave(story: Story, email: str, group_id: str) -> None:
    directory.revoke_membership(email=email, group_id=group_id, actor=SETUP, now=story.clock.now())


def disable(story: Story, email: str) -> None:
    directory.set_person_state(email=email, state=State.DISABLED, actor=SETUP, now=story.clock.now())


def name(
    story: Story,
    email: str = CAROL,
    *,
    by: Actor | None = None,
    days: float = 14,
    starts_at: datetime | None = None,
    form: str = "form",
    note: str = "",
) -> StandIn:
    now = story.clock.now()
    starts_at = starts_at or now
    ends_at = starts_at + timedelta(days=days)
    return operations.name_stand_in(
        email=email, starts_at=starts_at, ends_at=ends_at, note=note, submission_id=form, actor=by or story.bob, now=now
    )


def end(story: Story, one: StandIn, *, actor: Actor | None = None) -> StandIn:
    now = story.clock.now()
    return operations.end_stand_in(stand_in=one.stand_in, stand_in_id=one.stand_in_id, actor=actor or story.bob, now=now)


def may(story: Story, asked: AccessRequest, actor: Actor = carol) -> bool:
    """What the page says, and what the operation does where the page says no."""
    now, request = story.clock.now(), story.now_of(asked)
    allowed = queries.can(verb="approve", request=request, actor=actor, now=now).allowed
    assert queries.can(verb="deny", request=request, actor=actor, now=now).allowed == allowed
    waiting = {one.request_id for one in queries.list_waiting_for(actor=actor, now=now).items}
    assert (asked.request_id in waiting) == allowed
    assert queries.count_waiting_for(actor=actor, now=now).seen == len(waiting)
    if not allowed:
        for decide in (story.approve, story.deny):
            with pytest.raises((NotAllowed, NotFound)):
                decide(asked, actor=actor)
    return allowed


def test_carol_decides_in_the_place_of_bob_and_it_is_told(story: Story) -> None:
    asked = story.ask_for_prod()
    assert not may(story, asked)
    one = name(story, note="On holiday")
    assert may(story, asked)

    approved = story.approve(asked, actor=carol)

    assert (approved.status, approved.decided_by, approved.decided_in_place_of) == (Status.ACTIVE, CAROL, BOB)
    events = audit.chain_of(asked.entity)
    assert (events[-1].actor, events[-1].data["in_place_of"]) == (CAROL, BOB)
    named = audit.chain_of(one.entity)[0]
    assert (named.action, named.actor, named.subject, named.data["note"]) == ("stand_in.named", BOB, CAROL, "On holiday")


def test_carol_denies_in_the_place_of_bob(story: Story) -> None:
    asked = story.ask_for_prod()
    name(story)

    denied = story.deny(asked, actor=carol)

    assert (denied.decided_by, denied.decided_in_place_of) == (CAROL, BOB)
    assert audit.chain_of(asked.entity)[-1].data["in_place_of"] == BOB


def test_it_gives_the_right_from_its_begin_until_its_end_whatever_the_clock_does(story: Story) -> None:
    begin = story.clock.now() + timedelta(days=1)
    one = name(story, starts_at=begin, days=2)
    asked = story.ask(account="payments-prod", ticket="CHG-1", permission_set="ReadOnlyAccess")
    request = story.now_of(asked)

    def at(moment: datetime) -> bool:
        return queries.ApproverBook(now=moment).in_place_of(request, carol) is not None

    second = timedelta(seconds=1)
    moments = [begin - second, begin, begin + second, one.ends_at - second, one.ends_at, one.ends_at + second, begin]
    assert [at(moment) for moment in moments] == [False, True, True, True, False, False, True]


def gone_from_group(story: Story, _asked: AccessRequest, _one: StandIn) -> None:
    leave(story, BOB, "/security")


def disabled(story: Story, _asked: AccessRequest, _one: StandIn) -> None:
    disable(story, BOB)


def carol_disabled(story: Story, _asked: AccessRequest, _one: StandIn) -> None:
    disable(story, CAROL)


def taken_back(story: Story, _asked: AccessRequest, one: StandIn) -> None:
    end(story, one)


def over(story: Story, _asked: AccessRequest, one: StandIn) -> None:
    story.clock.advance((one.ends_at - story.clock.now()).total_seconds())


def bob_made_anew(story: Story, _asked: AccessRequest, _one: StandIn) -> None:
    made_anew(story, BOB)
    join(story, BOB, "/security")


def carol_made_anew(story: Story, _asked: AccessRequest, _one: StandIn) -> None:
    made_anew(story, CAROL)


def made_anew(story: Story, email: str) -> None:
    directory.delete_person(email=email, actor=SETUP, now=story.clock.now())
    story.clock.advance(60)
    add(story, email.partition("@")[0])
    story.clock.advance(60)


def rule_names_others(story: Story, _asked: AccessRequest, _one: StandIn) -> None:
    rules.apply_rules(
        text=RULES.replace("groups: [/security]", "users: [sam@example.com, gina@example.com]"), actor=SETUP, now=story.clock.now()
    )


@pytest.mark.parametrize(
    "what", [gone_from_group, disabled, carol_disabled, taken_back, over, bob_made_anew, carol_made_anew, rule_names_others]
)
def test_nothing_is_left_when(story: Story, what: Callable[[Story, AccessRequest, StandIn], None]) -> None:
    one = name(story, days=0.5)
    asked = story.ask_for_prod()
    assert may(story, asked)

    what(story, asked, one)

    assert not may(story, asked)


@pytest.mark.parametrize("what", [disabled, carol_disabled, taken_back, over, bob_made_anew, carol_made_anew])
@pytest.mark.parametrize("approvers", ["groups: [/security]", "users: [bob@example.com, sam@example.com]"])
def test_nor_may_they_read_what_waits_for_others(
    story: Story, what: Callable[[Story, AccessRequest, StandIn], None], approvers: str
) -> None:
    """A rule that names people by their address goes on naming who is disabled."""
    rules.apply_rules(text=RULES.replace("groups: [/security]", approvers), actor=SETUP, now=story.clock.now())
    one = name(story, days=0.5)
    asked = story.ask_for_prod()
    assert queries.list_pending(actor=carol, now=story.clock.now()).items == (story.now_of(asked),)

    what(story, asked, one)

    with pytest.raises(NotAllowed, match="Only operators, auditors and approvers"):
        queries.list_pending(actor=carol, now=story.clock.now())
    with pytest.raises(NotFound):
        queries.get(request_id=asked.request_id, actor=carol, now=story.clock.now())


def test_nobody_decides_for_bob_about_what_bob_or_they_asked_for_or_would_get(story: Story) -> None:
    text = RULES.replace("subjects: {groups: [/engineering]}", "subjects: {groups: [/engineering, /security]}")
    rules.apply_rules(text=text, actor=SETUP, now=story.clock.now())
    join(story, "mallory@example.com", "/engineering/payments")
    name(story, "mallory@example.com")
    group: dict[str, Any] = {"account": "payments-prod", "permission_set": "ReadOnlyAccess", "ticket": "CHG-1"}

    assert not may(story, story.ask_for_prod(actor=story.bob), story.mallory)
    assert not may(story, story.ask_for_prod(actor=story.mallory), story.mallory)
    assert not may(story, story.ask(subject_id="/engineering/payments", **group), story.mallory)
    assert may(story, story.ask_for_prod(), story.mallory)


def test_not_for_bob_by_another_address(story: Story) -> None:
    """One account of the sign-in service is one human: Bob asked as somebody else."""
    name(story)
    asked = story.now_of(story.ask_for_prod())
    book = queries.ApproverBook(now=story.clock.now())
    book._identity_of = lambda email: {BOB: "bob"}.get(email, email)  # type: ignore[method-assign]

    assert book.in_place_of(replace(asked, identities={"alice@example.com": "bob"}), carol) is None
    assert book.in_place_of(asked, carol) is not None


def test_no_chain(story: Story) -> None:
    add(story, "dana")
    story.clock.advance(5)
    name(story)

    with pytest.raises(NotAllowed, match="Only approvers"):
        name(story, "dana@example.com", by=carol)

    # Carol was an approver when she named Dana, and is none any more.
    join(story, CAROL, "/security")
    name(story, "dana@example.com", by=carol)
    asked = story.ask_for_prod()
    assert may(story, asked, person("dana@example.com"))
    leave(story, CAROL, "/security")
    assert may(story, asked)
    assert not may(story, asked, person("dana@example.com"))


def test_the_right_of_operators_is_not_passed_on(story: Story) -> None:
    add(story, "opal")
    join(story, "opal@example.com", "/portal/operators")
    opal = actor_named(email="opal@example.com", now=story.clock.now())
    assert opal.is_operator
    with pytest.raises(NotAllowed, match="Only approvers"):
        name(story, by=opal)
    join(story, opal.name, "/security")
    name(story, by=opal)
    asked = story.ask_for_prod()
    assert may(story, asked)
    leave(story, opal.name, "/security")
    for email in (BOB, SAM):
        disable(story, email)

    assert queries.can(verb="approve", request=asked, actor=opal, now=story.clock.now()).allowed
    assert not may(story, asked)


def test_power_that_stays_is_decided_by_rights_that_stay(story: Story) -> None:
    """Whoever is let into the operators by it would decide for ever."""
    join(story, BOB, "/engineering", GroupRole.ADMIN)
    name(story)

    assert may(story, story.ask_to_join(role="contributor"))
    assert not may(story, story.ask_to_join("/portal/operators", "contributor"))


def test_bob_and_who_stands_in_for_him_count_once(story: Story) -> None:
    name(story)
    asked = story.ask(account="payments-prod")
    assert story.approve(asked, actor=carol).status is Status.PENDING

    with pytest.raises(Conflict, match=f"{CAROL} has approved it in your place already"):
        story.approve(asked)
    assert queries.ApproverBook(now=story.clock.now()).tally(story.now_of(asked)).given == 1

    assert story.approve(asked, actor=story.sam).status is Status.ACTIVE


def test_who_stands_in_adds_nothing_to_what_bob_approved(story: Story) -> None:
    name(story)
    asked = story.ask(account="payments-prod")
    story.approve(asked)

    with pytest.raises(Conflict, match=f"{BOB}, in whose place you decide, has approved it already"):
        story.approve(asked, actor=carol)

    # She has somebody else's right, too.
    name(story, by=story.sam)
    approved = story.approve(asked, actor=carol)
    assert (approved.status, approved.decided_in_place_of) == (Status.ACTIVE, SAM)


def test_one_human_in_two_places_counts_once(story: Story) -> None:
    name(story)
    name(story, by=story.sam)
    asked = story.ask(account="payments-prod")
    assert story.approve(asked, actor=carol).status is Status.PENDING

    with pytest.raises(Conflict, match="You have approved it already"):
        story.approve(asked, actor=carol)


def test_an_approver_decides_as_themselves_first(story: Story) -> None:
    name(story, SAM)
    asked = story.ask(account="payments-prod")

    first = story.approve(asked, actor=story.sam)
    second = story.approve(asked)

    assert (first.in_place_of, second.in_place_of, second.status) == ({}, {}, Status.ACTIVE)


@pytest.mark.parametrize(("what", "given"), [(over, 1), (taken_back, 1), (disabled, 0), (gone_from_group, 0), (carol_disabled, 0)])
def test_an_approval_counts_on_while_the_approver_may_decide(
    story: Story, what: Callable[[Story, AccessRequest, StandIn], None], given: int
) -> None:
    """What was done in time stays done."""
    one = name(story, days=0.25)
    asked = story.ask(account="payments-prod")
    story.approve(asked, actor=carol)

    what(story, asked, one)

    assert queries.ApproverBook(now=story.clock.now()).tally(story.now_of(asked)).given == given
    status = Status.ACTIVE if given else Status.PENDING
    assert story.approve(asked, actor=story.sam).status is status


@pytest.mark.parametrize("decide", [Story.approve, Story.deny])
def test_taken_back_while_the_stand_in_decides(story: Story, monkeypatch: pytest.MonkeyPatch, decide: Callable[..., AccessRequest]) -> None:
    one = name(story)
    asked = story.ask_for_prod()
    real, calls = deciding._place_of, list[int]()

    def and_taken_back(*given: object) -> object:
        place = real(*given)  # type: ignore[arg-type]
        if not calls:
            end(story, one)
        calls.append(1)
        return place

    monkeypatch.setattr(deciding, "_place_of", and_taken_back)

    with pytest.raises((NotAllowed, NotFound)):
        decide(story, asked, actor=carol)

    assert (len(calls), story.now_of(asked).status) == (1, Status.PENDING)


def test_who_may_name_whom(story: Story) -> None:
    for stranger in (story.mallory, story.alice, story.ana, client("abc"), SETUP):
        with pytest.raises(NotAllowed, match="Only approvers"):
            name(story, by=stranger)
    disable(story, "mallory@example.com")
    for email in (BOB, "nobody@example.com", "mallory@example.com", ""):
        with pytest.raises(InvalidRequest) as refused:
            name(story, email)
        assert refused.value.field == "email"
    assert name(story, " Carol@Example.com ").stand_in == CAROL


def test_periods_that_can_not_be(story: Story) -> None:
    days, now = current().stand_in_days, story.clock.now()
    for field, given in (
        ("ends_at", {"days": 0}),
        ("ends_at", {"days": -1}),
        ("ends_at", {"days": days + 0.01}),
        ("ends_at", {"starts_at": now - timedelta(days=3), "days": 2}),
        ("starts_at", {"starts_at": now + timedelta(days=days + 0.01), "days": 1}),
    ):
        with pytest.raises(InvalidRequest) as refused:
            name(story, **given)
        assert refused.value.field == field
    assert name(story, starts_at=now - timedelta(days=1), days=2).starts_at == now.replace(microsecond=0)
    assert name(story, starts_at=now + timedelta(days=days), days=days, form="later").approver == BOB


def test_the_same_form_names_once_and_nobody_twice_at_a_time(story: Story) -> None:
    first = name(story)
    assert name(story) == first
    with pytest.raises(InvalidRequest, match="stands in for you in that time already"):
        name(story, form="another", days=1)
    later = name(story, form="later", starts_at=first.ends_at, days=1)

    end(story, first)

    with pytest.raises(Conflict, match="took it back"):
        name(story)
    assert name(story, form="anew", days=1).stand_in_id not in (first.stand_in_id, later.stand_in_id)


def test_one_stands_in_for_five_at_a_time(story: Story) -> None:
    for number in range(6):
        add(story, f"approver{number}")
        join(story, f"approver{number}@example.com", "/security")
    for number in range(5):
        name(story, by=person(f"approver{number}@example.com"))

    with pytest.raises(InvalidRequest, match="stands in for 5 approvers"):
        name(story, by=person("approver5@example.com"))

    assert name(story, by=person("approver5@example.com"), starts_at=story.clock.now() + timedelta(days=14), days=1).approver


def test_who_may_take_it_back(story: Story) -> None:
    for number, (actor, error) in enumerate(
        ((story.mallory, NotFound), (story.sam, NotFound), (story.ana, NotAllowed), (story.bob, None), (carol, None), (story.olga, None))
    ):
        one = name(story, form=str(number))
        if error is None:
            ended = end(story, one, actor=actor)
            assert (ended.ended_by, audit.chain_of(one.entity)[-1].action) == (actor.name, "stand_in.ended")
            with pytest.raises(Conflict, match="taken it back already"):
                end(story, one, actor=actor)
        else:
            with pytest.raises(error):
                end(story, one, actor=actor)
            end(story, one)
    with pytest.raises(NotFound):
        operations.end_stand_in(stand_in=CAROL, stand_in_id="none", actor=story.olga, now=story.clock.now())


def test_two_take_it_back_at_once(story: Story) -> None:
    one = name(story)
    end(story, one)
    with pytest.raises(Conflict):
        end(story, one, actor=carol)
    assert [event.action for event in audit.chain_of(one.entity)] == ["stand_in.named", "stand_in.ended"]


def test_who_may_list(story: Story) -> None:
    one = name(story)
    for actor in (story.olga, story.ana):
        assert queries.list_stand_ins(actor=actor).items == (one,)
    for stranger in (story.mallory, story.bob, carol):
        with pytest.raises(NotAllowed):
            queries.list_stand_ins(actor=stranger)
    assert queries.list_named(actor=story.bob).items == (one,)
    assert queries.list_stood_in_for(actor=carol, now=story.clock.now(), past=[]) == (one,)
    assert queries.list_stood_in_for(actor=carol, now=one.ends_at, past=[]) == ()
    with pytest.raises(NotFound):
        queries.find_stand_in(stand_in=CAROL, stand_in_id=one.stand_in_id, actor=story.mallory)


def test_what_can_not_be_read_gives_nothing_and_hides_nothing(story: Story) -> None:
    one = name(story)
    other = name(story, by=story.sam)
    asked = story.ask_for_prod()
    table = boto3.resource("dynamodb", region_name=REGION).Table("StandIns")
    key = {"stand_in": CAROL, "stand_in_id": one.stand_in_id}
    # Longer than its key tells.
    table.update_item(Key=key, UpdateExpression="SET ends_at = :end", ExpressionAttributeValues={":end": 2_000_000_000})
    unreadable: list[object] = []

    assert queries.list_stood_in_for(actor=carol, now=story.clock.now(), past=unreadable) == (other,)  # type: ignore[arg-type]
    assert len(unreadable) == 1
    assert story.approve(asked, actor=carol).decided_in_place_of == SAM
    with pytest.raises(PortalError, match="can't be read"):
        end(story, one)


def test_judging_reads_one_query_more_and_only_for_who_is_no_approver(story: Story) -> None:
    asked = story.now_of(story.ask_for_prod())

    def judge(actor: Actor) -> Callable[[], object]:
        return lambda: queries.ApproverBook(now=story.clock.now()).standing(asked, actor).is_approver()

    def judge_in_place(actor: Actor) -> Callable[[], object]:
        def read() -> object:
            standing = queries.ApproverBook(now=story.clock.now()).standing(asked, actor)
            return standing.is_approver() or standing.in_place_of()

        return read

    assert cost_of(judge_in_place(story.bob)) == cost_of(judge(story.bob))
    assert (cost_of(judge_in_place(carol)) - cost_of(judge(carol))).total() == 1
    name(story)
    more = cost_of(judge_in_place(carol)) - cost_of(judge(carol))
    # Bob, and his groups.
    assert more.total() <= 3, more


@pytest.mark.parametrize("after", [False, True])
def test_killed_while_it_is_named_decided_by_or_taken_back(story: Story, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    """Each is one write: done or not, and the same again makes it so once."""
    asked = story.ask_for_prod()
    for fatal in range(3):
        process = Process(fatal=fatal, after=after)
        story.clock.advance(60)
        with living(process, monkeypatch, reads=READS):
            one = survive(process, partial(name, story, form=f"form-{fatal}"))
            if fatal == 1:
                decided = survive(process, lambda: story.approve(asked, actor=carol))
                assert (decided.decided_by, decided.decided_in_place_of) == (CAROL, BOB)
            survive(process, partial(end, story, one))
        assert process.died == (fatal < len(process.names))
        assert [event.action for event in audit.chain_of(one.entity)] == ["stand_in.named", "stand_in.ended"]
    assert [event.action for event in audit.chain_of(asked.entity)] == ["request.submitted", "request.approved"]
