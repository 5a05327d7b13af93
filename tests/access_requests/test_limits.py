"""How often one person may ask, for how much at a time, and for how long in all: whoever asks, and by whatever way."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from accessportal.access_requests import operations, queries
from accessportal.access_requests.config import WorkflowSettings, current
from accessportal.access_requests.operations import asking
from accessportal.access_requests.operations.limits import require_patience
from accessportal.access_requests.states import AccessRequest, Preview, Status
from accessportal.kernel.actors import system
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from accessportal.rules import operations as rules
from accessportal.store import listing
from accessportal.store.coordination import reserve_slot
from tests.fixtures_pool import POOL_RULES, Labs
from tests.fixtures_story import RULES, Story

SETUP = system("setup")
HOUR = 3600


@pytest.fixture
def limited() -> Iterator[None]:
    former = current()
    operations.configure(WorkflowSettings(asks_per_minute=5, most_open=3))
    yield
    operations.configure(former)


def load(story: Story, *changes: tuple[str, str], text: str = RULES) -> None:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    rules.apply_rules(text=text, actor=SETUP, now=story.clock.now())


# Asking


def test_the_sixth_in_a_minute_is_refused_before_anything_is_read(story: Story, limited: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        story.cancel(story.ask_for_prod())

    with monkeypatch.context() as patch:
        patch.setattr(asking, "subject_facts", lambda *args, **options: pytest.fail("read for nothing"))
        with pytest.raises(NotAllowed, match="You have asked 5 times within a minute, as often as one person may") as refused:
            story.ask_for_prod()
    assert refused.value.code == "asked_too_often"

    assert story.ask_to_join("/engineering/payments", actor=story.gina).status is Status.ACTIVE
    story.clock.advance(13)
    story.ask_for_prod()
    with pytest.raises(NotAllowed):
        story.ask_for_prod()
    story.clock.advance(60)
    assert story.ask_for_prod().status is Status.PENDING


def test_extensions_and_what_is_refused_count_as_well(story: Story, limited: None) -> None:
    held = story.carry_out(story.ask(seconds=600))
    for _ in range(3):
        with pytest.raises(InvalidRequest):
            story.ask(account="nowhere")
    story.extend(held, 1200)

    with pytest.raises(NotAllowed, match="5 times within a minute"):
        story.extend(held, 1800)


def test_of_forty_at_once_as_many_pass_as_may(story: Story, limited: None) -> None:
    now = story.clock.now()

    def ask(_number: int) -> bool:
        try:
            require_patience(actor=story.alice, now=now)
        except NotAllowed:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        passed = list(pool.map(ask, range(40)))

    assert sum(passed) == 5


def test_a_host_whose_clock_is_behind_gives_nobody_a_new_minute(story: Story) -> None:
    """Two clocks may differ a little: what one host has counted up to the limit is no wrong clock's for the other."""
    now, name = story.clock.now(), "asks:alice@example.com"
    asked = [reserve_slot(name, gap_seconds=3, longest_wait_seconds=57, now=now) for _ in range(20)]
    assert None not in asked

    for seconds in (0, 0.1, 30):
        assert reserve_slot(name, gap_seconds=3, longest_wait_seconds=57, now=now - timedelta(seconds=seconds)) is None, seconds


def test_a_queue_that_a_wrong_clock_left_is_begun_anew(story: Story) -> None:
    now = story.clock.now()
    reserve_slot("asks:alice@example.com", gap_seconds=3, longest_wait_seconds=57, now=now + timedelta(hours=2))

    assert reserve_slot("asks:alice@example.com", gap_seconds=3, longest_wait_seconds=57, now=now) == now


