"""Every other table, one attribute spoilt at a time: what can't be read is named, and the rest is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import boto3
import pytest

from accessportal.access_requests import operations as requests_operations
from accessportal.access_requests import queries as requests
from accessportal.access_requests.models import StandInItem
from accessportal.access_requests.queries import ApproverBook
from accessportal.assignments import queries as assignments
from accessportal.assignments.models import AssignmentItem
from accessportal.assignments.states import AssignmentState
from accessportal.audit import queries as audit
from accessportal.audit.models import AuditItem
from accessportal.authz import operations as authz_operations
from accessportal.authz import queries as authz
from accessportal.authz.models import ApprovalItem
from accessportal.authz.queries import caller_of, read_scope
from accessportal.authz.states import Approval
from accessportal.console.resource import Ask
from accessportal.console.resources import RESOURCES
from accessportal.directory import queries as directory
from accessportal.directory.models import DirectoryItem
from accessportal.kernel.errors import NotFound, Unavailable
from accessportal.kernel.pages import Page
from accessportal.rules import queries as rules
from accessportal.rules import store as rules_store
from accessportal.rules.models import RuleItem
from accessportal.store.base import PortalModel
from accessportal.tokens import operations as tokens_operations
from accessportal.tokens import queries as tokens
from accessportal.tokens.models import TokenItem
from accessportal.tokens.states import Scope
from accessportal.web.events import line_of, tell
from accessportal.web.facts import facts_of
from accessportal.web.names import Names
from tests.damage import Raw, damaged
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION

ALICE, PAYMENTS = "alice@example.com", "/engineering/payments"


def spoilt(model: type[PortalModel], keys: dict[str, str], *, fresh: Callable[[int], dict[str, str]]) -> Iterator[str]:
    """Spoilt copies beside the item with ``keys``, each under keys of its own, which are yielded as the portal names them."""
    client = boto3.client("dynamodb", region_name=REGION)
    table = model.base_table_name
    item: Raw = client.get_item(TableName=table, Key={name: {"S": key} for name, key in keys.items()})["Item"]
    for number, (_, copy) in enumerate(damaged(model, item)):
        own = fresh(number)
        client.put_item(TableName=table, Item={**copy, **{name: {"S": key} for name, key in own.items()}})
        yield ", ".join(dict.fromkeys(own.values()))


def walk(fetch: Callable[..., Page[Any]], **given: Any) -> tuple[list[Any], set[str]]:
    items, named, cursor = list[Any](), set[str](), None
    while True:
        page = fetch(cursor=cursor, limit=50, **given)
        items += page.items
        named |= {one.key for one in page.unreadable}
        if (cursor := page.next_cursor) is None:
            return items, named


def read(query: Callable[..., Any], **given: Any) -> Any:
    """What is read, or ``None`` for what is not there or is named as unreadable; nothing else may happen."""
    try:
        return query(**given)
    except NotFound:
        return None
    except Unavailable as error:
        return None if error.code == "item_unreadable" else pytest.fail(str(error))


def test_assignments(story: Story) -> None:
    story.carry_out(story.ask())
    [healthy] = assignments.list_by_state(state=AssignmentState.PRESENT).items
    keys = set(spoilt(AssignmentItem, {"assignment_id": healthy.assignment_id}, fresh=lambda number: {"assignment_id": f"spoilt-{number}"}))

    items, named = list[Any](), set[str]()
    for state in AssignmentState:
        more, also = walk(assignments.list_by_state, state=state)
        items, named = items + more, named | also

    assert healthy in items
    assert len(named) > 20
    assert named <= keys
    assert RESOURCES["assignments"].rows(items, Ask(actor=story.olga, book=ApproverBook(now=story.clock.now())))
    assert {key for key in keys if read(partial(assignments.get, key)) is None} >= named


def test_tokens(story: Story) -> None:
    made = tokens_operations.create_token(name="ci", scope=Scope.TRACK, actor=story.olga, now=story.clock.now())
    token_id = made.token.token_id
    keys = set(spoilt(TokenItem, {"token_id": token_id}, fresh=lambda number: {"token_id": f"spoilt-{number}"}))

    items, named = walk(tokens.list_tokens)

    assert token_id in {one.token_id for one in items}
    assert len(named) > 10
    assert named <= keys
    assert RESOURCES["tokens"].rows(items, Ask(actor=story.olga, book=ApproverBook(now=story.clock.now())))
    assert {key for key in keys if read(tokens.find_token, token_id=key) is None} >= named


def test_stand_ins(story: Story) -> None:
    now, olga, gina = story.clock.now(), story.olga, "gina@example.com"
    one = requests_operations.name_stand_in(
        email=gina, starts_at=now, ends_at=now + timedelta(days=9), submission_id="form", actor=story.bob, now=now
    )
    begin = one.stand_in_id[:11]
    keys = set(
        spoilt(
            StandInItem,
            {"stand_in": gina, "stand_in_id": one.stand_in_id},
            fresh=lambda number: {"stand_in": gina, "stand_in_id": f"{begin}spoilt-{number}"},
        )
    )

    items, named = walk(requests.list_stand_ins, actor=olga)

    assert one in items
    assert len(named) > 10
    assert named <= keys
    assert RESOURCES["stand-ins"].rows(items, Ask(actor=olga, book=ApproverBook(now=now)))
    # What can be read gives its right whatever lies beside it, and what can't gives none.
    assert one in ApproverBook(now=now).stand_ins_of(story.gina)


def _person(number: int) -> dict[str, str]:
    return {"pk": f"U:spoilt{number}@example.com", "sk": f"U:spoilt{number}@example.com"}


def _member(number: int) -> dict[str, str]:
    return {"pk": f"U:spoilt{number}@example.com", "sk": f"G:{PAYMENTS}"}


def _group(number: int) -> dict[str, str]:
    return {"pk": f"G:/spoilt{number}", "sk": f"G:/spoilt{number}"}


def test_people_groups_and_memberships(story: Story) -> None:
    now, olga = story.clock.now(), story.olga
    people = set(spoilt(DirectoryItem, {"pk": f"U:{ALICE}", "sk": f"U:{ALICE}"}, fresh=_person))
    members = set(spoilt(DirectoryItem, {"pk": f"U:{ALICE}", "sk": f"G:{PAYMENTS}"}, fresh=_member))
    groups = set(spoilt(DirectoryItem, {"pk": f"G:{PAYMENTS}", "sk": f"G:{PAYMENTS}"}, fresh=_group))

    found, named_people = walk(directory.list_people)
    assert ALICE in {one.key for one in found}
    assert (bool(named_people), named_people <= people) == (True, True)
    listed, named_members = walk(directory.list_members, group_id=PAYMENTS, actor=olga, now=now)
    assert ALICE in {one.person for one in listed}
    assert (bool(named_members), named_members <= members) == (True, True)
    known, named_groups = walk(directory.list_groups)
    assert PAYMENTS in {one.group_id for one in known}
    assert (bool(named_groups), named_groups <= groups) == (True, True)
    under, named_under = walk(directory.list_groups, under="/engineering")
    assert (PAYMENTS in {one.group_id for one in under}, named_under) == (True, named_groups)
    assert PAYMENTS in directory.tree().groups

    for key in people | members:
        email = key.partition(", ")[0].removeprefix("U:")
        read(directory.find_person, email=email)
        read(directory.groups_of, email=email, now=now)
        read(directory.roles_of, email=email, now=now)
    for key in groups:
        read(directory.find_group, group_id=key.removeprefix("G:"))
    assert directory.groups_of(email=ALICE, now=now) == {"/", "/engineering", PAYMENTS}
    # Whoever decides by their own groups still does.
    assert story.approve(story.ask_for_prod()).decided_by == "bob@example.com"


def test_a_rule_that_can_not_be_read_refuses_and_is_never_left_out(story: Story) -> None:
    client = boto3.client("dynamodb", region_name=REGION)
    key: Raw = {"rule_name": {"S": "prod-power"}, "version": {"N": "1"}}
    item: Raw = client.get_item(TableName="AccessRules", Key=key)["Item"]
    names = [rule.name for rule in rules.current_rules()]
    refused = 0

    for _, copy in damaged(RuleItem, item):
        client.put_item(TableName="AccessRules", Item=copy)
        rules_store._cached = None
        try:
            assert [rule.name for rule in rules.current_rules()] == names
        except Unavailable:
            refused += 1

    assert refused > 50


def test_an_approval_that_can_not_be_read_is_neither_yes_nor_no(story: Story) -> None:
    client, now, acme = boto3.client("dynamodb", region_name=REGION), story.clock.now(), read_scope("tenant:acme")
    caller, names = caller_of(story.olga), ("bot", "doc", "GET")
    asked = Approval(acme, *names, "olga@example.com", now)
    end = authz_operations.grant(authz.APPROVALS, asked, ttl_seconds=3600, caller=caller, now=now).record.expires_at
    [item] = client.scan(TableName="Approvals")["Items"]
    refused = 0

    for _, copy in damaged(ApprovalItem, item):
        client.put_item(TableName="Approvals", Item=copy)
        answer = read(authz.check, ledger=authz.APPROVALS, scope=acme, names=names, caller=caller, clock=story.clock)
        [one] = authz.check_many([authz.Asked(authz.APPROVALS, acme, names)], caller=caller, clock=story.clock)
        assert answer == one if answer is not None else isinstance(one, Unavailable)
        assert answer is None or (answer.is_allowed, answer.until) == (True, end)
        items, named = walk(partial(authz.list_of_holder, authz.APPROVALS, acme, "bot", caller=caller, now=now))
        assert (len(items), len(named)) == ((0, 1) if answer is None else (1, 0))
        refused += answer is None

    assert refused > 40


def test_events(story: Story) -> None:
    asked = story.ask()
    client = boto3.client("dynamodb", region_name=REGION)
    key: Raw = {"entity": {"S": asked.entity}, "sequence": {"N": "1"}}
    item: Raw = client.get_item(TableName="AuditLog", Key=key)["Item"]

    for _, copy in damaged(AuditItem, item):
        client.put_item(TableName="AuditLog", Item=copy)
        [event] = audit.history(asked.entity).items
        assert (event.entity, event.sequence) == (asked.entity, 1)
        audit.find_breaks(asked.entity)
        # And the pages that tell it stand.
        list(facts_of(event.data))
        line_of(event)
        tell([event], Names(directory.Book()), request=asked, together="")
