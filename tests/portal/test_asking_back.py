"""Ask back, through HTTP: Alice asks, Bob asks back, Alice answers, Bob approves, Mallory finds nothing."""

from __future__ import annotations

import html
import re
import uuid
from typing import Any

import boto3
import pytest
from django.test import Client

from accessportal.access_requests import operations, queries
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.access_requests.thread import CommentKind
from accessportal.kernel.actors import Actor
from accessportal.store.base import current_settings
from tests.access_requests.test_costs import cost_of
from tests.commands.conftest import run
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION
from tests.portal.conftest import SignedIn
from tests.portal.test_journey import HTMX, text_of

QUESTION, ANSWER = "Which payouts do you need to see?", "Those of March, for CHG-20817."


def write(client: Client, request: AccessRequest, deed: str, text: str, **more: Any) -> Any:
    given = {"text": text, "submission_id": str(uuid.uuid4()), **more}
    return client.post(f"/requests/{request.request_id}/{deed}/", given, follow=True)


def say(story: Story, request: AccessRequest, actor: Actor, kind: CommentKind, text: str = QUESTION) -> None:
    operations.comment(
        request_id=request.request_id, kind=kind, text=text, submission_id=str(uuid.uuid4()), actor=actor, now=story.clock.now()
    )


@pytest.mark.parametrize(("ends_by", "word"), [("deny", "Decided"), ("approve", "Decided"), ("cancel", "Cancelled")])
def test_a_question_that_was_overtaken_by_the_end_says_so(story: Story, signed_in: SignedIn, ends_by: str, word: str) -> None:
    asked, answered, who = story.ask_for_prod(), story.ask_for_prod(), "alice" if ends_by == "cancel" else "bob"
    say(story, asked, story.bob, CommentKind.QUESTION)
    say(story, answered, story.bob, CommentKind.QUESTION)
    say(story, answered, story.alice, CommentKind.ANSWER, ANSWER)
    for one in (asked, answered):
        page = f"/requests/{one.request_id}/"
        assert "meanwhile" not in text_of(signed_in("alice").get(page))
        signed_in(who).post(f"{page}{ends_by}/", {"reason": "Not now"})
        assert story.now_of(one).status is not Status.PENDING
        for reader in ("alice", "bob"):
            told = text_of(signed_in(reader).get(page))
            assert (f"{word} meanwhile: nobody waits for an answer any more." in told) is (one is asked)


def test_bob_asks_back_alice_answers_and_bob_approves(story: Story, signed_in: SignedIn) -> None:
    asked = story.ask_for_prod()
    alice, bob, mallory, ana = map(signed_in, ("alice", "bob", "mallory", "ana"))
    page = f"/requests/{asked.request_id}/"

    sheet = text_of(bob.get(f"{page}ask_back/", headers=HTMX))
    assert "Ask a question? " in sheet
    assert "The request stays as it is, and its deadline too." in sheet
    assert asked.reason in sheet
    mark = re.search(r"live/\?mark=([^\"]+)", alice.get(page).content.decode())
    assert mark is not None
    assert alice.get(f"{page}live/?mark={mark[1]}", headers=HTMX).status_code == 204
    done = write(bob, asked, "ask_back", QUESTION)
    assert "The request stays as it is." in text_of(done)
    assert "Bob Ito asked back" in text_of(done)

    assert QUESTION in text_of(alice.get(f"{page}live/?mark={mark[1]}", headers=HTMX))
    home = text_of(alice.get("/"))
    assert "Needs your answer: Bob Ito asked back about payments-prod · ReadOnlyAccess" in home
    assert QUESTION not in home
    queue = text_of(signed_in("sam").get("/admin/requests/?pattern=waiting"))
    assert "Asked back, waiting for answer" in queue
    assert "Asked back, waiting for answer" in text_of(bob.get("/fragments/for-me/", headers=HTMX))
    assert QUESTION in text_of(alice.get(f"{page}answer/", headers=HTMX))

    write(alice, asked, "answer", ANSWER)

    assert "Needs your answer" not in text_of(alice.get("/"))
    assert "Answered" in text_of(bob.get("/fragments/for-me/", headers=HTMX))
    assert re.search(r"Bob Ito asked back .*Which payouts.*Alice Park answered .*Those of March", text_of(bob.get(page)))
    assert re.search(r"Which payouts.*Those of March", text_of(ana.get(page)))
    assert "act-comment" not in ana.get(page).content.decode()
    for address in (page, f"{page}live/", f"{page}ask_back/", f"{page}comment/"):
        assert mallory.get(address).status_code == 404
    assert write(mallory, asked, "comment", "Let me in").status_code == 404

    bob.post(f"{page}approve/", {"reason": ""})
    assert story.now_of(asked).status is Status.ACTIVE
    story.carry_out(asked)
    write(alice, asked, "comment", "Thanks, <b>done</b>.")
    assert "Thanks, &lt;b&gt;done&lt;/b&gt;." in bob.get(page).content.decode()
    assert len(queries.thread_of(request=story.now_of(asked), past=print)) == 3


