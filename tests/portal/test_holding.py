"""My access: one row for each thing, more of it by two clicks, what waits for one's decision, and the way into AWS."""

from __future__ import annotations

import html
import re
import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest
from pytest_django import Settings

from accessportal.access_requests import queries
from accessportal.access_requests.models import RequestItem
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.directory.states import State
from tests.access_requests.test_costs import cost_of, grow
from tests.access_requests.test_departing import PAYMENTS, disable, join, leave, set_group, set_person
from tests.fixtures_story import Story
from tests.portal.conftest import SignedIn
from tests.portal.test_journey import HTMX, text_of


def newest(story: Story) -> AccessRequest:
    return queries.list_mine(actor=story.alice, limit=1).items[0]


def test_requests_that_hold_one_thing_are_one_row_with_the_last_end(story: Story, signed_in: SignedIn) -> None:
    story.carry_out(story.ask(seconds=1800, reason="First"))
    story.clock.advance(1)
    last = story.carry_out(story.ask(seconds=7200, reason="Second"))

    page = signed_in("alice").get("/")

    assert "1 active." in text_of(page)
    assert re.findall(r'id="open-([0-9a-f-]+)"', page.content.decode()) == [last.request_id]
    assert "Held by 2 requests First · ends" in text_of(page)


def test_a_step_counts_from_the_end_and_needs_no_typing(story: Story, signed_in: SignedIn) -> None:
    alice, held = signed_in("alice"), story.carry_out(story.ask(seconds=1800, reason="Incident 4711"))
    story.clock.advance(600)

    sheet = alice.get(f"/requests/{held.request_id}/extend/", headers=HTMX)
    assert "approved at once by rule dev-power" in text_of(sheet)
    steps = re.findall(r'name="step" value="(\w+)"( disabled)?>', sheet.content.decode())
    assert steps == [("30m", ""), ("1h", ""), ("4h", " disabled"), ("8h", " disabled")]
    assert "The latest end now is 2 Mar 12:59 UTC : at most 3 h 49 min from now" in text_of(sheet)

    form = {"step": "30m", "submission_id": str(uuid.uuid4())}
    sent = alice.post(f"/requests/{held.request_id}/extend/", form)

    longer = newest(story)
    assert sent.headers["Location"] == f"/requests/{longer.request_id}/"
    assert (longer.extends, longer.reason) == (held.request_id, "Incident 4711")
    assert longer.expires_at == held.expires_at + timedelta(minutes=30)

    story.clock.advance(3)
    again = alice.post(f"/requests/{held.request_id}/extend/", form)
    assert again.headers["Location"] == sent.headers["Location"]
    assert newest(story) == longer

    page = f"/requests/{longer.request_id}/"
    assert "Length about 50 min" in text_of(alice.get(page))
    story.carry_out(longer)
    for told, words in ((alice.get(page), "Length until 2 Mar 10:00 UTC"), (alice.get("/requests/"), "· until 2 Mar 10:00 UTC")):
        assert words in text_of(told)


def test_what_waits_is_read_a_page_at_a_time_and_counted_as_far(story: Story, signed_in: SignedIn) -> None:
    bob = signed_in("bob")
    for _ in range(4):
        story.ask_for_prod()
    assert "Waiting for me 3 of 4, see all" in text_of(bob.get("/fragments/for-me/"))

    for _ in range(24):
        story.ask_for_prod()
    panel = bob.get("/fragments/for-me/")

    assert "Waiting for me 3 of 25+, see all" in text_of(panel)
    assert len(panel.context["waiting"]) == 3
    # The tab's title takes the bar's.
    assert re.search(r'class="tally"[^>]*>(28|25)\+?<', bob.get("/fragments/approvals/").content.decode())


