"""Borrowing an account, through HTTP: the form, the request's page and My access, from asking to giving back and taking it back."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.test import Client

from accessportal.access_requests import operations as requests
from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.leases import operations as leases
from accessportal.leases.models import LeaseItem
from accessportal.leases.states import AccountState
from tests.fixtures_accounts import Borrowed
from tests.fixtures_story import Story
from tests.portal.conftest import SignedIn
from tests.portal.test_journey import HTMX, text_of

SMALL = {"pool": "labs", "size": "small", "tags": "", "permission_set": "PowerUserAccess", "duration": "1d", "ticket_id": ""}


def send(client: Client, **given: str) -> Any:
    form = {"submission_id": str(uuid.uuid4()), **SMALL, "reason": "Try the new landing zone", **given}
    return client.post("/requests/new/account_lease/", form)


def newest(story: Story) -> AccessRequest:
    return max(queries.list_mine(actor=story.alice).items, key=lambda one: one.requested_at)


def test_alice_asks_holds_gives_back_and_takes_back(borrowed: Borrowed, signed_in: SignedIn, settings: Any) -> None:
    settings.AWS_START_URL = "https://example.awsapps.com/start"
    story, (account_id,) = borrowed.story, borrowed.fill(1)
    leases.count_accounts(clock=story.clock)
    alice = signed_in("alice")
    form = text_of(alice.get("/requests/new/account_lease/", SMALL))
    assert "1 of 1 is free" in form
    assert "Approved at once" in form
    assert "1 d after it is handed over" in form

    sent = send(alice)

    asked = newest(story)
    assert sent.headers["Location"] == f"/requests/{asked.request_id}/"
    story.carry_out(asked)
    story.clock.advance(60)
    page = text_of(alice.get(f"/requests/{asked.request_id}/"))
    assert account_id in page
    assert "Give back" in page
    assert "Spent not known yet" in page
    for address in ("/", "/accounts/", f"/requests/{asked.request_id}/"):
        html = alice.get(address).content.decode()
        assert f"#/console?account_id={account_id}&amp;role_name=PowerUserAccess" in html
        assert "Extend" in html
        assert account_id in html
    assert "Give this account back now?" in text_of(alice.get(f"/requests/{asked.request_id}/end/", headers=HTMX))

    alice.post(f"/requests/{asked.request_id}/end/", {"reason": ""})
    story.carry_out(story.now_of(asked))

    page = text_of(alice.get(f"/requests/{asked.request_id}/"))
    assert re.search(r"Given back by mistake\? Until 2 Mar 09:03:0\d UTC you can take it back", page)
    assert "Take it back" in text_of(alice.get("/"))
    assert "Take this account back?" in text_of(alice.get(f"/requests/{asked.request_id}/take_back/", headers=HTMX))
    story.clock.advance(30)
    answer = alice.post(f"/requests/{asked.request_id}/take_back/")
    again = newest(story)
    assert answer.headers["Location"] == f"/requests/{again.request_id}/"
    story.carry_out(again)
    page = text_of(alice.get(f"/requests/{again.request_id}/"))
    assert account_id in page
    assert "Active" in page
    assert "Take it back" not in text_of(alice.get("/"))


def test_after_the_window_it_can_not_be_taken_back(borrowed: Borrowed, signed_in: SignedIn) -> None:
    story = borrowed.story
    borrowed.fill(1)
    ended = borrowed.give_back(borrowed.held())
    story.clock.advance(121)
    alice = signed_in("alice")

    assert "Take it back" not in text_of(alice.get(f"/requests/{ended.request_id}/"))
    assert "Take it back" not in text_of(alice.get("/"))
    assert "too long ago" in text_of(alice.get(f"/requests/{ended.request_id}/take_back/", follow=True))


def test_while_others_are_before_the_pages_tell_the_place(borrowed: Borrowed, signed_in: SignedIn) -> None:
    story = borrowed.story
    borrowed.fill(1)
    borrowed.held(actor=story.bob)
    first = borrowed.ask(actor=story.ana)
    story.carry_out(first)
    asked = borrowed.ask()
    story.carry_out(asked)
    alice = signed_in("alice")

    for address in ("/", "/accounts/", f"/requests/{asked.request_id}/"):
        page = text_of(alice.get(address))
        assert "Waiting for an account" in page
        assert "2nd in line, 1 before · when the turn comes is not known" in page
        assert "lapses 5 Mar 09:00 UTC" in page
        assert "Stop waiting" in page
        assert "Open in AWS" not in page
    assert "Stop waiting for an account?" in text_of(alice.get(f"/requests/{asked.request_id}/end/", headers=HTMX))
    mark = alice.get(f"/requests/{asked.request_id}/").context["mark"]
    live = {"mark": mark}
    assert alice.get(f"/requests/{asked.request_id}/live/", live, headers=HTMX).status_code == 204

    requests.end(request_id=first.request_id, actor=story.ana, now=story.clock.now())
    story.carry_out(story.now_of(first))

    moved = text_of(alice.get(f"/requests/{asked.request_id}/live/", live, headers=HTMX))
    assert "1st in line, nobody before" in moved


def test_a_frozen_lease_says_so_and_why(borrowed: Borrowed, signed_in: SignedIn, settings: Any) -> None:
    settings.AWS_START_URL = "https://example.awsapps.com/start"
    story = borrowed.story
    borrowed.fill(1)
    held = borrowed.held()
    alice = signed_in("alice")
    mark = alice.get(f"/requests/{held.request_id}/").context["mark"]

    leases.freeze(lease_id=held.request_id, reason="It mines coins.", actor=story.olga, now=story.clock.now())

    live = alice.get(f"/requests/{held.request_id}/live/", {"mark": mark}, headers=HTMX)
    assert "Being frozen" in text_of(live)
    requests.freeze_leases(clock=story.clock)
    for address in ("/", "/accounts/", f"/requests/{held.request_id}/"):
        page = text_of(alice.get(address))
        assert "Frozen" in page
        assert "It mines coins." in page
        assert "Open in AWS" not in page
        assert "Give back" in page
        assert "Extend" not in page
    assert "The account stays yours until 3 Mar 09:00 UTC" in text_of(alice.get(f"/requests/{held.request_id}/"))
    give_back = f"/requests/{held.request_id}/end/"
    assert "can take it back" not in text_of(alice.get(give_back, headers=HTMX))

    leases.unfreeze(lease_id=held.request_id, actor=story.olga, now=story.clock.now())
    requests.freeze_leases(clock=story.clock)
    page = text_of(alice.get("/"))
    assert "Frozen" not in page
    assert "Open in AWS" in page
    assert "Extend" in page
    assert "Whoever gives it back can take it back for 2 min from when it shows as ended." in text_of(alice.get(give_back, headers=HTMX))


def test_what_it_has_cost_is_told_with_the_age_of_the_figure(borrowed: Borrowed, signed_in: SignedIn) -> None:
    story = borrowed.story
    borrowed.fill(1)
    held = borrowed.held(seconds=3 * 86_400)
    story.clock.advance(86_400)
    until = int(story.clock.now().timestamp()) - 9 * 3600
    LeaseItem(f"lease_id#{held.request_id}").update(
        [LeaseItem.spent.set(123_456), LeaseItem.spent_unit.set("USD"), LeaseItem.spent_as_of.set(until)]
    )
    alice = signed_in("alice")

    for address in ("/", "/accounts/"):
        assert "1,234.56 USD spent until 3 Mar 00:00 UTC" in text_of(alice.get(address))
    page = text_of(alice.get(f"/requests/{held.request_id}/"))
    assert re.search(r"Spent 1,234.56 USD until 3 Mar 00:00:0\d UTC ; what came after is not in it", page)


def test_an_account_that_was_taken_away_is_told(borrowed: Borrowed, signed_in: SignedIn) -> None:
    story = borrowed.story
    borrowed.fill(1)
    held = borrowed.held()
    leases.let_go(lease_id=held.request_id, claim=held.request_id, actor=story.olga, now=story.clock.now())
    alice = signed_in("alice")

    assert "Gone" in text_of(alice.get("/accounts/"))
    page = text_of(alice.get(f"/requests/{held.request_id}/"))
    assert "It is yours no longer" in page
    assert "Extend" not in page


@pytest.mark.parametrize(
    ("given", "status", "told"),
    [
        ({"pool": "nothing"}, 422, ""),
        ({"size": "\0"}, 422, "No rule offers you accounts of this size."),
        ({"tags": "env"}, 422, "Tags are written like env=dev, team=web"),
        ({"permission_set": ""}, 422, "Choose a permission set."),
        ({"permission_set": "Nonsense"}, 422, "There is no permission set “Nonsense”."),
        ({"duration": "8d"}, 422, "7 d"),
        ({"duration": "soon"}, 422, "“soon” is not a duration"),
    ],
)
def test_bad_input_names_the_field(borrowed: Borrowed, signed_in: SignedIn, given: dict[str, str], status: int, told: str) -> None:
    answer = send(signed_in("alice"), **given)

    assert answer.status_code == status
    assert told in text_of(answer)
    assert not queries.list_mine(actor=borrowed.story.alice).items


def test_extending_counts_from_the_approval(borrowed: Borrowed, signed_in: SignedIn) -> None:
    story = borrowed.story
    borrowed.fill(1)
    held = borrowed.held()
    alice = signed_in("alice")
    form = text_of(alice.get(f"/requests/{held.request_id}/extend/"))
    assert "Keep your account longer" in form
    assert "after it is handed over" not in form
    story.clock.advance(3600)

    sent = alice.post(
        f"/requests/{held.request_id}/extend/", {"submission_id": str(uuid.uuid4()), "duration": "2d", "reason": "", "ticket_id": ""}
    )

    assert sent.status_code == 302
    further = newest(story)
    story.carry_out(further)
    assert borrowed.lease_of(held).ends_at == further.expires_at
    page = text_of(alice.get("/accounts/"))
    assert len(re.findall(r"Give back :", page)) == 1
    assert story.now_of(further).status is Status.ACTIVE
    assert borrowed.pool.get(held.account_id).state is AccountState.LEASED
