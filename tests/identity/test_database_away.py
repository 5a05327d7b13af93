"""Django's database takes no writes, as a PostgreSQL does that others are fed from, or does not answer: what people are told is true."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import InterfaceError, InternalError, OperationalError, connection
from django.test import Client, RequestFactory
from django_q.models import OrmQ

from accessportal.access_requests import operations
from accessportal.access_requests.states import Status, Work
from accessportal.api.errors import to_response
from accessportal.audit import queries as audit
from accessportal.directory import operations as directory
from accessportal.directory.states import Changed, Mirrored
from accessportal.identity.drafts import KEEP, TYPED_BY, sign
from accessportal.identity.session_store import SessionStore
from accessportal.jobs.queue import enqueue
from accessportal.kernel.ports import set_after_commit
from tests.console.conftest import as_person
from tests.database import not_answering, taking_no_writes
from tests.fixtures_story import Story
from tests.identity.conftest import Traveller
from tests.portal.conftest import SignedIn
from tests.portal.test_journey import only, send, text_of

__all__ = ["as_person"]

# A refused statement would end a transaction around the whole story.
pytestmark = [pytest.mark.django_db(transaction=True)]

NewClient = Callable[[str], Client]


def told(client: Client) -> Client:
    """As in service, where what no view raised becomes a page too."""
    client.raise_request_exception = False
    return client


def test_what_was_asked_for_is_told_as_asked_though_the_session_can_not_be_kept(story: Story, signed_in: SignedIn) -> None:
    alice = told(signed_in("alice"))
    story.clock.advance(60)

    with taking_no_writes():
        sent = send(alice)
        page = alice.get(sent.headers["Location"])

    assert (sent.status_code, sent.headers["Location"]) == (302, f"/requests/{only(story).request_id}/")
    assert page.status_code == 200
    assert "Being granted" in text_of(page)
    assert alice.get("/").status_code == 200


def test_pages_are_shown_meanwhile(story: Story, signed_in: SignedIn) -> None:
    olga = told(signed_in("olga"))
    story.clock.advance(60)

    with taking_no_writes():
        assert [olga.get(path).status_code for path in ("/", "/requests/new/", "/admin/", "/admin/requests/")] == [200] * 4


def test_nor_does_signing_out_in_another_tab_take_an_answer_back(
    story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = told(signed_in("alice"))
    story.clock.advance(60)
    submit = operations.submit

    def submit_while_signed_out(**given: Any) -> Any:
        Session.objects.all().delete()
        return submit(**given)

    monkeypatch.setattr(operations, "submit", submit_while_signed_out)

    sent = send(alice)

    assert (sent.status_code, sent.headers["Location"]) == (302, f"/requests/{only(story).request_id}/")
    assert alice.get("/").status_code == 302, "and nobody is signed in by it again"


def test_what_came_of_many_is_told_at_once(story: Story, as_person: NewClient) -> None:
    asked = story.ask_for_prod()
    bob = told(as_person("bob"))

    with taking_no_writes():
        answer = bob.post("/admin/requests/bulk/approve/", {"key": [asked.request_id, "none"], "confirmed": "yes"})

    assert answer.status_code == 200
    assert "Approve: 1 of 2 done" in text_of(answer)
    assert story.now_of(asked).status is Status.ACTIVE


def test_what_cognito_has_not_followed_is_told_at_once(story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch) -> None:
    gina = told(signed_in("gina"))
    real = directory.revoke_membership
    behind = Mirrored(is_done=False, reason="later")
    monkeypatch.setattr(directory, "revoke_membership", lambda **given: Changed(real(**given).record, behind))

    with taking_no_writes():
        page = gina.post("/groups/remove/at/engineering/payments/", {"email": "alice@example.com"}, follow=True)

    assert page.status_code == 200
    assert "alice@example.com is being removed from Payments, Cognito has not confirmed yet." in text_of(page)


def test_nobody_is_signed_in_without_a_session(traveller: Traveller) -> None:
    traveller.log_in(traveller.start().headers["Location"], "alice@example.com")
    told(traveller.client)

    with taking_no_writes():
        back = traveller.come_back()
        begun = traveller.start()

    assert (back.status_code, begun.status_code) == (503, 503)
    assert "Try again in a moment" in text_of(back)
    assert back.headers["Retry-After"] == "5"
    assert "user.signed_in" not in [event.action for event in audit.history("person#alice@example.com").items]


def test_who_can_not_be_signed_out_is_told_so(story: Story, signed_in: SignedIn) -> None:
    alice = told(signed_in("alice"))

    with taking_no_writes():
        assert alice.post("/sign-out/").status_code == 503
    assert alice.get("/").status_code == 200
    assert alice.post("/sign-out/").status_code == 302


@pytest.mark.parametrize("is_signed_in", [True, False])
def test_a_draft_that_is_not_kept_is_not_told_as_kept(story: Story, signed_in: SignedIn, is_signed_in: bool) -> None:
    alice = told(signed_in("alice") if is_signed_in else Client())
    typed = {TYPED_BY: sign("alice@example.com"), "reason": "Ten minutes of words", KEEP: "yes"}

    with taking_no_writes():
        assert alice.post("/requests/new/aws_account/", typed).status_code == 503


@pytest.mark.parametrize("away", [taking_no_writes, not_answering])
def test_the_change_that_a_job_serves_stands(
    story: Story, away: Callable[[], AbstractContextManager[None]], caplog: pytest.LogCaptureFixture
) -> None:
    """The tick finds its work."""
    asked = story.ask()
    replaced = set_after_commit(enqueue)
    try:
        with away():
            story.end(asked)
    finally:
        set_after_commit(replaced)

    assert story.now_of(asked).work is Work.REVOKE
    assert not OrmQ.objects.exists()
    assert "jobs.not_queued" in caplog.text


@pytest.mark.parametrize("away", [taking_no_writes, not_answering])
def test_a_sweep_by_hand_needs_it_for_nothing(story: Story, away: Callable[[], AbstractContextManager[None]]) -> None:
    """What operators are told to do while no job runs."""
    asked = story.ask(seconds=600)
    story.carry_out(asked)
    waiting = story.ask_to_join()
    story.clock.advance(600)
    replaced = set_after_commit(enqueue)
    try:
        with away():
            report = story.tick()
    finally:
        set_after_commit(replaced)

    assert (report.failures, report.revoked, report.granted) == ((), 1, 1)
    assert not story.is_assigned()
    assert story.now_of(waiting).is_granted


@pytest.mark.parametrize("path", ["/", "/requests/new/", "/admin/", "/admin/auth/user/", "/sign-in/"])
def test_a_database_that_does_not_answer_is_a_503_with_what_to_do(story: Story, signed_in: SignedIn, path: str) -> None:
    olga = told(signed_in("olga"))

    with not_answering():
        answer = olga.get(path)

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    assert "Try again in a moment: sending the same form again is safe." in text_of(answer)


def test_one_that_goes_away_in_the_middle_of_a_view_too(story: Story, signed_in: SignedIn) -> None:
    olga = signed_in("olga")

    def refuse(execute: Any, sql: str, *given: Any) -> Any:
        if "catalog_" in sql or "django_q" in sql:
            raise InternalError("cannot execute UPDATE in a read-only transaction")
        return execute(sql, *given)

    with connection.execute_wrapper(refuse):
        assert [olga.get(path).status_code for path in ("/admin/accounts/", "/admin/django_q/schedule/")] == [503, 503]


@pytest.mark.parametrize("kind", [OperationalError, InterfaceError, InternalError])
def test_programs_are_told_in_the_one_shape(kind: type[Exception]) -> None:
    request = RequestFactory().get("/v1/sandboxes")
    request.META["HTTP_X_REQUEST_ID"] = "number-1"

    answer = to_response(request, kind("the connection is closed"))

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert b'"UNAVAILABLE"' in answer.content


def test_a_bug_is_still_a_bug(story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: SessionStore) -> None:
        raise KeyError("a bug")

    alice = told(signed_in("alice"))
    monkeypatch.setattr(SessionStore, "load", broken)

    assert alice.get("/").status_code == 500
