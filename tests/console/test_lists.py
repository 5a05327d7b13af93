"""The lists: what each pattern shows to whom, and that an error never looks like an empty table."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import unquote

import pytest
from django.test import Client

from accessportal.access_requests import operations, queries
from accessportal.access_requests.models import RequestItem
from accessportal.access_requests.operations import reconciling
from accessportal.assignments import queries as assignments
from accessportal.assignments.models import AssignmentItem
from accessportal.assignments.states import AssignmentState, Remedy
from accessportal.console.resource import PAGE_SIZE
from accessportal.console.resources import all_requests, drift
from accessportal.console.resources.drift import Differences
from accessportal.history import policy
from accessportal.history.operations import follow
from accessportal.identity.operations import record_password_sign_in
from accessportal.jobs import tasks as jobs
from accessportal.kernel.errors import Unavailable
from accessportal.web.addresses import KeyConverter
from tests.console.test_costs import cost_of
from tests.fixtures_story import Story
from tests.portal.test_journey import text_of

SignIn = Callable[[str], Client]


ROW_DEED = re.compile(r'id="do-[^"]*" href="([^?"]+)')
"""What a row offers that asks first."""


def page(client: Client, url: str, status: int = 200) -> str:
    response = client.get(url)
    assert response.status_code == status, (url, response.status_code, response.content[:2000])
    return response.content.decode()


def test_the_queue_of_an_approver_shows_age_deadline_and_context(story: Story, as_person: SignIn) -> None:
    held = story.approve(story.ask_for_prod())
    story.clock.advance(60)
    waiting = story.ask(account="payments-prod", permission_set="PowerUserAccess", reason="Reconcile the failed payouts")
    story.clock.advance(720)

    bob = as_person("bob")
    queue = page(bob, "/admin/requests/")

    assert "Waiting for me" in queue
    assert "Reconcile the failed payouts" in queue
    assert "Alice Park" in queue
    assert "12 min ago" in queue
    assert "lapses in 23 h" in queue
    assert "prod-power" in queue
    assert queue.index("Reconcile the failed payouts") < queue.index("payments-prod · PowerUserAccess") < queue.index("Alice Park")
    assert f'hx-get="/admin/requests/{waiting.request_id}/around/"' in queue
    assert held.request_id not in queue


def test_what_can_not_be_read_of_the_past_is_named_beside_what_is_told_of_it(story: Story, as_person: SignIn) -> None:
    past, waiting = story.deny(story.ask_for_prod()), story.ask_for_prod()
    RequestItem.get(past.request_id).update([RequestItem.duration_seconds.set(-1)])
    bob = as_person("bob")

    for address in (f"/admin/requests/{waiting.request_id}/around/", f"/requests/{waiting.request_id}/"):
        told = html.unescape(text_of(bob.get(address)))
        assert told.count(f"The item {past.request_id} of the table ActiveRequests can't be read") == 1
        assert "none like it among the latest" in told.lower()


def test_a_row_tells_what_is_held_asked_and_usual_when_it_comes_into_sight(story: Story, as_person: SignIn) -> None:
    story.ask(account="payments-prod", permission_set="PowerUserAccess", reason="Asked for twice")
    held = story.ask_for_prod()
    story.clock.advance(120)
    story.approve(held)
    waiting = story.ask(account="payments-prod", permission_set="PowerUserAccess", reason="Reconcile the failed payouts")
    longer = story.ask_for_prod()
    bob = as_person("bob")

    around = text_of(bob.get(f"/admin/requests/{waiting.request_id}/around/"))

    assert "0 of 2 approvals given" in around
    assert "1 like it in 90 days, 1 waiting" in around
    assert "Holds payments-prod · ReadOnlyAccess until" in around
    assert "Asked for twice: another one waits, too" in around
    told = text_of(bob.get(f"/admin/requests/{longer.request_id}/around/"))
    assert "Holds this already until" in told
    assert "and 1 more" not in told
    assert "1 by this rule, granted; usually decided in 2 min" in told
    for name in ("mallory", "alice"):
        assert as_person(name).get(f"/admin/requests/{waiting.request_id}/around/").status_code == 403
    assert as_person("gina").get(f"/admin/requests/{waiting.request_id}/around/").status_code == 404


@pytest.mark.parametrize(("name", "pattern"), [("bob", "waiting"), ("olga", "pending")])
def test_the_queue_is_narrowed_by_words_kind_rule_and_person(story: Story, as_person: SignIn, name: str, pattern: str) -> None:
    read = story.ask_for_prod()
    power = story.ask(account="payments-prod", permission_set="PowerUserAccess", reason="Reconcile the failed payouts")
    join = story.ask_to_join("/portal/operators", "contributor", actor=story.gina)
    client, queue = as_person(name), f"/admin/requests/?pattern={pattern}"

    def found(narrowed: str) -> set[str]:
        return {row.key for row in client.get(f"{queue}&{narrowed}").context["rows"]}

    assert found("") == {read.request_id, power.request_id, join.request_id}
    assert found("q=PAYOUTS") == found("q=poweruser") == found("rule=prod-power") == {power.request_id}
    assert found("kind=group") == found("person=gina") == found("person=Gina+Falk") == {join.request_id}
    assert found("q=chg-20817&person=alice&kind=aws_account") == {read.request_id}
    assert found("person=nobody") == set()
    # The list that is chosen for somebody is narrowed, too.
    assert client.get("/admin/requests/?q=payouts").context["rows"][0].key == power.request_id
    assert {one.name for one, value, _ in client.get(f"{queue}&kind=group&q=a").context["inputs"] if value} == {"q", "kind"}


def test_what_somebody_decided_is_listed_as_it_stands_now(story: Story, as_person: SignIn) -> None:
    approved, denied, half, others = (story.ask_for_prod(), story.ask_for_prod(), story.ask(account="payments-prod"), story.ask_for_prod())
    for decide, request in ((story.approve, approved), (story.deny, denied), (story.approve, half)):
        story.clock.advance(1)
        decide(request)
    story.approve(others, actor=story.sam)
    bob = as_person("bob")

    shown = bob.get("/admin/requests/?pattern=decided")

    assert [row.key for row in shown.context["rows"]] == [half.request_id, denied.request_id, approved.request_id]
    told = text_of(shown)
    assert "Approved by you; others are still needed" in told
    assert "Denied by you" in told
    assert "Not today" in told
    assert bob.get(f"/requests/{approved.request_id}/").status_code == 200
    assert "You have decided nothing yet" in page(as_person("gina"), "/admin/requests/?pattern=decided")


def test_an_empty_queue_says_what_will_come(as_person: SignIn) -> None:
    assert "Nothing waits for you" in page(as_person("bob"), "/admin/requests/")


def test_every_list_answers_to_an_operator(story: Story, as_person: SignIn) -> None:
    story.ask_for_prod()
    story.ask()
    olga = as_person("olga")

    for pattern in ("waiting", "pending", "active", "ending", "stuck", "undecidable", "unreadable", "all"):
        assert "<h1>" in page(olga, f"/admin/requests/?pattern={pattern}")


def test_an_approver_sees_only_what_waits_for_them(as_person: SignIn) -> None:
    bob = as_person("bob")

    for pattern in ("pending", "active", "stuck", "all", "all&account=123456789012"):
        page(bob, f"/admin/requests/?pattern={pattern}", status=403)
    for closed in ("/admin/assignments/", "/admin/rules/", "/admin/audit/", "/admin/accounts/", "/admin/rules/prod-power/"):
        page(bob, closed, status=403)
    for open_page in ("/admin/", "/admin/requests/", "/admin/rules/explain/"):
        page(bob, open_page)


def test_an_unknown_list_is_not_found(as_person: SignIn) -> None:
    page(as_person("olga"), "/admin/requests/?pattern=everything", status=404)


def test_a_failing_query_is_a_503_and_never_an_empty_table(as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise Unavailable("The database did not answer.", code="store_unavailable")

    monkeypatch.setattr(queries, "list_active", fail)

    shown = page(as_person("olga"), "/admin/requests/?pattern=active", status=503)

    assert "Nobody holds access" not in shown


def test_a_forged_cursor_is_refused(story: Story, as_person: SignIn) -> None:
    page(as_person("olga"), "/admin/requests/?pattern=active&cursor=AAAA", status=400)


def test_a_cursor_of_another_list_is_refused(story: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        story.ask_for_prod()
    cursor = queries.list_pending(actor=story.olga, now=story.clock.now(), limit=1).next_cursor

    page(as_person("olga"), f"/admin/requests/?pattern=pending&cursor={cursor}")
    page(as_person("olga"), f"/admin/requests/?pattern=active&cursor={cursor}", status=400)


def test_the_next_page_keeps_pattern_and_parameter(story: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_requests, "_AT_ONCE", PAGE_SIZE)
    for _ in range(27):
        story.ask_for_prod()
    olga = as_person("olga")

    response = olga.get("/admin/requests/?pattern=all&q=alice@example.com&state=PENDING")
    next_url = response.context["next_url"]

    assert next_url.startswith("/admin/requests/?pattern=all&q=alice%40example.com&state=PENDING&was=-&cursor=")
    rest = olga.get(next_url)
    assert len(response.context["rows"]) == 25
    assert len(rest.context["rows"]) == 2
    assert rest.context["next_url"] == ""
    back = olga.get(rest.context["previous_url"])
    assert [row.key for row in back.context["rows"]] == [row.key for row in response.context["rows"]]
    assert back.context["previous_url"] == ""


def test_htmx_gets_the_results_alone(story: Story, as_person: SignIn) -> None:
    story.ask_for_prod()

    fragment = as_person("olga").get("/admin/requests/?pattern=pending", headers={"HX-Request": "true"}).content.decode()

    assert fragment.lstrip().startswith('<div id="results"')
    assert "<html" not in fragment


def test_the_box_finds_people_groups_accounts_tickets_and_requests(story: Story, as_person: SignIn) -> None:
    olga, asked = as_person("olga"), story.ask_for_prod()
    table = {
        "Alice@Example.com": "pattern=all&q=alice%40example.com",
        "/engineering": "pattern=all&q=%2Fengineering",
        "payments-prod": f"pattern=all&account={story.twin.accounts['payments-prod']}",
        asked.request_id.upper(): f"pattern=id&q={asked.request_id}",
        "chg-20817": "pattern=all&ticket=chg-20817",
        "Engineering": "pattern=all&q=%2Fengineering",
        "engineering/payments": "pattern=all&q=%2Fengineering%2Fpayments",
        "bob ito": "pattern=all&q=bob%40example.com",
        "Osei": "pattern=all&q=sam%40example.com",
    }

    for typed, leads_to in table.items():
        response = olga.get("/admin/requests/", {"find": typed})
        assert response.status_code == 302
        assert leads_to in response["Location"]
    for found in ("chg-20817", asked.request_id):
        shown = olga.get("/admin/requests/", {"find": found}, follow=True)
        assert [row.key for row in shown.context["rows"]] == [asked.request_id]


def test_one_list_finds_by_everything_together(story: Story, as_person: SignIn) -> None:
    """An index answers for the first of what is asked; the rest is looked for among what that finds. Alice asks, and Gina joins a group."""
    olga = as_person("olga")
    waiting = story.ask_for_prod()
    denied = story.deny(story.ask_for_prod())
    story.clock.advance(86_400)
    joined = story.ask_to_join("/engineering/payments", actor=story.gina)
    active = story.carry_out(story.ask())
    dev, prod = story.twin.accounts["payments-dev"], "payments-prod"

    def found(asked: str) -> set[str]:
        return {row.key for row in olga.get(f"/admin/requests/?pattern=all&{asked}").context["rows"]}

    ids = {one.request_id for one in (waiting, denied, joined, active)}
    assert found("") == ids
    assert found("since=2026-03-03") == {joined.request_id, active.request_id}
    assert found("until=2026-03-02") == found("since=2026-03-01&until=2026-03-02") == {waiting.request_id, denied.request_id}
    assert found("state=DENIED") == found(f"q=alice@example.com&account={prod}&state=DENIED") == {denied.request_id}
    assert found(f"account={dev}") == found("rule=dev-power") == {active.request_id}
    assert found("group=/engineering/payments") == found("group=/engineering/payments&rule=look-around&state=ACTIVE") == {joined.request_id}
    assert found("ticket=chg-20817&state=PENDING&until=2026-03-02") == {waiting.request_id}
    assert found("ticket=CHG-20817&rule=dev-power") == found("rule=prod-readonly&since=2026-03-03") == set()


def test_the_list_of_all_says_how_it_was_found_and_how_many_there_are(story: Story, as_person: SignIn) -> None:
    story.ask_for_prod()
    story.ask_for_prod()
    olga = as_person("olga")

    assert "<strong>2</strong> found by whom it is for, newest first." in page(olga, "/admin/requests/?pattern=all&q=alice@example.com")
    besides = page(olga, "/admin/requests/?pattern=all&q=alice@example.com&rule=prod-readonly")
    assert "Found by whom it is for, newest first." in besides
    assert "What you asked besides (rule) is looked for among these" in besides
    for wrong, words in {
        "account=payments": "Did you mean payments-",
        "state=OPEN": "no state",
        "since=soon": "write it like 2026-03-02",
        "since=2026-03-02&until=2026-03-01": "before the first day",
    }.items():
        assert words in page(olga, f"/admin/requests/?pattern=all&{wrong}", status=400)


def test_how_many_there_are_is_counted_once_and_addresses_stay_short(
    story: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_requests, "_AT_ONCE", PAGE_SIZE)
    asked = [story.ask_for_prod() for _ in range(30)]
    olga = as_person("olga")
    first = olga.get("/admin/requests/?pattern=all&q=alice@example.com")
    assert "<strong>30</strong> found" in first.content.decode()
    story.ask_for_prod()

    cost = cost_of(lambda: olga.get(first.context["next_url"]))
    rest = olga.get(first.context["next_url"])

    assert cost["Query SubjectIndex"] == 1
    assert "<strong>30</strong> found" in rest.content.decode()
    assert len(first.context["rows"]) + len(rest.context["rows"]) == len(asked)
    assert "damaged" in page(olga, first.context["next_url"].replace("alice", "bob"), status=400)
    # Servers refuse addresses of more than 4,094 characters.
    passed = [f"{number:03}{'x' * 700}" for number in range(5)]
    far = olga.get("/admin/requests/", {"pattern": "all", "was": passed})
    assert len(far.context["next_url"]) < 4_000
    assert passed[-1] in far.context["next_url"]
    assert f"cursor={passed[-1]}" in far.context["previous_url"]


def test_an_account_leads_to_its_last_month_on_one_page(story: Story, as_person: SignIn) -> None:
    """From the page of the account, or from the start page by the box and a button that keeps what was typed."""
    before = story.ask_for_prod()
    story.clock.advance(31 * 86_400)
    asked = {story.ask_for_prod().request_id for _ in range(2 * PAGE_SIZE)}
    olga, prod = as_person("olga"), story.twin.accounts["payments-prod"]
    day = f"{story.clock.now() - timedelta(days=30):%Y-%m-%d}"
    lately = f"/admin/requests/?pattern=all&account={prod}&since={day}"

    def shown(address: str) -> tuple[set[str], str]:
        answer = olga.get(address)
        return {row.key for row in answer.context["rows"]}, answer.context["next_url"]

    assert f'href="{lately}"'.replace("&", "&amp;") in page(olga, f"/admin/accounts/{prod}/")
    assert shown(lately) == (asked, "")
    assert '<form class="box box-find" method="get" role="search" action="/admin/requests/">' in page(olga, "/admin/")
    assert "box-find" not in page(as_person("bob"), "/admin/")
    found = olga.get("/admin/requests/", {"find": "payments-prod"}, follow=True)
    assert {row.key for row in found.context["rows"]} == asked | {before.request_id}
    assert f'name="since" value="{day}">Last 30 days</button>' in found.content.decode()
    # The button comes after the field of the same name, which may be empty, and what it sends counts.
    assert shown(f"/admin/requests/?pattern=all&account=payments-prod&since=&until=&since={day}") == (asked, "")
    cost = cost_of(lambda: olga.get(lately))
    assert cost["Query AccountIndex"] == 2, cost


def test_everything_pages_without_losing_what_was_asked_at_one_moment(story: Story, as_person: SignIn) -> None:
    asked = {story.ask_for_prod().request_id for _ in range(30)} | {
        story.carry_out(story.ask(seconds=600 + n)).request_id for n in range(4)
    }
    story.clock.advance(60)
    asked |= {story.deny(story.ask_for_prod()).request_id for _ in range(23)}
    seen: list[str] = []
    url = "/admin/requests/?pattern=all"
    while url:
        shown = as_person("olga").get(url)
        seen += [row.key for row in shown.context["rows"]]
        url = shown.context["next_url"]

    assert len(seen) == len(set(seen))
    assert set(seen) == asked


def test_the_box_says_what_was_probably_meant(story: Story, as_person: SignIn) -> None:
    shown = as_person("olga").get("/admin/requests/", {"find": "payments"})

    assert shown.status_code == 400
    assert "Did you mean payments-" in shown.content.decode()
    # A group is called so, too.
    assert "/engineering/payments" in shown.content.decode()


EVERY_PAGE = (
    "/admin/",
    "/admin/requests/?pattern=waiting&kind=group&person=alice",
    "/admin/requests/?pattern=decided",
    "/admin/stand-ins/",
    "/admin/stand-ins/?pattern=all",
    "/admin/evidence/",
    "/admin/history/",
    "/admin/assignments/",
    "/admin/assignments/?pattern=absent",
    "/admin/people/",
    "/admin/people/?q=al",
    "/admin/people/?pattern=behind",
    "/admin/people/?pattern=disabled",
    "/admin/people/?pattern=access",
    "/admin/people/?pattern=group",
    "/admin/people/?pattern=group&q=/engineering",
    "/admin/former-people/",
    "/people/alice@example.com/",
    "/admin/people/alice@example.com/history/?check=1",
    "/admin/groups/",
    "/admin/groups/?pattern=under&q=/engineering",
    "/groups/at/",
    "/admin/groups/~2Fengineering/history/?check=1",
    "/admin/rules/",
    "/admin/rules/prod-power/",
    "/admin/rules/prod-power/history/?check=1",
    "/admin/audit/",
    "/admin/audit/?pattern=actor",
    "/admin/audit/?pattern=actor&q=system:setup",
    "/admin/audit/?pattern=entity&q=rule%23prod-power",
    "/admin/audit/chain/?entity=rule%23prod-power",
    "/admin/accounts/",
    "/admin/accounts/?q=prod",
    "/admin/permission-sets/",
    "/admin/tokens/",
    "/admin/tokens/?pattern=all",
    "/admin/sandboxes/",
    "/admin/sandboxes/?pattern=available",
    "/admin/sandboxes/?pattern=pending_deletion",
    "/admin/sandboxes/?pattern=stale",
    "/admin/sandboxes/?pattern=quarantined",
    "/admin/sandboxes/?pattern=unreadable",
    "/admin/sandboxes/?pattern=track",
    "/admin/sandboxes/?pattern=track&q=person:alice@example.com",
    "/admin/account-pool/",
    "/admin/account-pool/?pattern=failed",
    "/admin/leases/",
    "/admin/leases/?pattern=person&q=alice@example.com",
    "/admin/sandbox-runs/",
    "/admin/sandbox-runs/?pattern=open",
    "/admin/rules/explain/",
    "/admin/approvals/",
    "/admin/approvals/?pattern=scope&q=tenant:acme&below=yes",
    "/admin/approvals/?pattern=target",
    "/admin/relationships/",
    "/admin/relationships/?pattern=holder&q=tenant:acme&holder=alice",
    "/admin/scopes/",
    "/admin/scopes/?pattern=counted",
    "/admin/scopes/?pattern=named&q=tenant:acme",
    "/admin/scopes/tenant:acme/",
    "/admin/scopes/tenant:acme/counts/",
    "/admin/scopes/tenant:acme/history/?check=1",
    "/admin/check-record/",
    "/admin/check-record/?about=approval&scope=tenant:acme&who=alice&verb=GET&target=docs/1",
    "/admin/auth/user/",
    "/admin/sessions/session/",
    "/admin/django_q/schedule/",
    "/admin/django_q/success/",
    "/admin/django_q/failure/",
    "/admin/django_q/ormq/",
)
OPERATORS_PAGES = (
    "/admin/tokens/new/",
    "/admin/approvals/grant/",
    "/admin/relationships/grant/",
    "/admin/sandbox-runs/order/sync/",
    "/admin/sandbox-runs/order/cleanup/",
)


@pytest.mark.parametrize("name", ["olga", "ana"])
def test_every_page_opens_for_operator_and_auditor(as_person: SignIn, name: str) -> None:
    client = as_person(name)

    for url in EVERY_PAGE:
        page(client, url)
    for url in OPERATORS_PAGES:
        page(client, url, status=200 if name == "olga" else 403)


NOT_OF_PEOPLE = re.compile(r"\bfence\b|[Uu]ndecidable|To know: nothing|\b(?:person|rule|system):\w+")


def test_no_page_speaks_in_the_words_of_the_tables(story: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    story.deny(story.ask_for_prod())
    held = story.carry_out(story.ask())
    joined = story.carry_out(story.ask_to_join())
    story.ask_for_prod()
    monkeypatch.setattr(policy, "PARTS", 1)
    assert follow(workers=1, clock=story.clock).is_ok
    olga = as_person("olga")
    lists = ["/", "/help/", "/requests/", "/requests/new/", f"/requests/{held.request_id}/", f"/requests/{joined.request_id}/"]
    lists += [f"/admin/requests/?pattern={name}" for name in ("all", "pending", "active", "ending", "stuck", "undecidable")]
    found = {}
    for url in (*EVERY_PAGE, *lists, "/history/", "/admin/history/?pattern=what&q=alice@example.com"):
        if "/django_q/" in url or "/auth/" in url:
            continue
        # What was asked for is theirs who asked; otherwise it is what is to be typed there.
        asked = unquote(url.partition("q=")[2].partition("&")[0]) or "system:tick"
        words = re.sub(r"<[^>]+>", " ", page(olga, url).partition("<main")[2])
        found[url] = NOT_OF_PEOPLE.findall(words.replace(asked, ""))

    assert {url: words for url, words in found.items() if words} == {}


def test_the_audit_of_a_day_pages_without_losing_events_of_one_moment(story: Story, as_person: SignIn) -> None:
    olga = as_person("olga")
    seen: list[str] = []
    url = "/admin/audit/?pattern=day&q=2026-03-02"
    while url:
        response = olga.get(url)
        seen += [row.record.event_id for row in response.context["rows"]]
        url = response.context["next_url"]

    # Everything in the story's setup happened at the same instant.
    assert len(seen) == len(set(seen)) > 20


def test_events_are_sentences_with_names_and_sign_ins_stay_out_until_asked_for(story: Story, as_person: SignIn) -> None:
    olga = as_person("olga")
    asked = story.approve(story.ask_for_prod())
    record_password_sign_in(email="bob@example.com", now=story.clock.now())

    def found(given: str) -> list[str]:
        return [row.record.action for row in olga.get(f"/admin/audit/?pattern={given}").context["rows"]]

    assert found("day&action=request.&actor=Bob@example.com") == ["request.approved"]
    assert found("actor&q=bob@example.com") == ["request.approved"]
    assert sorted(found("actor&q=bob@example.com&sign_ins=yes")) == ["request.approved", "user.signed_in"]
    assert found("day&action=user.signed_in") == ["user.signed_in"]
    shown = page(olga, "/admin/audit/?pattern=day&action=request.approved")
    assert '>Bob Ito</a>, for <span title="alice@example.com">Alice Park</span>' in shown
    assert f'href="/requests/{asked.request_id}/"' in shown
    # The files are as narrow as the list, and the page says so; the words of the tables are nobody's.
    assert "Sign-ins and sign-outs are left out, of the files too" in page(olga, "/admin/audit/")
    assert not [given for given in ("sign_ins=yes", "action=request.") if "are left out" in page(olga, f"/admin/audit/?{given}")]
    assert "<dt>Approvals needed</dt>" in shown
    assert "Quorum" not in shown


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_the_first_and_the_last_day_there_is_are_days(as_person: SignIn, day: str) -> None:
    assert "Nothing happened on this day" in page(as_person("olga"), f"/admin/audit/?pattern=day&q={day}")


def test_days_are_named_when_they_cannot_be_read(as_person: SignIn) -> None:
    assert "write it like 2026-03-02" in page(as_person("olga"), "/admin/audit/?pattern=day&q=yesterday", status=400)


def test_the_catalog_shows_how_old_it_is(story: Story, as_person: SignIn) -> None:
    olga = as_person("olga")
    assert "Read from AWS" in page(olga, "/admin/accounts/")

    story.clock.advance(3600)

    assert "the scheduled sync is not running" in page(olga, "/admin/accounts/")


def test_a_cell_names_a_few_and_counts_the_rest(story: Story, as_person: SignIn) -> None:
    """Also of what differs between our records and IAM Identity Center, which has its own list."""
    requests = [story.carry_out(story.ask(seconds=3600 + number)) for number in range(8)]

    cell = page(as_person("olga"), "/admin/assignments/")

    assert "8 requests" in cell
    assert sum(one.request_id in cell for one in requests) == 3
    assert "and 5 more" in cell


def test_what_the_last_comparison_found_is_in_the_pages(story: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    olga = as_person("olga")
    assert "Nothing has been compared with IAM Identity Center yet." in page(olga, "/admin/assignments/")
    held = story.carry_out(story.ask())
    jobs.reconcile_assignments()
    empty = page(olga, "/admin/drift/")
    assert "Nothing differs" in empty
    # It says when that was, and does not lead to itself.
    assert "What differed then, and is not mended yet, is listed here" in empty
    assert 'What differed then is under <a href="/admin/drift/">' in page(olga, "/admin/assignments/")

    story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
    story.clock.advance(60)
    reconciling.reconcile_assignments(actor=story.olga, clock=story.clock)
    # What the pages list is of the job, and no moment of another comparison stands above it.
    assert "what it found stands here after the next comparison by the worker" in page(olga, "/admin/drift/")
    jobs.reconcile_assignments()
    assert "the next comparison by the worker" not in page(olga, "/admin/drift/")

    # No read for each of up to a hundred findings, on every list of assignments.
    with monkeypatch.context() as lists:
        lists.setattr(assignments, "find", lambda **_: pytest.fail("read for nothing"))
        drift, present = page(olga, "/admin/drift/"), page(olga, "/admin/assignments/")
    assert "Missing" in drift
    assert "a request gives it, and it was there, but AWS does not have it now" in drift
    assert held.request_id in drift
    last = assignments.comparisons().last
    assert last is not None
    (found,) = assignments.found_by(comparison=last).findings
    assert f"/admin/drift/{found.finding_id}/" in drift
    assert "found <time" in drift
    assert 'Drift <span class="tally">1</span>' in present
    assert "Missing" in present
    assert "by our records present," in present
    assert '<span class="state live">Present</span>' not in present
    (assignment,) = assignments.list_by_state(state=AssignmentState.PRESENT).items
    assert f"/admin/assignments/{KeyConverter().to_url(assignment.assignment_id)}/" in page(olga, f"/admin/drift/{found.finding_id}/")
    detail = page(olga, f"/admin/assignments/{KeyConverter().to_url(assignment.assignment_id)}/")
    assert "Missing" in detail
    assert 'Drift <span class="tally">1</span>' in page(olga, "/admin/")
    # Pages of other rooms don't show it.
    monkeypatch.setattr(Differences, "badge", lambda _self: pytest.fail("counted for nothing"))
    page(olga, "/admin/audit/")


def test_a_stand_in_is_ended_from_the_list(story: Story, as_person: SignIn) -> None:
    now = story.clock.now()
    end = now + timedelta(days=2)
    operations.name_stand_in(email="gina@example.com", starts_at=now, ends_at=end, submission_id="form", actor=story.bob, now=now)
    olga = as_person("olga")

    (asks,) = ROW_DEED.findall(page(olga, "/admin/stand-ins/"))
    assert 'name="next" value="/admin/stand-ins/"' in page(olga, f"{asks}?next=/admin/stand-ins/")
    olga.post(asks, {"confirmed": "yes"})

    assert ROW_DEED.findall(page(olga, "/admin/stand-ins/")) == []


def test_what_differs_is_mended_by_an_operators_order(story: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    ordered: list[dict[str, str]] = []
    monkeypatch.setattr(jobs, "_CLOCK", story.clock)
    monkeypatch.setattr(drift, "after_commit", lambda _name, **payload: ordered.append(payload))
    olga, ana = as_person("olga"), as_person("ana")
    story.carry_out(story.ask())
    key = story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess")
    story.twin.sso.delete_account_assignment(**key)
    story.twin.sso.create_account_assignment(**story.twin.key("bob@example.com", "payments-dev", "ReadOnlyAccess"))
    story.clock.advance(60)
    jobs.reconcile_assignments()
    since = story.clock.now()
    story.clock.advance(900)
    jobs.reconcile_assignments()
    missing, unknown = drift.last_drift()
    assert (missing.drift, unknown.drift) == ("missing", "unknown")
    assert missing.since is not None
    assert abs((since - missing.since).total_seconds()) < 1

    # One click leads from the row to the page that asks, which tells of the brake; each row offers its own remedies.
    found = ((missing, "repair"), (unknown, "adopt"), (unknown, "remove-unknown"))
    remedies = {f"/admin/drift/{one.finding_id}/do/{name}/" for one, name in found}
    assert set(ROW_DEED.findall(page(olga, "/admin/drift/"))) == remedies
    assert all("if too much would be removed at once, nothing is done" in page(olga, one) for one in remedies)
    assert ROW_DEED.findall(page(ana, "/admin/drift/")) == []
    detail = page(olga, f"/admin/drift/{unknown.finding_id}/")
    assert all(label in detail for label in (">Adopt…<", ">Remove…<"))
    assert ">Repair…<" not in detail
    assert "…</button>" not in page(ana, f"/admin/drift/{missing.finding_id}/")
    assert ana.post(f"/admin/drift/{missing.finding_id}/do/repair/", {"confirmed": "yes"}).status_code == 403
    olga.post(f"/admin/drift/{missing.finding_id}/do/repair/", {"confirmed": "yes"})
    olga.post(f"/admin/drift/{unknown.finding_id}/do/adopt/", {"confirmed": "yes"})
    assert [one["operator"] for one in ordered] == ["olga@example.com"] * 2
    for one in ordered:
        assert jobs.mend_difference(**one) == "mended"

    assert "Nothing differs" in page(olga, "/admin/drift/")
    wanted = {(one.account_id, one.permission_set_arn) for one in story.twin.front.assignments()}
    assert (key["TargetId"], key["PermissionSetArn"]) in wanted


def test_what_was_repaired_since_the_comparison_is_not_called_missing(
    story: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by the command, of which the list of the last comparison knows nothing."""
    monkeypatch.setattr(jobs, "_CLOCK", story.clock)
    monkeypatch.setattr(drift, "after_commit", lambda _name, **_payload: None)
    olga = as_person("olga")
    story.carry_out(story.ask())
    key = story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess")
    story.twin.sso.delete_account_assignment(**key)
    story.clock.advance(60)
    jobs.reconcile_assignments()
    (missing,) = drift.last_drift()
    at, of_assignment = f"/admin/drift/{missing.finding_id}/", f"/admin/assignments/{KeyConverter().to_url(missing.assignment_id)}/"

    olga.post(f"{at}do/repair/", {"confirmed": "yes"})
    words = f"Last order: Repair was asked for at {story.clock.now():%H:%M} UTC, and has not been done yet."
    assert words in page(olga, "/admin/drift/")
    assert all("Missing" in page(olga, one) for one in ("/admin/drift/", at, "/admin/assignments/", of_assignment))

    story.clock.advance(5)
    operations.reconcile_assignments(remedies=[Remedy.REPAIR], actor=story.olga, clock=story.clock)
    for one in ("/admin/drift/", at):
        told = page(olga, one)
        assert '<span class="state live">Present</span>' in told
        assert "after it was found. The next comparison looks again." in told
        assert "Missing" not in told
    assert all("Missing" not in page(olga, one) for one in ("/admin/assignments/", of_assignment))

    story.twin.sso.delete_account_assignment(**key)
    story.clock.advance(900)
    jobs.reconcile_assignments()
    assert all("Missing" in page(olga, one) for one in ("/admin/drift/", at, "/admin/assignments/", of_assignment))
    assert "Last order" not in page(olga, "/admin/drift/")


