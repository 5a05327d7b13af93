"""The pages of one thing: everything it holds, for those who may see it."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.test import Client

from accessportal.assignments import queries as assignments
from accessportal.assignments.states import AssignmentState
from accessportal.rules import operations as rules
from tests.fixtures_story import RULES, Story

SignIn = Callable[[str], Client]


def test_a_request_tells_its_whole_story(story: Story, as_person: SignIn) -> None:
    request = story.approve(story.ask_for_prod())
    story.carry_out(request)
    olga = as_person("olga")

    shown = olga.get(f"/admin/requests/{request.request_id}/", follow=True).content.decode()

    for fact in (
        "Incident 4711",
        "CHG-20817",
        "/Workloads/Prod/Payments",
        "Granted",
        "Approved",
        "chain whole",
        "prod-readonly",
        "bob@example.com",
    ):
        assert fact in shown, fact
    assert "SUCCEEDED" in shown
    assert "End now" in shown
    assert f"/admin/requests/{request.request_id}/history/" in shown


def test_what_to_know_before_deciding_is_told_once_and_in_words(story: Story, as_person: SignIn) -> None:
    held = story.ask_for_prod()
    story.carry_out(story.approve(held))
    request = story.ask_for_prod()
    address = f"/requests/{request.request_id}/"

    seen = {name: as_person(name).get(address).content.decode() for name in ("alice", "bob", "olga")}

    to_know = {name: page.split('id="evidence-title"')[-1].split("</section>")[0] for name, page in seen.items() if name != "alice"}
    assert 'id="evidence-title"' not in seen["alice"]
    for name, told in to_know.items():
        words, for_auditors = told.split("<details", 1)
        assert "1 like it in 90 days, granted." in words
        assert f'<strong>Holds this already</strong>, by <a href="/requests/{held.request_id}/">another request</a>' in words
        assert "The rule allows up to 8 h." in words
        # Ids and hashes are folded, and nothing that the page tells in words is there again.
        assert request.request_id not in words
        assert request.rule_hash in for_auditors
        assert "chain whole" in for_auditors
        assert not {"Account name", "Ou path", "Subject name", "Session"} & set(re.findall("<dt>([^<]*)</dt>", for_auditors))
        assert ("All requests" in words) == (name == "olga")
    # Who decides reads why first, and nowhere else.
    assert seen["bob"].index(request.reason) < seen["bob"].index("What happened")
    assert [seen[name].count(f">{request.reason}<") for name in seen] == [1, 1, 1]
    assert [seen[name].count("To decide") for name in seen] == [0, 1, 0]


def test_only_what_the_domain_offers_has_a_button(story: Story, as_person: SignIn) -> None:
    request = story.ask_for_prod()
    address = f"/requests/{request.request_id}/"

    offered = {name: {deed.name for deed in as_person(name).get(address).context["deeds"]} for name in ("bob", "ana", "olga")}

    assert offered == {"bob": {"approve", "deny", "ask_back"}, "ana": set(), "olga": {"ask_back"}}


def test_a_request_that_is_not_an_approvers_business_does_not_exist_for_them(story: Story, as_person: SignIn) -> None:
    request = story.ask()

    assert as_person("bob").get(f"/admin/requests/{request.request_id}/").status_code == 404


def test_the_chain_is_checked_to_the_head_of_the_record(story: Story, as_person: SignIn) -> None:
    request = story.ask_for_prod()

    shown = as_person("ana").get(f"/admin/requests/{request.request_id}/history/?check=1").content.decode()

    assert "The chain is whole:" in shown
    assert "it ends where the record says" in shown


def test_an_assignment_names_what_holds_it(story: Story, as_person: SignIn) -> None:
    request = story.ask()
    story.carry_out(request)
    assignment = assignments.list_by_state(state=AssignmentState.PRESENT).items[0]
    olga = as_person("olga")

    listed = olga.get("/admin/assignments/")
    address = f"/admin/assignments/{listed.context['rows'][0].key}/"
    detail_link = listed.content.decode().split('<div class="what"><a href="')[1].split('"')[0]
    shown = olga.get(detail_link).content.decode()

    assert "~23" in detail_link, address
    assert request.request_id in shown
    assert "alice@example.com" in shown
    assert "payments-dev · PowerUserAccess" in shown
    assert f"<dd>{assignment.fence}</dd>" in shown
    history = olga.get(f"{detail_link}history/?check=1").content.decode()
    assert "Proved present" in history
    assert "The chain is whole:" in history


def test_a_rule_shows_what_each_version_changed(story: Story, as_person: SignIn) -> None:
    changed = RULES.replace("max: 8h", "max: 6h").replace("  - name: prod-power", "  - name: prod-power-user")
    rules.apply_rules(text=changed, actor=story.olga, now=story.clock.now())
    ana = as_person("ana")

    page = ana.get("/admin/rules/prod-readonly/").content.decode()

    assert "Version 2" in page
    assert "<del>8 h</del><ins>6 h</ins>" in page
    assert "olga@example.com" in page
    removed = ana.get("/admin/rules/prod-power/").content.decode()
    assert "no longer in force" in removed
    assert ana.get("/admin/rules/never-was/").status_code == 404


def test_users_are_looked_at_and_not_written(story: Story, as_person: SignIn) -> None:
    olga, bob = as_person("olga"), get_user_model().objects.create(username="bob@example.com", is_active=True)
    address = f"/admin/auth/user/{bob.pk}/change/"
    wanted = {"username": "olga@example.com", "password": "known", "is_superuser": "on", "is_active": ""}

    assert [as_person(name).post(address, wanted).status_code for name in ("olga", "ana", "bob")] == [403, 403, 403]

    bob.refresh_from_db()
    assert (bob.username, bob.is_active, bob.is_superuser) == ("bob@example.com", True, False)
    assert olga.get("/admin/auth/user/add/").status_code == 403
    # Who is to be shut out is disabled where that lasts and is told.
    shown = olga.get(address).content.decode()
    assert "disabled in the directory" in shown
    assert "Unselect this" not in shown


def test_no_session_key_is_ever_shown(story: Story, as_person: SignIn) -> None:
    bob, olga = as_person("bob"), as_person("olga")
    keys = [*Session.objects.values_list("session_key", flat=True), *(one.cookies["sessionid"].value for one in (bob, olga))]

    listed = olga.get("/admin/sessions/session/").content.decode()

    assert len(set(keys)) == 4
    assert "bob@example.com" in listed
    assert not any(key in listed for key in keys)
    assert olga.get(f"/admin/sessions/session/{keys[0]}/change/").status_code == 403


def test_jobs_are_looked_at_and_not_written(as_person: SignIn) -> None:
    olga = as_person("olga")

    assert olga.get("/admin/django_q/schedule/add/").status_code == 403
    assert olga.post("/admin/django_q/schedule/add/", {"func": "os.system"}).status_code == 403


def test_no_password_can_be_set(story: Story, as_person: SignIn) -> None:
    """Django's page took "x", in the demo and where people sign in elsewhere."""
    olga = as_person("olga")
    get_user_model().objects.get(username="olga@example.com").set_password("correct horse")

    for path in ("/admin/password_change/", "/admin/password_change/done/"):
        for answer in (olga.get(path), olga.post(path, {"old_password": "correct horse", "new_password1": "x", "new_password2": "x"})):
            assert answer.status_code == 404
            assert "Passwords are not changed here." in answer.content.decode()