def test_what_waits_and_can_not_be_read_is_named_beside_the_rest(story: Story, signed_in: SignedIn) -> None:
    bob, waiting = signed_in("bob"), [story.ask_for_prod(), story.ask_for_prod()]

    for one, told in zip(waiting, ("1 of 1+", "0 of ?"), strict=True):
        RequestItem.get(one.request_id).update([RequestItem.duration_seconds.set(-1)])
        panel = html.unescape(text_of(bob.get("/fragments/for-me/")))
        assert f"Waiting for me {told}, see all" in panel
        assert f"The item {one.request_id} of the table ActiveRequests can't be read" in panel


@pytest.mark.parametrize(("step", "told"), [("8h", "4 h"), ("7m", "Choose one of the lengths of the page.")])
def test_a_step_that_is_not_offered_gives_nothing(story: Story, signed_in: SignedIn, step: str, told: str) -> None:
    alice, held = signed_in("alice"), story.carry_out(story.ask(seconds=1800))

    answer = alice.post(f"/requests/{held.request_id}/extend/", {"step": step}, follow=True)

    assert told in text_of(answer)
    assert newest(story) == story.now_of(held)


def test_what_waits_for_somebody_is_approved_from_their_own_page(story: Story, signed_in: SignedIn) -> None:
    asked, bob = story.ask_for_prod(), signed_in("bob")
    assert 'hx-get="/fragments/for-me/"' in bob.get("/").content.decode()
    assert 'hx-get="/fragments/for-me/"' not in signed_in("alice").get("/").content.decode()
    assert text_of(signed_in("alice").get("/fragments/for-me/")).strip() == ""
    assert "payments-prod · ReadOnlyAccess · 1 h · Alice Park Incident 4711" in text_of(bob.get("/fragments/for-me/"))

    answer = bob.post(f"/requests/{asked.request_id}/approve/", {"next": "/"})

    assert answer.headers["Location"] == "/"
    assert story.now_of(asked).status is Status.ACTIVE


def test_the_way_into_aws_is_on_the_page_of_whoever_holds_it(story: Story, signed_in: SignedIn, settings: Settings) -> None:
    settings.AWS_START_URL = "https://example.awsapps.com/start"
    held = story.carry_out(story.ask())
    page = f"/requests/{held.request_id}/"

    mine = signed_in("alice").get(page)

    assert "[profile payments-dev-PowerUserAccess] sso_session = access-portal" in text_of(mine)
    assert f"sso_account_id = {story.twin.accounts['payments-dev']} sso_role_name = PowerUserAccess region = eu-central-1" in text_of(mine)
    assert "[profile" not in text_of(signed_in("olga").get(page))
    settings.AWS_START_URL = ""
    assert "[profile" not in text_of(signed_in("alice").get(page))


def test_my_access_costs_a_dozen_requests_and_no_more_with_more_groups_and_requests(story: Story, signed_in: SignedIn) -> None:
    clients = {name: signed_in(name) for name in ("alice", "bob")}
    held = story.carry_out(story.ask())
    story.ask_for_prod()
    pages = [("alice", "/"), ("bob", "/"), ("bob", "/fragments/for-me/"), ("alice", f"/requests/{held.request_id}/extend/")]
    for name, page in pages:
        clients[name].get(page)

    def costs() -> dict[tuple[str, str], int]:
        return {(name, page): len(cost_of(lambda name=name, page=page: clients[name].get(page))) for name, page in pages}  # type: ignore[misc]

    before = costs()
    grow([number for number in range(200) if number % 4 in (0, 2)])
    for _ in range(30):
        story.ask_for_prod()

    assert max(before.values()) <= 12, before
    assert costs() == before


