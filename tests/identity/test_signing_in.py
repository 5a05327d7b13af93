"""The way to the issuer and back, with nothing wrong at the issuer: who comes in, as whom, and what is told of it."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.test import Client
from pytest_django import Settings

from accessportal.audit import queries as audit
from accessportal.directory import operations as directory
from accessportal.directory import queries as directory_queries
from accessportal.directory.states import State
from accessportal.identity.queries import actor_named
from accessportal.identity.session_store import stored_key
from accessportal.kernel.actors import Role, system
from accessportal.kernel.errors import Conflict
from tests.fixtures_story import Story
from tests.identity.conftest import Traveller
from tests.oidc.local_issuer import CLIENT_ID, LocalIssuer
from tests.portal.test_journey import text_of

ALICE = "alice@example.com"
TEST = system("test")


def actions_of(entity: str) -> list[str]:
    return [event.action for event in audit.history(entity, newest_first=False).items]


def refusals(key: str) -> list[str]:
    return [event.data["reason"] for event in audit.history(f"sign_in#{key}", newest_first=False).items]


def test_alice_comes_in_and_reaches_the_page_that_she_asked_for(traveller: Traveller) -> None:
    answer = traveller.sign_in(ALICE, next_page="/requests/new/")

    assert answer.status_code == 302
    assert answer.headers["Location"] == "/requests/new/"
    assert ALICE in text_of(traveller.client.get("/"))
    assert actions_of(f"person#{ALICE}")[-1] == "user.signed_in"
    assert audit.find_breaks(f"person#{ALICE}") == []


def test_what_the_issuer_is_asked_binds_the_answer_to_this_browser(traveller: Traveller, issuer: LocalIssuer) -> None:
    traveller.start()
    first, second = traveller.asked, Traveller()
    second.start()

    assert first["response_type"] == "code"
    assert first["client_id"] == CLIENT_ID
    assert set(first["scope"].split()) == {"openid", "email", "profile"}
    assert first["redirect_uri"] == "http://testserver/sign-in/callback/"
    assert first["code_challenge_method"] == "S256"
    assert len(first["state"]) >= 43
    for name in ("state", "nonce", "code_challenge"):
        assert first[name] != second.asked[name]
    (kept,) = traveller.client.session["socialaccount_states"].values()
    verifier = kept[0]["pkce_code_verifier"]
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    assert first["code_challenge"] == digest
    assert verifier not in str(first)


def test_nothing_in_the_address_changes_what_the_issuer_is_asked(traveller: Traveller) -> None:
    more = "?scope=admin&process=connect&action=reauthenticate&auth_params=prompt%3Dnone&next=https://evil.example/"
    answer = traveller.client.get(f"/sign-in/start/{more}")
    asked = parse_qs(urlsplit(answer.headers["Location"]).query)

    assert set(asked["scope"][0].split()) == {"openid", "email", "profile"}
    assert "prompt" not in asked
    traveller.log_in(answer.headers["Location"], ALICE)
    assert traveller.come_back().headers["Location"] == "/"


@pytest.mark.parametrize("methods", [["client_secret_basic"], ["client_secret_post"]])
def test_the_portal_proves_who_it_is_as_the_issuer_likes(traveller: Traveller, issuer: LocalIssuer, methods: list[str]) -> None:
    issuer.auth_methods = methods

    assert traveller.sign_in(ALICE).status_code == 302


@pytest.mark.parametrize("verified", [True, "true"])
def test_spelling_and_cognitos_word_for_verified_make_no_difference(
    traveller: Traveller, issuer: LocalIssuer, verified: bool | str
) -> None:
    issuer.know("Alice@Example.COM", "Alice Park", email_verified=verified)

    assert traveller.sign_in("Alice@Example.COM").status_code == 302
    assert get_user_model().objects.get().username == ALICE


def test_roles_are_the_directorys_and_no_right_is_kept_on_the_user(traveller: Traveller, issuer: LocalIssuer, story: Story) -> None:
    issuer.know("olga@example.com")
    traveller.sign_in("olga@example.com")
    user = get_user_model().objects.get()

    assert not user.is_superuser
    assert not user.has_usable_password()
    assert actor_named(email=user.username, now=story.clock.now()).roles == {Role.OPERATOR}


def test_nothing_of_the_tokens_is_kept(traveller: Traveller) -> None:
    from allauth.account.models import EmailAddress
    from allauth.socialaccount.models import SocialAccount, SocialToken

    traveller.sign_in(ALICE)

    assert [model.objects.count() for model in (EmailAddress, SocialAccount, SocialToken)] == [0, 0, 0]
    assert "eyJ" not in str(dict(traveller.client.session))


def test_an_unknown_person_is_told_whom_to_ask(traveller: Traveller, issuer: LocalIssuer, settings: Settings) -> None:
    settings.HELP_CONTACT = "the IT desk"
    issuer.know("nina@example.com", "Nina Roth")

    answer = traveller.sign_in("nina@example.com")

    assert answer.status_code == 403
    assert "nina@example.com is not in the directory yet. Ask the IT desk to add you." in text_of(answer)
    assert directory_queries.find_person(email="nina@example.com") is None
    assert not get_user_model().objects.exists()
    assert traveller.client.get("/").status_code == 302
    assert refusals("unknown") == ["person_unknown"]


def test_a_first_sign_in_creates_the_person_where_that_is_allowed(traveller: Traveller, issuer: LocalIssuer, settings: Settings) -> None:
    settings.OIDC_CREATE_PEOPLE = True
    issuer.know("Nina@Example.com", "Nina Roth")

    assert traveller.sign_in("Nina@Example.com").status_code == 302

    person = directory_queries.find_person(email="nina@example.com")
    assert person is not None
    assert (person.name, person.is_enabled) == ("Nina Roth", True)
    created, signed_in = audit.history(person.entity, newest_first=False).items
    assert (created.action, created.actor) == ("user.created", "system:sign-in")
    assert (signed_in.action, signed_in.actor) == ("user.signed_in", "nina@example.com")
    assert traveller.client.get("/").status_code == 200


def test_a_name_that_the_directory_can_not_keep_is_a_refusal(traveller: Traveller, issuer: LocalIssuer, settings: Settings) -> None:
    settings.OIDC_CREATE_PEOPLE = True
    issuer.know("nina@example.com", "N" * 5000)

    answer = traveller.sign_in("nina@example.com")

    assert answer.status_code == 403
    assert directory_queries.find_person(email="nina@example.com") is None


def test_an_address_that_can_not_be_made_is_not_taken_for_one_that_is_there(
    traveller: Traveller, issuer: LocalIssuer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.OIDC_CREATE_PEOPLE = True
    issuer.know("nina@example.com", "Nina Roth")

    def left_behind(**_: object) -> None:
        raise Conflict("nina@example.com was deleted by another program.", code="memberships_left_behind")

    monkeypatch.setattr(directory, "create_person", left_behind)

    answer = traveller.sign_in("nina@example.com")

    assert answer.status_code == 409
    assert "was deleted by another program" in text_of(answer)


def test_a_disabled_person_is_refused_and_somebody_disabled_later_is_signed_out(traveller: Traveller, story: Story) -> None:
    traveller.sign_in(ALICE)
    directory.set_person_state(email=ALICE, state=State.DISABLED, actor=TEST, now=story.clock.now())

    assert "disabled in the directory" in text_of(traveller.client.get("/"))
    answer = traveller.sign_in(ALICE)

    assert answer.status_code == 403
    assert "disabled in the directory" in text_of(answer)
    assert refusals(ALICE) == ["person_disabled"]
    assert traveller.client.get("/").status_code == 302


def test_a_user_who_is_switched_off_in_the_database_stays_out(traveller: Traveller) -> None:
    traveller.sign_in(ALICE)
    get_user_model().objects.update(is_active=False)

    answer = Traveller().sign_in(ALICE)

    assert answer.status_code == 403
    assert "example.com is switched off" in text_of(answer)
    assert traveller.client.get("/").status_code == 302


def test_an_address_that_the_issuer_gave_to_somebody_else_brings_them_nothing(
    traveller: Traveller, issuer: LocalIssuer, story: Story
) -> None:
    traveller.sign_in(ALICE)
    issuer.know(ALICE, "Another Alice", subject="somebody else")
    other = Traveller()

    answer = other.sign_in(ALICE)

    assert answer.status_code == 403
    assert "another account of your sign-in service" in text_of(answer)
    assert other.client.get("/").status_code == 302
    assert refusals(ALICE) == ["identity_differs"]
    # The first one is still who she was.
    issuer.know(ALICE, "Alice Park")
    assert Traveller().sign_in(ALICE).status_code == 302

    directory.forget_identity(email=ALICE, actor=TEST, now=story.clock.now())
    issuer.know(ALICE, "Another Alice", subject="somebody else")
    assert other.sign_in(ALICE).status_code == 302


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_an_address_that_goes_to_somebody_else_signs_the_former_one_out(traveller: Traveller, story: Story, is_made_anew: bool) -> None:
    traveller.sign_in(ALICE)
    if is_made_anew:
        directory.delete_person(email=ALICE, actor=TEST, now=story.clock.now())
    directory.forget_identity(email=ALICE, actor=TEST, now=story.clock.now())
    if is_made_anew:
        directory.create_person(email=ALICE, name="Another Alice", actor=TEST, now=story.clock.now())

    answer = traveller.client.get("/")

    assert answer.status_code == 403
    assert "has changed since you did" in text_of(answer)
    assert traveller.client.get("/").status_code == 302
    (told,) = audit.history(f"person#{ALICE}", limit=1).items
    assert (told.action, told.actor, told.data["reason"]) == ("user.signed_out", "system:sign-in", "identity_differs")


def test_the_figures_are_not_for_the_former_owner_of_an_address(traveller: Traveller, story: Story, issuer: LocalIssuer) -> None:
    """The figures look at who asks by themselves: such a page is not closed to people who are not signed in."""
    issuer.know("olga@example.com", "Olga")
    traveller.sign_in("olga@example.com")
    assert traveller.client.get("/metrics").status_code == 200
    directory.forget_identity(email="olga@example.com", actor=TEST, now=story.clock.now())

    assert traveller.client.get("/metrics").status_code == 403
    assert traveller.client.get("/healthz").status_code == 200
    assert traveller.client.get("/").status_code == 403


def test_the_identity_outlives_djangos_own_database(traveller: Traveller, issuer: LocalIssuer) -> None:
    traveller.sign_in(ALICE)
    get_user_model().objects.all().delete()
    issuer.know(ALICE, subject="somebody else")

    assert Traveller().sign_in(ALICE).status_code == 403


def test_the_same_subject_at_another_issuer_is_somebody_else(traveller: Traveller, issuer: LocalIssuer, settings: Settings) -> None:
    traveller.sign_in(ALICE)
    issuer.url = settings.OIDC_ISSUER = issuer.url.replace("127.0.0.1", "localhost")
    try:
        answer = Traveller().sign_in(ALICE)
    finally:
        issuer.url = issuer.url.replace("localhost", "127.0.0.1")

    assert answer.status_code == 403
    assert "another account of your sign-in service" in text_of(answer)


def test_somebody_made_anew_comes_in_with_the_account_of_the_former_one_alone(
    traveller: Traveller, issuer: LocalIssuer, story: Story
) -> None:
    traveller.sign_in(ALICE)
    directory.delete_person(email=ALICE, actor=TEST, now=story.clock.now())
    directory.create_person(email=ALICE, name="Alice Park", actor=TEST, now=story.clock.now())
    assert Traveller().sign_in(ALICE).status_code == 302

    issuer.know(ALICE, "Another Alice", subject="somebody else")
    assert "another account of your sign-in service" in text_of(Traveller().sign_in(ALICE))


@pytest.mark.parametrize("address", ["bob@example.com", "alice.smith@example.com"])
def test_a_new_address_of_the_same_subject_is_told_who_it_is_here(
    traveller: Traveller, issuer: LocalIssuer, settings: Settings, story: Story, address: str
) -> None:
    settings.OIDC_CREATE_PEOPLE = True
    traveller.sign_in(ALICE)
    issuer.know(address, "Alice Smith", subject=f"subject of {ALICE}")

    other = Traveller()
    answer = other.sign_in(address)

    assert answer.status_code == 403
    assert f"known here as {ALICE}" in text_of(answer)
    assert other.client.get("/").status_code == 302
    assert refusals(address if address.startswith("bob") else "unknown") == ["account_taken"]
    # Disabled is not gone: nobody comes in again by another address that nobody gave them.
    directory.set_person_state(email=ALICE, state=State.DISABLED, actor=TEST, now=story.clock.now())
    assert other.sign_in(address).status_code == (302 if address.startswith("bob") else 403)


def test_signing_in_gives_the_session_a_new_key(traveller: Traveller) -> None:
    traveller.start()
    before = traveller.client.cookies["sessionid"].value
    traveller.sign_in(ALICE)
    after = traveller.client.cookies["sessionid"].value

    assert after != before
    planted = Client()
    planted.cookies["sessionid"] = before
    assert planted.get("/").status_code == 302


def test_sessions_of_people_who_never_came_back_do_not_pile_up(traveller: Traveller, story: Story) -> None:
    for _ in range(3):
        Traveller().start()
    story.clock.advance(601)
    traveller.sign_in(ALICE)

    (session,) = Session.objects.all()
    assert session.session_key == stored_key(traveller.client.cookies["sessionid"].value)
    assert (session.expire_date - story.clock.now()).total_seconds() == settings.SESSION_COOKIE_AGE


def test_somebody_who_is_signed_in_is_not_sent_to_the_issuer(traveller: Traveller) -> None:
    traveller.sign_in(ALICE)

    assert traveller.client.get("/sign-in/start/?next=/requests/new/").headers["Location"] == "/requests/new/"
    assert traveller.client.get("/sign-in/").headers["Location"] == "/"


def test_another_site_can_not_begin_a_sign_in(traveller: Traveller) -> None:
    answer = traveller.client.get("/sign-in/start/", headers={"Sec-Fetch-Site": "cross-site"})

    assert answer.headers["Location"] == "/sign-in/"
    assert "sessionid" not in traveller.client.cookies


def test_signing_out_ends_the_session_and_offers_the_issuers_page(traveller: Traveller, issuer: LocalIssuer) -> None:
    traveller.sign_in(ALICE)
    key = traveller.client.cookies["sessionid"].value

    answer = traveller.client.post("/sign-out/", follow=True)

    assert answer.redirect_chain == [("/signed-out/?because=asked", 302)]
    assert f"{issuer.url}/logout?client_id=access-portal&amp;post_logout_redirect_uri=" in answer.content.decode()
    assert actions_of(f"person#{ALICE}")[-1] == "user.signed_out"
    assert not traveller.client.session.items()
    planted = Client()
    planted.cookies["sessionid"] = key
    assert planted.get("/").status_code == 302


def test_the_issuers_sign_out_can_be_set_or_be_missing(traveller: Traveller, issuer: LocalIssuer, settings: Settings) -> None:
    issuer.has_end_session = False
    assert "Sign out of" not in traveller.client.get("/signed-out/?because=asked").content.decode()

    settings.OIDC_SIGN_OUT_URL = "https://login.example.com/logout?client_id=abc&logout_uri=x"
    assert 'href="https://login.example.com/logout?client_id=abc&amp;logout_uri=x"' in (
        traveller.client.get("/signed-out/?because=asked").content.decode()
    )


def test_the_sign_in_page_has_the_ways_in_that_there_are(traveller: Traveller, settings: Settings) -> None:
    alone = traveller.client.get("/sign-in/?next=/requests/new/").content.decode()
    assert "Sign in with Example Inc" in alone
    assert 'href="/sign-in/start/?next=/requests/new/"' in alone
    assert "Password" not in alone
    assert traveller.client.post("/sign-in/", {"username": ALICE, "password": "x"}).status_code == 403

    settings.DEMO = True
    both = traveller.client.get("/sign-in/").content.decode()
    assert "Sign in with Example Inc" in both
    assert "Password" in both


@pytest.mark.parametrize(
    "path", ["/accounts/login/", "/accounts/signup/", "/accounts/social/connections/", "/accounts/email/", "/sign-in/signup/"]
)
def test_no_page_of_allauths_own_can_be_reached(traveller: Traveller, path: str) -> None:
    assert traveller.client.get(path).status_code == 404
