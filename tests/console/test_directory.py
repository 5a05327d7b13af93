"""People and groups in the console: lists, pages, and what whom is offered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accessportal.directory import operations, queries
from accessportal.directory.states import GroupRole, State
from accessportal.kernel.actors import system
from accessportal.mirror import operations as mirror
from accessportal.mirror import store as mirror_store
from accessportal.web.addresses import KeyConverter
from tests.fixtures_story import Story

SignIn = Callable[[str], Client]
SETUP = system("setup")


def of_person(name: str) -> str:
    return f"/people/{name}@example.com/"


def of_group(group_id: str) -> str:
    return f"/groups/at{group_id.rstrip('/')}/"


def admin_of(group_id: str) -> str:
    return f"/admin/groups/{KeyConverter().to_url(group_id)}/"


def shown(client: Client, url: str, status: int = 200) -> str:
    response = client.get(url)
    assert response.status_code == status, (url, response.status_code, response.content[:1000])
    return response.content.decode()


@pytest.fixture
def otto(story: Story) -> None:
    """An operator who is admin of no group."""
    operations.create_person(
        email="otto@example.com", name="Otto Otis", group_id="/portal/operators", role=GroupRole.READER, actor=SETUP, now=story.clock.now()
    )


@pytest.fixture
def behind(story: Story, monkeypatch: pytest.MonkeyPatch) -> Iterator[Story]:
    """A pool is set, and Cognito has not followed yet."""
    mirror.configure(mirror.MirrorSettings(user_pool_id="eu-central-1_behind"))
    with operations.following_later():
        yield story
    mirror.configure(mirror.MirrorSettings())


def test_people_are_found_by_the_beginning_of_their_address(as_person: SignIn) -> None:
    olga = as_person("olga")

    assert [row.key for row in olga.get("/admin/people/").context["rows"]] == [
        "alice@example.com", "ana@example.com", "bob@example.com", "gina@example.com", "mallory@example.com", "olga@example.com",
        "sam@example.com",
    ]  # fmt: skip
    found = shown(olga, "/admin/people/?q=Al")
    assert "Alice Park" in found
    assert "Bob Ito" not in found
    assert of_person("alice") in found
    assert "address begins so" in shown(olga, "/admin/people/?q=zz")
    fragment = olga.get("/admin/people/?q=al", headers={"HX-Request": "true"}).content.decode()
    assert fragment.lstrip().startswith('<div id="results">')


def test_a_long_list_of_people_has_pages(story: Story, as_person: SignIn) -> None:
    for number in range(27):
        operations.create_person(email=f"p{number:02}@example.com", name=f"P {number}", actor=SETUP, now=story.clock.now())
    olga = as_person("olga")

    first = olga.get("/admin/people/?pattern=all&q=p")
    rest = olga.get(first.context["next_url"])

    assert first.context["next_url"].startswith("/admin/people/?pattern=all&q=p&was=-&cursor=")
    assert len(first.context["rows"]) == 25
    assert [row.key for row in rest.context["rows"]] == ["p25@example.com", "p26@example.com"]
    assert olga.get("/admin/people/?pattern=all&q=p&cursor=forged").status_code == 400


def test_groups_are_listed_whole_and_below_one(as_person: SignIn) -> None:
    ana = as_person("ana")

    assert [row.key for row in ana.get("/admin/groups/").context["rows"]] == [
        "/", "/engineering", "/engineering/payments", "/portal", "/portal/auditors", "/portal/operators", "/security",
    ]  # fmt: skip
    assert [row.key for row in ana.get("/admin/groups/?pattern=under&q=/engineering").context["rows"]] == ["/engineering/payments"]
    assert "Nothing is below this group" in shown(ana, "/admin/groups/?pattern=under&q=/security")
    assert "Give / or a group path" in shown(ana, "/admin/groups/?pattern=under&q=engineering", status=400)
    assert "for example /engineering" in shown(ana, "/admin/groups/?pattern=under")


@pytest.mark.parametrize("name", ["bob", "alice", "mallory"])
def test_the_directory_is_for_operators_and_auditors(as_person: SignIn, name: str) -> None:
    client = as_person(name)
    for url in (
        "/admin/people/",
        "/admin/groups/",
        "/admin/people/alice@example.com/",
        admin_of("/engineering"),
        admin_of("/engineering") + "history/",
    ):
        assert client.get(url).status_code == 403


def test_a_person_shows_what_they_have_and_why(story: Story, as_person: SignIn) -> None:
    request = story.carry_out(story.ask_to_join())
    page = shown(as_person("ana"), of_person("alice"))

    assert "Alice Park" in page
    assert of_group("/engineering/payments") in page
    assert "given directly by the portal" in page
    assert f"/requests/{request.request_id}/" in page
    assert "The chain is whole:" in page
    assert "Membership granted" in page
    assert "Cognito has not followed" not in page
    story.clock.advance(3601)
    later = shown(as_person("ana"), of_person("alice"))
    assert "Its time is up." in later
    assert "Gives nothing" in later


def test_roles_from_above_are_shown_with_where_they_come_from(as_person: SignIn) -> None:
    page = shown(as_person("olga"), of_person("gina"))

    assert (
        'href="/groups/at/engineering/payments/">/engineering/payments</a> <span class="faint">inherited from /engineering</span>' in page
    )


def test_a_group_shows_place_members_admins_and_history(story: Story, as_person: SignIn) -> None:
    story.carry_out(story.ask_to_join())
    page = shown(as_person("ana"), of_group("/engineering"))

    assert of_person("gina") in page
    assert "until <time" in page
    assert of_group("/engineering/payments") in page
    assert "Gina Falk" in page
    assert "Olga Berg" in page
    assert "The chain is whole:" in page
    assert "Group created" in page
    assert admin_of("/engineering") + "history/" in page
    assert "The chain is whole:" in shown(as_person("ana"), admin_of("/engineering") + "history/?check=1")


def test_the_former_addresses_lead_to_the_one_page(story: Story, as_person: SignIn) -> None:
    ana = as_person("ana")

    assert ana.get("/admin/people/alice@example.com/")["Location"] == of_person("alice")
    assert ana.get(admin_of("/engineering/payments"))["Location"] == of_group("/engineering/payments")
    assert "What happened" not in shown(as_person("alice"), of_person("alice"))


def test_a_page_of_the_former_version_that_asked_leads_to_the_one_page_and_does_nothing(as_person: SignIn) -> None:
    olga = as_person("olga")

    answer = olga.post(admin_of("/security") + "do/disable/", {"confirmed": "yes"})

    assert answer["Location"] == of_group("/security")
    assert "nothing was done. It can be done from here." in shown(olga, of_group("/security"))
    assert queries.find_group(group_id="/security").is_enabled  # type: ignore[union-attr]


@pytest.mark.parametrize("url", ["/admin/people/nobody@example.com/", "/admin/people/nobody/", admin_of("/nowhere"), admin_of("nowhere")])
def test_who_or_what_is_not_there_is_not_found(as_person: SignIn, url: str) -> None:
    shown(as_person("olga"), url, status=404)


def offered(client: Client, url: str) -> set[str]:
    """Of what the lists of the console know, too."""
    return {deed.name for deed in client.get(url).context["deeds"]} & {"disable", "enable", "delete"}


def test_buttons_are_for_admins_and_not_for_operators(story: Story, as_person: SignIn, otto: None) -> None:
    assert offered(as_person("olga"), of_person("bob")) == {"disable", "delete"}
    assert offered(as_person("olga"), of_group("/engineering")) == {"disable"}
    assert offered(as_person("olga"), of_group("/portal/auditors")) == {"disable"}
    assert offered(as_person("olga"), of_group("/")) == set()
    for name in ("otto", "ana"):
        assert offered(as_person(name), of_person("bob")) == set()
        assert offered(as_person(name), of_group("/engineering")) == set()
    operations.set_person_state(email="bob@example.com", state=State.DISABLED, actor=SETUP, now=story.clock.now())
    operations.set_group_state(group_id="/engineering", state=State.DISABLED, actor=SETUP, now=story.clock.now())
    assert offered(as_person("olga"), of_person("bob")) == {"enable", "delete"}
    assert offered(as_person("olga"), of_group("/engineering")) == {"enable"}
    assert "It can be deleted when it is empty; it has " in shown(as_person("olga"), of_group("/engineering"))


def test_an_empty_group_can_be_deleted(story: Story, as_person: SignIn) -> None:
    operations.create_group(group_id="/engineering/web", name="Web", description="", actor=SETUP, now=story.clock.now())
    olga = as_person("olga")
    assert offered(olga, of_group("/engineering/web")) == {"disable", "delete"}

    response = do(olga, of_group("/engineering/web"), "delete")

    assert response["Location"] == of_group("/engineering")
    assert "Deleted Web (/engineering/web)." in shown(olga, of_group("/engineering"))
    assert queries.find_group(group_id="/engineering/web") is None


def deed_url(url: str, deed: str) -> str:
    return url.replace("/groups/at", f"/groups/{deed}/at") if url.startswith("/groups/") else f"{url}{deed}/"


def do(client: Client, url: str, deed: str) -> Any:
    return client.post(deed_url(url, deed))


def test_whoever_disables_or_deletes_is_told_what_ends(story: Story, as_person: SignIn) -> None:
    story.ask()
    olga = as_person("olga")

    for operation in ("disable", "delete"):
        asked = shown(olga, deed_url(of_person("alice"), operation))
        assert "What they hold by requests ends within a minute, and what they still wait for is cancelled." in asked
        assert "Active now: 1, waiting: 0." in asked, operation


def test_an_admin_disables_enables_and_deletes_a_person(story: Story, as_person: SignIn) -> None:
    olga, bob = as_person("olga"), of_person("bob")

    assert "They are signed out at their next click" in shown(olga, deed_url(bob, "disable"))
    assert queries.find_person(email="bob@example.com").is_enabled  # type: ignore[union-attr]
    assert do(olga, bob, "disable")["Location"] == bob
    assert "bob@example.com is disabled now." in shown(olga, bob)
    assert do(olga, bob, "disable").status_code == 409
    assert do(olga, bob, "enable")["Location"] == bob
    assert story.role_of("bob@example.com", "/security") is GroupRole.ADMIN
    assert do(olga, bob, "delete")["Location"] == "/groups/"
    assert "bob@example.com was deleted." in shown(olga, "/groups/")
    assert queries.find_person(email="bob@example.com") is None
    shown(olga, bob, status=404)


def test_an_admin_disables_and_enables_a_group(story: Story, as_person: SignIn) -> None:
    olga, security = as_person("olga"), of_group("/security")

    assert "Nobody is in it any more" in shown(olga, deed_url(security, "disable"))
    assert do(olga, security, "disable").status_code == 302
    assert story.role_of("sam@example.com", "/security") is None
    assert do(olga, security, "disable").status_code == 409
    assert do(olga, security, "delete").status_code == 409
    assert do(olga, security, "enable").status_code == 302
    assert story.role_of("sam@example.com", "/security") is GroupRole.CONTRIBUTOR


def test_the_last_admin_of_the_root_stays(as_person: SignIn) -> None:
    response = do(as_person("olga"), of_person("olga"), "disable")

    assert response.status_code == 409
    assert "the last admin of /" in response.content.decode()


@pytest.mark.parametrize(("name", "status"), [("alice", 403), ("bob", 403), ("mallory", 403), ("ana", 403), ("otto", 403)])
def test_nobody_else_changes_anything(story: Story, as_person: SignIn, otto: None, name: str, status: int) -> None:
    client, before = as_person(name), queries.tree()

    for url, operation in (
        (of_person("sam"), "disable"),
        (of_person("sam"), "delete"),
        (of_group("/engineering"), "disable"),
        (of_group("/engineering/payments"), "disable"),
    ):
        # Whoever may not see a person is not told that there is one.
        assert do(client, url, operation).status_code in {status, 404}, (url, operation)
    client.post("/admin/people/bulk/disable/", {"confirmed": "yes", "key": "sam@example.com"})
    assert queries.tree() == before
    assert queries.find_person(email="sam@example.com").is_enabled  # type: ignore[union-attr]


def test_many_people_are_disabled_at_once(story: Story, as_person: SignIn, otto: None) -> None:
    operations.set_person_state(email="sam@example.com", state=State.DISABLED, actor=SETUP, now=story.clock.now())
    keys = ["alice@example.com", "sam@example.com", "olga@example.com", "nobody@example.com"]
    olga = as_person("olga")

    told = olga.post("/admin/people/bulk/disable/", {"confirmed": "yes", "key": keys}, follow=True)

    assert [outcome.is_done for outcome in told.context["batch"].told] == [False, False, False, True]
    assert not queries.find_person(email="alice@example.com").is_enabled  # type: ignore[union-attr]
    assert {operation.name for operation in olga.get("/admin/people/").context["bulk"]} == {"disable", "enable"}
    assert as_person("otto").get("/admin/people/").context["bulk"] == []


def test_what_cognito_has_not_followed_is_listed_and_said(behind: Story, as_person: SignIn) -> None:
    olga = as_person("olga")

    do(olga, of_person("bob"), "disable")
    do(olga, of_group("/engineering"), "disable")

    assert "bob@example.com is disabled here. Cognito has not confirmed yet." in shown(olga, of_person("bob"))
    listed = olga.get("/admin/people/?pattern=behind")
    assert [row.context.name for row in listed.context["rows"]] == ["/engineering", "bob@example.com"]
    assert admin_of("/engineering") in listed.content.decode()
    assert '<span class="tally">2</span>' in shown(olga, "/admin/people/")
    assert "Cognito has not followed the last change of this group yet." in shown(olga, of_group("/engineering"))


def test_the_error_of_cognito_and_its_age_are_shown(behind: Story, as_person: SignIn) -> None:
    olga = as_person("olga")
    do(olga, of_person("bob"), "disable")
    now = behind.clock.now()
    work = mirror_store.take("person#bob@example.com", now=now, until=now + timedelta(seconds=60))
    assert work is not None
    mirror_store.postpone(work, due_at=now + timedelta(seconds=300), attempts=4, error="TooManyRequestsException")
    behind.clock.advance(720)

    for url in (of_person("bob"), "/admin/people/?pattern=behind"):
        page = shown(olga, url)
        assert "TooManyRequestsException" in page
        assert "4 " in page
    assert "12 min ago" in shown(olga, "/admin/people/?pattern=behind")


def test_somebody_deleted_stays_on_the_list_until_cognito_has_forgotten_them(behind: Story, as_person: SignIn) -> None:
    olga = as_person("olga")

    do(olga, of_person("bob"), "delete")

    page = shown(olga, of_group("/"))
    assert "bob@example.com is being deleted. Cognito has not confirmed yet." in page
    assert "was deleted" not in page
    assert "bob@example.com" in shown(olga, "/admin/people/?pattern=behind")


def test_nothing_behind_is_said_too(as_person: SignIn) -> None:
    assert "Cognito has followed every change" in shown(as_person("ana"), "/admin/people/?pattern=behind")


def test_the_start_page_leads_to_both(as_person: SignIn) -> None:
    page = shown(as_person("ana"), "/admin/")

    assert 'href="/admin/people/"' in page
    assert 'href="/admin/groups/"' in page


def test_people_are_listed_by_what_is_asked_of_them(story: Story, as_person: SignIn) -> None:
    story.carry_out(story.ask())
    olga = as_person("olga")
    do(olga, of_person("mallory"), "disable")

    def listed(given: str) -> list[str]:
        return [row.key.partition("@")[0] for row in olga.get(f"/admin/people/?pattern={given}").context["rows"]]

    assert listed("disabled") == ["mallory"]
    assert listed("access") == ["alice"]
    assert listed("group&q=/security") == ["bob", "sam"]
    nowhere = olga.get("/admin/people/?pattern=group&q=/nowhere")
    assert nowhere.status_code == 400
    assert "There is no group with this path." in nowhere.content.decode()


def test_what_people_hold_is_told_after_the_list_a_few_at_a_time(story: Story, as_person: SignIn) -> None:
    story.carry_out(story.ask())
    story.ask_for_prod()
    olga = as_person("olga")

    rows = olga.get("/admin/people/").context["rows"]
    asks = [row.context.ask_url for row in rows if row.context.ask_url]
    cells = shown(olga, asks[0])

    assert len(rows) == 7
    assert [ask.count("key=") for ask in asks] == [5, 2]
    assert rows[0].key == "alice@example.com"
    assert 'id="groups-0"' in cells
    assert "/engineering/payments" in cells
    assert "1 active" in cells
    assert "1 waiting" in cells
    assert 'id="holds-4"' in cells
    assert 'id="holds-5"' in shown(olga, asks[1])
    # Who is gone by now, or was never there, has no cells.
    assert 'id="' not in shown(olga, f"/admin/people/holdings/?first=0&key=nobody@example.com&key={'x' * 3000}@example.com")
