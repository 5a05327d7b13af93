"""A person's page: who may see it, why they have what they have, and what admins of the root can do there."""

from __future__ import annotations

import re

import boto3
import pytest
from django.test import Client

from accessportal.access_requests import queries as requests
from accessportal.access_requests.states import Status
from accessportal.directory import operations as directory
from accessportal.directory import queries
from accessportal.directory.queries import looking_up
from accessportal.directory.states import GroupRole
from accessportal.kernel.errors import Unavailable
from accessportal.portal.directory import people
from accessportal.store.base import current_settings
from tests.console.test_page_costs import MOST, cost_of
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION
from tests.portal.conftest import SignedIn
from tests.portal.test_groups import SETUP
from tests.portal.test_journey import text_of

ALICE = "/people/alice@example.com/"


@pytest.mark.parametrize(("who", "status"), [("alice", 200), ("gina", 200), ("bob", 404), ("olga", 200), ("ana", 200), ("mallory", 404)])
def test_a_page_is_seen_by_whom_it_concerns(story: Story, signed_in: SignedIn, who: str, status: int) -> None:
    client = signed_in(who)

    assert client.get(ALICE).status_code == status
    assert client.get(f"{ALICE}live/").status_code == status


def test_mallory_cannot_tell_alice_from_nobody(story: Story, signed_in: SignedIn) -> None:
    mallory = signed_in("mallory")

    theirs, nobody = mallory.get(ALICE), mallory.get("/people/nobody@example.com/")

    assert (theirs.status_code, nobody.status_code) == (404, 404)
    assert text_of(theirs) == text_of(nobody)
    for path in ("/people/a%00@example.com/", "/people/" + "x" * 3000 + "@example.com/", "/people/nobody/", "/people/@/"):
        assert mallory.get(path).status_code == 404


