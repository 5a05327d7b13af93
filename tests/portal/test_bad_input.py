"""Whatever is sent: a clear message that names field, rule and remedy, nothing lost, nothing half-written."""

from __future__ import annotations

import io
import uuid

import pytest
from django.test import Client
from pytest_django import Settings

from accessportal.access_requests import queries
from accessportal.kernel.errors import Unavailable
from tests.fixtures_story import Story
from tests.portal.conftest import SignedIn
from tests.portal.test_journey import DEV, HTMX, PROD, send, text_of

BAD = [
    ({"account": ""}, "Choose an account, or type its name or 12-digit id."),
    ({"account": "payroll"}, "There is no account “payroll”."),
    ({"account": "1" * 300}, "Account has 300 characters; 256 is the most. Shorten it."),
    ({"permission_set": ""}, "Choose a permission set."),
    ({"permission_set": "Root"}, "There is no permission set “Root”."),
    ({"duration": ""}, "Say for how long, like 90 (minutes), 8h or 2h30."),
    ({"duration": "0h"}, "A duration must be longer than zero."),
    ({"duration": "-1h"}, "A duration can't be negative."),
    ({"duration": "soon"}, "“soon” is not a duration: write it like 90 (minutes), 1.5h, 2h30, 2d, 1w or “until 18:00”."),
    ({"duration": "9" * 60}, "For how long has 60 characters; 40 is the most."),
    ({"duration": "5h"}, "4 h"),
    ({"duration": "999999999d"}, "A duration has at most 3650 d, and “999999999d” is more: write a shorter one."),
    ({"reason": ""}, "Say why you need it."),
    ({"reason": " \n\t\u200b "}, "Say why you need it."),
    ({"reason": "x" * 2001}, "Why has 2,001 characters; 2,000 is the most. Shorten it."),
    ({"reason": "a\0b"}, "Why contains a character that can't be shown (U+0000). Remove it, or type the text again."),
    ({"reason": "a\x1b[31mb"}, "U+001B"),
    ({"reason": "pay\u202egnp.exe"}, "U+202E"),
    ({"ticket_id": "CHG-1\nCHG-2"}, "Ticket must be one line."),
    ({"ticket_id": "x" * 201}, "Ticket has 201 characters; 200 is the most."),
    ({"subject": "/security"}, "You are not in that group."),
    ({"subject": "bob@example.com"}, "You are not in that group."),
    ({**PROD, "ticket_id": "JIRA-1"}, "“JIRA-1” is not a ticket like CHG-4711"),
    ({**PROD, "ticket_id": ""}, "ticket"),
]


@pytest.mark.parametrize(("wrong", "told"), BAD, ids=[f"{next(iter(wrong))}-{number}" for number, (wrong, _) in enumerate(BAD)])
def test_the_form_comes_back_with_the_message_and_all_that_was_typed(
    story: Story, signed_in: SignedIn, wrong: dict[str, str], told: str
) -> None:
    given = {**DEV, **wrong}

    answer = send(signed_in("alice"), **given)

    assert answer.status_code == 422
    assert told.replace("'", "&#x27;") in answer.content.decode() or told in text_of(answer)
    form = answer.context["form"]
    assert {name: form[name].value() for name in given} == given
    assert queries.list_mine(actor=story.alice).items == ()


@pytest.mark.parametrize("duration", ["9999999d", "999999999d999999999h", "PT999999999H"])
def test_an_absurd_duration_is_refused_in_the_extension_and_its_preview(story: Story, signed_in: SignedIn, duration: str) -> None:
    held, alice = story.carry_out(story.ask()), signed_in("alice")
    given = {"duration": duration, "reason": "more", "extends": held.request_id}

    sent = alice.post(f"/requests/{held.request_id}/extend/", given)
    seen = alice.get("/requests/new/aws_account/preview/", {**DEV, **given}, headers=HTMX)

    assert (sent.status_code, seen.status_code) == (422, 200)
    for answer in (sent, seen):
        assert f"A duration has at most 3650 d, and “{duration}” is more: write a shorter one." in text_of(answer)
    assert [one.request_id for one in queries.list_mine(actor=story.alice).items] == [held.request_id]


