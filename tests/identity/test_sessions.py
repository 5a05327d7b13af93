"""How long somebody stays signed in."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings as real_settings
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.sessions.models import Session
from django.test import Client
from pytest_django import Settings

from accessportal.identity.sessions import SEEN_AT, SIGNED_IN_AT, Ended, Limits, ended_at
from accessportal.kernel.clock import to_epoch
from tests.conftest import START
from tests.fixtures_story import Story
from tests.portal.conftest import SignedIn
from tests.portal.test_journey import HTMX, text_of

MINUTE, HOUR = 60, 3600
LIMITS = Limits(idle=timedelta(minutes=60), absolute=timedelta(hours=12))


@pytest.fixture
def alice(signed_in: SignedIn, settings: Settings) -> Client:
    settings.SESSION_IDLE_MINUTES, settings.SESSION_HOURS, settings.SESSION_COOKIE_AGE = 60, 12, 12 * HOUR
    return signed_in("alice")


@pytest.mark.parametrize(
    ("started", "seen", "ended"),
    [
        (0, 0, None),
        (-HOUR + 1, -HOUR + 1, None),
        (-HOUR, -HOUR, Ended.IDLE),
        (-12 * HOUR + 1, -1, None),
        (-12 * HOUR, -1, Ended.TOO_LONG),
        (-13 * HOUR, -2 * HOUR, Ended.TOO_LONG),
        # The machine's clock went back: the session is no longer for it.
        (HOUR, HOUR, None),
    ],
)
def test_a_session_ends_to_the_second(started: int, seen: int, ended: Ended | None) -> None:
    now = to_epoch(START)

    assert ended_at({SIGNED_IN_AT: now + started, SEEN_AT: now + seen}, limits=LIMITS, now=START) is ended


@pytest.mark.parametrize("session", [{}, {SIGNED_IN_AT: 1}, {SIGNED_IN_AT: None, SEEN_AT: None}, {SIGNED_IN_AT: "x", SEEN_AT: "y"}])
def test_a_session_without_its_times_is_over(session: dict[str, object]) -> None:
    assert ended_at(session, limits=LIMITS, now=START) is Ended.TOO_LONG


def test_whoever_does_nothing_for_an_hour_is_signed_out(story: Story, alice: Client) -> None:
    story.clock.advance(59 * MINUTE)
    assert alice.get("/").status_code == 200
    story.clock.advance(59 * MINUTE)
    assert alice.get("/").status_code == 200
    story.clock.advance(60 * MINUTE)

    answer = alice.get("/requests/new/")

    assert answer.headers["Location"] == "/sign-in/?because=idle&next=/requests/new/"
    assert "because nothing was done for 60 minutes" in text_of(alice.get(answer.headers["Location"]))
    assert SESSION_KEY not in alice.session


def test_whatever_a_page_asks_for_at_once_hears_the_same_reason(story: Story, alice: Client, settings: Settings) -> None:
    """The last answer takes the page to the sign-in page: it must not be one that no longer knows why."""
    cookie = alice.cookies[settings.SESSION_COOKIE_NAME].value
    story.clock.advance(60 * MINUTE)

    for path in ("/", "/fragments/approvals/", "/requests/new/"):
        alice.cookies[settings.SESSION_COOKIE_NAME] = cookie
        answer = alice.get(path, headers=HTMX)
        assert answer.headers["HX-Redirect"].startswith("/sign-in/?because=idle&next=/")

    story.clock.advance(10 * MINUTE)
    assert alice.get("/").headers["Location"] == "/sign-in/?next=/"


def test_a_page_that_refreshes_itself_keeps_nobody_signed_in(story: Story, alice: Client) -> None:
    for _ in range(5):
        story.clock.advance(10 * MINUTE)
        assert alice.get("/fragments/approvals/", headers=HTMX).status_code == 200
    story.clock.advance(10 * MINUTE)

    answer = alice.get("/fragments/approvals/", headers={**HTMX, "HX-Current-URL": "http://testserver/requests/new/"})

    assert answer.headers["HX-Redirect"] == "/sign-in/?because=idle&next=/requests/new/"


def test_sending_a_form_is_doing_something(story: Story, alice: Client) -> None:
    story.clock.advance(50 * MINUTE)
    alice.post("/requests/new/aws_account/", {"reason": ""}, headers=HTMX)
    story.clock.advance(50 * MINUTE)

    assert alice.get("/").status_code == 200


def test_nobody_stays_for_more_than_twelve_hours_whatever_they_do(story: Story, alice: Client) -> None:
    for _ in range(12 * 2 - 1):
        story.clock.advance(30 * MINUTE)
        assert alice.get("/").status_code == 200
    story.clock.advance(30 * MINUTE)

    answer = alice.get("/")

    assert answer.headers["Location"] == "/sign-in/?because=too_long&next=/"
    assert "everybody signs in anew after 12 hours" in text_of(alice.get(answer.headers["Location"]))


def test_signing_in_again_begins_anew(story: Story, alice: Client) -> None:
    story.clock.advance(61 * MINUTE)
    assert alice.get("/").status_code == 302

    alice.force_login(get_user_model().objects.get(username="alice@example.com"))
    assert alice.get("/").status_code == 200
    assert "ended_because" not in alice.session


def test_a_shorter_limit_counts_for_sessions_that_go_on_already(story: Story, alice: Client, settings: Settings) -> None:
    story.clock.advance(20 * MINUTE)
    settings.SESSION_IDLE_MINUTES = 15

    assert alice.get("/").status_code == 302


def test_a_session_of_a_former_version_is_over(story: Story, alice: Client) -> None:
    session = alice.session
    del session[SIGNED_IN_AT]
    session.save()

    assert alice.get("/").headers["Location"] == "/sign-in/?because=too_long&next=/"


def test_looking_often_does_not_write_each_time(story: Story, alice: Client) -> None:
    before = alice.session[SEEN_AT]
    story.clock.advance(29)
    alice.get("/")
    assert alice.session[SEEN_AT] == before
    story.clock.advance(1)
    alice.get("/")
    assert alice.session[SEEN_AT] == before + 30


def test_a_new_key_comes_with_signing_in(story: Story, alice: Client) -> None:
    anonymous = Client()
    session = anonymous.session
    session["planted"] = "by somebody"
    session.save()
    anonymous.cookies["sessionid"] = planted = session.session_key or ""

    anonymous.post("/sign-in/", {"username": "alice@example.com", "password": "correct horse battery staple"})

    assert anonymous.cookies["sessionid"].value != planted
    assert anonymous.get("/").status_code == 200
    other = Client()
    other.cookies["sessionid"] = planted
    assert other.get("/").status_code == 302


def test_signing_out_leaves_nothing(story: Story, alice: Client) -> None:
    session = alice.session
    session["something"] = "kept"
    session.save()
    key = alice.cookies["sessionid"].value

    alice.post("/sign-out/")

    assert alice.cookies["sessionid"].value == ""
    other = Client()
    other.cookies["sessionid"] = key
    assert "something" not in other.session
    assert other.get("/").status_code == 302


def test_cookies_are_for_the_portal_alone(story: Story, alice: Client) -> None:
    cookie = alice.cookies["sessionid"]

    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "Lax", 12 * HOUR)
    assert real_settings.SESSION_COOKIE_AGE == real_settings.SESSION_HOURS * HOUR


def test_a_signed_in_page_is_a_session_that_was_begun_here(story: Story, settings: Settings) -> None:
    """Django's own ``login`` marks it too, whoever calls that."""
    user = get_user_model().objects.create(username="alice@example.com")
    client = Client()
    client.force_login(user)

    assert client.get("/").status_code == 200


def test_the_database_never_holds_a_key_that_opens_a_session(story: Story, alice: Client) -> None:
    """Whoever reads its table, or a copy of it, is nobody by that."""
    (row,) = Session.objects.all()
    thief = Client()
    thief.cookies["sessionid"] = row.session_key

    assert alice.cookies["sessionid"].value not in f"{row.session_key} {row.session_data} {row.get_decoded()}"
    assert alice.get("/").status_code == 200
    assert thief.get("/").status_code == 302


def test_a_session_under_its_own_key_is_of_a_former_version_and_over(story: Story, alice: Client) -> None:
    key = alice.cookies["sessionid"].value
    Session.objects.update(session_key=key)

    assert alice.get("/").status_code == 302


def test_a_key_is_exchanged_and_deleted_where_it_is_kept(story: Story, alice: Client) -> None:
    session = alice.session
    assert session.exists(str(session.session_key))

    session.cycle_key()
    assert Session.objects.count() == 1
    session.flush()
    assert Session.objects.count() == 0
