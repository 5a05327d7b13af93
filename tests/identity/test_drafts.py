"""What was typed survives whatever happens to the session, for the person who typed it and for nobody else."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings as real_settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.test import Client
from pytest_django import Settings

from accessportal.access_requests import queries
from accessportal.directory import operations as directory
from accessportal.directory.states import State
from accessportal.identity.drafts import TYPED_BY
from accessportal.identity.operations import ensure_demo_user
from accessportal.kernel.actors import system
from accessportal.sandboxes import operations as sandboxes
from tests.fixtures_story import Story
from tests.identity.conftest import Traveller
from tests.portal.conftest import PASSWORD, SignedIn
from tests.portal.test_journey import text_of

HOUR = 3600
WORDS = "A reason that took “ten minutes” to <write>"
NEW = "/requests/new/aws_account/"
ASKED = {"account": "payments-prod", "permission_set": "ReadOnlyAccess", "duration": "2h", "ticket_id": "CHG-1", "reason": WORDS}


def typed_by(client: Client, path: str) -> str:
    """The field of the form on this page."""
    (value,) = set(re.findall(rf'name="{TYPED_BY}" value="([^"]+)"', client.get(path).content.decode()))
    return html.unescape(value)


def sign_in_again(client: Client, name: str, address: str) -> Any:
    """By the form of the sign-in page, and on to the page that it leads to."""
    ensure_demo_user(email=f"{name}@example.com", name=name.title(), password=PASSWORD)
    page = client.get(address)
    given = {"username": f"{name}@example.com", "password": PASSWORD, "next": page.context["next"]}
    return client.post("/sign-in/", given, follow=True)


def shows(page: Any, value: str) -> bool:
    text = page.content.decode()
    return f'value="{html.escape(value)}"' in text or f">\n{html.escape(value)}</textarea>" in text


@dataclass(frozen=True)
class Typed:
    """A form: whose, where it stands, where it is sent, and what is typed into it."""

    who: str
    page: str
    path: str
    fields: dict[str, str]


FORMS = {
    "aws_account": Typed("alice", NEW, NEW, ASKED),
    "group": Typed(
        "alice",
        "/requests/new/group/",
        "/requests/new/group/",
        {"group": "/engineering", "role": "admin", "duration": "3h", "reason": WORDS},
    ),
    "sandbox": Typed("alice", "/requests/new/sandbox/", "/requests/new/sandbox/", {"duration": "3h", "ticket_id": "T-1", "reason": WORDS}),
    "extend": Typed("alice", "/requests/{active}/extend/", "/requests/{active}/extend/", {"duration": "3h", "reason": WORDS}),
    "deed": Typed("bob", "/requests/{pending}/deny/", "/requests/{pending}/deny/", {"reason": WORDS}),
    "add a person": Typed(
        "olga", "/groups/add/at/security/", "/groups/add/at/security/", {"email": "nina@example.com", "name": "Nina <R>", "role": "reader"}
    ),
    "rename a group": Typed("olga", "/groups/rename/at/security/", "/groups/rename/at/security/", {"name": "Guards", "description": WORDS}),
    "rename a person": Typed("olga", "/people/sam@example.com/rename/", "/people/sam@example.com/rename/", {"name": "Samuel"}),
    "token": Typed(
        "olga", "/admin/tokens/new/", "/admin/tokens/new/", {"name": WORDS, "scope": "admin", "rate_per_minute": "7", "days": "30"}
    ),
    "from the queue": Typed(
        "bob", "/requests/{pending}/deny/?next=/admin/requests/", "/requests/{pending}/deny/", {"reason": WORDS, "next": "/admin/requests/"}
    ),
    "pool": Typed("olga", "/admin/sandboxes/{sandbox}/do/quarantine/", "/admin/sandboxes/{sandbox}/do/quarantine/", {"reason": WORDS}),
    "bulk": Typed("bob", "/admin/requests/", "/admin/requests/bulk/deny/", {"key": "{pending}", "confirmed": "yes", "reason": WORDS}),
}


@pytest.fixture
def keys(story: Story) -> dict[str, str]:
    active, pending = story.carry_out(story.ask(seconds=4 * HOUR)), story.ask_for_prod()
    made = sandboxes.add(external_id="ext-1", name="lab-1", lab_duration_hours=4, actor=story.olga, now=story.clock.now())
    return {"active": active.request_id, "pending": pending.request_id, "sandbox": made.sandbox_id}


@pytest.fixture(autouse=True)
def _hour(settings: Settings) -> None:
    settings.SESSION_IDLE_MINUTES, settings.SESSION_HOURS, settings.SESSION_COOKIE_AGE = 60, 12, 12 * HOUR


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_comes_back_as_it_was_typed(story: Story, signed_in: SignedIn, keys: dict[str, str], form: Typed) -> None:
    client, path = signed_in(form.who), form.path.format(**keys)
    fields = {name: value.format(**keys) if name == "key" else value for name, value in form.fields.items()}
    mark = typed_by(client, form.page.format(**keys))
    story.clock.advance(HOUR)

    sent = client.post(path, {**fields, TYPED_BY: mark})

    assert sent.status_code == 302
    assert sent.headers["Location"] == f"/sign-in/?because=idle&next={quote(path)}"
    assert "What was typed is kept" in text_of(client.get(sent.headers["Location"]))
    page = sign_in_again(client, form.who, sent.headers["Location"])
    assert page.status_code == 200
    assert [name for name, value in fields.items() if not shows(page, value)] == []
    assert "It has not been sent." in text_of(page)
    # Nothing was done by coming back, and what was shown is given out once.
    assert story.now_of(queries.get(request_id=keys["pending"], actor=system("test"), now=story.clock.now())).decided_by == ""
    assert "It has not been sent." not in text_of(client.get(path, follow=True))


def test_every_form_for_words_says_whose_it_is() -> None:
    """A new form without the field would lose what is typed into it."""
    without = {
        "templates/base.html": "signs out",
        "templates/console/bar.html": "signs out",
        "templates/console/detail.html": "buttons that ask first",
        "templates/console/leases/order_cleaning.html": "one button",
        "templates/console/outcomes.html": "one button",
        "templates/console/sandboxes/confirm_run.html": "one button",
        "templates/identity/sign_in.html": "a password, which is never kept",
        "templates/portal/home_for_me.html": "one button",
        "templates/portal/steps.html": "buttons",
    }
    found = {
        str(path.relative_to(real_settings.BASE_DIR))
        for path in (real_settings.BASE_DIR / "templates").rglob("*.html")
        if 'method="post"' in path.read_text() and "{% typed_by %}" not in path.read_text()
    }
    assert found == set(without)


def test_the_sent_form_is_one_request_when_it_is_sent_at_last(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    given = {**ASKED, "submission_id": "7f1c5d0e-5a62-4f65-9a51-2f9d6d1f6a11", TYPED_BY: typed_by(alice, NEW)}
    story.clock.advance(HOUR)
    page = sign_in_again(alice, "alice", alice.post(NEW, given).headers["Location"])
    assert shows(page, "7f1c5d0e-5a62-4f65-9a51-2f9d6d1f6a11")

    alice.post(NEW, given)

    (asked,) = story.pending_of("alice@example.com")
    assert asked.reason == WORDS


def test_nobody_else_at_the_same_browser_sees_it(story: Story, signed_in: SignedIn) -> None:
    client = signed_in("alice")
    mark = typed_by(client, NEW)
    story.clock.advance(HOUR)
    sent = client.post(NEW, {**ASKED, TYPED_BY: mark})

    page = sign_in_again(client, "mallory", sent.headers["Location"])

    assert page.status_code == 200
    assert not shows(page, WORDS)
    assert "drafts" not in client.session or client.session["drafts"] == {}
    client.post("/sign-out/")
    assert not shows(sign_in_again(client, "alice", f"/sign-in/?next={NEW}"), WORDS)


@pytest.mark.parametrize("mark", ["", "alice@example.com", "alice@example.com:forged"])
def test_a_stranger_fills_no_session(story: Story, client: Client, mark: str) -> None:
    sent = client.post(NEW, {**ASKED, TYPED_BY: mark})

    assert sent.headers["Location"] == f"/sign-in/?next={NEW}"
    assert Session.objects.count() == 0


def test_without_any_session_left_it_is_kept_all_the_same(story: Story, signed_in: SignedIn) -> None:
    """The cookie ends at the limit for everybody; the page that stands open does not."""
    alice = signed_in("alice")
    mark = typed_by(alice, NEW)
    alice.cookies.clear()

    page = sign_in_again(alice, "alice", alice.post(NEW, {**ASKED, TYPED_BY: mark}).headers["Location"])

    assert shows(page, WORDS)


def test_a_form_from_before_signing_in_again_comes_back(story: Story, signed_in: SignedIn) -> None:
    """Two tabs: in the other one she signed in again, which changes the form's own token."""
    signed_in("alice")
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(get_user_model().objects.get())
    mark = typed_by(browser, NEW)

    answer = browser.post(NEW, {**ASKED, TYPED_BY: mark, "csrfmiddlewaretoken": "of before"})

    assert (answer.status_code, answer.headers["Location"]) == (302, NEW)
    assert shows(browser.get(NEW), WORDS)
    assert story.pending_of("alice@example.com") == []
    # Made by anybody else, it is refused as before.
    assert browser.post(NEW, {**ASKED, TYPED_BY: "alice@example.com:forged"}).status_code == 403


