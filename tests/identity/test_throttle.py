"""Passwords of the demo can't be guessed at the speed of a machine."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import Settings

from accessportal.identity import throttle
from accessportal.identity.operations import ensure_demo_user
from tests.fixtures_story import Story
from tests.portal.test_journey import text_of

PASSWORD = "correct horse battery staple"


@pytest.fixture(autouse=True)
def _alice_has_a_password(story: Story) -> None:
    ensure_demo_user(email="alice@example.com", name="Alice Archer", password=PASSWORD)


def tries(password: str, *, email: str = "alice@example.com", sender: str = "192.0.2.1", browser: Client | None = None) -> int:
    answer = (browser or Client()).post("/sign-in/", {"username": email, "password": password}, REMOTE_ADDR=sender)
    return answer.status_code


def test_after_ten_wrong_ones_the_right_one_is_not_looked_at() -> None:
    assert [tries("wrong") for _ in range(10)] == [200] * 10

    refused = Client().post("/sign-in/", {"username": " ALICE@example.com", "password": PASSWORD}, REMOTE_ADDR="192.0.2.1")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "300")
    assert "Wait 5 minutes" in text_of(refused)
    assert "_auth_user_id" not in refused.client.session
    # Nobody shuts Alice out from elsewhere, nor the others beside her.
    assert tries(PASSWORD, sender="192.0.2.2") == 302
    assert tries("wrong", email="bob@example.com") == 200


def test_many_people_can_not_be_tried_from_one_place() -> None:
    found = [tries("wrong", email=f"person{number}@example.com") for number in range(throttle.MOST_FOR_ALL + 1)]

    assert found == [200] * throttle.MOST_FOR_ALL + [429]


def test_who_knows_the_password_is_never_held_up() -> None:
    assert [tries(PASSWORD) for _ in range(throttle.MOST_FOR_ALL + 5)] == [302] * (throttle.MOST_FOR_ALL + 5)
    assert [tries("wrong") for _ in range(9)] == [200] * 9
    assert tries(PASSWORD) == 302
    assert [tries("wrong") for _ in range(9)] == [200] * 9


def test_an_address_that_a_client_makes_up_is_not_another_place() -> None:
    form = {"username": "alice@example.com", "password": "x"}
    found = [Client().post("/sign-in/", form, HTTP_X_FORWARDED_FOR=f"10.0.0.{number}") for number in range(11)]

    assert [answer.status_code for answer in found] == [200] * 10 + [429]


@pytest.mark.parametrize(
    "written", ["2001:db8:1:2::{:x}", "::ffff:192.0.2.7 ", "[2001:db8:1:2::{:x}]:1{}", "192.0.2.7:1{}", "fe80::{:x}%eth{}"]
)
def test_the_addresses_of_one_sender_are_one_place(settings: Settings, written: str) -> None:
    """Whoever has one address of IPv6 has 64 bits of them; ports, zones and the two ways to write IPv4 are no other senders."""
    settings.TRUSTED_PROXIES = 1
    form = {"username": "alice@example.com", "password": "x"}
    senders = [written.format(number, number) for number in range(11)]
    found = [Client().post("/sign-in/", form, headers={"X-Forwarded-For": sender}).status_code for sender in senders]

    assert found == [200] * 10 + [429]
    for other in ("2001:db8:1:3::1", "::ffff:192.0.2.8", "192.0.2.8", "fe80:0:0:1::1"):
        assert Client().post("/sign-in/", form, headers={"X-Forwarded-For": other}).status_code == 200


def test_blanks_before_an_address_are_not_another_person() -> None:
    found = [tries("wrong", email=" " * (150 - number) + "alice@example.com") for number in range(11)]

    assert found == [200] * 10 + [429]
