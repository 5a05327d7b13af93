"""Ask back: Bob asks, Alice answers, Mallory finds nothing; the thread never changes what was asked, and what is changed in it is found."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import boto3
import pytest

from accessportal.access_requests import operations, policy, queries, store
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.access_requests.thread import Comment, CommentKind
from accessportal.audit import queries as audit
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from accessportal.kernel.pages import Unreadable
from accessportal.store.base import current_settings
from tests.commands.conftest import run
from tests.crashing import MOMENTS, Killed, Process, living
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION

Q, A, C = CommentKind.QUESTION, CommentKind.ANSWER, CommentKind.COMMENT
_READS = frozenset({"GetItem", "Query", "BatchGetItem"})


def comment(story: Story, request: AccessRequest, actor: Actor, kind: CommentKind, text: str = "Why?", form: str = "form") -> AccessRequest:
    return operations.comment(request_id=request.request_id, kind=kind, text=text, submission_id=form, actor=actor, now=story.clock.now())


def thread(request: AccessRequest) -> tuple[Comment, ...]:
    return store.thread_of(request.request_id, past=lambda _one: None)


def told(request: AccessRequest) -> list[tuple[str, str, str]]:
    return [(one.kind.value, one.written_by, one.text) for one in thread(request)]


def breaks() -> set[tuple[str, int, str]]:
    found = run("verify_audit", "--json", "--without-evidence")
    return {(one["entity"], one["sequence"], one["problem"]) for one in found.json["breaks"]}


def test_asking_back_leaves_the_request_as_it_is(story: Story) -> None:
    asked = story.ask_for_prod()
    story.clock.advance(60)

    waits = comment(story, asked, story.bob, Q, "  Which service?\r\nAnd why now? ")
    answered = comment(story, asked, story.alice, A, "Payouts.")

    changed = {"version", "audit_head", "comments", "last_comment_at", "asked_back_by", "awaits_answer"}
    for one in (waits, answered):
        assert replace(asked, **{name: getattr(one, name) for name in changed}) == one
        assert story.now_of(asked).status is Status.PENDING
    assert (waits.needs_answer, waits.asked_back_by, waits.comments) == (True, "bob@example.com", 1)
    assert (answered.needs_answer, answered.asked_back_by, answered.comments) == (False, "bob@example.com", 2)
    assert told(asked) == [
        ("QUESTION", "bob@example.com", "Which service?\nAnd why now?"),
        ("ANSWER", "alice@example.com", "Payouts."),
    ]
    events = queries.history(request=answered)[1:]
    assert [event.action for event in events] == ["request.commented"] * 2
    assert [event.data["addressee"] for event in events] == ["alice@example.com", "bob@example.com"]
    assert "service" not in str(events)
    assert story.approve(asked).status is Status.ACTIVE
    assert breaks() == set()


@pytest.mark.parametrize(
    ("who", "kind", "code"),
    [
        ("mallory", Q, "request_not_found"),
        ("mallory", C, "request_not_found"),
        ("ana", Q, "not_involved"),
        ("ana", C, "not_involved"),
        ("ana", A, "not_the_requester"),
        ("bob", A, "not_the_requester"),
        ("olga", A, "not_the_requester"),
        ("alice", Q, "own_request"),
        ("alice", A, ""),
        ("alice", C, ""),
        ("bob", Q, ""),
        ("sam", Q, ""),
        ("olga", Q, ""),
    ],
)
def test_who_may_write_what_while_somebody_waits_for_an_answer(story: Story, who: str, kind: CommentKind, code: str) -> None:
    asked = comment(story, story.ask_for_prod(), story.sam, Q)
    actor: Actor = getattr(story, who)
    if not code:
        assert comment(story, asked, actor, kind, "Because.").comments == 2
        return
    with pytest.raises((NotAllowed, NotFound)) as refused:
        comment(story, asked, actor, kind, "Because.")
    assert refused.value.code == code
    assert len(thread(asked)) == 1
    assert story.now_of(asked).needs_answer


def test_who_decided_goes_on_reading_and_writing_and_others_who_could_have_do_not(story: Story) -> None:
    asked = story.ask_for_prod()
    denied = story.deny(asked)

    comment(story, denied, story.alice, A, "What would have to change?")
    comment(story, denied, story.bob, Q, "The ticket.")

    assert [kind for kind, _, _ in told(asked)] == ["COMMENT", "COMMENT"]
    assert not story.now_of(asked).awaits_answer


def test_after_a_week_the_thread_is_closed(story: Story) -> None:
    denied = story.deny(story.ask_for_prod())
    story.clock.advance(policy.COMMENTED_FOR.total_seconds() - 60)
    comment(story, denied, story.alice, C, "One more thing.")
    story.clock.advance(60)

    with pytest.raises(Conflict, match="closed") as refused:
        comment(story, denied, story.alice, C, "And another.")
    assert refused.value.code == "comments_closed"


def test_nothing_is_written_while_work_outside_is_under_way(story: Story) -> None:
    """A worker that were overtaken by words would leave the access where it is until its claim is over."""
    active = story.approve(story.ask_for_prod())
    with pytest.raises(Conflict, match="right now"):
        comment(story, active, story.alice, C)
    granted = story.carry_out(active)

    comment(story, granted, story.alice, C, "Thanks.")
    ended = story.end(granted)
    with pytest.raises(Conflict, match="right now"):
        comment(story, ended, story.alice, C)
    assert story.carry_out(granted).status is Status.REVOKED
    assert breaks() == set()


@pytest.mark.parametrize(
    ("text", "code"),
    [("", "text_missing"), (" \u200b\n", "text_missing"), ("a" * 2_001, "text_too_long"), ("a\x00b", "text_unprintable")],
)
def test_bad_input_is_named_and_nothing_is_written(story: Story, text: str, code: str) -> None:
    asked = story.ask_for_prod()
    with pytest.raises(InvalidRequest) as refused:
        comment(story, asked, story.bob, Q, text)
    assert (refused.value.code, refused.value.field, thread(asked)) == (code, "text", ())
    with pytest.raises(InvalidRequest, match="submission id"):
        comment(story, asked, story.bob, Q, "Why?", "x" * 101)


def test_the_same_form_writes_once_and_another_text_of_it_is_kept_too(story: Story) -> None:
    asked = story.ask_for_prod()
    first = comment(story, asked, story.bob, Q, "Why?")
    assert comment(story, asked, story.bob, Q, " Why? ") == first
    comment(story, asked, story.bob, Q, "Why today?")
    comment(story, asked, story.sam, Q, "Why?")
    story.approve(asked)
    story.carry_out(asked)

    # The answer to the first sending was lost, and it was decided meanwhile.
    assert comment(story, asked, story.bob, Q, "Why?").comments == 3
    assert [text for _, _, text in told(asked)] == ["Why?", "Why today?", "Why?"]


def test_a_thread_is_full_with_a_clear_error_and_ends_with_its_request(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = story.ask_for_prod()
    for number in range(1, policy.MOST_COMMENTS):
        comment(story, asked, story.bob, Q, f"Question {number}")
    with pytest.raises(Conflict, match="as many comments as it can take"):
        comment(story, asked, story.bob, Q, "One more")
    comment(story, asked, story.alice, A, "There is room for the answer.")
    with pytest.raises(Conflict, match="as many comments as it can take"):
        comment(story, asked, story.alice, C, "And another")

    denied = story.deny(asked)

    assert {one.purge_at for one in thread(asked)} == {denied.purge_at}
    assert [one.number for one in thread(asked)] == list(range(1, policy.MOST_COMMENTS + 1))
    assert breaks() == set()


def race(*acts: Callable[[], object]) -> list[object]:
    """What each comes to; they begin together."""
    results: list[object] = [None] * len(acts)
    begin = threading.Barrier(len(acts))

    def one(place: int) -> None:
        begin.wait()
        try:
            results[place] = acts[place]()
        except Exception as error:
            results[place] = error

    threads = [threading.Thread(target=one, args=[place]) for place in range(len(acts))]
    for thread_ in threads:
        thread_.start()
    for thread_ in threads:
        thread_.join()
    return results


def between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Right before the next comment is written, somebody else comes first, once."""
    real, acts = store.add_comment, [act]

    def overtaken(*given: Any, **more: Any) -> AccessRequest:
        if acts:
            acts.pop()()
        return real(*given, **more)

    monkeypatch.setattr(store, "add_comment", overtaken)


