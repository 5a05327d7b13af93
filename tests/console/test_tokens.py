"""API tokens in the admin pages: created by operators, shown once, looked at by auditors, revoked."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from accessportal.kernel.actors import Role, person
from accessportal.tokens import operations, queries
from accessportal.tokens.states import ApiToken, NewToken, Scope, TokenRefused, TokenState
from tests.fixtures_story import Story

SignIn = Callable[[str], Client]
NEW = "/admin/tokens/new/"
FORM = {
    "name": "Lab runner",
    "scope": "track",
    "rate_per_minute": "60",
    "days": "90",
    "submission_id": "5a0d5e9e-6b53-4a2b-9f0c-1d4f6f0f7a11",
}


def create(story: Story, name: str = "Lab runner", *, scope: Scope = Scope.TRACK) -> NewToken:
    return operations.create_token(name=name, scope=scope, actor=story.olga, now=story.clock.now())


def every_token() -> tuple[ApiToken, ...]:
    return queries.list_tokens().items


def test_the_answer_shows_the_token_and_nothing_else_ever_does(story: Story, as_person: SignIn) -> None:
    olga = as_person("olga")
    answer = olga.post(NEW, FORM)

    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    (text,) = set(re.findall(r"apt_[a-z0-9]{12}_[A-Za-z0-9_-]{43}", answer.content.decode()))
    token = operations.authenticate(text=text, now=story.clock.now())
    assert (token.name, token.scope, token.rate_per_minute, token.created_by) == ("Lab runner", Scope.TRACK, 60, "olga@example.com")
    assert token.expires_at is not None
    assert (token.expires_at - token.created_at).days == 90

    secret = text[17:]
    for page in ("", f"{token.token_id}/", f"{token.token_id}/history/", "?pattern=all"):
        shown = olga.get(f"/admin/tokens/{page}").content.decode()
        assert "Lab runner" in shown
        assert secret not in shown
    assert all(secret not in str(session.get_decoded()) for session in Session.objects.all())


def test_a_token_for_grants_shows_its_home(story: Story, as_person: SignIn) -> None:
    olga = as_person("olga")
    made = olga.post(NEW, FORM | {"scope": "authz:write", "home_scope": "tenant:acme:env:prod"}).content.decode()
    (token,) = every_token()

    assert (token.scope, token.home_scope) == (Scope.AUTHZ_WRITE, "tenant:acme:env:prod")
    assert "scope authz:write within tenant:acme:env:prod" in made
    for page in ("", f"{token.token_id}/"):
        assert "tenant:acme:env:prod" in olga.get(f"/admin/tokens/{page}").content.decode()


def test_loading_the_answer_again_makes_no_second_token(story: Story, as_person: SignIn) -> None:
    olga = as_person("olga")
    olga.post(NEW, FORM)
    again = olga.post(NEW, FORM)

    (token,) = every_token()
    assert again.status_code == 409
    assert token.token_id in again.content.decode()
    assert "revoke that token and create another" in again.content.decode()


def test_an_untouched_form_offers_sound_values(as_person: SignIn) -> None:
    form = as_person("olga").get(NEW).context["form"]
    assert (form["rate_per_minute"].value(), form["days"].value()) == (600, "90")
    assert form["scope"].value() is None


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"name": "a\tb"}, "name"),
        ({"scope": ""}, "scope"),
        ({"scope": "root"}, "scope"),
        ({"rate_per_minute": "0"}, "rate_per_minute"),
        ({"rate_per_minute": "100001"}, "rate_per_minute"),
        ({"rate_per_minute": "many"}, "rate_per_minute"),
        ({"days": "1000000"}, "days"),
        ({"scope": "authz:check"}, "home_scope"),
        ({"scope": "authz:write", "home_scope": "tenant:"}, "home_scope"),
        ({"home_scope": "tenant:acme"}, "home_scope"),
    ],
)
def test_a_mistake_is_told_beside_its_input(story: Story, as_person: SignIn, given: dict[str, str], field: str) -> None:
    answer = as_person("olga").post(NEW, FORM | given)

    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == [field]
    assert every_token() == ()


@pytest.mark.parametrize(("name", "sees", "may"), [("olga", 200, True), ("ana", 200, False), ("bob", 403, False), ("mallory", 403, False)])
def test_who_sees_and_who_may(story: Story, as_person: SignIn, name: str, sees: int, may: bool) -> None:
    made = create(story)
    browser = as_person(name)
    page = f"/admin/tokens/{made.token.token_id}/"

    assert [browser.get(path).status_code for path in ("/admin/tokens/", page, f"{page}history/")] == [sees] * 3
    assert (NEW in browser.get("/admin/tokens/").content.decode()) is may
    assert (f"{page}do/revoke/" in browser.get(page).content.decode()) is may
    assert browser.get(NEW).status_code == (200 if may else 403)
    assert browser.post(NEW, FORM).status_code == (200 if may else 403)
    assert browser.post(f"{page}do/revoke/", {"confirmed": "yes"}).status_code == (302 if may else 403)
    assert (queries.find_token(token_id=made.token.token_id).state(story.clock.now()) is TokenState.REVOKED) is may


def test_revoking_asks_first_and_is_for_good(story: Story, as_person: SignIn) -> None:
    made = create(story)
    olga = as_person("olga")
    revoke = f"/admin/tokens/{made.token.token_id}/do/revoke/"

    asked = olga.post(revoke)
    assert "its next request is refused" in asked.content.decode()
    assert operations.authenticate(text=made.text, now=story.clock.now())

    done = olga.post(revoke, {"confirmed": "yes", "reason": "The lab has closed"}, follow=True)
    shown = done.content.decode()
    assert "Lab runner was revoked" in shown
    assert "The lab has closed" in shown
    assert f"apt_{made.token.token_id}_…" in shown
    with pytest.raises(TokenRefused):
        operations.authenticate(text=made.text, now=story.clock.now())
    assert olga.post(revoke, {"confirmed": "yes"}).status_code == 409
    assert olga.post(revoke, {"confirmed": "yes", "reason": "x" * 2_001}).status_code == 409
    assert as_person("ana").post(revoke, {"confirmed": "yes"}).status_code == 403


def test_a_reason_that_is_too_long_comes_back(story: Story, as_person: SignIn) -> None:
    made = create(story)
    answer = as_person("olga").post(f"/admin/tokens/{made.token.token_id}/do/revoke/", {"confirmed": "yes", "reason": "x" * 2_001})

    assert answer.status_code == 400
    assert answer.context["form"].errors["reason"]


def test_lists_tell_the_live_from_the_revoked(story: Story, as_person: SignIn) -> None:
    kept, gone = create(story, "Kept"), create(story, "Gone", scope=Scope.ADMIN)
    operations.revoke_token(token_id=gone.token.token_id, actor=story.olga, now=story.clock.now())
    operations.authenticate(text=kept.text, now=story.clock.now())
    ana = as_person("ana")

    unrevoked, everything = ana.get("/admin/tokens/").content.decode(), ana.get("/admin/tokens/?pattern=all").content.decode()
    assert "Gone" not in unrevoked
    assert "by olga@example.com" in everything
    assert ana.get("/admin/tokens/?cursor=forged").status_code == 400


def test_a_page_says_that_a_tokens_maker_may_make_none_any_more(story: Story, as_person: SignIn) -> None:
    former = person("sam@example.com", roles=frozenset({Role.OPERATOR}))
    made = operations.create_token(name="Lab", scope=Scope.TRACK, actor=former, now=story.clock.now())
    ana = as_person("ana")
    page = ana.get(f"/admin/tokens/{made.token.token_id}/").content.decode()
    assert "It opens nothing now: sam@example.com, who made it, is no operator." in page
    assert made.token.token_id in ana.get("/admin/tokens/?pattern=maker&q=Sam@example.com").content.decode()


def test_a_page_says_how_the_token_stands(story: Story, as_person: SignIn) -> None:
    made = create(story)
    page = as_person("ana").get(f"/admin/tokens/{made.token.token_id}/").content.decode()

    assert "It opens nothing now" not in page
    assert "It is let in until somebody revokes it and as long as olga@example.com is an operator, with scope track." in page
    assert "never" in page