def test_the_way_to_my_own_page_is_on_every_page(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    assert f'href="{ALICE}"' in alice.get("/").content.decode()
    assert "Why do I have this?" in text_of(alice.get(ALICE))


def test_each_membership_says_by_whom_and_what_it_reaches(story: Story, signed_in: SignedIn) -> None:
    page = text_of(signed_in("gina").get("/people/gina@example.com/"))

    assert "Admin given directly by the portal" in page
    assert "without an end" in page
    assert "Admin of /engineering/payments inherited from /engineering" in page
    assert "/engineering" in page


def test_what_is_not_listed_is_counted(story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "_INHERITED", 1)
    now = story.clock.now()
    directory.create_group(group_id="/engineering/ledger", name="Ledger", description="", parent_id="/engineering", actor=SETUP, now=now)
    below = [one for one in queries.tree().groups.values() if "/engineering" in one.ancestors]

    page = text_of(signed_in("gina").get("/people/gina@example.com/"))

    assert f"Reaches {len(below)} groups below" in page
    assert f"and {len(below) - 1} more" in page


def test_active_access_is_shown_to_the_person_and_to_those_who_read_everything(story: Story, signed_in: SignedIn) -> None:
    story.carry_out(story.ask())

    for who in ("alice", "olga", "ana"):
        assert "payments-dev · PowerUserAccess" in text_of(signed_in(who).get(ALICE))
    assert "payments-dev" not in text_of(signed_in("gina").get(ALICE))


def test_an_admin_of_the_root_renames_disables_enables_and_deletes(story: Story, signed_in: SignedIn) -> None:
    olga = signed_in("olga")
    page = text_of(olga.get(ALICE))
    assert "Rename" in page
    assert "Disable" in page
    assert "Enable Alice" not in page

    olga.post(f"{ALICE}rename/", {"name": "Alice Parker"})
    olga.post(f"{ALICE}disable/")
    told = text_of(olga.get(ALICE))
    assert "Alice Parker" in told
    assert "While the person is disabled, none of these memberships gives anything." in told
    olga.post(f"{ALICE}enable/")
    alice = queries.find_person(email="alice@example.com")
    assert alice is not None
    assert alice.is_enabled

    question = text_of(olga.get(f"{ALICE}delete/"))
    assert "Delete Alice Parker?" in question
    gone = olga.post(f"{ALICE}delete/")
    assert gone.headers["Location"] == "/groups/"
    assert olga.get(ALICE).status_code == 404


def test_whoever_disables_or_deletes_is_told_what_ends(story: Story, signed_in: SignedIn) -> None:
    story.ask()
    story.ask_for_prod()
    story.ask_to_join("/engineering", "reader")
    olga = signed_in("olga")

    for deed in ("disable", "delete"):
        asked = text_of(olga.get(f"{ALICE}{deed}/"))
        assert (
            "What they hold by requests ends within a minute, and what they still wait for is cancelled. Active now: 2, waiting: 1."
            in asked
        )
        # No choice is offered: the law of departures ends it in any case.
        assert "Ends with this: 2" in asked
        assert "payments-dev · PowerUserAccess" in asked
        assert "And is cancelled: payments-prod · ReadOnlyAccess." in asked
        assert "checkbox" not in olga.get(f"{ALICE}{deed}/").content.decode()
    assert "enabling them later gives none of it back" in text_of(olga.get(f"{ALICE}disable/"))
    told = text_of(olga.post(f"{ALICE}disable/", follow=True))
    assert "Ends within a minute: " in told
    assert "payments-dev · PowerUserAccess" in told
    assert "Is cancelled: payments-prod · ReadOnlyAccess." in told


def test_the_page_of_whoever_was_disabled_follows_what_ends_and_keeps_it(story: Story, signed_in: SignedIn) -> None:
    story.end(story.carry_out(story.ask(permission_set="ReadOnlyAccess")))
    story.tick()
    held, olga, ana = story.carry_out(story.ask()), signed_in("olga"), signed_in("ana")
    assert 'id="live">' in olga.get(ALICE).content.decode()

    olga.post(f"{ALICE}disable/")
    before = ana.get(ALICE).content.decode()
    (live,) = re.findall(r'id="live" hx-get="([^"]+)" hx-trigger="every 2s"', before)
    assert ana.get(live).status_code == 204
    assert "Ended when disabled" not in before
    story.tick()
    story.tick()
    assert not story.is_assigned()

    after = ana.get(live)
    assert "Access now None at the moment." in text_of(after)
    assert re.search(r"Ended when disabled payments-dev · PowerUserAccess .+ Ended \d+ \w+ \d\d:\d\d UTC", text_of(after))
    assert f"/requests/{held.request_id}/" in after.content.decode()
    assert "payments-dev · ReadOnlyAccess" not in text_of(after)
    assert 'hx-trigger="every 15s"' in after.content.decode()
    assert cost_of(lambda: ana.get(ALICE)).total() <= MOST
    olga.post(f"{ALICE}enable/")
    assert 'id="live">' in olga.get(ALICE).content.decode()
    assert "Ended when disabled" not in text_of(ana.get(ALICE))


def test_a_person_is_disabled_also_while_what_they_hold_can_not_be_read(
    story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga = signed_in("olga")

    def fail(**_: object) -> None:
        raise Unavailable("DynamoDB did not answer.", code="store_unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(requests, "what_ends_with", fail)
        answer = olga.post(f"{ALICE}disable/")

    assert answer.status_code == 302
    assert "is disabled now. What they hold by requests ends within a minute" in text_of(olga.get(ALICE))


def test_disabling_somebody_ends_their_access_also_where_the_process_dies_after_it(story: Story, signed_in: SignedIn) -> None:
    """The departure is written with the change: the next tick knows it from the table alone."""
    held, waiting = story.carry_out(story.ask()), story.ask_for_prod()
    assert story.is_assigned()

    assert signed_in("olga").post(f"{ALICE}disable/").status_code == 302
    story.asked.clear()
    story.tick()

    assert not story.is_assigned()
    assert (story.now_of(held).status, story.now_of(waiting).status) == (Status.REVOKED, Status.CANCELLED)


def test_whoever_is_disabled_is_signed_out_at_their_next_click(story: Story, signed_in: SignedIn) -> None:
    alice, olga = signed_in("alice"), signed_in("olga")

    olga.post(f"{ALICE}disable/")

    assert alice.get("/").status_code == 403
    assert alice.get("/").status_code == 302


@pytest.mark.parametrize("who", ["alice", "gina", "ana"])
@pytest.mark.parametrize("deed", ["rename", "disable", "enable", "delete"])
def test_nobody_else_changes_a_person(story: Story, signed_in: SignedIn, who: str, deed: str) -> None:
    client = signed_in(who)
    before = queries.find_person(email="alice@example.com")

    assert client.get(f"{ALICE}{deed}/").status_code == 403
    assert client.post(f"{ALICE}{deed}/", {"name": "X"}).status_code == 403
    assert queries.find_person(email="alice@example.com") == before


def test_stale_and_bad_input_come_back_with_the_reason(story: Story, signed_in: SignedIn) -> None:
    olga = signed_in("olga")

    assert olga.post(f"{ALICE}enable/").status_code == 409
    assert olga.post(f"{ALICE}rename/", {"name": ""}).status_code == 422
    assert olga.post(f"{ALICE}rename/", {"name": "a\0b"}).status_code == 422
    assert olga.post(f"{ALICE}rename/", {"name": "x" * 300}).status_code == 422
    assert olga.get(f"{ALICE}dance/").status_code == 404


def test_a_slash_in_an_address_is_part_of_it(story: Story, signed_in: SignedIn) -> None:
    directory.create_person(
        email="a/b@example.com", name="Ab", group_id="/engineering", role=GroupRole.READER, actor=SETUP, now=story.clock.now()
    )
    olga = signed_in("olga")

    assert "a/b@example.com" in text_of(olga.get("/people/a/b@example.com/"))
    assert "Disable Ab?" in text_of(olga.get("/people/a/b@example.com/disable/"))


def test_what_many_groups_give_is_asked_for_in_parts(story: Story, signed_in: SignedIn) -> None:
    """Each group is one request: three come with the page, the others after it, and each exactly once."""
    now = story.clock.now()
    for number in range(8):
        group = f"/engineering/payments/t{number}"
        directory.create_group(group_id=group, name=f"T{number}", description="", actor=SETUP, now=now)
        directory.grant_membership(email="alice@example.com", group_id=group, role=GroupRole.READER, actor=SETUP, now=now)
    story.ask(subject_id="/engineering/payments")
    alice, gina = signed_in("alice"), signed_in("gina")

    page, shown, parts = alice.get(ALICE), "", 0
    assert "What 8 more groups give" in text_of(page)
    while found := re.search(r"groups_from=(\d+)", page.content.decode()):
        assert gina.get(f"{ALICE}?groups_from={found[1]}", headers={"HX-Request": "true"}).status_code == 403
        page = alice.get(f"{ALICE}?groups_from={found[1]}", headers={"HX-Request": "true"})
        shown, parts = shown + text_of(page), parts + 1

    assert parts == 2
    assert "What 7 more groups give" in text_of(alice.get("/"))
    assert (text_of(alice.get(ALICE)) + shown).count("through the group /engineering/payments ·") == 1
    # Without scripts each part is a page of its own; what is no number begins anew.
    assert "From the first" in text_of(alice.get(f"{ALICE}?groups_from=9"))
    for nonsense in ("-1", "x", "9" * 40, "٣"):
        assert "What 8 more groups give" in text_of(alice.get(ALICE, {"groups_from": nonsense}))


def test_people_are_found_by_the_beginning_of_address_and_name(story: Story, signed_in: SignedIn) -> None:
    olga = signed_in("olga")

    def found(text: str, client: Client = olga) -> list[str]:
        page = client.get("/people/search/", {"text": text, "list": "who_list"}).content.decode()
        assert 'id="who_list"' in page
        return re.findall(r'data-value="([^"]*)"', page)

    assert found("ali") == ["alice@example.com"]
    assert found("PARK") == ["alice@example.com"]
    assert found("mallory m") == ["mallory@example.com"]
    assert found("\U0001f600" * 300) == []
    assert found("lice") == found("nobody") == []
    # One letter is looked for among addresses alone.
    assert found("i") == []
    # The admin of a group sees who is in it, and nobody else.
    assert found("s", signed_in("bob")) == ["sam@example.com"]
    assert found("ali", signed_in("bob")) == found("ali", signed_in("gina")) == []
    for name in ("alice", "mallory"):
        assert found("a", signed_in(name)) == []
        told = text_of(signed_in(name).get("/people/search/?text=a&list=who_list"))
        assert "Type the whole address." in told


def test_a_list_of_people_names_groups_where_these_may_be_meant_and_says_what_it_left_out(
    story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga = signed_in("olga")

    with_groups = olga.get("/people/search/?text=pay&list=who_list&groups=yes").content.decode()
    monkeypatch.setattr(looking_up, "_MOST_NAMES", 2)
    partly = text_of(olga.get("/people/search/?text=moss&list=who_list"))

    assert 'data-value="/engineering/payments"' in with_groups
    assert "Nobody whom you may see begins so." in partly
    assert "Not everybody’s name was looked at" in partly
    for list_id in ("", "a b", '"><script>', "x" * 50):
        assert olga.get("/people/search/", {"text": "a", "list": list_id}).status_code == 400


def test_who_can_not_be_read_is_named_by_the_address_and_no_nobody(story: Story, signed_in: SignedIn) -> None:
    olga = signed_in("olga")
    table = boto3.resource("dynamodb", region_name=REGION).Table(f"{current_settings().table_prefix}AccessManagement")
    key = {"pk": "U:mallory@example.com", "sk": "U:mallory@example.com"}
    table.put_item(Item={**table.get_item(Key=key)["Item"], "version": "two"})

    by_address = text_of(olga.get("/people/search/?text=mall&list=who_list"))
    by_name = text_of(olga.get("/people/search/?text=moss&list=who_list"))

    assert "The item U:mallory@example.com of the table AccessManagement can" in by_address
    assert "Nobody whom you may see" not in by_address
    assert "Not everybody’s name was looked at" in by_name
