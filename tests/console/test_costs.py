"""What the approver's queue costs in requests to DynamoDB: what is known is not asked again, and what is many goes side by side."""

from __future__ import annotations

import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest import mock

import boto3
import pytest
from pynamodb.connection.base import Connection

from accessportal.access_requests import operations
from accessportal.access_requests.policy import MOST_STOOD_IN_FOR
from accessportal.directory import operations as directory
from accessportal.directory.states import GroupRole
from accessportal.jobs import tasks as jobs
from accessportal.kernel.actors import person, system
from accessportal.store.base import configure, current_settings
from accessportal.store.reading import side_by_side
from tests.fixtures_story import Story
from tests.fixtures_twin import REGION

PEOPLE = 25


def fill(story: Story) -> None:
    """So many people wait for security, and each has asked for something before."""
    client: Any = boto3.client("dynamodb", region_name=REGION)
    key = {"request_id": {"S": story.ask_for_prod().request_id}}
    item = client.get_item(TableName="ActiveRequests", Key=key)["Item"]
    for number in range(2 * PEOPLE):
        who = {"S": f"p{number // 2}@example.com"}
        copy = {**item, "request_id": {"S": str(uuid.uuid4())}, "subject_id": who, "requested_by": who, "open_subject": who}
        client.put_item(TableName="ActiveRequests", Item={**copy, **({"status": {"S": "DENIED"}} if number % 2 else {})})
    client.delete_item(TableName="ActiveRequests", Key=key)


def fill_with_groups(story: Story) -> None:
    """So many requests wait, for others to decide, to be in a group each."""
    client: Any = boto3.client("dynamodb", region_name=REGION)
    key = {"request_id": {"S": story.ask_to_join(role="contributor").request_id}}
    item = client.get_item(TableName="ActiveRequests", Key=key)["Item"]
    for number in range(40):
        group = {"S": f"/engineering/g{number}"}
        copy = {**item, "request_id": {"S": str(uuid.uuid4())}, "scope": group, "target": {"M": {**item["target"]["M"], "group": group}}}
        client.put_item(TableName="ActiveRequests", Item=copy)


def cost_of(action: Callable[[], object]) -> Counter[str]:
    """By operation and index."""
    with mock.patch.object(Connection, "dispatch", autospec=True, side_effect=Connection.dispatch) as dispatch:
        action()
    return Counter(f"{call.args[1]} {call.args[2].get('IndexName', '')}".strip() for call in dispatch.call_args_list)


def test_the_queue_costs_the_same_however_many_people_groups_and_requests_there_are(story: Story, as_person: Any) -> None:
    """Also where it finds nothing among all of them; and a row's surroundings, however much there was before."""
    asked, bob = story.ask_for_prod(), as_person("bob")
    queue, nothing, decided = (f"/admin/requests/?pattern={rest}" for rest in ("waiting", "waiting&person=nobody", "decided"))
    around, panel = f"/admin/requests/{asked.request_id}/around/", "/fragments/for-me/"
    bob.get("/admin/")

    def costs() -> dict[str, int]:
        fill(story)
        fill_with_groups(story)
        return {one: cost_of(lambda: bob.get(one)).total() for one in (queue, nothing, decided, around, panel)}  # noqa: B023

    few, _, many = costs(), costs(), costs()

    # All of them have the same deadline: who of them is on the first page is chance.
    assert len(set(re.findall(r"p\d+@example", bob.get(queue).content.decode()))) > PEOPLE // 3
    assert [many[one] for one in (decided, around)] == [few[one] for one in (decided, around)]
    assert max(many.values()) <= 12, many


def test_no_page_of_the_console_takes_more_than_twelve_requests(story: Story, as_person: Any) -> None:
    story.carry_out(story.ask())
    story.end(story.carry_out(story.ask(permission_set="ReadOnlyAccess")))
    fill(story)
    olga, account = as_person("olga"), story.twin.accounts["payments-dev"]
    pages = [
        "requests/?pattern=all",
        "requests/?pattern=all&q=alice@example.com&state=ACTIVE",
        "requests/?pattern=all&account=payments-dev&rule=dev-power",
    ]
    pages += [
        "requests/?pattern=active",
        "requests/?pattern=stuck",
        "requests/?pattern=unreadable",
        "audit/",
        "audit/?action=request.",
        "people/",
    ]
    pages += [f"accounts/{account}/", "rules/prod-readonly/", "", "people/alice@example.com/"]

    # The bar is counted once a session.
    olga.get("/admin/")
    for page in pages:
        address = page if page == pages[-1] else f"admin/{page}"
        cost = cost_of(lambda address=address: [olga.get(f"/{address}")])  # type: ignore[misc]
        # An operator's page of a person looks at each of their groups, side by side.
        assert cost.total() <= 12, (address, cost)


def test_the_lists_before_the_chosen_one_are_read_once(story: Story, as_person: Any) -> None:
    """Nothing waits for Olga; what waits for Bob is the second list."""
    fill(story)
    olga = as_person("olga")
    assert olga.get("/admin/requests/").context["pattern"].name == "pending"

    for address in ("/admin/requests/", "/admin/requests/?pattern=pending"):
        cost = cost_of(lambda address=address: olga.get(address))  # type: ignore[misc]
        assert cost.total() <= 12, (address, cost)


def test_the_list_of_what_differs_reads_no_record_of_its_rows(story: Story, as_person: Any) -> None:
    for seconds in (600, 700):
        story.carry_out(story.ask(seconds=seconds, permission_set="PowerUserAccess" if seconds == 600 else "ReadOnlyAccess"))
    for name in ("PowerUserAccess", "ReadOnlyAccess"):
        story.twin.sso.delete_account_assignment(**story.twin.key("alice@example.com", "payments-dev", name))
        story.clock.advance(3)
    jobs.reconcile_assignments()
    olga = as_person("olga")
    shown = olga.get("/admin/drift/").content.decode()
    assert shown.count("a request gives it, and it was there, but AWS does not have it now") == 2

    cost = cost_of(lambda: olga.get("/admin/drift/"))

    assert cost.total() <= 10, cost


def test_reads_go_side_by_side_and_answer_in_their_order() -> None:
    former = current_settings()
    configure(replace(former, reads_side_by_side=4))
    try:
        together = threading.Barrier(4, timeout=60)

        def read(number: int) -> int:
            together.wait()
            return number

        assert side_by_side([lambda number=number: read(number) for number in range(8)]) == list(range(8))  # type: ignore[misc]
        with pytest.raises(ZeroDivisionError):
            side_by_side([lambda: 1, lambda: 1 // 0])
    finally:
        configure(former)


def test_who_stands_in_for_as_many_as_one_may_reads_no_more_than_twelve(story: Story, as_person: Any) -> None:
    fill(story)
    now, end = story.clock.now(), story.clock.now() + timedelta(days=1)
    for number in range(MOST_STOOD_IN_FOR):
        email = f"approver{number}@example.com"
        directory.create_person(email=email, name=email, group_id="/security", role=GroupRole.READER, actor=system("setup"), now=now)
        operations.name_stand_in(email="gina@example.com", starts_at=now, ends_at=end, submission_id="form", actor=person(email), now=now)
    gina = as_person("gina")

    for address in ("/admin/requests/?pattern=waiting", "/fragments/for-me/", "/fragments/approvals/", "/stand-ins/"):
        gina.get(address)
        cost = cost_of(lambda address=address: gina.get(address))  # type: ignore[misc]
        cost.pop("Query SubjectIndex", None)
        assert cost.total() <= 12, (address, cost)
