"""Asking back at two browsers, at two sizes and in both colours; with the keyboard, and without scripts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from accessportal.access_requests import operations
from accessportal.access_requests.thread import CommentKind
from tests.browser.conftest import BusyDay, OpenAs
from tests.browser.looks import look_at
from tests.browser.test_pages import page_of, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
QUESTION, ANSWER = "Which service is it, and why does it have to be today?", "The payouts. They stopped at noon."


def test_a_question_reaches_the_other_page_by_itself_and_so_does_the_answer(busy_day: BusyDay, open_as: OpenAs) -> None:
    story, request = busy_day.story, busy_day.waiting
    alice, bob = open_as("alice"), open_as("bob")
    visit(alice, page_of(request), "thread-empty")
    bob.goto(page_of(request))
    bob.get_by_role("link", name="Ask back").focus()
    bob.keyboard.press("Enter")
    expect(bob.get_by_label("Your question")).to_be_focused()
    look_at(bob, "ask-back", full=False)
    bob.keyboard.type(QUESTION)
    bob.keyboard.press("Tab")
    bob.keyboard.press("Enter")
    expect(bob.get_by_role("region", name="Comments")).to_contain_text(QUESTION)

    expect(alice.get_by_role("region", name="Comments")).to_contain_text(QUESTION)
    look_at(alice, "thread-asked")
    visit(alice, "/", "home-needs-answer")
    visit(bob, "/admin/requests/?pattern=waiting", "queue-asked-back")
    plain = open_as("alice", javascript=False)
    plain.goto("/")
    plain.get_by_role("link", name="Answer about").first.click()
    expect(plain.get_by_role("main")).to_contain_text(QUESTION)
    plain.get_by_label("Your answer").fill(ANSWER)
    plain.get_by_role("button", name="Send answer").click()
    expect(plain.get_by_role("region", name="Comments")).to_contain_text(ANSWER)

    for number in range(40):
        operations.comment(
            request_id=request.request_id,
            kind=CommentKind.QUESTION if number % 2 else CommentKind.COMMENT,
            text=f"{number}: {'averylongwordwithoutablank' * 8}\n\n" + "Then words that say why. " * (12 if number % 3 else 1),
            submission_id="form",
            actor=story.sam if number % 2 else story.alice,
            now=story.clock.now(),
        )
    visit(bob, page_of(request), "thread-long")
    bob.locator("summary", has_text="earlier comments").click()
    expect(bob.get_by_role("region", name="Comments")).to_contain_text(ANSWER)
