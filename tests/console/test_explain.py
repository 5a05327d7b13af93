"""Why somebody may or may not have something, and who could approve it."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client

SignIn = Callable[[str], Client]


def ask(client: Client, *, subject: str, account: str, permission_set: str, status: int = 200, **rest: str) -> str:
    response = client.get("/admin/rules/explain/", {"subject": subject, "account": account, "permission_set": permission_set, **rest})
    assert response.status_code == status, response.content.decode()
    return response.content.decode()


def test_the_answers_of_the_rules(as_person: SignIn) -> None:
    bob = as_person("bob")

    at_once = ask(bob, subject="Alice@example.com", account="payments-dev", permission_set="PowerUserAccess")
    waits = ask(
        bob, subject="alice@example.com", account="payments-prod", permission_set="ReadOnlyAccess", duration="2h", ticket_id="CHG-1"
    )
    denied = ask(bob, subject="alice@example.com", account="security-audit", permission_set="ReadOnlyAccess")
    stranger = ask(bob, subject="mallory@example.com", account="payments-dev", permission_set="PowerUserAccess")
    group = ask(bob, subject="/engineering/payments", account="payments-dev", permission_set="PowerUserAccess")

    assert "Yes, at once" in at_once
    assert "dev-power" in at_once
    assert "Yes, with approval" in waits
    assert "Bob Ito" in waits
    assert "Sam Osei" in waits
    assert "security-accounts" in denied
    assert "Why no rule admits it" in stranger
    assert "Why the other rules did not decide" in denied
    assert "Yes, at once" in group


def test_mistakes_are_named_beside_their_field(as_person: SignIn) -> None:
    olga = as_person("olga")

    nobody = ask(olga, subject="nobody@example.com", account="payments-dev", permission_set="PowerUserAccess", status=400)
    nowhere = ask(olga, subject="alice@example.com", account="payments", permission_set="PowerUserAccess", status=400)
    forever = ask(olga, subject="alice@example.com", account="payments-dev", permission_set="PowerUserAccess", duration="ever", status=400)
    nothing = ask(olga, subject="", account="", permission_set="", status=400)

    assert "does not know nobody@example.com" in nobody
    assert "Did you mean payments-" in nowhere
    assert "is not a duration" in forever
    assert nothing.count(" is needed.") == 3


def test_too_long_is_explained_with_the_maximum(as_person: SignIn) -> None:
    answer = ask(as_person("ana"), subject="alice@example.com", account="payments-dev", permission_set="PowerUserAccess", duration="9h")

    assert "4 h" in answer
