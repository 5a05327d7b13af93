"""Operations from the pages: one, many, refused, raced, and sent by strangers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.test import Client

from accessportal.access_requests import operations
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.console import views
from accessportal.console.bulk import Prospect
from accessportal.console.folding import folded
from accessportal.console.views import MAX_BULK
from accessportal.kernel.errors import Unavailable
from accessportal.web.request_deeds import APPROVE
from tests.console.test_costs import cost_of
from tests.fixtures_story import Story
from tests.portal.test_journey import text_of

SignIn = Callable[[str], Client]


def do(request: AccessRequest, operation: str) -> str:
    return f"/requests/{request.request_id}/{operation}/"


def test_approving_from_the_row_is_one_step_and_returns_to_the_queue(story: Story, as_person: SignIn) -> None:
    request = story.ask_for_prod()
    bob = as_person("bob")

    response = bob.post(do(request, "approve"), {"next": "/admin/requests/?pattern=waiting"})

    assert response.status_code == 302
    assert response["Location"] == "/admin/requests/?pattern=waiting"
    after = story.now_of(request)
    assert (after.status, after.decided_by) == (Status.ACTIVE, "bob@example.com")
    assert "Approved: payments-prod · ReadOnlyAccess for alice@example.com." in bob.get("/admin/requests/").content.decode()


def test_denying_asks_first_and_wants_a_reason(story: Story, as_person: SignIn) -> None:
    request = story.ask_for_prod()
    bob = as_person("bob")

    asked = bob.get(do(request, "deny"))
    without_reason = bob.post(do(request, "deny"), {"reason": "  "})
    assert story.now_of(request).status is Status.PENDING
    denied = bob.post(do(request, "deny"), {"reason": "Use staging first"})

    assert "Nothing is granted. alice@example.com is told your reason" in asked.content.decode()
    assert without_reason.status_code == 422
    assert "Give a reason." in without_reason.content.decode()
    assert denied["Location"] == f"/requests/{request.request_id}/"
    after = story.now_of(request)
    assert (after.status, after.decision_reason) == (Status.DENIED, "Use staging first")


def test_a_reason_that_the_domain_refuses_comes_back_to_the_form(story: Story, as_person: SignIn) -> None:
    request = story.ask_for_prod()

    response = as_person("bob").post(do(request, "deny"), {"reason": "x" * 50_000})

    assert response.status_code == 422
    assert response.context["form"].errors["reason"]
    assert story.now_of(request).status is Status.PENDING


def test_looking_never_changes_anything(story: Story, as_person: SignIn) -> None:
    request = story.ask_for_prod()

    for operation in ("approve", "deny", "end", "retry"):
        assert as_person("bob").get(do(request, operation)).status_code in {200, 302}
    assert story.now_of(request) == request


def test_the_second_of_two_deciders_is_told_who_was_first(story: Story, as_person: SignIn) -> None:
    request = story.ask_for_prod()
    story.approve(request, actor=story.sam)

    response = as_person("bob").post(do(request, "deny"), {"reason": "No"})

    assert response.status_code == 409
    assert "sam@example.com" in response.content.decode()


@pytest.mark.parametrize("name", ["alice", "mallory", "ana"])
def test_nobody_decides_who_may_not(story: Story, as_person: SignIn, name: str) -> None:
    request = story.ask_for_prod()
    client = as_person(name)

    for operation in ("approve", "deny", "end", "retry"):
        single = client.post(do(request, operation), {"reason": "Because"})
        assert single.status_code in {403, 404, 409}, (operation, single.status_code)
    client.post("/admin/requests/bulk/approve/", {"confirmed": "yes", "key": request.request_id})

    assert story.now_of(request).status is Status.PENDING


def test_an_operation_needs_the_csrf_token(story: Story, as_person: SignIn) -> None:
    request = story.ask_for_prod()
    strict = as_person("bob")
    strict.handler.enforce_csrf_checks = True

    response = strict.post(do(request, "approve"))

    assert response.status_code == 403
    assert story.now_of(request).status is Status.PENDING


def test_the_way_back_stays_in_the_portal(story: Story, as_person: SignIn) -> None:
    request = story.ask_for_prod()

    response = as_person("bob").post(do(request, "approve"), {"next": "https://evil.example/"})

    assert response["Location"] == f"/requests/{request.request_id}/"


def test_an_operator_revokes_and_retries(story: Story, as_person: SignIn) -> None:
    request = story.ask()
    olga = as_person("olga")

    assert "It is taken back at once." in olga.get(do(request, "end")).content.decode()
    olga.post(do(request, "end"), {"reason": "Laptop stolen"})
    ending = story.now_of(request)
    assert (ending.work, ending.ended_by) == (Work.REVOKE, "olga@example.com")
    retried = olga.post(do(request, "retry"))

    assert retried.status_code == 302


def test_many_are_weighed_before_and_told_after(story: Story, as_person: SignIn) -> None:
    first, second, decided = (story.ask_for_prod() for _ in range(3))
    story.deny(decided, actor=story.sam)
    bob = as_person("bob")
    keys = [first.request_id, second.request_id, decided.request_id, "no-such-request"]

    weighed = bob.post("/admin/requests/bulk/approve/", {"key": keys})
    page = weighed.content.decode()
    assert weighed.context["title"] == "Approve 2 requests"
    assert "already denied by sam@example.com" in page
    assert "There is no such request." in page
    assert page.count('name="key"') == 2
    told = bob.post("/admin/requests/bulk/approve/", {"key": keys, "confirmed": "yes"}, follow=True)

    assert [outcome.is_done for outcome in told.context["batch"].told] == [False, False, True, True]
    assert f'href="/requests/{decided.request_id}/"' in told.content.decode()
    assert "2 of 4 done" in told.content.decode()
    assert {story.now_of(request).status for request in (first, second)} == {Status.ACTIVE}


def test_many_are_denied_with_one_reason(story: Story, as_person: SignIn) -> None:
    requests = [story.ask_for_prod() for _ in range(2)]
    keys = [request.request_id for request in requests]

    as_person("bob").post("/admin/requests/bulk/deny/", {"key": keys, "confirmed": "yes", "reason": "Freeze until Monday"})

    assert {story.now_of(request).decision_reason for request in requests} == {"Freeze until Monday"}


def test_one_that_fails_does_not_stop_the_others(story: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = story.ask_for_prod(), story.ask_for_prod()
    approve = operations.approve

    def flaky(*, request_id: str, **rest: object) -> AccessRequest:
        if request_id == first.request_id:
            raise Unavailable("The database did not answer.", code="store_unavailable")
        return approve(request_id=request_id, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(operations, "approve", flaky)

    told = as_person("bob").post(
        "/admin/requests/bulk/approve/", {"key": [first.request_id, second.request_id], "confirmed": "yes"}, follow=True
    )

    assert [outcome.is_done for outcome in told.context["batch"].told] == [False, True]
    assert "The database did not answer." in told.content.decode()


def test_too_many_none_or_the_wrong_ones_are_refused(story: Story, as_person: SignIn) -> None:
    bob = as_person("bob")

    assert bob.post("/admin/requests/bulk/approve/", {"key": [str(number) for number in range(MAX_BULK + 1)]}).status_code == 400
    assert bob.post("/admin/requests/bulk/end/", {"key": ["one"]}).status_code == 400
    assert bob.post("/admin/requests/bulk/delete/", {"key": ["one"]}).status_code == 404
    assert bob.post("/admin/requests/bulk/approve/").status_code == 302


def test_a_quorum_of_two_tells_how_many_are_missing(story: Story, as_person: SignIn) -> None:
    request = story.ask(account="payments-prod", permission_set="PowerUserAccess")
    bob = as_person("bob")

    assert "Records approval 1 of 2" in bob.get(do(request, "approve")).content.decode()
    bob.post(do(request, "approve"))

    assert story.now_of(request).status is Status.PENDING
    assert "1 more is needed" in bob.get(f"/requests/{request.request_id}/").content.decode()


def test_the_result_of_many_is_the_same_however_often_it_is_loaded(story: Story, as_person: SignIn) -> None:
    keys = [story.ask_for_prod().request_id for _ in range(2)]
    bob = as_person("bob")

    sent = bob.post("/admin/requests/bulk/approve/", {"key": keys, "confirmed": "yes", "next": "/admin/requests/?pattern=waiting"})

    assert (sent.status_code, sent["Location"]) == (302, "/admin/requests/bulk/approve/?done")
    for _ in range(2):
        page = bob.get(sent["Location"])
        assert "Approve: 2 of 2 done" in page.content.decode()
        assert page.context["back_url"] == "/admin/requests/?pattern=waiting"
    # Of another operation, or in another session, nothing is known of it.
    assert bob.get("/admin/requests/bulk/deny/?done")["Location"] == "/admin/requests/"
    assert as_person("sam").get(sent["Location"])["Location"] == "/admin/requests/"


def test_what_takes_long_goes_on_from_a_page_that_tells_how_far_it_is(
    story: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "AT_ONCE_SECONDS", 0.0)
    requests = [story.ask_for_prod() for _ in range(3)]
    bob, address = as_person("bob"), "/admin/requests/bulk/deny/"
    typed = {"key": [one.request_id for one in requests], "confirmed": "yes", "reason": "Freeze until Monday"}

    sent = bob.post(address, typed)

    assert sent["Location"] == f"{address}?done"
    for _ in range(2):  # Looking, and looking once more, does nothing.
        page = bob.get(sent["Location"])
        assert page.context["title"] == "Deny: 1 of 3 so far"
        assert 'max="3" value="1"' in page.content.decode()
        assert "Go on" in page.content.decode()
    assert [story.now_of(one).status for one in requests] == [Status.DENIED, Status.PENDING, Status.PENDING]
    # Meanwhile somebody else was first with the second one.
    story.approve(requests[1], actor=story.sam)
    for _ in range(2):
        assert bob.post(address, {"go_on": "yes"})["Location"] == sent["Location"]

    assert "HX-Trigger" not in bob.get(sent["Location"]).headers
    told = bob.get(sent["Location"], headers={"HX-Request": "true"})
    # The bar of the page that goes on by itself counts anew what waits.
    (event,) = json.loads(told["HX-Trigger"])
    assert f'hx-trigger="load, every 60s, {event} from:body"' in told.content.decode()
    assert told.context["title"] == "Deny: 2 of 3 done"
    assert "approved by sam@example.com" in told.content.decode()
    assert [outcome.key for outcome in told.context["batch"].told if not outcome.is_done] == [requests[1].request_id]
    assert bob.post(address, {"go_on": "yes"}).status_code == 302
    assert story.now_of(requests[2]).decision_reason == "Freeze until Monday"


def test_sending_a_decision_on_many_once_more_does_nothing_twice(story: Story, as_person: SignIn) -> None:
    request = story.ask(account="payments-prod", permission_set="PowerUserAccess")
    bob, typed = as_person("bob"), {"key": request.request_id, "confirmed": "yes"}

    for _ in range(2):
        told = bob.post("/admin/requests/bulk/approve/", typed, follow=True)

    assert "You have approved it already" in text_of(told)
    assert story.now_of(request).approvals == {"bob@example.com"}


def test_equal_ones_are_asked_about_as_one(story: Story, as_person: SignIn) -> None:
    for number in range(3):
        story.ask(account="payments-prod", permission_set="PowerUserAccess", ticket=f"CHG-{number}", reason="Release 12")
    story.ask(account="payments-prod", permission_set="PowerUserAccess", reason="Release 12", seconds=7200)
    bob = as_person("bob")
    listed = [row.key for row in bob.get("/admin/requests/").context["rows"]]

    # None is ticked: all that the list shows.
    page = bob.post("/admin/requests/bulk/approve/", {"listed": listed})

    assert [len(fold.prospects) for fold in page.context["folds"]] == [3, 1]
    told = text_of(page)
    assert "3 × payments-prod · PowerUserAccess" in told
    assert all(f"CHG-{number}" in told for number in range(3))
    assert page.content.decode().count('name="key"') == page.context["possible"] == 4
    assert "Records approval 1 of 2" in told


def test_equal_ones_for_several_people_tell_once_what_will_happen(story: Story) -> None:
    asked = story.ask_for_prod()
    records = [asked, replace(asked, subject_id="sam@example.com")]
    prospects = [Prospect(one.subject_id, "", is_possible=True, words=APPROVE.explain(one), record=one) for one in records]
    assert prospects[0].words != prospects[1].words

    (fold,) = folded(prospects)

    assert fold.words == "Grants payments-prod · ReadOnlyAccess to each for 1 h, starting now. It ends by itself."


def test_asking_about_many_costs_no_more_than_about_few(story: Story, as_person: SignIn) -> None:
    keys = [story.ask_for_prod().request_id for _ in range(12)]
    bob = as_person("bob")
    bob.get("/admin/")

    few, many = (
        cost_of(lambda count=count: bob.post("/admin/requests/bulk/approve/", {"key": keys[:count]})).total()  # type: ignore[misc]
        for count in (2, 12)
    )

    assert few == many <= 12


def test_what_was_approved_can_be_looked_at_and_ended_from_what_is_told(story: Story, as_person: SignIn) -> None:
    request, half = story.ask_for_prod(), story.ask(account="payments-prod", permission_set="PowerUserAccess")
    bob = as_person("bob")

    told = bob.post(do(request, "approve"), {"next": "/admin/requests/"}, follow=True).content.decode()

    assert f'<a href="/requests/{request.request_id}/">View</a> <a href="{do(request, "end")}">End it</a>' in told
    assert bob.get(do(request, "end")).status_code == 200
    # Of an approval that is not the last one there is nothing to end yet.
    assert "End it" not in bob.post(do(half, "approve"), {"next": "/admin/requests/"}, follow=True).content.decode()


def test_equal_lines_are_told_apart_by_what_was_asked(story: Story, as_person: SignIn) -> None:
    first = story.ask(account="payments-prod", permission_set="ReadOnlyAccess", ticket="CHG-1", reason="Look at payouts")
    second = story.ask(account="payments-prod", permission_set="ReadOnlyAccess", ticket="CHG-2", reason="Look at refunds")

    page = as_person("bob").post("/admin/requests/bulk/approve/", {"key": [first.request_id, second.request_id]}).content.decode()

    for request in (first, second):
        assert request.reason in page
        assert request.ticket_id in page
        assert f'href="/requests/{request.request_id}/"' in page


def test_what_can_be_done_to_none_says_so(story: Story, as_person: SignIn) -> None:
    decided = [story.deny(story.ask_for_prod(), actor=story.sam).request_id for _ in range(2)]

    weighed = as_person("bob").post("/admin/requests/bulk/approve/", {"key": decided})

    assert weighed.context["title"] == "Approve none of 2 requests"
    assert "None of them can be done." in weighed.content.decode()


def test_a_list_names_what_it_lists_once(story: Story, as_person: SignIn) -> None:
    olga = as_person("olga")
    for path, heading in (
        ("/admin/assignments/", "Assignments"),
        ("/admin/requests/?pattern=stuck", "Requests"),
        ("/admin/rules/", "Rules"),
    ):
        assert f"<h1>{heading}</h1>" in olga.get(path).content.decode()


def test_the_queue_looks_again_and_answers_only_when_it_has_changed(story: Story, as_person: SignIn) -> None:
    story.ask_for_prod()
    bob = as_person("bob")
    page = bob.get("/admin/requests/")
    address = f"{page.context['first_url']}&mark={page.context['mark']}"
    assert address.replace("&", "&amp;") in page.content.decode()

    assert bob.get(address, headers={"HX-Request": "true"}).status_code == 204
    story.ask_for_prod()
    again = bob.get(address, headers={"HX-Request": "true"})

    assert again.content.decode().count('name="key"') == 2
    assert 'hx-swap-oob="true"' in again.content.decode()


def test_ticks_come_back_after_signing_in_again(story: Story, as_person: SignIn) -> None:
    """The page sends them ahead when it has to go; see tests/identity/test_drafts.py."""
    first, _ = story.ask_for_prod(), story.ask_for_prod()
    bob = as_person("bob")
    (mark,) = set(re.findall(r'name="typed_by" value="([^"]+)"', bob.get("/admin/requests/").content.decode()))

    bob.post("/admin/requests/", {"key": first.request_id, "typed_by": mark, "keep": "yes"})

    assert f'id="tick-{first.request_id}" checked' in bob.get("/admin/requests/").content.decode()
