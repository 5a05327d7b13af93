"""Signing in with a real issuer in a real browser: the way there and back, and every way it can go wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from django.core.cache import cache
from playwright.sync_api import Page, Response, expect
from pytest_django import Settings

from accessportal.audit import queries as audit
from tests.browser.conftest import OpenAs
from tests.browser.holding import Held, answer_in_turn, let_htmx_tell
from tests.browser.looks import look_at
from tests.fixtures_story import Story
from tests.oidc.local_issuer import Fault, LocalIssuer

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

ALICE = "alice@example.com"
_TALLY = re.compile("/fragments/approvals/")
SignIn = Callable[..., Page]


@pytest.fixture
def sign_in(open_as: OpenAs, issuer: LocalIssuer) -> SignIn:
    """``sign_in()`` is a browser that began at the portal, said at the issuer who it is, and was sent back."""

    def go(account: str = ALICE, *, wanted: str = "/", fault: Fault = Fault.NONE) -> Page:
        page = open_as("")
        page.goto(wanted)
        issuer.fault = fault
        page.get_by_role("link", name="Sign in with Example Inc").click()
        expect(page.get_by_role("heading", name="Issuer")).to_be_visible()
        page.get_by_label("Account").fill(account)
        page.get_by_role("button", name="Continue").click()
        return page

    return go


def expect_refusal(page: Page, words: str) -> None:
    expect(page.get_by_role("heading", name="You were not signed in")).to_be_visible()
    expect(page.locator("main")).to_contain_text(words)


def expect_signed_out(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()


def test_alice_signs_in_and_out(story: Story, sign_in: SignIn, issuer: LocalIssuer) -> None:
    page = sign_in(wanted="/requests/new/aws_account/?account=payments-dev")
    expect(page).to_have_url(re.compile(r"/requests/new/aws_account/\?account=payments-dev$"))
    expect(page.locator(".who")).to_have_text(ALICE)
    cookie = next(one for one in page.context.cookies() if one["name"] == "sessionid")
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
    look_at(page, "signed-out-with-issuer")
    page.get_by_role("link", name="Sign out of Example Inc").click()
    expect(page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()
    assert issuer.seen[-1] == "/logout"
    told = [event.action for event in audit.history(f"person#{ALICE}", newest_first=False).items]
    assert told[-2:] == ["user.signed_in", "user.signed_out"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault.WRONG_NONCE, "it belongs to another sign-in"),
        (Fault.WRONG_AUDIENCE, "it was made for another program"),
        (Fault.EXPIRED, "it is too old"),
        (Fault.UNVERIFIED, "has not verified your e-mail address"),
    ],
    ids=lambda given: given.name.lower() if isinstance(given, Fault) else "",
)
def test_a_token_that_is_not_right_is_refused_in_words(story: Story, sign_in: SignIn, fault: Fault, words: str) -> None:
    page = sign_in(fault=fault)

    expect_refusal(page, words)
    look_at(page, f"sign-in-{fault.name.lower().replace('_', '-')}")
    expect_signed_out(page)


def test_a_replayed_code_is_refused_in_words(story: Story, open_as: OpenAs, issuer: LocalIssuer) -> None:
    used: list[str] = []
    page = open_as("")
    page.on("request", lambda request: used.append(request.url) if "/sign-in/callback/" in request.url else None)
    page.goto("/")
    page.get_by_role("link", name="Sign in with Example Inc").click()
    page.get_by_label("Account").fill(ALICE)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="My access")).to_be_visible()

    page.goto(used[0])
    expect_refusal(page, "was used already")
    look_at(page, "sign-in-replayed")
    # Coming back twice takes nothing from whoever is signed in already, and gives a stranger nothing.
    # What that page asks for is answered first: it would else lead to the sign-in page meanwhile.
    with page.expect_response(_TALLY):
        page.locator("main").get_by_role("link", name="My access").click()
    expect(page.locator(".who")).to_have_text(ALICE)
    page.context.clear_cookies()
    page.goto(used[0])
    expect_refusal(page, "begun in another browser")
    expect_signed_out(page)


def test_whom_the_directory_does_not_let_in(story: Story, sign_in: SignIn, issuer: LocalIssuer, settings: Settings) -> None:
    settings.HELP_CONTACT = "the IT desk (it@example.com)"
    issuer.know("nina@example.com", "Nina Roth")

    page = sign_in("nina@example.com")
    expect_refusal(page, "nina@example.com is not in the directory yet. Ask the IT desk (it@example.com) to add you.")
    look_at(page, "sign-in-unknown-person")

    settings.OIDC_CREATE_PEOPLE = True
    page = sign_in("nina@example.com")
    expect(page.get_by_role("heading", name="My access")).to_be_visible()


def test_an_issuer_that_is_down(story: Story, open_as: OpenAs, issuer: LocalIssuer) -> None:
    page = open_as("")
    page.goto("/sign-in/")
    issuer.fault = Fault.DOWN
    cache.clear()
    page.get_by_role("link", name="Sign in with Example Inc").click()

    expect(page.get_by_role("heading", name="Signing in does not work now")).to_be_visible()
    look_at(page, "sign-in-issuer-down")


def test_the_sign_in_page_with_every_way_in(story: Story, open_as: OpenAs, issuer: LocalIssuer, settings: Settings) -> None:
    settings.SESSION_IDLE_MINUTES = 60
    page = open_as("")
    page.goto("/sign-in/?because=idle")
    look_at(page, "sign-in-issuer")

    settings.DEMO = True
    page.goto("/sign-in/")
    look_at(page, "sign-in-issuer-and-demo")


def go_home(page: Page) -> None:
    """From another page. What is asked for when it is loaded has been answered: it would else notice the end of the session."""

    def is_asked_at_home(answer: Response) -> bool:
        return bool(_TALLY.search(answer.url)) and urlsplit(answer.request.headers["hx-current-url"]).path == "/"

    with page.expect_response(is_asked_at_home):
        page.goto("/")


def test_an_open_page_says_that_its_time_is_over(story: Story, sign_in: SignIn, settings: Settings) -> None:
    """A page that refreshes itself notices the end, and the whole page goes to sign in."""
    page = sign_in(wanted="/groups/")
    expect(page.get_by_role("heading", name="Groups", exact=True)).to_be_visible()
    page.clock.install()
    go_home(page)
    settings.SESSION_IDLE_MINUTES = 60
    story.clock.advance(3600)

    # Long enough for one of the parts that refresh themselves.
    page.clock.fast_forward(31_000)

    expect(page.get_by_text("because nothing was done for 60 minutes")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/sign-in/\?because=idle&next=/$"))


def test_what_is_typed_is_there_again_after_the_session_ended_under_it(story: Story, sign_in: SignIn, settings: Settings) -> None:
    """The page notices the end in the middle of a word: by what it asks while one types, and by what refreshes itself."""
    page = sign_in(wanted="/requests/new/aws_account/")
    settings.SESSION_IDLE_MINUTES = 60
    page.get_by_label("Why").fill("A reason that took a while")
    story.clock.advance(3600)
    page.get_by_role("combobox", name="Account").press_sequentially("payments-p")

    expect(page.get_by_text("because nothing was done for 60 minutes")).to_contain_text("What was typed is kept")
    page.get_by_role("link", name="Sign in with Example Inc").click()
    page.get_by_label("Account").fill(ALICE)
    page.get_by_role("button", name="Continue").click()

    expect(page).to_have_url(re.compile("/requests/new/aws_account/$"))
    expect(page.get_by_label("Why")).to_have_value("A reason that took a while")
    expect(page.get_by_role("combobox", name="Account")).to_have_value(re.compile("^p"))
    expect(page.get_by_text("It has not been sent.")).to_be_visible()
    # Once more, with nothing typed since: what was brought back is not lost either. What the page asks by itself is answered before.
    page.wait_for_load_state("networkidle")
    story.clock.advance(3600)
    page.get_by_role("combobox", name="Account").click()
    expect(page.get_by_text("because nothing was done for 60 minutes")).to_contain_text("What was typed is kept")


@pytest.mark.parametrize("is_reason_first", [True, False], ids=["reason first", "reason last"])
def test_why_the_session_ended_is_told_whichever_answer_comes_first(
    story: Story, sign_in: SignIn, settings: Settings, is_reason_first: bool
) -> None:
    """Two requests at once meet its end, and the page goes where the first answer sends it."""
    page = sign_in(wanted="/groups/")
    expect(page.get_by_role("heading", name="Groups", exact=True)).to_be_visible()
    page.clock.install()
    go_home(page)
    asked, ways_out = Held(page, re.compile(r"/fragments/approvals/|[?]part=open")), Held(page, re.compile("/sign-in/"))
    settings.SESSION_IDLE_MINUTES = 60
    story.clock.advance(3600)
    let_htmx_tell(page)
    page.clock.fast_forward(61_000)

    answers = [(route, route.fetch()) for route in asked.wait_for(2)]
    answer_in_turn(page, answers if is_reason_first else answers[::-1])
    ways_out.let_go()

    expect(page.get_by_text("because nothing was done for 60 minutes")).to_be_visible()


def test_signing_out_is_told_although_the_page_was_still_asking(story: Story, sign_in: SignIn) -> None:
    """The answer to what the page asked before is "sign in again", and comes while the sign-out is under way."""
    page = sign_in(wanted="/groups/")
    expect(page.get_by_role("heading", name="Groups", exact=True)).to_be_visible()
    go_home(page)
    tally, sign_out = Held(page, _TALLY), Held(page, re.compile("/sign-out/"))
    page.reload()
    (asked,) = tally.wait_for(1)
    let_htmx_tell(page)

    page.get_by_role("button", name="Sign out").dispatch_event("click")
    (way_out,) = sign_out.wait_for(1)
    signed_out = way_out.fetch(max_redirects=0)
    answer = asked.fetch()
    assert answer.headers["hx-redirect"].startswith("/sign-in/")
    answer_in_turn(page, [(asked, answer)])
    way_out.fulfill(response=signed_out)

    expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
