"""Groups in the browser: the tree, who is in what, and managing it; what is offered is what may be done, and no more."""

from __future__ import annotations

import html
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accessportal.directory import operations as directory
from accessportal.directory import queries
from accessportal.directory.operations.claims import add_claim
from accessportal.directory.states import ROOT, Claim, GroupRole, State, person_entity
from accessportal.kernel.actors import person, system
from accessportal.mirror import queries as mirror_queries
from accessportal.mirror import store as mirror_store
from tests.fixtures_story import Story
from tests.portal.conftest import SignedIn
from tests.portal.test_journey import HTMX, text_of

SETUP = system("setup")
PAYMENTS = "/engineering/payments"
AT = "/groups/at/engineering/payments/"


def appoint(story: Story, name: str, group_id: str, role: GroupRole = GroupRole.ADMIN) -> None:
    directory.grant_membership(email=f"{name}@example.com", group_id=group_id, role=role, actor=SETUP, now=story.clock.now())


def do(client: Client, deed: str, group_id: str = PAYMENTS, **data: str) -> Any:
    return client.post(f"/groups/{deed}/at{group_id.rstrip('/')}/", data)


def role_of(email: str, group_id: str = PAYMENTS, *, story: Story) -> GroupRole | None:
    return queries.role_on(email=email, group_id=group_id, now=story.clock.now())


def test_my_groups_say_role_and_end_and_the_tree_starts_at_the_root(story: Story, signed_in: SignedIn) -> None:
    page = text_of(signed_in("alice").get("/groups/"))

    assert "My groups" in page
    assert "Payments /engineering/payments" in page
    assert "Contributor without an end" in page
    assert "Groups below Engineering" in page
    assert "Show 1 group below Engineering" in page


def test_somebody_in_no_group_is_told_what_to_do(story: Story, signed_in: SignedIn) -> None:
    page = signed_in("mallory").get("/groups/")

    assert "You have no role in any group yet." in text_of(page)
    assert 'href="/requests/new/group/"' in page.content.decode()


