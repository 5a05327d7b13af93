"""Who somebody is, is what the directory says at this moment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.test import Client

from accessportal.audit import queries as audit
from accessportal.directory import operations as directory
from accessportal.directory import queries as directory_queries
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import State
from accessportal.identity.queries import actor_named
from accessportal.identity.session_store import SessionStore
from accessportal.identity.sessions import end
from accessportal.kernel.actors import Role, system
from accessportal.kernel.errors import NotAllowed, Unavailable
from tests.fixtures_story import Story
from tests.portal.conftest import PASSWORD, SignedIn
from tests.portal.test_journey import HTMX, text_of


def test_roles_come_from_the_groups_and_go_with_them(story: Story, signed_in: SignedIn) -> None:
    olga = signed_in("olga")
    user = get_user_model().objects.get(username="olga@example.com")
    assert actor_named(email="Olga@Example.com", now=story.clock.now()).roles == {Role.OPERATOR}
    assert actor_named(email="ana@example.com", now=story.clock.now()).roles == {Role.AUDITOR}
    assert actor_named(email="alice@example.com", now=story.clock.now()).roles == frozenset()
    assert user.has_perm("auth.change_user")
    assert "Administration" in text_of(olga.get("/"))

    directory.revoke_membership(email="olga@example.com", group_id="/portal/operators", actor=system("test"), now=story.clock.now())

    assert "Administration" not in text_of(olga.get("/"))
    assert not get_user_model().objects.get(username="olga@example.com").has_perm("auth.change_user")


def test_an_auditor_may_look_at_the_frameworks_models_and_change_none(story: Story, signed_in: SignedIn) -> None:
    signed_in("ana")
    signed_in("alice")
    ana = get_user_model().objects.get(username="ana@example.com")
    alice = get_user_model().objects.get(username="alice@example.com")

    assert [ana.has_perm(perm) for perm in ("auth.view_user", "auth.change_user", "auth.delete_user")] == [True, False, False]
    assert not alice.has_perm("auth.view_user")
    assert not alice.has_module_perms("auth")


def test_a_disabled_person_is_signed_out_at_the_next_request(story: Story, signed_in: SignedIn) -> None:
    alice, again = signed_in("alice"), signed_in("alice")
    directory.set_person_state(email="alice@example.com", state=State.DISABLED, actor=system("test"), now=story.clock.now())

    page = alice.get("/")
    assert page.status_code == 403
    assert "alice@example.com is disabled in the directory" in text_of(page)
    assert alice.get("/").headers["Location"] == "/sign-in/?next=/"
    fragment = again.get("/fragments/approvals/", headers=HTMX)
    assert fragment.headers["HX-Redirect"] == "/signed-out/"
    assert Client().post("/sign-in/", {"username": "alice@example.com", "password": PASSWORD}).status_code == 200
    with pytest.raises(NotAllowed, match="disabled"):
        actor_named(email="alice@example.com", now=story.clock.now())


def test_a_user_whom_the_directory_does_not_know_cannot_sign_in(story: Story) -> None:
    get_user_model().objects.create_superuser("eve@example.com", password=PASSWORD)

    answer = Client().post("/sign-in/", {"username": "eve@example.com", "password": PASSWORD})

    assert answer.status_code == 200
    assert "the person is disabled" in text_of(answer)


def test_nobody_is_let_in_or_out_when_the_directory_does_not_answer(
    story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = signed_in("alice")

    def fail(**_: object) -> None:
        raise Unavailable("DynamoDB did not answer.", code="store_unavailable")

    with monkeypatch.context() as broken:
        broken.setattr(directory_queries, "find_person_with_ends", fail)
        assert alice.get("/").status_code == 503
    assert alice.get("/").status_code == 200


def test_an_item_that_another_program_spoilt_is_no_answer_for_its_person_alone(story: Story, signed_in: SignedIn) -> None:
    alice, bob = signed_in("alice"), signed_in("bob")
    item = DirectoryItem.get("U:alice@example.com", "U:alice@example.com")
    item.update(actions=[DirectoryItem.state.set("suspended")])

    assert [client.get("/").status_code for client in (alice, bob)] == [503, 200]
    item.update(actions=[DirectoryItem.state.set("enabled")])
    assert alice.get("/").status_code == 200


@pytest.mark.parametrize("path", ["/", "/requests/new/", "/requests/new/aws_account/", "/admin/", "/admin/auth/user/"])
def test_anonymous_people_are_sent_to_the_sign_in_page(db: None, path: str) -> None:
    answer = Client().get(path)

    assert answer.status_code == 302
    assert answer.headers["Location"] == f"/sign-in/?next={path}"


def test_a_part_that_refreshes_itself_sends_the_whole_page_to_sign_in(db: None) -> None:
    answer = Client().get("/fragments/approvals/", headers={**HTMX, "HX-Current-URL": "http://testserver/requests/new/"})

    assert answer.status_code == 200
    assert answer.headers["HX-Redirect"] == "/sign-in/?next=/requests/new/"


@pytest.mark.parametrize("place", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_next_leads_nowhere_else(story: Story, signed_in: SignedIn, place: str) -> None:
    signed_in("alice")

    answer = Client().post(f"/sign-in/?next={place}", {"username": "alice@example.com", "password": PASSWORD, "next": place})

    assert answer.headers["Location"] == "/"


@pytest.mark.parametrize("name", ["alice@example.com\0", "", "x" * 5000, "ALICE@EXAMPLE.COM "])
def test_odd_names_are_answered_in_words(story: Story, signed_in: SignedIn, name: str) -> None:
    signed_in("alice")

    answer = Client().post("/sign-in/", {"username": name, "password": "wrong"})

    assert answer.status_code == 200
    assert 'class="form-control' in answer.content.decode()


def test_signing_out_takes_a_post(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    assert alice.get("/sign-out/").headers["Location"] == "/"
    assert alice.get("/").status_code == 200
    assert alice.post("/sign-out/").headers["Location"] == "/sign-in/"
    assert alice.get("/").status_code == 302


def test_outside_the_demo_no_password_lets_anybody_in(story: Story, signed_in: SignedIn, settings: object) -> None:
    signed_in("alice")
    settings.DEMO = False  # type: ignore[attr-defined]

    assert "Signing in is not set up" in text_of(Client().get("/sign-in/"))
    posted = Client().post("/sign-in/", {"username": "alice@example.com", "password": PASSWORD})
    assert posted.status_code == 403
    assert not Client().login(username="alice@example.com", password=PASSWORD)


def test_the_sign_in_page_names_the_demos_people_but_not_the_password(story: Story, signed_in: SignedIn) -> None:
    signed_in("alice")

    page = Client().get("/sign-in/")

    assert "alice@example.com · /engineering/payments" in text_of(page)
    assert PASSWORD not in page.content.decode()


def test_pages_are_private_and_their_policy_is_strict(story: Story, signed_in: SignedIn) -> None:
    answer = signed_in("alice").get("/")

    assert {part.strip() for part in answer.headers["Cache-Control"].split(",")} >= {"private", "no-cache"}
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src 'self';" in f"{policy};"
    assert "unsafe" not in policy
    assert answer.headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("path", ["/static/portal/portal.css", "/static/portal/favicon.svg", "/static/nothing.css", "/healthz", "/metrics"])
def test_whatever_is_answered_comes_with_the_policy(story: Story, path: str) -> None:
    answer = Client().get(path)
    answer.close()

    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_no_template_has_inline_script_or_style() -> None:
    folder = Path(settings.BASE_DIR) / "templates"
    for template in folder.rglob("*.html"):
        text = template.read_text()
        assert not re.search(
            r"""<style|\sstyle=|\son(click|load|error|input|change|submit|focus|blur|key\w+|mouse\w+)=|<script(?![^>]*\s(src=|type="application/json"))|hx-on|javascript:""",
            text,
        ), template.name


def test_the_demos_sign_ins_and_sign_outs_are_told(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    alice.post("/sign-out/")
    signed_in("olga").post("/admin/logout/")

    for entity in ("person#alice@example.com", "person#olga@example.com"):
        told = [(event.action, event.data.get("method", "")) for event in audit.history(entity, newest_first=False).items][-2:]
        assert told == [("user.signed_in", "password"), ("user.signed_out", "")]
        assert audit.find_breaks(entity) == []


def test_a_wrong_password_is_told_without_what_was_typed(story: Story, signed_in: SignedIn) -> None:
    signed_in("alice")
    for name in ("alice@example.com", "hunter2", "nobody@example.com"):
        Client().post("/sign-in/", {"username": name, "password": "hunter2"})

    (alices,) = audit.history("sign_in#alice@example.com").items
    (unknown,) = audit.history("sign_in#unknown").items
    assert alices.data == {"email": "alice@example.com", "reason": "password_refused", "method": "password"}
    assert unknown.data == {"email": "unknown", "reason": "password_refused", "method": "password"}


def test_signing_out_works_while_the_store_does_not(story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = signed_in("alice")

    def fail(**_: object) -> None:
        raise Unavailable("DynamoDB did not answer.", code="store_unavailable")

    with monkeypatch.context() as broken:
        broken.setattr(directory, "record_sign_out", fail)
        assert alice.post("/sign-out/").status_code == 302
    assert alice.get("/").status_code == 302


def sign_outs_of(email: str) -> list[tuple[str, object]]:
    events = audit.history(f"person#{email}", newest_first=False).items
    return [(event.actor, event.data["reason"]) for event in events if event.action == "user.signed_out"]


def test_that_the_portal_signs_out_is_told_once_for_each_session(story: Story, signed_in: SignedIn) -> None:
    here, there, bob = signed_in("alice"), signed_in("alice"), signed_in("bob")
    same_page = Client()
    same_page.cookies["sessionid"] = here.cookies["sessionid"].value
    directory.set_person_state(email="alice@example.com", state=State.DISABLED, actor=system("test"), now=story.clock.now())

    for client in (here, same_page, there, here, there, bob):
        client.get("/")

    assert sign_outs_of("alice@example.com") == [("system:sign-in", "person_disabled")] * 2
    assert sign_outs_of("bob@example.com") == []
    assert audit.find_breaks("person#alice@example.com") == []


def test_of_requests_that_come_at_once_one_tells_that_the_session_ended(signed_in: SignedIn) -> None:
    key = signed_in("alice").session.session_key
    both = [HttpRequest(), HttpRequest()]
    for request in both:
        request.session = SessionStore(key)
        assert request.session.items()

    assert [end(request) for request in both] == [True, False]


def test_a_deleted_person_is_signed_out_and_their_history_stays_as_it_ended(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    directory.delete_person(email="alice@example.com", actor=system("test"), now=story.clock.now())

    assert alice.get("/").status_code == 403
    assert alice.get("/").status_code == 302
    assert sign_outs_of("alice@example.com") == []


def test_the_portal_signs_out_too_while_it_can_not_be_told(
    story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    alice = signed_in("alice")
    directory.set_person_state(email="alice@example.com", state=State.DISABLED, actor=system("test"), now=story.clock.now())

    def fail(**_: object) -> None:
        raise Unavailable("DynamoDB did not answer.", code="store_unavailable")

    monkeypatch.setattr(directory, "record_sign_out", fail)

    assert alice.get("/").status_code == 403
    assert alice.get("/").status_code == 302
    assert "identity.sign_out_not_told" in caplog.text


def test_nobody_signs_in_untold(story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch) -> None:
    signed_in("alice")

    def fail(**_: object) -> None:
        raise Unavailable("DynamoDB did not answer.", code="store_unavailable")

    monkeypatch.setattr(directory, "record_sign_in", fail)
    client = Client()

    assert client.post("/sign-in/", {"username": "alice@example.com", "password": PASSWORD}).status_code == 503
    assert client.get("/").status_code == 302