def test_all_ones_requests_are_narrowed_by_kind_state_and_days_and_paged_to_their_end(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    denied, joins = story.deny(story.ask_for_prod()), story.ask_to_join()
    waiting = [story.ask_for_prod() for _ in range(30)]

    def found(query: str) -> list[str]:
        return re.findall(r'class="what"><a href="/requests/([0-9a-f-]+)/"', alice.get(f"/requests/?{query}").content.decode())

    assert found("kind=group") == [joins.request_id]
    assert found("state=DENIED&kind=aws_account") == [denied.request_id]
    assert found("since=2026-03-02&until=2026-03-02&state=DENIED") == [denied.request_id]
    assert found("until=2026-03-01&state=DENIED") == []
    # It was still the day before where she is.
    assert found("until=2026-03-01&state=DENIED&zone=Pacific/Pago_Pago") == [denied.request_id]
    first = alice.get("/requests/")
    rest = alice.get(first.context["next_url"])
    shown = [row.request.request_id for page in (first, rest) for row in page.context["rows"]]
    assert sorted(shown) == sorted(one.request_id for one in (denied, joins, *waiting))
    assert not rest.context["next_url"]
    assert "You asked for nothing like that." in text_of(alice.get("/requests/?state=LAPSED"))
    assert "You have asked for nothing yet." in text_of(signed_in("mallory").get("/requests/"))
    wrong = {
        "state=GONE": "no state of a request",
        "since=March": "is not a day",
        "kind=key": "no kind of access",
        "since=2026-03-02&until=2026-03-01": "before the first day",
    }
    for query, told in wrong.items():
        refused = alice.get(f"/requests/?{query}")
        assert refused.status_code == 400
        assert told in text_of(refused)
    assert len(cost_of(lambda: alice.get("/requests/?state=LAPSED"))) <= 12
    assert len(cost_of(lambda: alice.get("/requests/"))) <= 12


ENDS: dict[str, tuple[Callable[[Story, AccessRequest], object], str]] = {
    "time": (lambda story, _held: story.clock.advance(3600), "when its time was up"),
    "herself": (lambda story, held: story.end(held), "by you"),
    "an approver": (lambda story, held: story.end(held, actor=story.bob), "by Bob Ito"),
    "disabled": (lambda story, _held: disable(story), "because you were disabled"),
    "left": (lambda story, _held: leave(story), "because you are no longer in a group that its rule serves"),
}


@pytest.mark.parametrize("what", ENDS)
def test_what_has_ended_says_who_or_what_ended_it(story: Story, signed_in: SignedIn, what: str) -> None:
    end, why = ENDS[what]
    join(story, "/security")
    held = story.carry_out(story.approve(story.ask_for_prod()))

    end(story, held)
    story.tick()
    story.tick()
    if what == "disabled":
        set_person(story, State.ENABLED)

    alice = signed_in("alice")
    assert re.search(rf"Ended \d+ \w+ \d\d:\d\d UTC {why}\. The access was proved to be gone\.", text_of(alice.get("/")))
    assert re.search(rf"ended \d+ \w+ \d\d:\d\d UTC {why}", text_of(alice.get("/requests/")))
    assert re.search(rf"ended \d+ \w+ \d\d:\d\d UTC {why}", text_of(alice.get(f"/requests/{held.request_id}/")))


def test_what_ended_with_a_group_or_by_an_older_version_says_so_too(story: Story, signed_in: SignedIn) -> None:
    held = story.carry_out(story.ask(subject_id=PAYMENTS))
    set_group(story, State.DISABLED, PAYMENTS)
    story.tick()
    story.tick()
    alice = signed_in("alice")
    assert f"because {PAYMENTS} was disabled." in text_of(alice.get("/"))

    RequestItem(held.request_id).update(actions=[RequestItem.end_code.remove()])
    assert "by the portal. The access was proved to be gone." in text_of(alice.get("/"))


def test_what_was_cancelled_says_whether_she_withdrew_it(story: Story, signed_in: SignedIn) -> None:
    withdrawn, cancelled = story.ask_for_prod(), story.ask_for_prod()
    alice = signed_in("alice")
    alice.post(f"/requests/{withdrawn.request_id}/cancel/")
    assert "Withdrawn before it was decided" in text_of(alice.get("/"))
    assert "Cancelled by" not in text_of(alice.get("/"))

    disable(story)
    story.tick()
    set_person(story, State.ENABLED)
    assert story.now_of(cancelled).status is Status.CANCELLED
    assert "Cancelled by the portal: “alice@example.com is disabled in the directory.”" in text_of(signed_in("alice").get("/"))