def test_what_is_open_is_counted_to_its_end_however_little_a_page_holds(
    story: Story, limited: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DynamoDB ends a page at a megabyte: of large requests that is fewer than the limit."""
    for _ in range(3):
        story.ask_for_prod()
    monkeypatch.setattr(listing, "_BIG_PAGE", 1)

    with pytest.raises(NotAllowed, match="You have 3 requests"):
        story.ask_for_prod()


def test_what_is_open_has_a_most(story: Story, limited: None) -> None:
    first = [story.ask_for_prod(), story.ask_for_prod(), story.ask()]

    with pytest.raises(NotAllowed, match="You have 3 requests that are active or waiting, as many as there may be") as refused:
        story.ask_for_prod()
    assert refused.value.code == "too_many_open"

    again = operations.submit(
        kind="aws_account",
        subject_id=None,
        target={"account": "payments-dev", "permission_set": "PowerUserAccess"},
        duration_seconds=HOUR,
        reason="Incident 4711",
        ticket_id="",
        submission_id=first[2].submission_id,
        actor=story.alice,
        now=story.clock.now(),
    )
    assert again.request_id == first[2].request_id
    story.clock.advance(60)
    story.cancel(first[0])
    assert story.ask_for_prod().status is Status.PENDING


# For how long in all: a rule's longest is that of the whole chain


def preview(story: Story, seconds: int | None, *, extends: AccessRequest | None = None) -> Preview:
    return queries.preview(
        kind="aws_account",
        subject_id=None,
        target={"account": "payments-dev", "permission_set": "PowerUserAccess"},
        duration_seconds=seconds,
        ticket_id=None,
        extends=extends,
        actor=story.alice,
        book=queries.ApproverBook(now=story.clock.now()),
    )


def test_extensions_reach_no_further_than_the_longest_of_the_rule(story: Story) -> None:
    held = story.carry_out(story.ask(seconds=4 * HOUR))
    story.clock.advance(3 * HOUR)

    with pytest.raises(InvalidRequest, match="held for 3 h 2 s without a gap, of at most 4 h by this rule, extensions counted") as refused:
        story.extend(held, 2 * HOUR)
    seen = preview(story, 2 * HOUR, extends=held)

    assert refused.value.field == "duration"
    assert (seen.outcome, seen.max_duration_seconds) == ("impossible", 59 * 60)
    assert "held for 3 h 2 s without a gap" in seen.reason


@pytest.mark.parametrize("by_hand", [False, True], ids=["extended", "asked anew beside it"])
def test_a_chain_ends_with_the_longest_with_extensions(story: Story, *, by_hand: bool) -> None:
    load(story, ("max: 4h}\n    approval: {required: false}", "max: 4h, max_total: 6h}\n    approval: {required: false}"))
    began_at = story.clock.now()
    held = story.carry_out(story.ask(seconds=4 * HOUR))

    refusals = 0
    while refusals < 3:
        story.clock.advance(HOUR)
        story.tick()
        left = held.expires_at - story.clock.now()
        seconds = int(left.total_seconds()) + HOUR
        try:
            further = story.ask(seconds=min(seconds, 4 * HOUR)) if by_hand else story.extend(held, min(seconds, 4 * HOUR))
            held = story.carry_out(further)
            assert held.is_granted
        except InvalidRequest:
            refusals += 1

    assert (held.expires_at - began_at).total_seconds() <= 6 * HOUR
    assert held.holds_since == began_at.replace(microsecond=0)


def test_who_asks_anew_while_it_is_being_taken_back_goes_on_with_it(story: Story) -> None:
    held = story.carry_out(story.ask(seconds=4 * HOUR))
    story.clock.advance(4 * HOUR)

    with pytest.raises(InvalidRequest, match="held for 4 h 2 s without a gap, of at most 4 h"):
        story.ask(seconds=HOUR)
    story.tick()

    assert story.now_of(held).status is Status.REVOKED
    assert story.carry_out(story.ask(seconds=4 * HOUR)).is_granted


def test_the_form_sent_twice_is_one_request_though_it_holds_by_now(story: Story) -> None:
    first = story.ask(seconds=4 * HOUR, submission_id="twice")
    story.clock.advance(30)

    assert story.ask(seconds=4 * HOUR, submission_id="twice").request_id == first.request_id


def test_who_sends_the_usual_length_again_gets_the_same_request_though_another_is_usual_by_now(story: Story) -> None:
    def ask(seconds: int | None) -> AccessRequest:
        return operations.submit(
            kind="aws_account",
            subject_id=None,
            target={"account": "payments-dev", "permission_set": "PowerUserAccess"},
            duration_seconds=seconds,
            reason="Incident 4711",
            ticket_id="",
            submission_id="sent-twice",
            actor=story.alice,
            now=story.clock.now(),
        )

    first = ask(None)
    assert first.duration_seconds == HOUR
    load(story, ("default: 1h, max: 4h", "default: 2h, max: 4h"))

    assert ask(None).request_id == first.request_id
    with pytest.raises(Conflict, match="with another length"):
        ask(2 * HOUR)


def test_an_approval_that_comes_late_counts_what_is_held_then(story: Story) -> None:
    held = story.carry_out(story.approve(story.ask_for_prod(seconds=8 * HOUR)))
    story.clock.advance(4 * HOUR)
    waiting = story.ask_for_prod(seconds=3 * HOUR)
    story.clock.advance(1.5 * HOUR)

    with pytest.raises(Conflict, match="The rules no longer allow it: Rule prod-readonly: it has been held for 5 h 30 min"):
        story.approve(waiting)
    story.clock.advance(3 * HOUR)
    story.tick()

    assert story.now_of(held).status is Status.REVOKED
    assert story.carry_out(story.approve(waiting)).is_granted


def test_something_else_is_not_the_same_holding(story: Story) -> None:
    story.carry_out(story.ask(seconds=4 * HOUR))
    story.clock.advance(3 * HOUR)

    assert story.carry_out(story.ask(permission_set="ReadOnlyAccess", seconds=4 * HOUR)).is_granted
    assert story.carry_out(story.ask(subject_id="/engineering/payments", seconds=4 * HOUR)).is_granted
    assert 58 * 60 <= preview(story, None).max_duration_seconds < HOUR


NO_EXTENSION = ("most_per_person: 2\n  - name: long-sandboxes", "most_per_person: 2\n    extend: false\n  - name: long-sandboxes")


def test_a_shorter_rule_does_not_extend_what_a_rule_gave_without_extension(labs: Labs) -> None:
    """Held by the long rule, which says no; the short one for labs would say yes."""
    story = labs.story
    text = (RULES + POOL_RULES).rstrip() + "\n    extend: false\n"
    rules.apply_rules(text=text, actor=SETUP, now=story.clock.now())
    labs.fill("lab-1")
    held = story.carry_out(story.approve(labs.ask(seconds=3 * HOUR)))
    assert held.rule_name == "long-sandboxes"
    story.clock.advance(2 * HOUR)

    with pytest.raises(NotAllowed, match="By rule long-sandboxes a sandbox is not extended") as refused:
        story.extend(held, 2 * HOUR)
    assert refused.value.code == "not_extendable"

    rules.apply_rules(text=RULES + POOL_RULES.partition("  - name: long-sandboxes")[0], actor=SETUP, now=story.clock.now())
    with pytest.raises(NotAllowed, match="By rule long-sandboxes"):
        story.extend(held, 2 * HOUR)


def test_nor_does_a_rule_without_extension_extend_what_another_gave(labs: Labs) -> None:
    load(labs.story, NO_EXTENSION, text=RULES + POOL_RULES)
    labs.fill("lab-1")
    held = labs.held(seconds=HOUR)
    labs.story.clock.advance(1800)

    with pytest.raises(NotAllowed, match="By rule labs a sandbox is not extended"):
        labs.story.extend(held, HOUR)


def test_a_sandbox_is_held_no_longer_than_its_rule_gives_in_all(labs: Labs) -> None:
    load(labs.story, (", max_total: 8h", ""), text=RULES + POOL_RULES)
    labs.fill("lab-1")
    held = labs.held(seconds=2 * HOUR)
    labs.story.clock.advance(HOUR + 1800)

    further = labs.story.extend(held, HOUR)

    assert further.status is Status.PENDING
    assert further.rule_name == "long-sandboxes"