def test_a_comment_and_a_decision_at_once_both_land(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = story.ask_for_prod()
    between(monkeypatch, lambda: story.deny(asked, actor=story.sam))

    late = comment(story, asked, story.bob, Q, "Why?")

    assert (late.status, late.awaits_answer) == (Status.DENIED, False)
    assert [(kind, text) for kind, _, text in told(asked)] == [("COMMENT", "Why?")]
    assert thread(asked)[0].purge_at == late.purge_at is not None
    assert breaks() == set()


def test_a_decision_that_a_comment_comes_before_both_land(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = comment(story, story.ask_for_prod(), story.bob, Q)
    real, acts = store.change, [lambda: comment(story, asked, story.alice, A, "So.")]

    def overtaken(*given: Any, **more: Any) -> AccessRequest:
        if acts:
            acts.pop()()
        return real(*given, **more)

    monkeypatch.setattr(store, "change", overtaken)
    denied = story.deny(asked)

    assert (denied.status, denied.comments) == (Status.DENIED, 2)
    assert {one.purge_at for one in thread(asked)} == {denied.purge_at}
    assert breaks() == set()


def test_many_at_once_are_all_there_and_a_form_sent_twice_is_there_once(story: Story) -> None:
    asked = story.ask_for_prod()
    people = [story.bob, story.sam, story.olga]
    acts = [lambda one=one: comment(story, asked, one, Q, f"By {one.name}", "x") for one in (*people, *people)]

    assert not [one for one in race(*acts) if isinstance(one, Exception)]
    assert sorted(by for _, by, _ in told(asked)) == sorted(one.name for one in people)
    assert [one.number for one in thread(asked)] == [1, 2, 3]
    assert breaks() == set()


@pytest.mark.parametrize("after", MOMENTS)
@pytest.mark.parametrize("fatal", range(3))
def test_killed_at_any_step_it_is_there_once_with_its_event(
    story: Story, monkeypatch: pytest.MonkeyPatch, fatal: int, *, after: bool
) -> None:
    asked = story.ask_for_prod()
    process = Process(fatal=fatal, after=after)
    acts: list[Callable[[], AccessRequest]] = [
        lambda: comment(story, asked, story.bob, Q, "Why?", "one"),
        lambda: comment(story, asked, story.alice, A, "So.", "two"),
        lambda: story.deny(asked),
    ]
    with living(process, monkeypatch, reads=_READS):
        for act in acts:
            try:
                act()
            except Killed:
                process.reboot()
                with suppress(Conflict):
                    act()
    assert process.died
    ended = story.now_of(asked)
    assert (ended.status, ended.comments) == (Status.DENIED, 2)
    assert [(kind, text) for kind, _, text in told(asked)] == [("QUESTION", "Why?"), ("ANSWER", "So.")]
    assert {one.purge_at for one in thread(asked)} == {ended.purge_at}
    assert breaks() == set()


def table() -> Any:
    return boto3.resource("dynamodb", region_name=REGION).Table(f"{current_settings().table_prefix}RequestComments")


def put(request: AccessRequest, number: int, **values: Any) -> None:
    item = table().get_item(Key={"request_id": request.request_id, "number": number}).get("Item", {})
    table().put_item(Item={**item, "request_id": request.request_id, "number": number, **values})


def delete(request: AccessRequest, number: int) -> None:
    table().delete_item(Key={"request_id": request.request_id, "number": number})


@pytest.mark.parametrize(
    ("forge", "problem"),
    [
        (lambda one: put(one, 1, text="Never mind."), "comment 1 is "),
        (lambda one: put(one, 1, written_by="mallory@example.com"), "comment 1 is "),
        (lambda one: put(one, 1, kind="COMMENT"), "comment 1 is "),
        (lambda one: put(one, 2, written_at=1), "comment 2 is "),
        (lambda one: delete(one, 2), "comment 2 is nothing, and the events tell ANSWER by alice@example.com"),
        (lambda one: put(one, 3, **{**_other(one), "text": "Forged."}), "comment 3 is "),
        (lambda one: put(one, 1, text="person-x", salt="person-x", written_by="person-x"), "its writer was not erased"),
    ],
    ids=["text", "writer", "kind", "moment", "deleted", "added", "as if erased"],
)
def test_what_is_changed_in_a_thread_is_found(story: Story, forge: Callable[[AccessRequest], None], problem: str) -> None:
    asked = comment(story, story.ask_for_prod(), story.bob, Q)
    asked = comment(story, asked, story.alice, A, "So.")
    other = story.ask_for_prod(seconds=1800)
    comment(story, other, story.sam, Q)
    assert breaks() == set()

    forge(asked)

    found = breaks()
    assert [one for one in found if problem in one[2]], found
    assert not [one for one in found if other.request_id in one[0]]


def test_who_wrote_much_and_was_erased_is_looked_up_once(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = comment(story, story.ask_for_prod(), story.bob, Q)
    asked = comment(story, asked, story.bob, Q, "And when?")
    for number in (1, 2):
        put(asked, number, text="person-x", salt="person-x", written_by="person-x")
    looked_up: list[str] = []
    monkeypatch.setattr("accessportal.access_requests.queries.threads.find_erasure", looked_up.append)
    named: list[Unreadable] = []

    list(queries.every_threaded(now=story.clock.now(), past=named.append))

    assert looked_up == ["person-x"]
    assert len(named) == 2


def _other(request: AccessRequest) -> dict[str, Any]:
    item: dict[str, Any] = table().get_item(Key={"request_id": request.request_id, "number": 1})["Item"]
    return {name: value for name, value in item.items() if name not in ("request_id", "number")}


def _no_other(one: Unreadable) -> None:
    pytest.fail(str(one))


def test_a_comment_without_its_request_is_found_until_dynamodb_deletes_both(story: Story) -> None:
    denied = story.deny(comment(story, story.ask_for_prod(), story.bob, Q))
    requests = boto3.resource("dynamodb", region_name=REGION).Table(f"{current_settings().table_prefix}ActiveRequests")
    kept = requests.get_item(Key={"request_id": denied.request_id})["Item"]
    requests.delete_item(Key={"request_id": denied.request_id})
    (problem,) = [one[2] for one in breaks() if one[0] == f"{denied.request_id}, 1"]
    assert "of the table RequestComments can't be read (there is no such request)" in problem
    assert denied.purge_at is not None
    past = denied.purge_at + timedelta(seconds=1)
    assert list(queries.every_threaded(now=past, past=_no_other)) == []
    requests.put_item(Item=kept)
    delete(denied, 1)
    (left,) = queries.every_threaded(now=past, past=_no_other)
    assert left.is_purged


@pytest.mark.parametrize("damage", [{"text": 7}, {"kind": "SHOUT"}, {"schema_version": 99}], ids=["text", "kind", "newer"])
def test_a_damaged_comment_is_named_and_hinders_nothing(story: Story, damage: dict[str, Any]) -> None:
    asked = comment(story, story.ask_for_prod(), story.bob, Q)
    put(asked, 1, **damage)
    named: list[Unreadable] = []

    answered = comment(story, asked, story.alice, A, "So.")
    assert [one.text for one in queries.thread_of(request=answered, past=named.append)] == ["So."]
    assert [one.key for one in named] == [f"{asked.request_id}, 1"]
    denied = story.deny(asked)

    assert denied.status is Status.DENIED
    assert [one.purge_at for one in thread(asked)] == [denied.purge_at]
    assert [one for one in breaks() if one[0] == f"{asked.request_id}, 1"]


def test_a_comment_that_another_program_has_put_there_is_told(story: Story) -> None:
    asked = comment(story, story.ask_for_prod(), story.bob, Q)
    put(asked, 2, **_other(asked))
    with pytest.raises(Conflict, match="Another program has written comment 2"):
        comment(story, asked, story.alice, A)
    assert story.approve(asked).status is Status.ACTIVE


def test_a_check_tells_nothing_of_a_text_without_its_salt(story: Story) -> None:
    asked = story.ask_for_prod()
    comment(story, asked, story.bob, Q, "Why?")
    comment(story, asked, story.sam, Q, "Why?")
    first, second = (event.data["check"] for event in audit.chain_of(asked.entity)[1:])
    assert first != second
