"""What pages and verbs cost in requests to DynamoDB: each person, group and rule once; and the verbs no more with a thousand groups."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any
from unittest import mock

import boto3
import pytest
from django.test import Client
from pynamodb.connection.base import Connection

from accessportal.access_requests import operations, queries
from accessportal.access_requests.queries import ApproverBook
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole, State
from accessportal.identity.operations import ensure_user
from accessportal.kernel.actors import Role, person, system
from accessportal.rules import operations as rules
from tests.fixtures_story import PEOPLE, RULES, Story
from tests.fixtures_twin import REGION

SETUP = system("setup")
PAYMENTS = "/engineering/payments"
OPERATOR = person("olga@example.com", roles=frozenset({Role.OPERATOR}))


def grow(numbers: Collection[int]) -> None:
    """So many groups, with one member each, below security, below engineering and beside them."""
    with boto3.resource("dynamodb", region_name=REGION).Table("AccessManagement").batch_writer() as batch:
        for number in numbers:
            above = ("/", "/security", "/engineering", "/engineering/payments")[number % 4]
            group, email = f"{above.rstrip('/')}/g{number}", f"p{number}@example.com"
            ancestors = [above] if above == "/" else ["/", *(["/engineering"] if above.endswith("/payments") else []), above]
            common = {"state": "enabled", "createdAt": "2026-01-01T00:00:00.000Z"}
            batch.put_item({"pk": f"G:{group}", "sk": f"G:{group}", "siKey1": "G", "id": group, "ancestors": ancestors, **common})
            batch.put_item({"pk": f"U:{email}", "sk": f"U:{email}", "siKey1": "U", "email": email, **common})
            batch.put_item({"pk": f"U:{email}", "sk": f"G:{group}", "siKey1": f"M:{group}", "role": "reader"})


def cost_of(action: Callable[[], object]) -> list[str]:
    with mock.patch.object(Connection, "dispatch", autospec=True, side_effect=Connection.dispatch) as dispatch:
        action()
    return [call.args[1] for call in dispatch.call_args_list]


def ask_for_team(story: Story) -> AccessRequest:
    return story.ask(
        account="payments-prod", permission_set="ReadOnlyAccess", ticket="CHG-1", subject_id="/engineering/payments", actor=story.alice
    )


def costs_of_verbs(story: Story) -> dict[str, list[str]]:
    costs: dict[str, list[str]] = {}

    def measure(name: str, verb: Callable[..., Any], asked: AccessRequest, **given: Any) -> None:
        costs[name] = cost_of(lambda: verb(asked, **given))

    asked = story.ask_for_prod()
    measure("approve", story.approve, asked)
    story.carry_out(asked)
    measure("extend", story.extend, asked, seconds=7200)
    measure("end", story.end, asked)
    measure("retry", lambda one: operations.retry(request_id=one.request_id, actor=OPERATOR, now=story.clock.now()), asked)
    measure("deny", story.deny, story.ask_for_prod())
    measure("cancel", story.cancel, story.ask_for_prod())
    quorum = story.ask(account="payments-prod")
    measure("first approval", story.approve, quorum)
    measure("second approval", story.approve, quorum, actor=story.sam)
    measure("end by an approver", story.end, quorum, actor=story.bob)
    measure("submit for a team", lambda _: ask_for_team(story), asked)
    team = ask_for_team(story)
    measure("approve for a team", story.approve, team, actor=story.sam)
    measure("end by an operator", story.end, team, actor=OPERATOR)
    measure("approve a role", story.approve, story.ask_to_join(role="contributor"), actor=story.gina)
    return costs


def test_no_verb_costs_more_in_a_bigger_directory(story: Story) -> None:
    costs_of_verbs(story)  # what is read once in a process is read now
    grow(range(10))
    small = costs_of_verbs(story)

    grow(range(10, 1000))

    assert costs_of_verbs(story) == small
    assert max(map(len, small.values())) <= 20, small


@pytest.mark.parametrize("approvers", ["groups", "groups_only"])
@pytest.mark.parametrize("is_short", [False, True])
def test_who_is_an_approver_alone_and_among_all(story: Story, is_short: bool, approvers: str) -> None:
    """Sam disabled leaves one approver for a quorum of two: the operators stand in."""
    text = RULES.replace("approvers: {groups: [/security]}", f"approvers: {{{approvers}: [/security]}}")
    rules.apply_rules(text=text, actor=SETUP, now=story.clock.now())
    directory.create_group(group_id="/security/watch", name="Watch", description="", actor=SETUP, now=story.clock.now())
    directory.create_person(
        email="mei@example.com", name="Mei Chen", group_id="/security/watch", role=GroupRole.READER, actor=SETUP, now=story.clock.now()
    )
    directory.grant_membership(
        email="sam@example.com", group_id="/engineering/payments", role=GroupRole.READER, actor=SETUP, now=story.clock.now()
    )
    asked = [
        story.ask_for_prod(),
        story.ask(account="payments-prod"),
        ask_for_team(story),
        story.ask_to_join(role="contributor"),
        story.ask_to_join("/engineering/payments", "admin"),
        story.ask_to_join("/portal/operators", "contributor"),
        story.ask(),
    ]
    if is_short:
        directory.set_person_state(email="sam@example.com", state=State.DISABLED, actor=SETUP, now=story.clock.now())

    found = [one for one in asked if queries.ApproverBook(now=story.clock.now()).of_request(one).is_fallback]
    for request in asked:
        told = queries.ApproverBook(now=story.clock.now()).of_request(request)
        # Of somebody in a group below nothing is read where those directly in the group are enough.
        listed = {one.email for one in told.people} | (set() if told.is_whole else {"mei@example.com"})
        alone = ApproverBook(now=story.clock.now())
        assert {
            email for email in (*PEOPLE, "olga@example.com", "mei@example.com", "nobody@example.com") if alone.is_approver(request, email)
        } == listed

    assert (asked[1] in found) is (is_short and approvers == "groups_only")


def test_an_operator_who_stands_in_is_told_as_one(story: Story) -> None:
    asked = story.ask(account="payments-prod")
    story.approve(asked)
    directory.set_person_state(email="sam@example.com", state=State.DISABLED, actor=SETUP, now=story.clock.now())

    story.approve(asked, actor=story.olga)

    events = queries.history(request=story.now_of(asked))
    assert [event.data.get("fallback") for event in events] == [None, False, True]


def browser(email: str, name: str) -> Client:
    """Somebody's, signed in, who has seen a page: what is counted once a session was counted."""
    client = Client()
    client.force_login(ensure_user(email=email, name=name))
    assert client.get("/").status_code == 200
    return client


