"""Where an issuer tells the address and the name, under which names, and whether it says that the address is verified."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from pydantic import ValidationError
from pytest_django import Settings

from accessportal.identity.claims import Proven, Reading, completed, is_whole, prove
from accessportal.identity.tokens import Refused
from tests.fixtures_story import Story
from tests.identity.conftest import Traveller
from tests.identity.test_settings import WHOLE, conf_of
from tests.identity.test_signing_in import ALICE, refusals
from tests.oidc.local_issuer import LocalIssuer
from tests.portal.test_journey import text_of

STRICT = Reading("email", "email_verified", "name", trusts_emails=False)
TRUSTING = Reading("email", "email_verified", "name", trusts_emails=True)
ENTRA = Reading("upn", "xms_edov", "display_name", trusts_emails=False)
TOKEN = {"iss": "https://login.example.com", "sub": "1"}
VERIFIED = {"email": ALICE, "email_verified": True}


def read(claims: dict[str, Any], reading: Reading) -> str:
    """The address that is believed, or why none is."""
    try:
        return prove(claims, reading).email
    except Refused as refusal:
        return refusal.code


@pytest.fixture
def asks_userinfo(issuer: LocalIssuer, settings: Settings) -> LocalIssuer:
    """The portal asks for what the ID token leaves out."""
    settings.OIDC_USERINFO = True
    return issuer


@pytest.mark.parametrize(
    ("claims", "reading", "email"),
    [
        (VERIFIED, STRICT, ALICE),
        ({"email": ALICE}, STRICT, "email_unverified"),
        ({"email": ALICE}, TRUSTING, ALICE),
        ({"email": ALICE, "email_verified": False}, TRUSTING, "email_unverified"),
        ({"email": ALICE, "email_verified": None}, TRUSTING, "email_unverified"),
        ({"email": ALICE, "email_verified": "yes"}, TRUSTING, "email_unverified"),
        ({}, TRUSTING, "email_missing"),
        ({"upn": ALICE, "xms_edov": True}, ENTRA, ALICE),
        ({"upn": ALICE, **VERIFIED}, ENTRA, "email_unverified"),
        ({**VERIFIED, "xms_edov": True}, ENTRA, "email_missing"),
    ],
)
def test_an_address_needs_the_proof_that_is_set(claims: dict[str, Any], reading: Reading, email: str) -> None:
    assert read({**TOKEN, **claims}, reading) == email


@pytest.mark.parametrize(
    ("claims", "told", "email"),
    [
        ({}, VERIFIED, ALICE),
        ({"email": ALICE}, VERIFIED, ALICE),
        # The token has both: they count.
        ({"email": ALICE, "email_verified": False}, VERIFIED, "email_unverified"),
        (VERIFIED, {"email": "bob@example.com", "email_verified": True}, ALICE),
        # The proof of one address is none of another.
        ({"email": "bob@example.com"}, VERIFIED, ALICE),
        ({"email": "bob@example.com"}, {"email_verified": True}, "email_missing"),
        ({"email_verified": True}, {"email": ALICE}, "email_unverified"),
        ({}, {}, "email_missing"),
    ],
)
def test_address_and_proof_are_of_one_source(claims: dict[str, Any], told: dict[str, Any], email: str) -> None:
    assert read(completed({**TOKEN, **claims}, {"sub": "1", **told}, STRICT), STRICT) == email


def test_the_name_is_the_tokens_and_else_what_was_told() -> None:
    whole = {**TOKEN, **VERIFIED}
    told = {"sub": "1", "iss": "https://somebody.example", "given_name": "Alice", "family_name": "Park"}

    assert not is_whole(whole, STRICT)
    assert is_whole({**whole, "name": "A. Park"}, STRICT)
    assert prove(completed(whole, told, STRICT), STRICT) == Proven("https://login.example.com", "1", ALICE, "Alice Park")
    assert prove(completed({**whole, "name": "A. Park"}, {**told, "name": "Other"}, STRICT), STRICT).name == "A. Park"
    assert prove({**TOKEN, "upn": ALICE, "xms_edov": True, "display_name": "Alice P."}, ENTRA).name == "Alice P."


def test_what_the_token_leaves_out_is_asked_for_where_that_is_set(traveller: Traveller, asks_userinfo: LocalIssuer) -> None:
    asks_userinfo.only_in_userinfo += ["email", "email_verified", "name"]

    assert traveller.sign_in(ALICE).status_code == 302
    assert get_user_model().objects.get().username == ALICE
    assert asks_userinfo.seen[-1] == "/userinfo"


def test_nothing_is_asked_for_where_it_is_not_set_or_not_needed(traveller: Traveller, issuer: LocalIssuer, settings: Settings) -> None:
    issuer.only_in_userinfo += ["email"]
    refused = traveller.sign_in(ALICE)
    issuer.only_in_userinfo.clear()
    settings.OIDC_USERINFO = True

    assert "Reason email_missing" in text_of(refused)
    assert traveller.sign_in(ALICE).status_code == 302
    assert "/userinfo" not in issuer.seen


@pytest.mark.parametrize("subject", ["subject of bob@example.com", "", None, 7])
def test_what_is_told_of_somebody_else_lets_nobody_in(traveller: Traveller, asks_userinfo: LocalIssuer, subject: object) -> None:
    asks_userinfo.only_in_userinfo += ["email", "email_verified"]
    asks_userinfo.userinfo["sub"] = subject

    answer = traveller.sign_in(ALICE)

    assert answer.status_code == 403
    assert "about different people" in text_of(answer)
    assert refusals("unknown") == ["wrong_subject"]


def test_an_unverified_address_is_refused_there_too(traveller: Traveller, asks_userinfo: LocalIssuer) -> None:
    asks_userinfo.only_in_userinfo += ["email", "email_verified"]
    asks_userinfo.userinfo["email_verified"] = False

    assert "has not verified" in text_of(traveller.sign_in(ALICE))


def test_an_issuer_without_the_endpoint_is_the_operators_matter(traveller: Traveller, asks_userinfo: LocalIssuer) -> None:
    asks_userinfo.has_userinfo = False
    asks_userinfo.only_in_userinfo += ["email"]
    cache.clear()

    answer = traveller.sign_in(ALICE)

    assert answer.status_code == 503
    assert "Signing in does not work now" in text_of(answer)


def test_the_access_token_is_kept_nowhere(traveller: Traveller, asks_userinfo: LocalIssuer) -> None:
    asks_userinfo.only_in_userinfo += ["email", "email_verified"]
    traveller.sign_in(ALICE)

    (token,) = asks_userinfo._access_tokens
    assert token not in str(dict(traveller.client.session))


def test_an_issuer_that_never_says_verified_is_trusted_where_that_is_set(
    traveller: Traveller, issuer: LocalIssuer, settings: Settings, story: Story
) -> None:
    issuer.only_in_userinfo += ["email_verified"]
    assert traveller.sign_in(ALICE).status_code == 403

    settings.OIDC_TRUSTS_EMAILS_OF = "https://another.example"
    assert traveller.sign_in(ALICE).status_code == 403

    settings.OIDC_TRUSTS_EMAILS_OF = issuer.url
    assert traveller.sign_in(ALICE).status_code == 302


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"PORTAL_OIDC_TRUSTS_EMAILS_OF": "https://another.example"}, "must be the very PORTAL_OIDC_ISSUER"),
        ({"PORTAL_OIDC_EMAIL_CLAIM": "upn"}, "email_verified vouches for the claim email alone"),
        ({"PORTAL_OIDC_EMAIL_CLAIM": ""}, "at least 1 character"),
    ],
)
def test_addresses_without_proof_are_told_at_the_start(monkeypatch: pytest.MonkeyPatch, given: dict[str, str], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        conf_of(monkeypatch, WHOLE | given)


@pytest.mark.parametrize(
    "given",
    [
        {"PORTAL_OIDC_TRUSTS_EMAILS_OF": WHOLE["PORTAL_OIDC_ISSUER"], "PORTAL_OIDC_EMAIL_CLAIM": "upn"},
        {"PORTAL_OIDC_VERIFIED_CLAIM": "xms_edov", "PORTAL_OIDC_EMAIL_CLAIM": "upn"},
    ],
)
def test_with_proof_or_trust_another_claim_will_do(monkeypatch: pytest.MonkeyPatch, given: dict[str, str]) -> None:
    assert conf_of(monkeypatch, WHOLE | given).oidc_email_claim == "upn"