def test_a_form_of_somebody_who_is_no_longer_there_is_not_for_who_is(story: Story, signed_in: SignedIn) -> None:
    mark = typed_by(signed_in("alice"), NEW)
    mallory = signed_in("mallory")

    answer = mallory.post(NEW, {**ASKED, TYPED_BY: mark, "keep": "yes"})

    assert answer.status_code == 302
    assert not shows(mallory.get(NEW), WORDS)


def test_what_a_page_sends_to_be_kept_is_never_carried_out(story: Story, signed_in: SignedIn, keys: dict[str, str]) -> None:
    bob, path = signed_in("bob"), f"/requests/{keys['pending']}/deny/"

    answer = bob.post(path, {"reason": WORDS, TYPED_BY: typed_by(bob, path), "keep": "yes"})

    assert (answer.status_code, answer.headers["Location"]) == (302, path)
    assert shows(bob.get(path), WORDS)
    assert len(story.pending_of("alice@example.com")) == 1


def test_it_comes_back_after_the_way_to_the_issuer_too(story: Story, traveller: Traveller) -> None:
    traveller.sign_in("alice@example.com")
    mark = typed_by(traveller.client, NEW)
    story.clock.advance(HOUR)
    traveller.client.post(NEW, {**ASKED, TYPED_BY: mark})
    story.clock.advance(HOUR)

    traveller.sign_in("alice@example.com", next_page=NEW)

    assert shows(traveller.client.get(NEW), WORDS)