def test_newlines_emoji_and_every_script_are_kept(story: Story, signed_in: SignedIn) -> None:
    send(signed_in("alice"), reason="Störung 4711\r\n\r\n決済ログ 👩‍🚒 <b>&amp;")

    (asked,) = queries.list_mine(actor=story.alice).items
    assert asked.reason == "Störung 4711\n\n決済ログ 👩‍🚒 <b>&amp;"


def test_what_no_rule_allows_is_refused_with_the_reason_and_the_form(story: Story, signed_in: SignedIn) -> None:
    denied = send(signed_in("alice"), account="security-audit")
    unserved = send(signed_in("mallory"))

    assert (denied.status_code, unserved.status_code) == (422, 403)
    assert "security-accounts" in text_of(denied)
    assert denied.context["form"]["account"].value() == "security-audit"
    assert unserved.context["form"]["reason"].value() == DEV["reason"]


def test_one_megabyte_is_refused_in_words(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    large = send(alice, reason="x" * 1_000_000)
    too_large = send(alice, reason="x" * 3_000_000)

    assert (large.status_code, too_large.status_code) == (422, 413)
    assert "1,000,000 characters" in text_of(large)
    assert "larger than the portal takes" in text_of(too_large)


def test_no_client_value_decides_who_or_in_which_state(story: Story, signed_in: SignedIn) -> None:
    send(signed_in("alice"), status="ACTIVE", actor="olga@example.com", requested_by="bob@example.com", rule_name="x", **PROD)

    (asked,) = queries.list_mine(actor=story.alice).items
    assert (asked.status, asked.requested_by, asked.rule_name) == ("PENDING", "alice@example.com", "prod-readonly")


@pytest.mark.parametrize(
    "query", ["", "?account=payments-prod", "?account=%00&permission_set=%00", "?account=x&permission_set=y&duration=z&subject=/security"]
)
def test_the_preview_answers_whatever_is_typed(story: Story, signed_in: SignedIn, query: str) -> None:
    answer = signed_in("alice").get(f"/requests/new/aws_account/preview/{query}", headers=HTMX)

    assert answer.status_code == 200
    assert "What will happen" in text_of(answer)


def test_the_preview_says_who_decides_how_long_and_what_would_help(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    def told(**given: str) -> str:
        return text_of(alice.get("/requests/new/aws_account/preview/", given, headers=HTMX))

    assert "Approved at once Rule dev-power Longest 4 h" in told(account="payments-dev", permission_set="PowerUserAccess", duration="1h")
    one = told(account="payments-prod", permission_set="ReadOnlyAccess", duration="2h", ticket_id="CHG-1")
    assert "Needs one approval Rule prod-readonly Decides Bob Ito and Sam Osei" in one
    assert "2 h after approval sooner for whoever is no longer in /engineering" in one
    assert "Needs 2 approvals" in told(account="payments-prod", permission_set="PowerUserAccess", duration="2h")
    refused = told(account="payments-dev", permission_set="PowerUserAccess", duration="9h")
    assert "Not possible like this" in refused
    assert "4 h" in refused
    assert "Not possible like this" in told(account="security-audit", permission_set="ReadOnlyAccess", duration="1h")


def test_without_javascript_a_button_shows_what_will_happen(story: Story, signed_in: SignedIn) -> None:
    answer = send(signed_in("alice"), preview="1", **PROD)

    assert answer.status_code == 200
    assert "Needs one approval" in text_of(answer)
    assert queries.list_mine(actor=story.alice).items == ()


def test_a_store_that_does_not_answer_is_never_an_empty_page(story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = signed_in("alice")

    def fail(**_: object) -> None:
        raise Unavailable("DynamoDB did not answer.", code="store_unavailable")

    monkeypatch.setattr(queries, "list_open_through", fail)
    answer = alice.get("/")

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    assert "Reference for your operator:" in text_of(answer)
    assert "hold nothing" not in text_of(answer)


def test_a_form_without_its_token_does_nothing(story: Story, signed_in: SignedIn) -> None:
    alice = Client(enforce_csrf_checks=True)
    alice.cookies = signed_in("alice").cookies

    answer = send(alice)

    assert answer.status_code == 403
    assert "That form is too old" in text_of(answer)
    assert queries.list_mine(actor=story.alice).items == ()


def test_pages_that_do_not_exist_and_bugs_look_like_the_portal(story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = signed_in("alice")
    assert "Nothing here" in text_of(alice.get("/nothing/"))
    assert alice.get(f"/requests/{uuid.uuid4()}/").status_code == 404

    def fail(**_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(queries, "list_open_through", fail)
    alice.raise_request_exception = False
    answer = alice.get("/")

    assert answer.status_code == 500
    assert "That is our mistake" in text_of(answer)
    assert "RuntimeError" not in answer.content.decode()


def test_a_damaged_address_leads_back_to_its_page(story: Story, signed_in: SignedIn) -> None:
    answer = signed_in("alice").get("/stand-ins/?cursor=forged")

    assert answer.status_code == 400
    assert '<a class="btn btn-primary" href="/stand-ins/">Start again</a>' in answer.content.decode()
    assert "My access" in text_of(answer).partition("That could not be understood")[0]


@pytest.mark.parametrize("address", ["/sign-in/", "/requests/new/aws_account/", "/admin/requests/bulk/approve/", "/nowhere/"])
def test_no_file_is_taken_and_none_is_written(
    story: Story, signed_in: SignedIn, address: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Django would write each one to the disk before a view is asked, as large as it comes."""
    written: list[object] = []

    def noted(*given: object, **_: object) -> None:
        written.append(given)

    monkeypatch.setattr("django.core.files.uploadedfile.TemporaryUploadedFile.__init__", noted)
    monkeypatch.setattr("django.core.files.uploadedfile.InMemoryUploadedFile.__init__", noted)
    file = io.BytesIO(b"x" * 2_000_000)

    for client in (signed_in("alice"), Client(enforce_csrf_checks=True)):
        answer = client.post(address, {"reason": "See the file", "file": file})
        assert answer.status_code in {302, 400, 403, 404, 405}
        assert written == []
        file.seek(0)
    if address == "/requests/new/aws_account/":
        refused = signed_in("alice").post(address, {"file": file})
        assert (refused.status_code, "takes no files" in text_of(refused)) == (400, True)


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "application/octet-stream", ""])
@pytest.mark.parametrize("address", ["/sign-in/", "/", "/requests/new/aws_account/", "/v1/allocate", "/metrics"])
def test_a_body_beyond_the_limit_is_refused_before_it_is_read(story: Story, address: str, kind: str, settings: Settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100_000
    answer = Client().generic("POST", address, b"x" * 100_001, content_type=kind)

    assert answer.status_code == 413
    assert not hasattr(answer.wsgi_request, "_body")
    assert not hasattr(answer.wsgi_request, "_post")


def test_the_form_starts_with_the_usual_length_of_the_rule(story: Story, signed_in: SignedIn) -> None:
    alice, asked = signed_in("alice"), {"group": "/engineering", "role": "contributor"}

    empty = alice.get("/requests/new/group/")
    filled = alice.get("/requests/new/group/", asked)
    given = alice.get("/requests/new/group/", {**asked, "duration": "3d"})
    seen = alice.get("/requests/new/group/preview/", {**asked, "duration": ""}, headers=HTMX)

    assert empty.context["form"]["duration"].value() == "8h"
    assert filled.context["form"]["duration"].value() == "1d"
    assert "data-offered" in str(filled.context["form"]["duration"])
    assert 'data-usual="1d"' in filled.content.decode()
    assert given.context["form"]["duration"].value() == "3d"
    assert "data-offered" not in str(given.context["form"]["duration"])
    assert 'data-usual="1d"' in seen.content.decode()
    assert "1 d after approval" in text_of(seen)
