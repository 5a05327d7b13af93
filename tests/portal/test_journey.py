"""The pages, through HTTP: Alice asks, Bob decides, the page tells the whole story."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from django.test import Client

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole
from tests.fixtures_story import Story
from tests.fixtures_twin import when
from tests.portal.conftest import SignedIn

DEV = {"account": "payments-dev", "permission_set": "PowerUserAccess", "duration": "1h", "ticket_id": "", "reason": "Incident 4711"}
PROD = {
    "account": "payments-prod",
    "permission_set": "ReadOnlyAccess",
    "duration": "2h",
    "ticket_id": "CHG-20817",
    "reason": "Incident 4711",
}
HTMX = {"HX-Request": "true"}


def send(client: Client, **given: str) -> Any:
    return client.post("/requests/new/aws_account/", {"submission_id": str(uuid.uuid4()), **DEV, **given})


def only(story: Story) -> AccessRequest:
    (found,) = queries.list_mine(actor=story.alice).items
    return found


def text_of(response: Any) -> str:
    """The words of a page. (A test client's response has more than its class says.)"""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_alice_gets_dev_access_and_sees_it_come_and_go(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    sent = send(alice)

    asked = only(story)
    assert sent.status_code == 302
    assert sent.headers["Location"] == f"/requests/{asked.request_id}/"
    page = alice.get(f"/requests/{asked.request_id}/")
    assert "Being granted" in text_of(page)
    assert 'hx-trigger="every 2s"' in page.content.decode()

    story.carry_out(asked)

    home = text_of(alice.get("/"))
    assert "1 active. Everything here ends by itself." in home
    assert "59 min left" in home
    page = alice.get(f"/requests/{asked.request_id}/")
    assert "Granted" in text_of(page)
    assert "proved present in IAM Identity Center" in text_of(page)
    assert 'hx-trigger="every 15s"' in page.content.decode()

    story.clock.advance(3600)
    story.tick()

    page = alice.get(f"/requests/{asked.request_id}/")
    assert re.search(r"proved gone from IAM Identity Center \d\.\d s after the end · deletion sent \d\.\d s after the end", text_of(page))
    assert 'hx-trigger="every 2s"' not in page.content.decode()
    assert "Ask again" in text_of(alice.get("/"))


def test_bob_finds_it_approves_it_and_alice_reads_his_words(story: Story, signed_in: SignedIn) -> None:
    alice, bob = signed_in("alice"), signed_in("bob")
    send(alice, **PROD)
    asked = only(story)
    waiting = text_of(alice.get("/"))
    assert "decides: Bob Ito and Sam Osei" in waiting
    assert "Approvals 1" in text_of(bob.get("/fragments/approvals/", headers=HTMX))
    assert text_of(alice.get("/fragments/approvals/", headers=HTMX)).strip() == ""

    sheet = bob.get(f"/requests/{asked.request_id}/approve/", headers=HTMX)
    assert "Approve this request?" in text_of(sheet)
    assert "<html" not in sheet.content.decode()
    done = bob.post(f"/requests/{asked.request_id}/approve/", {"reason": "ok for the incident"}, follow=True)

    assert "Approved: payments-prod · ReadOnlyAccess for alice@example.com. Its page shows when the access is there." in text_of(done)
    page = text_of(alice.get(f"/requests/{asked.request_id}/"))
    assert "Approved by Bob Ito" in page
    assert "ok for the incident" in page


def test_one_click_on_the_page_of_a_request_approves_and_leads_to_its_end(story: Story, signed_in: SignedIn) -> None:
    asked = story.ask_for_prod()
    bob, alice = signed_in("bob"), signed_in("alice")
    address = f"/requests/{asked.request_id}/"
    seen = bob.get(address).content.decode()
    [form] = re.findall(rf'<form method="post" action="{address}approve/".*?</form>', seen, re.DOTALL)
    assert 'id="act-approve">Approve</button>' in form
    # The question is left for who wants to say something.
    assert f'<a href="{address}approve/" data-sheet id="act-approve-reason">Approve with a reason</a>' in seen
    assert "act-approve" not in alice.get(address).content.decode()
    assert alice.post(f"{address}approve/").status_code == 403

    done = bob.post(f"{address}approve/", follow=True).content.decode()

    assert story.now_of(asked).status is Status.ACTIVE
    assert f'<a href="{address}end/">End it</a>' in done
    # It is the page that one is on.
    assert f'<a href="{address}">View</a>' not in done
    other = story.ask_for_prod()
    from_queue = bob.post(f"/requests/{other.request_id}/approve/", {"next": "/"}, follow=True).content.decode()
    assert f'<a href="/requests/{other.request_id}/">View</a>' in from_queue


def test_a_denial_needs_a_reason_and_shows_it(story: Story, signed_in: SignedIn) -> None:
    asked = story.ask_for_prod()
    bob = signed_in("bob")
    address = f"/requests/{asked.request_id}/deny/"

    refused = bob.post(address, {"reason": "  "})
    assert refused.status_code == 422
    assert "Give a reason. The person who asked reads it." in text_of(refused)

    bob.post(address, {"reason": "use the break-glass role"})
    home = text_of(signed_in("alice").get("/"))
    assert "Denied by Bob Ito: “use the break-glass role”" in home


def test_the_second_of_two_deciders_is_told_who_was_first(story: Story, signed_in: SignedIn) -> None:
    asked = story.ask_for_prod()
    story.approve(asked, actor=story.sam)

    late = signed_in("bob").post(f"/requests/{asked.request_id}/deny/", {"reason": "no"})

    assert late.status_code == 409
    assert "sam@example.com" in text_of(late)
    assert "Being granted" in text_of(late)


def test_a_verb_that_is_not_possible_leads_back_with_the_reason(story: Story, signed_in: SignedIn) -> None:
    asked = story.ask_for_prod()
    alice = signed_in("alice")

    back = alice.get(f"/requests/{asked.request_id}/approve/", follow=True)
    assert back.redirect_chain == [(f"/requests/{asked.request_id}/", 302)]
    assert "Nobody decides on their own request." in text_of(back)
    assert alice.post(f"/requests/{asked.request_id}/approve/", {"reason": ""}).status_code == 403
    assert alice.get(f"/requests/{asked.request_id}/promote/").status_code == 404


@pytest.mark.parametrize("verb", ["", "live/", "extend/", "approve/", "deny/", "cancel/", "end/", "retry/"])
def test_mallory_cannot_tell_the_request_from_nothing(story: Story, signed_in: SignedIn, verb: str) -> None:
    asked = story.ask_for_prod()
    mallory = signed_in("mallory")

    theirs = mallory.get(f"/requests/{asked.request_id}/{verb}")
    nothing = mallory.get(f"/requests/{uuid.uuid4()}/{verb}")

    assert (theirs.status_code, nothing.status_code) == (404, 404)
    assert text_of(theirs) == text_of(nothing)


def test_the_same_form_sent_twice_gives_one_request(story: Story, signed_in: SignedIn) -> None:
    alice, token = signed_in("alice"), str(uuid.uuid4())

    first, second = send(alice, submission_id=token), send(alice, submission_id=token)

    assert first.headers["Location"] == second.headers["Location"]
    assert only(story).status is Status.ACTIVE


def test_alice_ends_it_early_and_cancels_another(story: Story, signed_in: SignedIn) -> None:
    held, waiting = story.carry_out(story.ask()), story.ask_for_prod()
    alice = signed_in("alice")

    alice.post(f"/requests/{held.request_id}/end/", {"reason": ""})
    alice.post(f"/requests/{waiting.request_id}/cancel/")

    assert "Ending" in text_of(alice.get(f"/requests/{held.request_id}/"))
    assert story.now_of(waiting).status is Status.CANCELLED


def test_alice_extends_without_a_gap(story: Story, signed_in: SignedIn) -> None:
    held = story.carry_out(story.ask(seconds=600))
    alice = signed_in("alice")
    form = alice.get("/requests/new/aws_account/", {"extends": held.request_id}, follow=True)
    assert "Extend your access" in text_of(form)
    assert "You already hold this until" in text_of(form)

    too_short = alice.post(f"/requests/{held.request_id}/extend/", {"submission_id": str(uuid.uuid4()), "duration": "5m", "reason": "more"})
    assert too_short.status_code == 422
    assert "end no later than what you already hold" in text_of(too_short)
    sent = alice.post(
        f"/requests/{held.request_id}/extend/", {"submission_id": str(uuid.uuid4()), "duration": "2h", "reason": "more"}, follow=True
    )

    further = max(queries.list_mine(actor=story.alice).items, key=lambda one: one.expires_at)
    assert further.extends == held.request_id
    assert f"request {held.request_id[:8]}" in text_of(sent)


def test_ask_again_brings_the_form_back_filled_in(story: Story, signed_in: SignedIn) -> None:
    story.cancel(story.ask_for_prod())
    alice = signed_in("alice")
    (link,) = set(re.findall(r'href="(/requests/new/aws_account/\?[^"]+)"', alice.get("/").content.decode()))

    form = alice.get(link.replace("&amp;", "&"))

    assert form.context["form"]["account"].value() == "payments-prod"
    assert form.context["form"]["duration"].value() == "1h"
    assert form.context["form"]["reason"].value() == "Incident 4711"
    assert "Needs one approval" in text_of(form) or "Ticket" in text_of(form)


def test_a_page_that_asks_again_gets_nothing_until_something_changed(story: Story, signed_in: SignedIn) -> None:
    asked = story.ask_for_prod()
    alice = signed_in("alice")
    mark = alice.get(f"/requests/{asked.request_id}/").context["mark"]
    home_mark = alice.get("/").context["mark"]
    live = f"/requests/{asked.request_id}/live/"

    assert alice.get(live, {"mark": mark}, headers=HTMX).status_code == 204
    assert alice.get("/", {"part": "open", "mark": home_mark}, headers=HTMX).status_code == 204
    story.approve(asked)
    changed = alice.get(live, {"mark": mark}, headers=HTMX)
    assert changed.status_code == 200
    assert "Being granted" in text_of(changed)
    assert alice.get("/", {"part": "open", "mark": home_mark}, headers=HTMX).status_code == 200


def test_ended_requests_are_paged_to_the_last(story: Story, signed_in: SignedIn) -> None:
    for _ in range(20):
        story.cancel(story.ask_for_prod())
        story.clock.advance(1)
    alice = signed_in("alice")

    first = alice.get("/")
    second = alice.get("/", {"cursor": first.context["next_cursor"]})
    more = alice.get("/", {"part": "ended", "cursor": first.context["next_cursor"]}, headers=HTMX)

    assert (len(first.context["ended"]), len(second.context["ended"]), len(more.context["ended"])) == (15, 5, 5)
    assert second.context["next_cursor"] is None
    forged = alice.get("/", {"cursor": "eyJmb3JnZWQiOjF9"})
    assert forged.status_code == 400


def test_what_a_group_holds_is_shown_to_its_members(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    send(alice, subject="/engineering/payments")

    home = text_of(alice.get("/"))
    assert "for /engineering/payments" in home
    (held,) = queries.list_open(subject_id="/engineering/payments")
    page = text_of(alice.get(f"/requests/{held.request_id}/"))
    assert "asked by Alice Park" in page


def test_a_quorum_of_two_is_counted_on_the_page(story: Story, signed_in: SignedIn) -> None:
    asked = story.ask(account="payments-prod", permission_set="PowerUserAccess")
    bob, sam = signed_in("bob"), signed_in("sam")

    half = bob.post(f"/requests/{asked.request_id}/approve/", {"reason": ""}, follow=True)
    assert "Your approval counts: 1 of 2." in text_of(half)
    assert "1 of 2 approvals given : Bob Ito" in text_of(half) or "1 of 2 approvals given: Bob Ito" in text_of(half)
    whole = sam.post(f"/requests/{asked.request_id}/approve/", {"reason": ""}, follow=True)

    assert "Approved: payments-prod · PowerUserAccess for alice@example.com. Its page shows when the access is there." in text_of(whole)


def submission_of(page: Any) -> str:
    (found,) = set(re.findall(r'name="submission_id" value="([^"]+)"', page.content.decode()))
    return str(found)


def test_back_another_reason_and_sent_again_says_what_stands_and_asks_anew_when_sent_once_more(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    form = {**PROD, "submission_id": submission_of(alice.get("/requests/new/aws_account/"))}
    alice.post("/requests/new/aws_account/", form)
    first = only(story)

    again = alice.post("/requests/new/aws_account/", {**form, "reason": "A better reason"})

    assert again.status_code == 409
    page = again.content.decode()
    assert "sent before, with another reason. That request stands as it was sent, and nothing was done now." in text_of(again)
    assert f'href="/requests/{first.request_id}/"' in page
    assert first.request_id not in text_of(again)
    assert "A better reason" in page
    assert only(story).reason == PROD["reason"]

    made = alice.post("/requests/new/aws_account/", {**form, "reason": "A better reason", "submission_id": submission_of(again)})

    assert made.status_code == 302
    assert sorted(one.reason for one in story.pending_of("alice@example.com")) == ["A better reason", PROD["reason"]]


def test_an_extension_sent_again_with_another_length_says_so_too(story: Story, signed_in: SignedIn) -> None:
    alice, held = signed_in("alice"), story.carry_out(story.ask())
    path = f"/requests/{held.request_id}/extend/"
    form = {"duration": "2h", "reason": "More", "submission_id": submission_of(alice.get(path))}
    longer = alice.post(path, form).headers["Location"]

    again = alice.post(path, {**form, "duration": "3h"})

    assert again.status_code == 409
    assert "sent before, with another length." in text_of(again)
    assert f'href="{longer}"' in again.content.decode()
    assert submission_of(again) != form["submission_id"]


def test_how_late_says_first_when_it_was_gone_and_then_when_that_was_asked_for(story: Story, signed_in: SignedIn) -> None:
    alice, olga = signed_in("alice"), signed_in("olga")
    asked = story.carry_out(story.ask(seconds=600))
    story.clock.advance(600)
    story.tick()
    story.tick()
    ended = story.now_of(asked)
    receipt = ended.receipts[-1]
    assert receipt.called_at is not None
    gone, sent = ((moment - ended.expires_at).total_seconds() for moment in (receipt.proved_at, receipt.called_at))
    assert gone > sent

    page = text_of(alice.get(f"/requests/{asked.request_id}/"))
    assert f"Gone {gone:.1f} s after the end , proved" in page
    assert f"Deletion sent {sent:.1f} s after the end" in page
    assert page.index("Gone ") < page.index("Deletion sent")
    assert f"Gone {gone:.1f} s after the end" in text_of(olga.get(f"/admin/requests/{asked.request_id}/", follow=True))


def test_ending_one_of_two_says_that_the_other_keeps_the_access(story: Story, signed_in: SignedIn) -> None:
    alice, olga = signed_in("alice"), signed_in("olga")
    first = story.carry_out(story.ask(seconds=600))
    question = f"/requests/{first.request_id}/end/"
    assert "It is taken back at once." in text_of(alice.get(question))
    second = story.carry_out(story.ask(seconds=1200))

    page = alice.get(question)

    assert "taken back at once" not in text_of(page)
    assert "the access itself stays: another request holds the same until" in text_of(page)
    assert f'href="/requests/{second.request_id}/"' in page.content.decode()
    assert "the access itself stays" in text_of(olga.get(question))
    story.end(second)
    assert "It is taken back at once." in text_of(alice.get(question))


@pytest.mark.parametrize("which", ["the first", "the extension", "the row of My access"])
def test_what_was_extended_ends_whole_on_whichever_page_it_is_ended(story: Story, signed_in: SignedIn, which: str) -> None:
    alice = signed_in("alice")
    send(alice)
    first = story.carry_out(only(story))
    extended = f"/requests/{first.request_id}/extend/"
    alice.post(extended, {"duration": "2h", "reason": "More", "submission_id": submission_of(alice.get(extended))})
    further = story.carry_out(next(one for one in queries.list_open(subject_id="alice@example.com") if one.extends))
    (on_row,) = set(re.findall(r"/requests/[^/\"]+/end/", alice.get("/").content.decode()))
    question = {"the first": f"/requests/{first.request_id}/end/", "the extension": f"/requests/{further.request_id}/end/"}.get(
        which, on_row
    )

    sheet = text_of(alice.get(question))
    assert "It is taken back at once." in sheet
    assert "It ends for 2 requests: what was extended ends together with its extensions." in sheet
    assert "the access itself stays" not in sheet
    alice.post(question, {"reason": ""})
    story.tick()
    story.tick()

    assert [story.now_of(one).status for one in (first, further)] == [Status.REVOKED] * 2
    assert [story.now_of(one).ended_by for one in (first, further)] == ["alice@example.com"] * 2
    assert not story.is_assigned()
    # The other of the two gave back its claim a moment before, and both tell that the access is gone.
    pages = [alice.get(f"/requests/{one.request_id}/") for one in (first, further)]
    for page, other in zip(pages, (further, first), strict=True):
        assert 'The access was proved to be gone."' in page.content.decode()
        assert f'href="/requests/{other.request_id}/"' in page.content.decode()
        assert page.context["look_seconds"] is None
    assert f"Extended by request {further.request_id[:8]}" in text_of(pages[0])
    (kept,) = (text_of(page) for page in pages if "Taken back together" in text_of(page))
    called = "its extension" if kept == text_of(pages[0]) else "what it extends"
    assert f"It ended together with {called} : the access was proved gone" in kept
    assert f"after the end, together with {called}" in kept
    assert f"Access ended together with {called}: proved gone" in kept
    for wrong in ("for others", "for another request", "Also held by"):
        assert wrong not in kept
    home = text_of(alice.get("/"))
    assert f"by you. It ended together with {called}. The access was proved to be gone." in home
    assert "by you. The access was proved to be gone." in home
    assert "claim" not in home


def test_whoever_ends_it_reads_that_what_waits_to_extend_it_is_cancelled_and_so_does_whoever_asked(
    story: Story, signed_in: SignedIn
) -> None:
    alice, olga = signed_in("alice"), signed_in("olga")
    held = story.carry_out(story.approve(story.ask_for_prod()))
    question = f"/requests/{held.request_id}/end/"
    assert "cancelled" not in text_of(alice.get(question))
    waiting = [story.extend(held, 7200), story.extend(held, 7200)]
    assert "2 extensions that wait for approval are cancelled." in text_of(alice.get(question))
    story.cancel(waiting.pop())
    assert "1 extension that waits for approval is cancelled." in text_of(olga.get(question))

    olga.post(question, {"reason": "Lost laptop"})

    why = "What this would extend was ended early. Lost laptop"
    page = text_of(alice.get(f"/requests/{waiting[0].request_id}/"))
    assert f"It was cancelled before it was decided. Nothing was granted. {why}" in page
    home = text_of(alice.get("/"))
    assert f"Cancelled by Olga Berg: “{why}”" in home
    assert "Withdrawn before it was decided" in home


def test_a_chain_of_extensions_ends_from_its_last_one_and_what_does_not_belong_to_it_stays(story: Story, signed_in: SignedIn) -> None:
    first = story.carry_out(story.ask(seconds=600))
    second = story.carry_out(story.extend(first, 1200))
    third, beside = story.carry_out(story.extend(second, 1800)), story.carry_out(story.extend(first, 1500))
    alone, elsewhere = story.carry_out(story.ask(seconds=900)), story.carry_out(story.ask(seconds=900, permission_set="ReadOnlyAccess"))
    alice, question = signed_in("alice"), f"/requests/{third.request_id}/end/"

    sheet = text_of(alice.get(question))
    assert "the access itself stays: another request holds the same until" in sheet
    assert "It ends for 4 requests: what was extended ends together with its extensions." in sheet
    alice.post(question, {"reason": "Done"})
    story.tick()
    story.tick()

    assert [story.now_of(one).status for one in (first, second, third, beside)] == [Status.REVOKED] * 4
    assert [story.now_of(one).is_granted for one in (alone, elsewhere)] == [True, True]
    assert story.is_assigned()
    page = f"/requests/{third.request_id}/"
    assert 'data-said="Ended. Another request holds the same access."' in alice.get(page).content.decode()
    assert "The access itself stays: another request holds the same until" in text_of(alice.get(page))
    mark = alice.get(page).context["mark"]

    story.clock.advance(30)
    story.end(alone)
    ending = alice.get(f"{page}live/", {"mark": mark}, headers=HTMX)
    assert "Another request still held the same access, and ends too. The access is being taken back." in text_of(ending)
    assert ending.context["look_seconds"] == 2
    story.tick()
    gone = text_of(alice.get(f"{page}live/", {"mark": ending.context["mark"]}, headers=HTMX))
    assert "another request still held the same access, and that ended too: the access was proved gone" in gone


def test_an_extension_that_another_admin_of_the_group_asked_for_does_not_end_with_hers(story: Story, signed_in: SignedIn) -> None:
    payments = "/engineering/payments"
    directory.grant_membership(email="gina@example.com", group_id=payments, role=GroupRole.ADMIN, actor=story.olga, now=story.clock.now())
    hers = story.carry_out(story.ask(subject_id=payments, seconds=600))
    ginas = story.carry_out(story.extend(hers, 1200, actor=story.gina))
    alice, question = signed_in("alice"), f"/requests/{hers.request_id}/end/"

    sheet = text_of(alice.get(question))
    assert "the access itself stays: another request holds the same until" in sheet
    assert "ends with it" not in sheet
    alice.post(question, {"reason": ""})
    story.tick()
    assert [story.now_of(one).is_granted for one in (hers, ginas)] == [False, True]


def test_what_was_given_back_is_not_told_as_its_time_being_up(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    early, due = story.carry_out(story.ask(seconds=3600)), story.carry_out(story.ask(seconds=60, permission_set="ReadOnlyAccess"))
    story.end(early)
    story.clock.advance(60)

    assert "It was ended before its time. The access is being taken back." in text_of(alice.get(f"/requests/{early.request_id}/"))
    assert "Time is up. The access is being taken back." in text_of(alice.get(f"/requests/{due.request_id}/"))


def test_the_bar_says_at_once_what_it_said_last(story: Story, signed_in: SignedIn) -> None:
    """Nothing in it moves when the page has asked anew; the admin pages have the same one."""
    story.ask_for_prod()
    bob, alice = signed_in("bob"), signed_in("alice")

    for path in ("/", "/groups/", "/admin/requests/"):
        assert re.search(r"Sandboxes Approvals 1 ", text_of(bob.get(path))) or "Groups Approvals 1 " in text_of(bob.get(path))
        assert "Approvals" not in text_of(alice.get("/"))
    story.ask_for_prod()
    assert "Approvals 1 " in text_of(bob.get("/"))
    bob.get("/fragments/approvals/", headers=HTMX)
    assert "Approvals 2 " in text_of(bob.get("/"))


def test_a_length_that_another_rule_allows_is_offered(story: Story, signed_in: SignedIn) -> None:
    """The short rule decides what is typed now; the chips are for what can be typed at all."""
    page = signed_in("alice").get("/requests/new/group/preview/?group=/engineering&role=reader&duration=1h")

    chips = re.findall(r'data-value="(\w+)"[^>]*?( disabled)?>', page.content.decode())
    assert chips == [("1h", ""), ("8h", ""), ("1d", ""), ("5d", "")]
    assert "Longest 8 h up to 7 d by another rule" in text_of(page)


def test_ending_a_membership_that_an_admin_gave_too_says_that_it_stays(story: Story, signed_in: SignedIn) -> None:
    alice, joined = signed_in("alice"), story.carry_out(story.ask_to_join("/engineering"))
    question = f"/requests/{joined.request_id}/end/"
    assert "It is taken back at once." in text_of(alice.get(question))

    directory.grant_membership(
        email="alice@example.com", group_id="/engineering", role=GroupRole.READER, actor=story.gina, now=story.clock.now()
    )

    assert "The membership that an admin gave directly stays." in text_of(alice.get(question))


@pytest.mark.parametrize("operation", ["GetItem", "Query", "TransactWriteItems"])
@pytest.mark.parametrize("kind", [ReadTimeoutError, ConnectionClosedError])
def test_an_answer_that_is_lost_is_a_page_that_says_so(story: Story, signed_in: SignedIn, operation: str, kind: type[Exception]) -> None:
    alice = signed_in("alice")

    def lose(_parameters: object) -> None:
        raise kind(endpoint_url="x")  # type: ignore[call-arg]

    with when(operation, lose):
        sent = send(alice)
        read = alice.get("/")

    assert (sent.status_code, "did not answer" in text_of(sent)) == (503, True)
    assert read.status_code == (503 if operation == "Query" else 200)
    assert send(alice).status_code == 302