def test_a_person_who_was_shut_out_for_a_while_finds_it_again(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    mark = typed_by(alice, NEW)
    for state in (State.DISABLED, State.ENABLED):
        directory.set_person_state(email="alice@example.com", state=state, actor=story.olga, now=story.clock.now())
        if state is State.DISABLED:
            assert alice.post(NEW, {**ASKED, TYPED_BY: mark}).status_code == 403

    assert shows(sign_in_again(alice, "alice", f"/sign-in/?next={NEW}"), WORDS)


def test_what_nobody_comes_back_for_is_forgotten(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    mark = typed_by(alice, NEW)
    story.clock.advance(HOUR)
    address = alice.post(NEW, {**ASKED, TYPED_BY: mark}).headers["Location"]
    story.clock.advance(12 * HOUR)

    assert not shows(sign_in_again(alice, "alice", address), WORDS)


def test_some_forms_of_a_browser_are_kept_and_no_more_than_that(story: Story, signed_in: SignedIn) -> None:
    requests = [story.ask_for_prod(seconds=HOUR + number) for number in range(6)]
    bob = signed_in("bob")
    paths = [f"/requests/{one.request_id}/deny/" for one in requests]
    mark = typed_by(bob, paths[0])
    story.clock.advance(HOUR)
    for path in paths:
        bob.post(path, {"reason": WORDS, TYPED_BY: mark})
    bob.post(NEW, {"reason": "x" * 100_000, TYPED_BY: mark})

    assert sorted(bob.session["drafts"]) == sorted(paths[1:])


@pytest.mark.parametrize(("days", "is_kept"), [(6, True), (8, False)])
def test_a_page_s_signature_is_good_for_a_week(story: Story, signed_in: SignedIn, days: int, is_kept: bool) -> None:
    """Who has left the company can't fill the database from anywhere by a page of then."""
    mark = typed_by(signed_in("alice"), NEW)
    story.clock.advance(days * 24 * HOUR)
    stranger = Client()

    stranger.post(NEW, {**ASKED, TYPED_BY: mark})

    assert ("drafts" in stranger.session) is is_kept