def test_a_branch_opens_with_and_without_scripts(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    branch = alice.get("/groups/branch/at/engineering/", headers=HTMX)
    plain = alice.get("/groups/", {"open": "/engineering"})

    assert "Payments" in text_of(branch)
    assert "<html" not in branch.content.decode()
    assert 'id="at-/engineering/payments"' in plain.content.decode()
    assert "<details open>" in plain.content.decode()
    assert alice.get("/groups/branch/at/nothing/").status_code == 404
    assert alice.get("/groups/", {"open": "/nothing\0"}).status_code == 200


@pytest.mark.parametrize("text", ["pay", "PAYMENTS", "/engineering/pay"])
def test_a_group_is_found_by_name_or_id(story: Story, signed_in: SignedIn, text: str) -> None:
    alice = signed_in("alice")

    assert 'href="/groups/at/engineering/payments/"' in alice.get("/groups/", {"q": text}).content.decode()
    found = alice.get("/groups/search/", {"parent_id": text}, headers=HTMX).content.decode()
    assert 'data-value="/engineering/payments"' in found


def test_what_is_nowhere_is_said_to_be_nowhere(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    assert "No group’s name or id contains “nonsense”" in text_of(alice.get("/groups/", {"q": "nonsense"}))
    assert "No group’s name or id contains" in text_of(alice.get("/groups/search/", {"parent_id": "x" * 5000}, headers=HTMX))


def test_a_member_sees_the_members_and_a_stranger_whom_to_ask(story: Story, signed_in: SignedIn) -> None:
    alice, mallory = text_of(signed_in("alice").get(AT)), text_of(signed_in("mallory").get(AT))

    assert "Alice Park alice@example.com Contributor" in alice
    assert "Add a person" not in alice
    assert "Only people with a role in this group, operators and auditors see who is in it." in mallory
    assert "Its admins: Gina Falk gina@example.com , Olga Berg" in mallory
    assert "alice@example.com" not in mallory
    for page, name in ((alice, "alice"), (mallory, "mallory")):
        form = text_of(signed_in(name).get("/requests/new/group/preview/", {"group": PAYMENTS, "role": "admin"}))
        assert ("Not possible" in form) is (name == "mallory"), (name, form)
        assert ('id="ask-to-join"' in signed_in(name).get(AT).content.decode()) is ("Not possible" not in form)
        assert ("No rule lets you ask to join. Write to those who can add you: Gina Falk" in page) is ("Not possible" in form)


def test_an_admin_from_above_is_told_so_and_offered_what_they_may(story: Story, signed_in: SignedIn) -> None:
    page = text_of(signed_in("gina").get(AT))

    assert "Admin your role, from /engineering" in page
    for offered in (
        "Add a person",
        "Create a group below",
        "Rename",
        "Move",
        "Disable",
        "It can be deleted when it is empty; it has 1 member and 0 groups below.",
        "Change role of Alice Park",
        "Remove Alice Park",
    ):
        assert offered in page
    assert "Enable" not in page
    assert "Delete" not in page


def test_nobody_is_offered_to_move_or_delete_the_root(story: Story, signed_in: SignedIn) -> None:
    page = text_of(signed_in("olga").get("/groups/at/"))

    assert "Add a person" in page
    assert "Rename" in page
    assert "Delete" not in page
    assert "Move" not in page
    assert "Disable" not in page


def test_a_person_is_added_gets_another_role_and_is_removed(story: Story, signed_in: SignedIn) -> None:
    gina = signed_in("gina")
    sheet = gina.get("/groups/add/at/engineering/payments/", headers=HTMX)
    assert "Add a person to Payments" in text_of(sheet)
    assert "<html" not in sheet.content.decode()

    added = do(gina, "add", email="sam@example.com", role="reader")
    assert added.headers["Location"] == AT
    assert role_of("sam@example.com", story=story) is GroupRole.READER
    assert "Added sam@example.com to Payments as reader." in text_of(gina.get(AT))

    do(gina, "role", email="sam@example.com", role="admin")
    assert role_of("sam@example.com", story=story) is GroupRole.ADMIN

    question = text_of(gina.get("/groups/remove/at/engineering/payments/?email=sam@example.com"))
    assert "Remove this person from Payments? sam@example.com" in question
    do(gina, "remove", email="sam@example.com")
    assert role_of("sam@example.com", story=story) is None


def test_somebody_new_is_created_on_the_way(story: Story, signed_in: SignedIn) -> None:
    gina = signed_in("gina")

    asked = do(gina, "add", email="nina@example.com", role="reader")
    assert asked.status_code == 422
    assert "Nobody in the directory has this address." in text_of(asked)
    assert 'name="name"' in asked.content.decode()

    do(gina, "add", email="nina@example.com", role="reader", name="Nina New")
    made = queries.find_person(email="nina@example.com")
    assert made is not None
    assert made.name == "Nina New"
    assert role_of("nina@example.com", story=story) is GroupRole.READER


@pytest.mark.parametrize("name", ["", "Nina New"])
def test_what_is_no_address_is_said_at_once(story: Story, signed_in: SignedIn, name: str) -> None:
    refused = do(signed_in("gina"), "add", email="nina at example.com", role="reader", name=name)

    assert refused.status_code == 422
    assert "is not an e-mail address that can be used here" in text_of(refused)
    assert "Nobody in the directory has this address" not in text_of(refused)


@pytest.mark.parametrize("part", ["ledger/books", "/engineering/ledger", "ledger/"])
def test_an_id_is_one_part_of_a_path(story: Story, signed_in: SignedIn, part: str) -> None:
    refused = do(signed_in("gina"), "create", "/engineering", name="Books", part=part)

    assert refused.status_code == 422
    assert "Give the last part of the path alone, without a slash." in text_of(refused)


def test_what_a_request_gives_besides_is_told_with_its_end(story: Story, signed_in: SignedIn) -> None:
    gina, end = signed_in("gina"), story.clock.now() + timedelta(hours=1)
    appoint(story, "sam", PAYMENTS, GroupRole.READER)
    claim = Claim("r-1", GroupRole.CONTRIBUTOR, ends_at=end)
    add_claim(email="sam@example.com", group_id=PAYMENTS, claim=claim, guards=(), actor=SETUP, now=story.clock.now())
    row = text_of(gina.get(AT)).partition("sam@example.com")[2]
    assert row.startswith(" Contributor until ")
    assert ", then reader" in row[:60]

    do(gina, "role", email="sam@example.com", role="admin")
    assert "sam@example.com is admin of Payments now, without an end." in text_of(gina.get(AT))
    do(gina, "role", email="sam@example.com", role="reader")
    changed = text_of(gina.get(AT))
    assert "is reader of Payments now, without an end. By a request they are contributor until its end." in changed
    do(gina, "remove", email="sam@example.com")
    removed = text_of(gina.get(AT))
    assert "Removed sam@example.com" not in removed
    assert (
        "Took back the lasting role of sam@example.com in Payments. By a request they stay in it, as contributor, until its end." in removed
    )


def test_an_admin_for_a_time_is_not_offered_to_stay_and_is_refused(story: Story, signed_in: SignedIn) -> None:
    claim = Claim("r-1", GroupRole.ADMIN, ends_at=story.clock.now() + timedelta(hours=1))
    add_claim(email="sam@example.com", group_id=PAYMENTS, claim=claim, guards=(), actor=SETUP, now=story.clock.now())
    sam, gina = signed_in("sam"), signed_in("gina")

    assert 'id="role-sam@example.com"' in gina.get(AT).content.decode()
    page = sam.get(AT).content.decode()
    assert 'id="role-sam@example.com"' not in page
    assert 'id="role-alice@example.com"' in page
    for email, role in (("sam@example.com", "admin"), ("sam@example.com", "reader"), ("alice@example.com", "admin")):
        refused = do(sam, "role", email=email, role=role)
        assert refused.status_code == 403
        assert "You are admin of /engineering/payments only until 2026-" in text_of(refused)
    assert 'id="remove-alice@example.com"' not in page
    assert do(sam, "remove", email="alice@example.com").status_code == 403
    assert do(sam, "rename", name="Mine", description="").status_code == 403
    assert do(sam, "add", email="bob@example.com", role="reader").status_code == 302
    shown = sam.get(AT)
    assert "Added bob@example.com to Payments as reader, for as long as you are its admin." in text_of(shown)
    assert 'id="remove-bob@example.com"' in shown.content.decode()
    assert "Reader given by Sam Osei as long as their request r-1 until" in text_of(gina.get("/people/bob@example.com/"))

    story.clock.advance(3600)
    assert role_of("sam@example.com", story=story) is None
    assert role_of("bob@example.com", story=story) is None


def test_the_last_membership_takes_the_person_along_and_the_page_says_so(story: Story, signed_in: SignedIn) -> None:
    gina, stays = signed_in("gina"), "What they hold by requests ends within a minute, and what they still wait for is cancelled."
    asked = text_of(gina.get("/groups/remove/at/engineering/payments/", {"email": "alice@example.com"}))
    assert f"is deleted from the directory. {stays}" in asked

    done = gina.post("/groups/remove/at/engineering/payments/", {"email": "alice@example.com"}, follow=True)

    assert f"It was their last group, so they are no longer in the directory. {stays}" in text_of(done)
    assert queries.find_person(email="alice@example.com") is None


def test_a_group_is_created_renamed_moved_disabled_enabled_and_deleted(story: Story, signed_in: SignedIn) -> None:
    gina, olga = signed_in("gina"), signed_in("olga")

    made = do(gina, "create", "/engineering", name="Ledger", part="ledger", description="Books")
    assert made.headers["Location"] == "/groups/at/engineering/ledger/"
    do(gina, "rename", "/engineering/ledger", name="General Ledger", description="")
    do(gina, "move", "/engineering/ledger", parent_id=PAYMENTS)
    moved = queries.find_group(group_id="/engineering/ledger")
    assert moved is not None
    assert (moved.name, moved.parent_id) == ("General Ledger", PAYMENTS)

    do(olga, "disable", "/engineering/ledger")
    page = text_of(olga.get("/groups/at/engineering/ledger/"))
    assert "This group is disabled" in page
    assert "Enable" in page
    assert "Add a person" not in page
    do(olga, "enable", "/engineering/ledger")
    gone = do(olga, "delete", "/engineering/ledger")

    assert gone.headers["Location"] == AT
    assert queries.find_group(group_id="/engineering/ledger") is None


@pytest.mark.parametrize(
    ("deed", "data", "told"),
    [
        ("add", {"email": "", "role": "reader"}, "Give the person's e-mail address."),
        ("add", {"email": "not an address", "role": "reader", "name": "X"}, "is not an e-mail address that can be used here"),
        ("add", {"email": "a\0@example.com", "role": "reader"}, "U+0000"),
        ("add", {"email": "x" * 300, "role": "reader"}, "E-mail address has 300 characters; 256 is the most."),
        ("add", {"email": "sam@example.com", "role": ""}, "Choose a role."),
        ("add", {"email": "sam@example.com", "role": "root"}, "Choose one of the roles reader, contributor and admin."),
        ("role", {"email": "alice@example.com", "role": "operator"}, "Choose one of the roles"),
        ("create", {"name": "", "part": "x"}, "Give it a name."),
        ("create", {"name": "X", "part": ""}, "Give it an id"),
        ("create", {"name": "X", "part": "Not An Id"}, "is not a group path"),
        ("create", {"name": "X", "part": "y" * 200}, "group path"),
        ("create", {"name": "X" * 300, "part": "y"}, "Name has 300 characters; 256 is the most."),
        ("rename", {"name": "a\u202eb"}, "U+202E"),
        ("rename", {"name": "X", "description": "y" * 1001}, "Description has 1,001 characters; 1,000 is the most."),
        ("move", {"parent_id": ""}, "Choose the group that it shall be below."),
    ],
)
def test_whatever_is_typed_comes_back_with_the_reason(
    story: Story, signed_in: SignedIn, deed: str, data: dict[str, str], told: str
) -> None:
    before = queries.find_group(group_id=PAYMENTS)

    answer = do(signed_in("gina"), deed, **data)

    assert answer.status_code == 422
    assert told in html.unescape(text_of(answer))
    assert {name: answer.context["form"][name].value() for name in data} == data
    assert queries.find_group(group_id=PAYMENTS) == before


@pytest.mark.parametrize(
    ("who", "place", "status", "told"),
    [
        ("olga", "/nowhere", 422, "The group /nowhere does not exist or is disabled."),
        ("olga", "no id", 422, "does not exist or is disabled"),
        ("olga", "/engineering", 409, "is right below /engineering already"),
        ("gina", "/security", 403, "Only admins of /security or of a group above it"),
    ],
)
def test_a_place_that_can_not_be_is_told_in_the_form(
    story: Story, signed_in: SignedIn, who: str, place: str, status: int, told: str
) -> None:
    answer = do(signed_in(who), "move", parent_id=place)

    assert answer.status_code == status
    assert told in text_of(answer)
    assert answer.context["form"]["parent_id"].value() == place


def test_an_admin_of_the_group_alone_is_not_offered_to_move_it(story: Story, signed_in: SignedIn) -> None:
    page = text_of(signed_in("bob").get("/groups/at/security/"))

    assert "It can be deleted when it is empty" in page
    assert "Move" not in page


def test_a_group_is_not_moved_below_itself(story: Story, signed_in: SignedIn) -> None:
    answer = do(signed_in("gina"), "move", "/engineering", parent_id=PAYMENTS)

    assert answer.status_code in (403, 409, 422)
    group = queries.find_group(group_id="/engineering")
    assert group is not None
    assert group.parent_id == ROOT


@pytest.mark.parametrize("who", ["mallory", "alice", "bob", "ana", "oscar"])
@pytest.mark.parametrize("deed", ["add", "role", "remove", "create", "rename", "move", "enable", "disable", "delete"])
def test_whoever_is_not_an_admin_does_nothing(story: Story, signed_in: SignedIn, who: str, deed: str) -> None:
    data = {"email": "alice@example.com", "role": "admin", "name": "X", "part": "x", "parent_id": "/security"}
    operators = {"group_id": "/portal/operators", "role": GroupRole.READER}
    directory.create_person(email="oscar@example.com", name="Oscar", **operators, actor=SETUP, now=story.clock.now())  # type: ignore[arg-type]
    before = queries.find_group(group_id=PAYMENTS)
    client = signed_in(who)

    assert client.get(f"/groups/{deed}{AT.removeprefix('/groups')}").status_code == 403
    assert do(client, deed, **data).status_code == 403
    assert queries.find_group(group_id=PAYMENTS) == before


def test_what_has_changed_meanwhile_is_a_conflict_that_shows_the_way(story: Story, signed_in: SignedIn) -> None:
    gina = signed_in("gina")
    directory.set_group_state(group_id=PAYMENTS, state=State.DISABLED, actor=SETUP, now=story.clock.now())

    again = do(gina, "disable")
    added = do(gina, "add", email="sam@example.com", role="reader")
    deleted = do(gina, "delete")

    assert [answer.status_code for answer in (again, added, deleted)] == [409, 409, 409]
    assert "is disabled already" in text_of(again)
    assert "See how Payments stands now" in text_of(again)
    assert "/engineering/payments has 1 member and 0 groups below." in text_of(deleted)


def test_the_last_admin_of_the_root_stays(story: Story, signed_in: SignedIn) -> None:
    olga = signed_in("olga")
    root = queries.find_group(group_id=ROOT)
    assert root is not None
    for key in root.standing_admins - {"olga@example.com"}:
        directory.revoke_membership(email=key, group_id=ROOT, actor=SETUP, now=story.clock.now())

    assert do(olga, "remove", ROOT, email="olga@example.com").status_code == 409
    assert do(olga, "role", ROOT, email="olga@example.com", role="reader").status_code == 409
    assert role_of("olga@example.com", ROOT, story=story) is GroupRole.ADMIN


@pytest.mark.parametrize(
    "path", ["/groups/at/nothing/", "/groups/at/Not%20an%20Id/", "/groups/at/%00/", "/groups/at/" + "x" * 3000 + "/", "/groups/dance/at/"]
)
def test_what_is_no_group_is_not_found(story: Story, signed_in: SignedIn, path: str) -> None:
    assert signed_in("olga").get(path).status_code == 404


def test_a_form_without_its_token_does_nothing(story: Story, signed_in: SignedIn) -> None:
    gina = Client(enforce_csrf_checks=True)
    gina.cookies = signed_in("gina").cookies

    answer = do(gina, "remove", email="alice@example.com")

    assert answer.status_code == 403
    assert role_of("alice@example.com", story=story) is GroupRole.CONTRIBUTOR


def test_a_forged_cursor_is_refused(story: Story, signed_in: SignedIn) -> None:
    assert signed_in("gina").get(AT, {"cursor": "eyJmb3JnZWQiOjF9"}).status_code == 400


def test_members_are_paged_and_a_page_costs_the_same_whatever_the_size(
    story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    gina = signed_in("gina")
    few = _requests_of(gina, monkeypatch)
    for number in range(60):
        directory.create_person(
            email=f"p{number:03}@example.com",
            name=f"Person {number}",
            group_id=PAYMENTS,
            role=GroupRole.READER,
            actor=SETUP,
            now=story.clock.now(),
        )
    many = _requests_of(gina, monkeypatch)

    first = gina.get(AT)
    second = gina.get(AT, {"cursor": first.context["next_cursor"]})
    names = [row.person.key for page in (first, second) for row in page.context["members"]]
    assert len(names) == len(set(names)) == 61
    assert second.context["next_cursor"] is None
    assert many <= few + 1
    assert many <= 14


def test_what_cognito_must_still_follow_elsewhere_costs_a_page_nothing(
    story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    gina = signed_in("gina")
    # What waits for her is counted once, for the bar.
    gina.get(AT)
    alone = _requests_of(gina, monkeypatch)
    # As after an import: the sweep has not come yet.
    mirror_store.ask([person_entity(f"p{number:03}@example.com") for number in range(250)], now=story.clock.now())
    assert _requests_of(gina, monkeypatch) == alone

    mirror_store.ask([person_entity("alice@example.com")], now=story.clock.now())
    assert gina.get(AT).context["behind"] == {person_entity("alice@example.com")}
    assert _requests_of(gina, monkeypatch) == alone


def _requests_of(client: Client, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many requests to DynamoDB the group's page makes."""
    from botocore.client import BaseClient

    calls: list[str] = []
    original = BaseClient._make_api_call  # type: ignore[attr-defined]

    def counted(self: Any, operation: str, arguments: Any) -> Any:
        calls.append(operation)
        return original(self, operation, arguments)

    with monkeypatch.context() as patched:
        patched.setattr(BaseClient, "_make_api_call", counted)
        assert client.get(AT).status_code == 200
    return len(calls)


def test_a_change_that_cognito_has_not_followed_is_never_told_as_done(
    story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accessportal.directory.states import Changed, Mirrored
    from accessportal.mirror.states import MirrorWork

    gina, now = signed_in("gina"), story.clock.now()
    real = directory.revoke_membership
    work = MirrorWork("person#sam@example.com", "t", since=now, due_at=now, lease_until=None, attempts=3, error="Cognito did not answer.")
    behind = [work]
    appoint(story, "sam", PAYMENTS, GroupRole.READER)
    monkeypatch.setattr(
        directory, "revoke_membership", lambda **given: Changed(real(**given).record, Mirrored(is_done=False, reason="later"))
    )
    monkeypatch.setattr(mirror_queries, "find_pending", lambda entity: next((one for one in behind if one.entity == entity), None))

    page = gina.post("/groups/remove/at/engineering/payments/", {"email": "sam@example.com"}, follow=True)

    told = text_of(page)
    assert "sam@example.com is being removed from Payments, Cognito has not confirmed yet." in told
    assert "Last answer: Cognito did not answer." in told
    assert "Removed" not in told
    assert 'hx-trigger="every 2s"' in page.content.decode()
    live = {"mark": page.context["mark"]}
    assert gina.get("/groups/live/at/engineering/payments/", live, headers=HTMX).status_code == 204

    behind.clear()
    done = gina.get("/groups/live/at/engineering/payments/", live, headers=HTMX)
    assert "Removed sam@example.com from Payments. Cognito has confirmed it." in text_of(done)
    assert "every 2s" not in done.content.decode()


def test_only_the_last_of_several_changes_is_told_as_confirmed(story: Story, signed_in: SignedIn, monkeypatch: pytest.MonkeyPatch) -> None:
    from accessportal.directory.states import Changed, Mirrored
    from accessportal.mirror.states import MirrorWork

    gina, now = signed_in("gina"), story.clock.now()
    behind = [MirrorWork("person#sam@example.com", "t", since=now, due_at=now, lease_until=None, attempts=1, error="")]
    for name in ("grant_membership", "revoke_membership"):
        real = getattr(directory, name)
        later = Mirrored(is_done=False, reason="later")
        monkeypatch.setattr(directory, name, lambda real=real, later=later, **given: Changed(real(**given).record, later))
    monkeypatch.setattr(mirror_queries, "find_pending", lambda entity: next((one for one in behind if one.entity == entity), None))

    do(gina, "add", "/engineering", email="sam@example.com", role="reader")
    do(gina, "add", email="sam@example.com", role="admin")
    do(gina, "remove", email="sam@example.com")
    told = text_of(gina.get(AT))
    behind.clear()
    done = text_of(gina.get(AT))

    assert "is being added to Payments" not in told
    assert "Removed sam@example.com from Payments. Cognito has confirmed it." in done
    assert "Added sam@example.com to Engineering as reader. Cognito has confirmed it." in done
    assert "Added sam@example.com to Payments" not in done


def put_by_gina(story: Story, email: str = "sam@example.com", role: GroupRole = GroupRole.READER) -> None:
    gina = person("gina@example.com")
    directory.grant_membership(email=email, group_id=PAYMENTS, role=role, actor=gina, now=story.clock.now())


def test_people_are_told_who_put_them_into_a_group_and_leave_it(story: Story, signed_in: SignedIn) -> None:
    put_by_gina(story)
    sam = signed_in("sam")

    assert "Gina Falk put you into the group /engineering/payments as reader" in text_of(sam.get("/"))
    assert '/groups/leave/at/engineering/payments/"' in sam.get("/people/sam@example.com/").content.decode()
    assert 'id="do-leave"' in sam.get(AT).content.decode()
    assert "Leave Payments?" in text_of(sam.get("/groups/leave/at/engineering/payments/"))

    answer = do(sam, "leave")

    assert (answer.status_code, answer.headers["Location"]) == (302, AT)
    assert "You have left Payments." in text_of(sam.get(AT))
    assert role_of("sam@example.com", story=story) is None
    assert "put you into" not in text_of(sam.get("/"))


def test_what_the_portal_gave_is_not_left(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    assert 'id="do-leave"' not in alice.get(AT).content.decode()
    answer = do(alice, "leave")
    assert answer.status_code == 403
    assert "ask an admin of /" in text_of(answer)
    assert "put you into" not in text_of(alice.get("/"))


def test_the_first_page_tells_it_for_two_weeks(story: Story, signed_in: SignedIn) -> None:
    put_by_gina(story)
    story.clock.advance(13 * 86_400)
    assert "put you into" in text_of(signed_in("sam").get("/"))
    story.clock.advance(2 * 86_400)
    assert "put you into" not in text_of(signed_in("sam").get("/"))


def test_a_groups_admin_sees_nothing_of_a_members_other_groups(story: Story, signed_in: SignedIn) -> None:
    put_by_gina(story, "bob@example.com")

    page = text_of(signed_in("gina").get("/people/bob@example.com/"))

    assert "/engineering/payments" in page
    assert "/security" not in page
    assert "Other groups of this person are not shown" in page
    assert "/security" in text_of(signed_in("bob").get("/people/bob@example.com/"))
    assert "/security" in text_of(signed_in("olga").get("/people/bob@example.com/"))


def test_a_group_says_which_rules_reach_it(story: Story, signed_in: SignedIn) -> None:
    page = text_of(signed_in("bob").get("/groups/at/security/"))
    assert "Approves by prod-readonly" in page

    page = text_of(signed_in("alice").get(AT))
    # Each way once, with all its rules.
    assert [page.count(way) for way in ("Its admins approve by", "Refused by", "May ask by")] == [1, 1, 1]
    assert "Its admins approve by help-out through /engineering Refused by security-accounts through / May ask by" in page
    assert "prod-readonly through /engineering" in page.partition("May ask by")[2]
    assert "Rules that reach it" not in text_of(signed_in("mallory").get(AT))