def in_short(action: Callable[[], object]) -> str:
    """As :func:`cost_of`: reads by ``G`` (an item), ``B`` (a batch), ``Q`` (a query), ``I`` (of an index), ``T`` a transaction."""
    with mock.patch.object(Connection, "dispatch", autospec=True, side_effect=Connection.dispatch) as dispatch:
        action()
    calls = [(call.args[1], "IndexName" in call.args[2]) for call in dispatch.call_args_list]
    letters = {"GetItem": "G", "BatchGetItem": "B", "Query": "Q", "TransactWriteItems": "T", "UpdateItem": "U"}
    return "".join("I" if is_index else letters[name] for name, is_index in calls)


def test_a_page_reads_each_person_group_and_rule_once(story: Story) -> None:
    for number in range(10):
        directory.create_person(
            email=f"dev{number}@example.com",
            name=f"Dev {number}",
            group_id="/engineering/payments",
            role=GroupRole.READER,
            actor=SETUP,
            now=story.clock.now(),
        )
        story.ask_to_join("/portal/operators", "contributor", actor=person(f"dev{number}@example.com"))
    for held in (story.ask(), story.ask(permission_set="ReadOnlyAccess"), story.ask_to_join()):
        story.carry_out(held)
    asked = story.ask_for_prod()
    for waiting in (story.ask(account="payments-prod"), story.ask_to_join(role="contributor"), story.ask_to_join(PAYMENTS, "admin")):
        assert waiting.status is Status.PENDING
    ask_for_team(story)
    alice, bob, olga = browser("alice@example.com", "Alice"), browser("bob@example.com", "Bob"), browser("olga@example.com", "Olga")
    mine = f"/requests/{asked.request_id}/"
    form = "/requests/new/aws_account/?account=payments-prod&permission_set=ReadOnlyAccess"
    refused = {"account": "payments-prod", "permission_set": "ReadOnlyAccess"}

    costs = {
        "home": in_short(lambda: alice.get("/")),
        "form": in_short(lambda: alice.get("/requests/new/aws_account/")),
        "form by a link": in_short(lambda: alice.get(form)),
        "form, refused": in_short(lambda: alice.post("/requests/new/aws_account/", refused)),
        "pending": in_short(lambda: olga.get("/admin/requests/?pattern=pending")),
        "approve": in_short(lambda: bob.post(f"{mine}approve/", {"reason": ""})),
        "end": in_short(lambda: alice.post(f"{mine}end/", {"reason": ""})),
    }

    assert costs == {
        "home": "QB" + "IIII" + "G" + "IBIB" + "I",
        "form": "QB" + "I" + "G",
        "form by a link": "QB" + "I" + "G" + "BIB",
        "form, refused": "QB" + "I" + "G" + "BIB",
        "pending": "QB" + "I" + "IIQ",
        "approve": "QB" + "GG" + "GQGQBBIT",
        "end": "QB" + "G" + "IB" + "GIBT",  # each "IB": what extends it, to tell what of that goes on, and to end it as well
    }


def test_a_right_that_a_page_has_seen_lets_no_write_through(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bob may decide when the page looks, and is disabled before the operation does."""
    asked, bob = story.ask_for_prod(), browser("bob@example.com", "Bob")
    look = queries.get

    def get(**given: Any) -> AccessRequest:
        found = look(**given)
        assert given["book"].is_approver(found, "bob@example.com")
        directory.set_person_state(email="bob@example.com", state=State.DISABLED, actor=SETUP, now=story.clock.now())
        return found

    with monkeypatch.context() as patch:
        patch.setattr(queries, "get", get)
        assert bob.post(f"/requests/{asked.request_id}/approve/", {"reason": ""}).status_code == 404
    assert story.now_of(asked).approvals == frozenset()


def test_no_operation_takes_what_a_page_has_read() -> None:
    offered = [getattr(operations, name) for name in operations.__all__]
    assert [one for one in filter(inspect.isfunction, offered) if "book" in inspect.signature(one).parameters] == []