def test_a_form_sent_twice_writes_once_and_one_without_words_says_so(story: Story, signed_in: SignedIn) -> None:
    asked, bob = story.ask_for_prod(), signed_in("bob")
    form = {"submission_id": str(uuid.uuid4())}

    for _ in range(2):
        assert write(bob, asked, "ask_back", QUESTION, **form).status_code == 200
    empty = write(bob, asked, "ask_back", " ")
    long = write(bob, asked, "ask_back", "a" * 2_001)

    assert (empty.status_code, long.status_code) == (422, 422)
    assert "Write what you want to ask or say." in text_of(empty)
    assert "2,000 is the most" in text_of(long)
    assert story.now_of(asked).comments == 1


def test_a_decision_that_came_first_leaves_the_words_and_a_closed_thread_says_so(story: Story, signed_in: SignedIn) -> None:
    asked = story.ask_for_prod()
    denied = story.deny(asked, actor=story.sam)
    assert QUESTION in text_of(write(signed_in("alice"), asked, "comment", QUESTION))

    story.clock.advance(7 * 86_400)
    late = write(signed_in("alice"), asked, "comment", "And now?")
    assert late.status_code == 409
    assert "its comments are closed" in text_of(late)
    assert story.now_of(denied).comments == 1


def test_many_comments_are_folded_and_a_damaged_one_is_named(story: Story, signed_in: SignedIn) -> None:
    asked = story.ask_for_prod()
    for number in range(20):
        say(story, asked, story.bob, CommentKind.QUESTION, f"Question {number}, please?")
    table = boto3.resource("dynamodb", region_name=REGION).Table(f"{current_settings().table_prefix}RequestComments")
    item = table.get_item(Key={"request_id": asked.request_id, "number": 7})["Item"]
    table.put_item(Item=item | {"kind": "SHOUT"})

    page = html.unescape(text_of(signed_in("alice").get(f"/requests/{asked.request_id}/")))

    assert "9 earlier comments" in page
    assert f"The item {asked.request_id}, 7 of the table RequestComments can't be read" in page
    assert "Question 6, please?" not in page
    assert [f"Question {number}, please?" in page for number in (0, 5, 7, 19)] == [True] * 4
    shown = run("show_request", asked.request_id)
    assert "question 20 by bob@example.com" in shown.out
    assert f"The item {asked.request_id}, 7 of the table" in " ".join(shown.out.split())
    told = run("show_request", asked.request_id, "--json")
    assert len(told.json["thread"]) == 19
    assert "salt" not in told.out


@pytest.mark.parametrize("who", ["bob", "alice", "ana"])
def test_a_page_with_a_thread_is_one_request_more(story: Story, signed_in: SignedIn, who: str) -> None:
    asked, client = story.ask_for_prod(), signed_in(who)
    address = f"/requests/{asked.request_id}/"
    client.get(address)
    before, home = cost_of(lambda: client.get(address)), cost_of(lambda: client.get("/"))
    for number in range(5):
        say(story, asked, story.bob, CommentKind.QUESTION, f"Question {number}?")

    after = cost_of(lambda: client.get(address))

    assert after.count("Query") == before.count("Query") + 1
    # Alice's page has the first name of somebody else.
    assert len(after) <= min(12, len(before) + (2 if who == "alice" else 1)), after
    assert len(cost_of(lambda: client.get("/"))) <= len(home) + 1