def test_what_our_records_can_not_tell_of_a_difference_is_named(story: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_CLOCK", story.clock)
    story.carry_out(story.ask())
    story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-dev", "PowerUserAccess"))
    story.clock.advance(60)
    jobs.reconcile_assignments()
    (missing,) = drift.last_drift()
    AssignmentItem(missing.assignment_id).update(actions=[AssignmentItem.state.set("nonsense")])

    told = page(as_person("olga"), "/admin/drift/")

    assert "Missing" in told
    assert missing.assignment_id in told


def test_what_can_not_be_mended_says_why_beside_it(story: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    story.twin.sso.create_account_assignment(**story.twin.key("bob@example.com", "payments-dev", "ReadOnlyAccess"))
    story.clock.advance(60)
    jobs.reconcile_assignments()
    (unknown,) = drift.last_drift()
    monkeypatch.setattr(jobs, "_CLOCK", story.clock)
    monkeypatch.setattr(reconciling, "brake", lambda *_args, **_words: "Too many would go.")

    jobs.mend_difference(finding_id=unknown.finding_id, remedy="remove_unknown", operator="olga@example.com")

    assert "Last order: Too many would go." in page(as_person("olga"), "/admin/drift/")
    assert jobs.mend_difference(finding_id=unknown.finding_id, remedy="adopt", operator="ana@example.com").endswith("no operator any more")


def test_stock_pages_say_that_their_times_are_in_utc(story: Story, as_person: SignIn) -> None:
    olga = as_person("olga")
    assert "Times on this page are in UTC." in page(olga, "/admin/sessions/session/")
    assert "Times on this page are in UTC." not in page(olga, "/admin/requests/")
