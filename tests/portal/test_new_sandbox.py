"""Asking for a sandbox, through HTTP: the form, what it foretells, and the request's way through every page."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accessportal.access_requests import queries
from accessportal.access_requests.operations import ending
from accessportal.access_requests.states import AccessRequest, PlaceInLine, Status
from accessportal.kernel.errors import Unavailable
from accessportal.rules import operations as rules
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes import queries as pool
from accessportal.sandboxes.states import Status as PoolStatus
from accessportal.upstream import client as upstream
from tests.fixtures_pool import POOL_RULES, Labs
from tests.fixtures_story import RULES, Story
from tests.portal.conftest import SignedIn
from tests.portal.test_journey import HTMX, text_of

LAB = {"name_prefix": "lab-", "duration": "1h", "ticket_id": "", "reason": "Try the new parser"}


def send(client: Client, **given: str) -> Any:
    return client.post("/requests/new/sandbox/", {"submission_id": str(uuid.uuid4()), **LAB, **given})


def only(story: Story) -> AccessRequest:
    (found,) = queries.list_mine(actor=story.alice).items
    return found


def test_sandboxes_are_offered_where_there_is_a_pool(labs: Labs, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    assert 'href="/requests/new/sandbox/"' in alice.get("/requests/new/").content.decode()
    assert 'href="/sandboxes/"' in alice.get("/").content.decode()

    upstream.configure(upstream.UpstreamSettings())

    assert 'href="/requests/new/sandbox/"' not in alice.get("/requests/new/").content.decode()
    assert 'href="/sandboxes/"' not in alice.get("/").content.decode()


def test_alice_asks_holds_it_and_gives_it_back(labs: Labs, signed_in: SignedIn) -> None:
    story, (lab,) = labs.story, labs.fill("lab-eu-07")
    alice = signed_in("alice")

    sent = send(alice)

    asked = only(story)
    assert sent.headers["Location"] == f"/requests/{asked.request_id}/"
    assert "It gets a sandbox now, or as soon as one is free." in text_of(alice.get(sent.headers["Location"]))

    story.carry_out(asked)

    page = text_of(alice.get(f"/requests/{asked.request_id}/"))
    assert "Sandbox lab-eu-07" in page
    assert lab.sandbox_id in page
    assert "ext-lab-eu-07" in page
    assert "proved present in the pool" in page
    assert "Give back" in page
    for address in ("/", "/sandboxes/"):
        mine = text_of(alice.get(address))
        assert "Sandbox lab-eu-07" in mine
        assert "Give back : Sandbox lab-eu-07" in mine
        assert "Extend Sandbox lab-eu-07" in mine
        assert "Open in AWS" not in mine
    question = text_of(alice.get(f"/requests/{asked.request_id}/end/", headers=HTMX))
    assert "Give this sandbox back now?" in question

    alice.post(f"/requests/{asked.request_id}/end/", {"reason": ""})
    story.carry_out(story.now_of(asked))

    assert pool.get(sandbox_id=lab.sandbox_id).status is PoolStatus.PENDING_DELETION
    page = text_of(alice.get(f"/requests/{asked.request_id}/"))
    assert "proved gone from the pool" in page
    assert "Ask again" in page
    assert "Sandbox lab-eu-07" not in text_of(alice.get("/sandboxes/"))


def test_bob_decides_on_a_long_one_in_the_queue(labs: Labs, signed_in: SignedIn) -> None:
    story = labs.story
    labs.fill("lab-eu-07")
    alice, bob = signed_in("alice"), signed_in("bob")
    send(alice, name_prefix="", duration="8h")
    asked = only(story)
    assert "decides: Bob Ito" in text_of(alice.get("/sandboxes/"))
    queue = text_of(bob.get("/admin/requests/"))
    assert "Sandbox" in queue
    assert "Sandbox" in text_of(bob.get(f"/admin/requests/{asked.request_id}/", follow=True))

    bob.post(f"/requests/{asked.request_id}/approve/", {"reason": "fine"})
    story.carry_out(story.now_of(asked))

    assert "Sandbox lab-eu-07" in text_of(alice.get("/sandboxes/"))


def test_while_none_is_free_the_pages_say_when_one_is_expected(labs: Labs, signed_in: SignedIn) -> None:
    story = labs.story
    labs.fill("lab-eu-07")
    taken = labs.take_elsewhere()
    labs.count()
    alice = signed_in("alice")
    assert "None is free" in text_of(alice.get("/requests/new/sandbox/"))
    send(alice)
    asked = only(story)
    mark = alice.get(f"/requests/{asked.request_id}/").context["mark"]

    story.carry_out(asked)

    live = alice.get(f"/requests/{asked.request_id}/live/", {"mark": mark}, headers=HTMX)
    assert "Waiting for a sandbox" in text_of(live)
    assert "Its time begins when it has one." in text_of(live)
    for address in ("/", "/sandboxes/"):
        assert "Waiting for a sandbox" in text_of(alice.get(address))
        assert "Stop waiting" in text_of(alice.get(address))
        assert "Extend" not in text_of(alice.get(address))
    assert "Stop waiting for a sandbox?" in text_of(alice.get(f"/requests/{asked.request_id}/end/", headers=HTMX))

    sandboxes.release(sandbox_id=taken.sandbox_id, track="track-1", actor=story.olga, now=story.clock.now())
    labs.fill("lab-eu-08")
    story.clock.advance(60)
    story.tick()

    assert "Sandbox lab-eu-08" in text_of(alice.get("/sandboxes/"))


def test_it_is_kept_longer_and_one_button_gives_all_of_it_back(labs: Labs, signed_in: SignedIn) -> None:
    story = labs.story
    labs.fill("lab-eu-07", "lab-eu-08")
    alice = signed_in("alice")
    first = labs.held(seconds=1800)
    story.clock.advance(60)
    form = alice.get(f"/requests/{first.request_id}/extend/")
    assert "Keep your sandbox longer" in text_of(form)
    assert "Approved at once" in text_of(form)

    answer = alice.post(
        f"/requests/{first.request_id}/extend/", {"submission_id": str(uuid.uuid4()), "duration": "2h", "reason": "", "name_prefix": "x"}
    )
    assert answer.status_code == 302
    further = max(queries.list_mine(actor=story.alice).items, key=lambda one: one.expires_at)
    assert further.extends == first.request_id
    story.carry_out(further)

    lab = labs.of(first)
    assert lab.expires_at == further.expires_at
    page = alice.get("/sandboxes/")
    assert text_of(page).count(f"Give back : Sandbox {lab.name}") == 1
    assert f"/requests/{further.request_id}/end/" in page.content.decode()
    assert "Held by 2 requests" in text_of(alice.get("/"))

    alice.post(f"/requests/{further.request_id}/end/", {"reason": "done"})
    for request in (first, further):
        story.carry_out(story.now_of(request))

    assert story.now_of(first).status is story.now_of(further).status is Status.REVOKED
    assert pool.get(sandbox_id=lab.sandbox_id).status is PoolStatus.PENDING_DELETION


def test_a_give_back_that_died_half_way_can_be_pressed_again(labs: Labs, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch) -> None:
    story, (lab,) = labs.story, labs.fill("lab-eu-07")
    alice = signed_in("alice")
    first = labs.held(seconds=1800)
    story.clock.advance(60)
    further = story.carry_out(story.extend(first, 7200))

    def killed(*_: object) -> None:
        raise RuntimeError("killed here")

    # It comes after each end that is written: of two, one was.
    monkeypatch.setattr(ending, "ask_for_work", killed)
    with pytest.raises(RuntimeError):
        alice.post(f"/requests/{further.request_id}/end/", {"reason": ""})
    monkeypatch.undo()

    # What she pressed is still hers to press: nothing holds the sandbox behind an ended page.
    assert story.now_of(further).is_granted
    assert f"/requests/{further.request_id}/end/" in alice.get("/sandboxes/").content.decode()
    alice.post(f"/requests/{further.request_id}/end/", {"reason": ""})
    for request in (first, further):
        story.carry_out(story.now_of(request))
    assert pool.get(sandbox_id=lab.sandbox_id).status is PoolStatus.PENDING_DELETION


def test_a_sandbox_keeps_its_name_in_every_question_and_after_its_end(labs: Labs, signed_in: SignedIn) -> None:
    story, (lab,) = labs.story, labs.fill("lab-eu-07")
    alice, held = signed_in("alice"), labs.held()
    page = f"/requests/{held.request_id}/"
    assert "Sandbox lab-eu-07" in text_of(alice.get(f"{page}end/"))
    alice.post(f"{page}end/", {"reason": ""})
    story.carry_out(story.now_of(held))

    assert "Sandbox lab-eu-07" in text_of(alice.get(page))
    assert "Sandbox lab-eu-07" in text_of(alice.get("/"))
    olga = signed_in("olga")
    assert "Sandbox lab-eu-07" in text_of(olga.get(f"/admin{page}", follow=True))
    assert "Sandbox lab-eu-07" in text_of(olga.get("/admin/requests/?pattern=all&q=alice@example.com"))
    assert pool.get(sandbox_id=lab.sandbox_id).name == "lab-eu-07"


def test_a_sandbox_whose_row_cannot_be_read_hinders_no_list(labs: Labs, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch) -> None:
    story, alice = labs.story, signed_in("alice")
    labs.fill("lab-eu-07")
    held = labs.held()
    story.end(held)
    story.carry_out(story.now_of(held))

    def broken(**_: object) -> None:
        raise Unavailable("The sandbox can't be read.", code="item_unreadable")

    monkeypatch.setattr(pool, "get", broken)

    assert "Sandbox · lab-" in text_of(alice.get("/"))


def test_asking_again_does_not_continue_what_was(labs: Labs, signed_in: SignedIn) -> None:
    story = labs.story
    labs.fill("lab-eu-07", "lab-eu-08")
    alice = signed_in("alice")
    held = labs.held(seconds=600)
    alice.post(f"/requests/{held.request_id}/extend/", {"submission_id": str(uuid.uuid4()), "duration": "20m", "reason": ""})
    further = max(queries.list_mine(actor=story.alice).items, key=lambda one: one.expires_at)
    story.carry_out(further)
    alice.post(f"/requests/{further.request_id}/end/", {"reason": ""})
    story.carry_out(story.now_of(further))

    (again,) = set(re.findall(r'href="(/requests/new/sandbox/\?[^"]+)"', alice.get(f"/requests/{further.request_id}/").content.decode()))

    assert "continues" not in again
    form = alice.get(again.replace("&amp;", "&"))
    assert form.context["form"]["name_prefix"].value() == "lab-"
    assert form.context["form"]["duration"].value() == "20m"


def test_a_sandbox_that_was_taken_away_is_told(labs: Labs, signed_in: SignedIn) -> None:
    story = labs.story
    labs.fill("lab-eu-07")
    alice = signed_in("alice")
    held = labs.held()
    page = alice.get(f"/requests/{held.request_id}/")
    mark = page.context["mark"]
    assert alice.get(f"/requests/{held.request_id}/live/", {"mark": mark}, headers=HTMX).status_code == 204

    sandboxes.release_by_operator(sandbox_id=labs.of(held).sandbox_id, reason="needed", actor=story.olga, now=story.clock.now())

    assert "yours no longer" in text_of(alice.get(f"/requests/{held.request_id}/live/", {"mark": mark}, headers=HTMX))
    mine = text_of(alice.get("/sandboxes/"))
    assert "Given back or taken away by another way." in mine
    assert "Gone" in mine
    assert "Extend" not in mine


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"name_prefix": "gpu-"}, "No rule offers you sandboxes with this name."),
        ({"name_prefix": "a\0b"}, "No rule offers you sandboxes with this name."),
        ({"duration": ""}, "Say for how long"),
        ({"duration": "9h"}, "8 h"),
        ({"duration": "soon"}, "soon"),
        ({"reason": ""}, "Say why you need it."),
        ({"reason": "x\u202ey"}, "U+202E"),
    ],
)
def test_the_form_comes_back_with_the_message_and_all_that_was_typed(
    labs: Labs, signed_in: SignedIn, wrong: dict[str, str], told: str
) -> None:
    given = {**LAB, **wrong}

    answer = send(signed_in("alice"), **given)

    assert answer.status_code == 422
    assert told in text_of(answer)
    assert {name: answer.context["form"][name].value() for name in given} == given
    assert queries.list_mine(actor=labs.story.alice).items == ()


def test_whoever_has_as_many_as_a_rule_allows_is_told(labs: Labs, signed_in: SignedIn) -> None:
    labs.fill("lab-1", "lab-2", "lab-3")
    for _ in range(2):
        labs.held()

    answer = send(signed_in("alice"))

    assert answer.status_code in {403, 409, 422}
    assert len(queries.list_mine(actor=labs.story.alice).items) == 2
    assert answer.context["form"].non_field_errors()


def test_whom_no_rule_serves_is_refused_with_the_reason(labs: Labs, signed_in: SignedIn) -> None:
    answer = send(signed_in("mallory"), name_prefix="")

    assert answer.status_code == 403
    assert answer.context["form"]["reason"].value() == LAB["reason"]


def test_only_a_choice_is_a_question(labs: Labs, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    page = alice.get("/requests/new/sandbox/").content.decode()
    assert '<option value="lab-"' in page
    assert '<option value=""' in page

    labs_alone = POOL_RULES.partition("  - name: long-sandboxes")[0]
    rules.apply_rules(text=RULES + labs_alone, actor=labs.story.olga, now=labs.story.clock.now())

    page = alice.get("/requests/new/sandbox/").content.decode()
    assert "<option" not in page
    assert '<input type="hidden" name="name_prefix" value="lab-"' in page


def test_the_preview_says_who_decides(labs: Labs, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    def told(**given: str) -> str:
        return text_of(alice.get("/requests/new/sandbox/preview/", given, headers=HTMX))

    assert "Approved at once Rule labs" in told(name_prefix="lab-", duration="1h")
    waits = told(name_prefix="", duration="8h")
    assert "Needs one approval" in waits
    assert "Bob Ito" in waits
    assert "Not possible like this" in told(name_prefix="lab-", duration="12h")
    assert "Not possible like this" in told(name_prefix="gpu-", duration="x" * 400)
    assert "Not possible like this" in told(name_prefix="lab-", duration="1h", continues="00000000-0000-4000-8000-000000000000")
    assert "Not possible like this" in text_of(
        signed_in("mallory").get("/requests/new/sandbox/preview/", {"name_prefix": "", "duration": "1h"}, headers=HTMX)
    )


@pytest.mark.parametrize(
    ("before", "expected_in", "told"),
    [
        (0, (300, 900), "1st in line, nobody before · turn expected 2 Mar 09:05 UTC to 2 Mar 09:15 UTC"),
        (2, None, "3rd in line, 2 before · when the turn comes is not known"),
    ],
)
def test_the_pages_tell_the_place_in_the_line(
    labs: Labs, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch, before: int, expected_in: tuple[int, int] | None, told: str
) -> None:
    story, alice = labs.story, signed_in("alice")
    asked = labs.ask()
    story.carry_out(asked)
    now = story.clock.now()
    expected = (now + timedelta(seconds=expected_in[0]), now + timedelta(seconds=expected_in[1])) if expected_in else None
    place = PlaceInLine(before=before, lapses_at=now + timedelta(days=3), expected=expected)
    monkeypatch.setattr(queries, "places_in_line", lambda *, requests, now: {one.request_id: place for one in requests})

    for address in ("/", "/sandboxes/", f"/requests/{asked.request_id}/"):
        page = text_of(alice.get(address))
        assert told in page
        assert "lapses 5 Mar 09:00 UTC" in page
    mark = alice.get(f"/requests/{asked.request_id}/").context["mark"]
    live = {"mark": mark}
    assert alice.get(f"/requests/{asked.request_id}/live/", live, headers=HTMX).status_code == 204
    place = PlaceInLine(before=before + 1, lapses_at=place.lapses_at, expected=expected)
    assert alice.get(f"/requests/{asked.request_id}/live/", live, headers=HTMX).status_code == 200
