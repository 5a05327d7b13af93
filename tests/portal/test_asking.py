"""The form that offers only what may be asked for, begins with what was asked for lately, and knows a way where no rule serves."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from accessportal.access_requests import queries
from accessportal.catalog.models import AccountRow
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole
from accessportal.rules.operations import apply_rules
from accessportal.rules.tickets import example_of, head_of, ticket_matches
from tests.access_requests.test_costs import cost_of, grow
from tests.fixtures_records import RECORD_RULES
from tests.fixtures_story import RULES, Story
from tests.portal.conftest import SignedIn
from tests.portal.test_journey import HTMX, submission_of, text_of

FORM = "/requests/new/aws_account/"


def offered(client: Client, field: str, kind: str = "aws_account", **typed: str) -> list[str]:
    """The values that the list of a field offers."""
    page = client.get(f"/requests/new/{kind}/choices/{field}/", typed, headers=HTMX).content.decode()
    return re.findall(r'data-value="([^"]+)"', page)


def test_only_accounts_are_offered_where_some_rule_gives_something_and_the_rest_says_why(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    assert offered(alice, "account") == ["payments-dev", "payments-prod"]
    assert offered(alice, "account", account="prod") == ["payments-prod"]
    answer = alice.get(f"{FORM}choices/account/", {"account": "audit"}, headers=HTMX)
    # A long one is scrolled by keys, too.
    assert '<ul class="list-unstyled mb-0" tabindex="0" aria-label="What you can’t ask for">' in answer.content.decode()
    page = text_of(answer)
    assert "Nothing here that you may ask for." in page
    assert "1 that you can’t ask for" in page
    # First the reason, which else may lie below the edge of the list.
    assert "audit" in page.partition("Rule security-accounts refuses")[2]
    assert "Nothing fits “nonsense”" in text_of(alice.get(f"{FORM}choices/account/", {"account": "nonsense"}, headers=HTMX))
    assert "management" not in text_of(alice.get(f"{FORM}choices/account/", headers=HTMX))


def test_permission_sets_depend_on_the_account_and_on_whom_it_is_for(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    assert offered(alice, "permission_set", account="payments-dev") == ["PowerUserAccess", "ReadOnlyAccess"]
    assert offered(alice, "permission_set", account="payments-dev", subject="/engineering") == []
    assert offered(alice, "permission_set", account="payments-prod", permission_set="read") == ["ReadOnlyAccess"]
    # First what takes the fewest approvals.
    assert offered(alice, "permission_set", account="payments-prod") == ["ReadOnlyAccess", "PowerUserAccess"]
    assert offered(alice, "permission_set") == ["PowerUserAccess", "ReadOnlyAccess"]
    page = text_of(alice.get(f"{FORM}choices/permission_set/", {"account": "payments-prod"}, headers=HTMX))
    assert "AdministratorAccess" in page
    assert "No rule offers alice@example.com AdministratorAccess on payments-prod" in page


def test_groups_are_offered_by_the_rules_about_membership(story: Story, signed_in: SignedIn) -> None:
    assert offered(signed_in("alice"), "group", "group") == ["/engineering", "/engineering/payments", "/portal/operators"]
    assert offered(signed_in("mallory"), "group", "group") == []


def test_the_form_begins_with_the_kind_and_the_things_that_are_asked_for_often(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    assert "Request access to an AWS account" in text_of(alice.get("/requests/new/"))

    story.ask_for_prod(seconds=7_200)
    story.clock.advance(60)
    story.ask_to_join("/engineering")
    assert "Request access to an AWS account" in text_of(alice.get("/requests/new/"))
    for _ in range(2):
        story.ask_to_join("/engineering")

    page = alice.get("/requests/new/").content.decode()
    assert "Ask to join a group" in page
    assert re.findall(r'chip" href="([^"]+)', page) == [
        "/requests/new/group/?group=%2Fengineering&amp;role=reader&amp;duration=1h&amp;reason=Helping+out",
        f"{FORM}?account={story.twin.accounts['payments-prod']}&amp;permission_set=ReadOnlyAccess&amp;duration=2h&amp;reason=Incident+4711",
    ]
    assert offered(alice, "account") == ["payments-prod", "payments-dev"]


def test_a_ticket_that_is_needed_is_asked_for_once(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    prod = {"account": "payments-prod", "permission_set": "ReadOnlyAccess", "duration": "1h", "reason": "Incident"}
    form = alice.get(FORM, prod)
    assert 'Ticket <span class="faint fw-normal">needed</span>' in form.content.decode()
    assert "data-ticket-needed" in alice.get(f"{FORM}preview/", prod).content.decode()
    dev = alice.get(FORM, prod | {"account": "payments-dev"}).content.decode()
    assert 'Ticket <span class="faint fw-normal">if the rule asks for one</span>' in dev
    assert "data-ticket-needed>" not in dev

    for ticket_id, told in (("", "a ticket like CHG-4711 is needed."), ("JIRA-1", "“JIRA-1” is not a ticket like CHG-4711.")):
        sent = alice.post(FORM, prod | {"ticket_id": ticket_id, "submission_id": submission_of(form)})
        assert sent.status_code == 422
        (error,) = sent.context["form"].errors["ticket_id"]
        assert error.endswith(told)


def test_a_length_that_nobody_would_type_is_not_asked_for_again(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    def chip() -> tuple[str, str]:
        page = alice.get("/requests/new/aws_account/").content.decode()
        ((url, length),) = re.findall(r'chip" href="([^"]+)"[^>]*>[^<]* <span class="ends">([^<]+)', page)
        form = alice.get(url.replace("&amp;", "&")).context["form"]
        assert form["account"].value() == "payments-prod"
        return length, form["duration"].value()

    story.ask_for_prod(seconds=2_082)
    assert chip() == ("30 min", "30m")
    story.clock.advance(60)
    story.ask_for_prod(seconds=7_200)
    story.clock.advance(60)
    # As an extension, which is counted from the end of what is held.
    story.ask_for_prod(seconds=2_060)
    assert chip() == ("2 h", "2h")


def test_an_account_whose_name_another_one_has_stays_a_number(story: Story, signed_in: SignedIn) -> None:
    number = story.twin.accounts["payments-prod"]
    AccountRow.objects.filter(name="payments-dev").update(name="Payments-Prod", name_key="payments-prod")

    form = signed_in("alice").get(f"{FORM}?account={number}").context["form"]

    assert form["account"].value() == number


def test_a_link_fills_in_everything_and_the_page_begins_at_the_button(story: Story, signed_in: SignedIn) -> None:
    link = f"{FORM}?account=payments-dev&permission_set=PowerUserAccess&duration=until+12:00&reason=Runbook+7"

    page = signed_in("alice").get(link)

    assert "Approved at once" in text_of(page)
    assert re.search(r"<button class=\"btn btn-primary\"[^>]* autofocus>", page.content.decode())
    assert 'value="until 12:00"' in page.content.decode()
    assert "Runbook 7" in text_of(page)


def test_the_preview_says_what_the_rule_is_for_and_shows_a_ticket_instead_of_a_pattern(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")

    prod = alice.get(f"{FORM}preview/", {"account": "payments-prod", "permission_set": "ReadOnlyAccess"}).content.decode()
    dev = alice.get(f"{FORM}preview/", {"account": "payments-dev", "permission_set": "ReadOnlyAccess"}).content.decode()

    assert 'needed, like <span class="code">CHG-4711</span>' in prod
    assert 'data-ticket="asked" data-ticket-needed data-ticket-head="CHG-"' in prod
    assert 'data-ticket=""' in dev


def test_a_page_that_is_filled_in_begins_at_the_ticket_that_is_needed(story: Story, signed_in: SignedIn) -> None:
    link = f"{FORM}?account=payments-prod&permission_set=ReadOnlyAccess&reason=Runbook+7"

    def focused(url: str) -> list[str]:
        fields = re.findall(r"<(?:input|textarea) [^>]+>", signed_in("alice").get(url).content.decode())
        return [re.findall('name="([^"]+)"', one)[0] for one in fields if " autofocus" in one]

    assert focused(link) == ["ticket_id"]
    assert focused(f"{link}&ticket_id=CHG-1") == []
    assert focused(link.replace("prod", "dev")) == []


def test_a_request_for_a_group_says_how_many_people_it_means(story: Story, signed_in: SignedIn) -> None:
    asked = {"account": "payments-prod", "permission_set": "ReadOnlyAccess", "subject": "/engineering/payments"}

    page = text_of(signed_in("alice").get(f"{FORM}preview/", asked))

    assert "For everybody in /engineering/payments : 1 person" in page


def test_somebody_whom_no_rule_serves_is_told_the_way_in_and_whom_to_ask(story: Story, signed_in: SignedIn) -> None:
    page = text_of(signed_in("mallory").get(FORM))

    assert "No rule offers you this now." in page
    assert "Payments /engineering/payments" in page
    assert page.count("say which admins can let you in") + page.count("says which admins can let you in") == 1
    assert "Questions go to Olga Berg, who runs the portal." in page
    assert "Not for you now" in page


def test_whoever_lacks_only_a_group_that_a_rule_lets_them_ask_for_gets_the_link(story: Story, signed_in: SignedIn) -> None:
    """Mallory joins engineering, and not the team of payments."""
    directory.grant_membership(
        email="mallory@example.com", group_id="/engineering", role=GroupRole.READER, actor=story.gina, now=story.clock.now()
    )
    asked = {"account": "payments-dev", "permission_set": "PowerUserAccess"}

    page = signed_in("mallory").get(f"{FORM}preview/", asked).content.decode()

    assert 'href="/requests/new/group/?group=%2Fengineering%2Fpayments&amp;role=reader"' in page
    assert "let you in" not in page


def test_a_group_is_no_way_to_itself(story: Story, signed_in: SignedIn) -> None:
    asked = {"group": "/engineering", "role": "reader"}

    page = text_of(signed_in("mallory").get("/requests/new/group/preview/", asked))

    assert "Not possible" in page
    assert "To be in" not in page
    assert "Write to Gina Falk" in page
    assert "Not possible" not in text_of(signed_in("alice").get("/requests/new/group/preview/", asked))


def test_equal_reasons_are_told_once(story: Story, signed_in: SignedIn) -> None:
    mallory = signed_in("mallory")
    target = {"account": "payments-prod", "permission_set": "ReadOnlyAccess"}

    told = text_of(mallory.get(f"{FORM}preview/", target))
    listed = text_of(mallory.get(f"{FORM}choices/account/", headers=HTMX))

    assert told.count("mallory@example.com is in none of the groups") == 1, told
    assert "Join " not in told
    assert "To be in this group: Engineering /engineering Its page says which admins can let you in." in told
    assert listed.count("No rule offers you this.") == 1
    assert listed.count("payments-") == 2


@pytest.mark.parametrize(
    ("pattern", "example"),
    [
        ("CHG-[0-9]+", "CHG-4711"),
        ("(CHG|INC)-[0-9]+", "CHG-4711"),
        ("CHG[0-9]{7}|INC[0-9]{7}", "CHG4711471"),
        (r"INC-\d{6}", "INC-471147"),
        ("[A-Z]{2,4}-[0-9]{1,5}", "AB-4"),
        ("(?:JIRA-)?[A-Z]+-[0-9]+", ""),
        (".*", ""),
        ("x" * 5_000, ""),
    ],
)
def test_an_example_of_a_ticket_matches_its_pattern(pattern: str, example: str) -> None:
    assert example_of(pattern) == example
    assert not example or ticket_matches(pattern, example)


@pytest.mark.parametrize(
    ("pattern", "head"),
    [
        ("CHG-[0-9]+", "CHG-"),
        (r"INC\-\d{6}", "INC-"),
        ("#[0-9]{1,6}", "#"),
        ("(CHG|INC)-[0-9]+", ""),
        ("CHG[0-9]{7}|INC[0-9]{7}", ""),
        ("[A-Z]+-[0-9]+", ""),
        ("CHG-[0-9]+[A-Z]", ""),
        ("C?HG-[0-9]+", ""),
        ("[0-9]+", ""),
        ("", ""),
    ],
)
def test_only_a_head_that_all_tickets_share_is_put_before_a_number(pattern: str, head: str) -> None:
    assert head_of(pattern) == head
    assert not head or ticket_matches(pattern, f"{head}471147")


PAGES: dict[str, Callable[[Client], object]] = {
    "the form": lambda client: client.get("/requests/new/"),
    "the form filled in": lambda client: client.get(f"{FORM}?account=payments-prod&permission_set=ReadOnlyAccess&duration=1h"),
    "the box": lambda client: client.get("/requests/find/?find=p"),
    "a list of accounts": lambda client: client.get(f"{FORM}choices/account/?account=p"),
    "a list of permission sets": lambda client: client.get(f"{FORM}choices/permission_set/?account=payments-dev"),
}


def test_the_form_and_its_lists_cost_a_dozen_requests_and_no_more_with_more_groups_and_requests(story: Story, signed_in: SignedIn) -> None:
    alice = signed_in("alice")
    story.ask_for_prod()
    alice.get("/")
    before = {name: len(cost_of(lambda ask=ask: ask(alice))) for name, ask in PAGES.items()}  # type: ignore[misc]

    grow(range(0, 200, 4))
    for _ in range(30):
        story.ask_for_prod()

    assert {name: len(cost_of(lambda ask=ask: ask(alice))) for name, ask in PAGES.items()} == before  # type: ignore[misc]
    assert max(before.values()) <= 12, before
    assert len(queries.list_mine(actor=story.alice, limit=50).items) == 31


def test_one_box_finds_accounts_groups_and_scopes_and_leads_to_their_forms(story: Story, signed_in: SignedIn) -> None:
    apply_rules(text=RULES + RECORD_RULES, actor=story.olga, now=story.clock.now())
    alice = signed_in("alice")

    def found(text: str) -> list[str]:
        return re.findall(r'data-url="([^"]+)"', alice.get("/requests/find/", {"find": text}, headers=HTMX).content.decode())

    prod = [f"{FORM}?account=payments-prod&amp;permission_set={name}" for name in ("ReadOnlyAccess", "PowerUserAccess")]
    assert found("payments-p") == prod
    assert found("payments") == [
        f"{FORM}?account=payments-dev&amp;permission_set=PowerUserAccess",
        f"{FORM}?account=payments-dev&amp;permission_set=ReadOnlyAccess",
        f"{FORM}?account=payments-prod",
        "/requests/new/group/?group=%2Fengineering%2Fpayments",
    ]
    # The last word may be about the permission set; what no account is called finds nothing by it.
    assert found("payments-p power") == prod[1:]
    assert found("payments admin") == found("nonsense power") == []
    assert found("acme-corp env") == ["/requests/new/approval/?scope=tenant%3Aacme-corp%3Aenv%3Adev"]
    assert found("audit") == []
    assert found("") != []
    assert "Nothing that you may ask for fits “audit”." in text_of(alice.get("/requests/find/?find=audit"))
    page = alice.get("/requests/find/?find=payments-p").content.decode()
    assert f'<a href="{prod[0]}">payments-prod · ReadOnlyAccess</a>' in page
    assert page.count("/Workloads/Prod") == 1
    assert "No rule offers you anything now." in text_of(signed_in("mallory").get("/requests/find/"))
