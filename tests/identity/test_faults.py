"""An issuer, or somebody in its place, that is wrong in one way: nobody comes in, the page says why, and the audit log knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.cache import cache
from django.test import Client
from pytest_django import Settings

from accessportal.audit import queries as audit
from accessportal.identity import issuer as issuer_calls
from tests.fixtures_story import Story
from tests.identity.conftest import Traveller
from tests.identity.test_signing_in import ALICE, refusals
from tests.oidc.local_issuer import Fault, LocalIssuer
from tests.portal.test_journey import text_of

TOKEN_FAULTS = [
    (Fault.WRONG_NONCE, "wrong_nonce", "it belongs to another sign-in"),
    (Fault.NO_NONCE, "claim_missing", "something that must be in it is missing"),
    (Fault.WRONG_AUDIENCE, "wrong_audience", "it was made for another program"),
    (Fault.SHARED_AUDIENCE, "wrong_audience", "it was made for another program"),
    (Fault.OTHER_PARTY, "wrong_audience", "it was made for another program"),
    (Fault.WRONG_ISSUER, "wrong_issuer", "it names another issuer"),
    (Fault.EXPIRED, "token_expired", "it is too old"),
    (Fault.TOO_EARLY, "token_too_early", "it is from the future"),
    (Fault.NO_SUBJECT, "claim_missing", "something that must be in it is missing"),
    (Fault.UNVERIFIED, "email_unverified", "has not verified your e-mail address"),
    (Fault.NO_EMAIL, "email_missing", "did not tell your e-mail address"),
    (Fault.ALG_NONE, "wrong_algorithm", "signed in a way that proves nothing"),
    (Fault.HS256, "wrong_algorithm", "signed in a way that proves nothing"),
    (Fault.UNKNOWN_KEY, "unknown_key", "a key that the issuer does not publish"),
    (Fault.FORGED, "bad_signature", "its signature is not right"),
    (Fault.GARBAGE, "bad_signature", "its signature is not right"),
    (Fault.NO_TOKEN, "id_token_missing", "did not say who you are"),
]
BROKEN = [
    (Fault.DOWN, "issuer_unavailable"),
    (Fault.SLOW, "issuer_unavailable"),
    (Fault.NO_JSON, "issuer_unusable"),
    (Fault.OTHER_NAME, "issuer_unusable"),
    (Fault.PLAIN_ENDPOINT, "issuer_unusable"),
    (Fault.WEAK_ALGORITHMS, "issuer_unusable"),
]


def is_signed_in(client: Client) -> bool:
    return client.get("/").status_code == 200


@contextmanager
def impatience_with(fault: Fault) -> Iterator[None]:
    """An issuer that is slow is given up at once; any other has the time that it needs on a busy machine."""
    with pytest.MonkeyPatch.context() as changed:
        if fault is Fault.SLOW:
            changed.setattr(issuer_calls, "_CONNECT_AND_READ_SECONDS", (10, 0.3))
        yield


@pytest.mark.parametrize(("fault", "code", "words"), TOKEN_FAULTS, ids=[fault.name for fault, _, _ in TOKEN_FAULTS])
def test_a_token_that_is_not_right_lets_nobody_in(traveller: Traveller, issuer: LocalIssuer, fault: Fault, code: str, words: str) -> None:
    issuer.fault = fault

    answer = traveller.sign_in(ALICE)

    assert answer.status_code == 403
    assert words in text_of(answer)
    assert f"Reason {code}" in text_of(answer)
    assert not is_signed_in(traveller.client)
    whose = ALICE if fault is Fault.UNVERIFIED else "unknown"
    assert refusals(whose) == [code]
    assert audit.find_breaks(f"sign_in#{whose}") == []
    # Nothing is remembered of it: the next try counts.
    issuer.fault = Fault.NONE
    assert traveller.sign_in(ALICE).status_code == 302


@pytest.mark.parametrize("verified", ["false", "True ", "yes", 1, None, ["true"]])
def test_only_true_means_verified(traveller: Traveller, issuer: LocalIssuer, verified: object) -> None:
    issuer.claims["email_verified"] = verified

    assert "has not verified" in text_of(traveller.sign_in(ALICE))


@pytest.mark.parametrize("email", ["", "alice", 5, None, ["alice@example.com"], {"email": ALICE}])
def test_an_address_that_is_none_is_refused(traveller: Traveller, issuer: LocalIssuer, email: object) -> None:
    issuer.claims["email"] = email

    assert traveller.sign_in(ALICE).status_code == 403


@pytest.mark.parametrize("subject", ["", "s" * 256, 7])
def test_a_subject_that_is_none_is_refused(traveller: Traveller, issuer: LocalIssuer, subject: object) -> None:
    issuer.claims["sub"] = subject

    assert traveller.sign_in(ALICE).status_code == 403


def test_a_token_for_several_programs_is_good_when_it_was_made_for_us(traveller: Traveller, issuer: LocalIssuer) -> None:
    issuer.fault = Fault.SHARED_AUDIENCE
    issuer.claims["azp"] = "access-portal"

    assert traveller.sign_in(ALICE).status_code == 302


@pytest.mark.parametrize("seconds", [-50, 50])
def test_clocks_may_differ_a_little(traveller: Traveller, issuer: LocalIssuer, story: Story, seconds: int) -> None:
    now = int(story.clock.now().timestamp())
    issuer.claims |= {"iat": now + seconds - 10, "exp": now + min(seconds, 0) + 1}

    assert traveller.sign_in(ALICE).status_code == 302


def test_the_way_back_works_once(traveller: Traveller) -> None:
    traveller.sign_in(ALICE)

    again = traveller.come_back()

    assert again.status_code == 403
    assert "was used already" in text_of(again)
    assert f"You are still signed in as {ALICE} from before." in text_of(again)
    assert is_signed_in(traveller.client), "who came in the first time stays in"


def test_the_way_back_is_for_the_browser_that_began(traveller: Traveller) -> None:
    answer = traveller.start()
    traveller.log_in(answer.headers["Location"], "mallory@example.com")
    victim = Traveller(back=traveller.back)

    answer = victim.come_back()

    assert answer.status_code == 403
    assert "begun in another browser" in text_of(answer)
    assert not is_signed_in(victim.client)


def test_a_used_code_under_a_fresh_state_is_refused_by_the_issuer(traveller: Traveller, issuer: LocalIssuer) -> None:
    traveller.sign_in(ALICE)
    code = traveller.back.partition("code=")[2].partition("&")[0]
    other = Traveller()
    other.start()
    other.back = f"http://testserver/sign-in/callback/?state={other.asked['state']}&code={code}"

    answer = other.come_back()

    assert answer.status_code == 403
    assert "used already" in text_of(answer)
    assert not is_signed_in(other.client)
    assert refusals("unknown") == ["code_refused"]


def test_a_code_of_another_browsers_sign_in_is_refused(traveller: Traveller) -> None:
    """Mallory's own code, brought into Alice's sign-in: the proof (PKCE) is not the one it was made for."""
    mallory = Traveller()
    mallory.log_in(mallory.start().headers["Location"], "mallory@example.com")
    code = mallory.back.partition("code=")[2].partition("&")[0]
    traveller.start()
    traveller.back = f"http://testserver/sign-in/callback/?state={traveller.asked['state']}&code={code}"

    assert traveller.come_back().status_code == 403
    assert not is_signed_in(traveller.client)


def test_a_state_does_not_wait_for_ever(traveller: Traveller, story: Story) -> None:
    traveller.log_in(traveller.start().headers["Location"], ALICE)
    story.clock.advance(601)

    assert "too old" in text_of(traveller.come_back())


def test_nobody_signs_in_by_leaving_the_issuers_page(traveller: Traveller) -> None:
    answer = traveller.sign_in("nobody@example.com")

    assert answer.status_code == 403
    assert "You did not finish signing in" in text_of(answer)


@pytest.mark.parametrize("error", ["server_error", "<script>alert(1)</script>", "x" * 5000, ""])
def test_an_error_from_the_issuer_is_told_without_its_words(traveller: Traveller, error: str) -> None:
    traveller.start()
    answer = traveller.client.get("/sign-in/callback/", {"state": traveller.asked["state"], "error": error, "error_description": "<b>howl"})

    assert answer.status_code == 403
    assert "<script>alert" not in answer.content.decode()
    assert "howl" not in answer.content.decode()


@pytest.mark.parametrize("query", ["", "?state=made-up&code=x", "?code=x", "?state=", "?state=\0", "?error=access_denied", "?state[]=1"])
def test_what_comes_without_a_state_is_written_nowhere(traveller: Traveller, query: str) -> None:
    answer = traveller.client.get(f"/sign-in/callback/{query}")

    assert answer.status_code == 403
    assert "was used already, is too old, or was begun in another browser" in text_of(answer)
    assert refusals("unknown") == []


def test_a_stranger_can_not_fill_the_audit_log(traveller: Traveller, story: Story) -> None:
    for _ in range(5):
        traveller.start()
        traveller.client.get("/sign-in/callback/", {"state": traveller.asked["state"], "code": "made up"})
    assert refusals("unknown") == ["code_refused"]

    story.clock.advance(61)
    traveller.start()
    traveller.client.get("/sign-in/callback/", {"state": traveller.asked["state"], "code": "made up"})
    assert refusals("unknown") == ["code_refused"] * 2
    assert audit.find_breaks("sign_in#unknown") == []


def test_nor_by_changing_the_reason_each_time(traveller: Traveller, story: Story) -> None:
    for told in ({"code": "made up"}, {"error": "access_denied"}, {"error": "server_error"}) * 4:
        traveller.start()
        traveller.client.get("/sign-in/callback/", {"state": traveller.asked["state"], **told})
    assert refusals("unknown") == ["code_refused", "cancelled", "issuer_refused"]

    story.clock.advance(61)
    traveller.start()
    traveller.client.get("/sign-in/callback/", {"state": traveller.asked["state"], "error": "access_denied"})
    assert refusals("unknown")[3:] == ["cancelled"]
    assert audit.find_breaks("sign_in#unknown") == []


@pytest.mark.parametrize(("fault", "code"), BROKEN, ids=[fault.name for fault, _ in BROKEN])
def test_an_issuer_that_fails_is_a_503_before_anybody_leaves(traveller: Traveller, issuer: LocalIssuer, fault: Fault, code: str) -> None:
    issuer.fault = fault

    with impatience_with(fault):
        answer = traveller.start()

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "10"
    assert "Signing in does not work now" in text_of(answer)
    assert "somebody.example" not in answer.content.decode()  # type: ignore[attr-defined]
    issuer.fault = Fault.NONE
    issuer.released.set()
    cache.clear()
    assert traveller.sign_in(ALICE).status_code == 302


@pytest.mark.parametrize("fault", [Fault.DOWN, Fault.SLOW, Fault.NO_JSON, Fault.REDIRECTS], ids=lambda fault: fault.name)
def test_an_issuer_that_fails_on_the_way_back_is_a_503_too(traveller: Traveller, issuer: LocalIssuer, fault: Fault) -> None:
    traveller.log_in(traveller.start().headers["Location"], ALICE)
    issuer.fault = fault

    with impatience_with(fault):
        answer = traveller.come_back()
    assert answer.status_code == 503
    assert not is_signed_in(traveller.client)
    assert "/elsewhere" not in issuer.seen
    issuer.released.set()


def test_a_dead_issuer_is_not_asked_again_by_everybody_at_once(traveller: Traveller, issuer: LocalIssuer) -> None:
    issuer.fault = Fault.DOWN
    for _ in range(3):
        assert Traveller().start().status_code == 503
    assert len(issuer.seen) == 1

    issuer.fault = Fault.NONE
    cache.clear()
    for _ in range(3):
        assert Traveller().start().status_code == 302
    assert len(issuer.seen) == 2


def test_whoever_is_signed_in_stays_so_while_the_issuer_is_down(traveller: Traveller, issuer: LocalIssuer) -> None:
    traveller.sign_in(ALICE)
    issuer.fault = Fault.DOWN
    cache.clear()

    assert is_signed_in(traveller.client)
    assert traveller.client.post("/sign-out/", follow=True).status_code == 200


def test_our_secret_being_wrong_is_the_operators_matter(traveller: Traveller, settings: Settings) -> None:
    settings.OIDC_CLIENT_SECRET = "outdated"

    answer = traveller.sign_in(ALICE)

    assert answer.status_code == 503
    assert "outdated" not in answer.content.decode()


@pytest.mark.parametrize("path", ["/sign-in/start/", "/sign-in/callback/"])
def test_without_an_issuer_there_is_no_way_to_it(story: Story, path: str) -> None:
    assert Client().get(path).status_code == 404


@pytest.mark.parametrize("path", ["/sign-in/start/", "/sign-in/callback/"])
def test_nothing_is_posted_there(traveller: Traveller, path: str) -> None:
    assert traveller.client.post(path).status_code == 405
    assert traveller.client.head(path).status_code == 405