def test_an_account_tells_who_has_it_who_may_have_it_and_what_was_asked(story: Story, as_person: SignIn) -> None:
    olga, account = as_person("olga"), story.twin.accounts["payments-dev"]
    held = story.carry_out(story.ask())
    ended = story.end(story.carry_out(story.ask(permission_set="ReadOnlyAccess")))

    shown = olga.get(f"/admin/accounts/{account}/")

    assert next(one.request.request_id for one in shown.context["held"]) in {held.request_id, ended.request_id}
    assert {one.request.request_id for one in shown.context["latest"]} == {held.request_id, ended.request_id}
    assert [rule.name for rule in shown.context["rules"]] == ["dev-power"]
    assert 'href="/requests/new/aws_account/?account=payments-dev"' in shown.content.decode()


def test_a_rule_tells_who_holds_by_it_and_its_last_use(story: Story, as_person: SignIn) -> None:
    held, waiting = story.carry_out(story.ask()), story.ask_for_prod()

    def about(rule: str) -> tuple[list[str], list[str]]:
        context = as_person("ana").get(f"/admin/rules/{rule}/").context
        return tuple([one.request.request_id for one in context[name]] for name in ("held", "latest"))  # type: ignore[return-value]

    assert about("dev-power") == ([held.request_id], [held.request_id])
    assert about("prod-readonly") == ([], [waiting.request_id])


def test_a_person_sees_by_which_rules_they_ask_and_approve(story: Story, as_person: SignIn) -> None:
    def rules_of(viewer: str, person: str) -> set[tuple[str, str]]:
        reach = as_person(viewer).get(f"/people/{person}@example.com/").context["reach"]
        return {(one.rule_name, one.reaching.value) for one in reach}

    assert rules_of("olga", "sam") == {
        ("security-accounts", "is refused"),
        ("prod-readonly", "approves"),
        ("prod-power", "approves"),
        ("stand-in-operators", "approves"),
    }
    assert ("dev-power", "is served") in rules_of("alice", "alice")


def test_who_holds_an_account_stands_there_with_the_state_of_it(story: Story, as_person: SignIn) -> None:
    story.carry_out(story.ask())
    story.ask(permission_set="ReadOnlyAccess")
    story.end(story.carry_out(story.ask(permission_set="ReadOnlyAccess", seconds=60)))
    olga, account = as_person("olga"), story.twin.accounts["payments-dev"]

    for address in (f"/admin/accounts/{account}/", "/admin/rules/dev-power/"):
        held = olga.get(address).content.decode().partition('id="section-who-')[2].partition("</section>")[0]
        assert [word for word in ("Active", "Being granted", "Ending") if f">{word}</span>" in held] == [
            "Active",
            "Being granted",
            "Ending",
        ]
