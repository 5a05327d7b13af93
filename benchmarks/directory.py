"""What the directory costs on DynamoDB Local with a few and with 10,000 people: ``docs/benchmarks.md`` explains the tables.

    python tools/dynamodb_local.py python -m benchmarks.directory

Exit code 1 when a person's effective roles take more than two requests, or a cost grows with the table.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from benchmarks import meter
from benchmarks.installation import OLGA, RULES, installation

if TYPE_CHECKING:
    from django.test import Client

    from benchmarks.meter import Measured

_ALLOWED_GROWTH = 1.1
_MOST_REQUESTS = 2
_DEPTH = 6
_BRANCHES = 3
_TIMES = 9
_NUMBERS = count()
_HALL = "/hall"
"""The one group that half of all people are in."""
_DEEP = "/g0/g0/g0/g0/g0/g0"
_SOMEBODY = "p00000@example.com"
"""In a group of the tree and in the hall."""
_APPROVERS = "/g0"
"""A third of the tree is below it. Somebody is in it."""

ALL_GROUPS = "all groups"
TREE_PAGE = "GET the tree"
PERSON_PAGE = "GET person"
# They show, or choose from, all groups: their cost follows the number of groups, which is limited.
_SHOW_ALL_GROUPS = frozenset({ALL_GROUPS, TREE_PAGE, PERSON_PAGE, "GET console, person"})
_AT_MOST_TWO = frozenset(
    {"effective roles of a person", "role on a group six levels down", "groups of a person", "who acts, with their roles"}
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=10_000, help="people in the large directory (default: %(default)s)")
    parser.add_argument("--groups", type=int, default=1_000, help="groups in the large directory (default: %(default)s)")
    options = parser.parse_args()
    meter.install()
    with installation(accounts=40, permission_sets=4):
        _import("a small one", people=100, groups=10)
        _have_the_tree_approve()
        before = dict(_costs())
        _import("the large one", people=options.people, groups=options.groups)
        after = dict(_costs())
    problems = _told(before, after)
    for problem in problems:
        print(f"NOT GOOD ENOUGH: {problem}")
    return 1 if problems else 0


def _import(what: str, *, people: int, groups: int) -> None:
    """Exactly what ``import_people --create-groups`` does, timed part by part."""
    from accessportal.directory.importing.carrying_out import carry_out
    from accessportal.directory.importing.file import read_people_file
    from accessportal.directory.importing.plan import make_plan
    from accessportal.identity.queries import actor_named
    from accessportal.kernel.clock import SystemClock

    clock, content = SystemClock(), _file(people, groups)
    actor = actor_named(email=OLGA.email, now=clock.now())
    began = time.monotonic()
    file = read_people_file(content)
    plan = make_plan(file, create_groups=True, actor=actor, now=clock.now())
    planned = time.monotonic()
    assert (file.problems, plan.problems) == ([], [])
    marks: dict[str, float] = {}
    imported = carry_out(plan, actor=actor, clock=clock, progress=lambda name, _done, _total: marks.update({name: time.monotonic()}))
    assert not imported.failures, imported.failures[:3]
    spans = (planned - began, marks["groups"] - planned, marks["people"] - marks["groups"])
    print(
        f"Imported {what}: {imported.people:,} people in {imported.groups:,} groups with {imported.memberships:,} memberships in "
        f"{sum(spans):.0f} s: checked and planned in {spans[0]:.1f} s, groups in {spans[1]:.0f} s ({imported.groups / spans[1]:.0f} a "
        f"second), people in {spans[2]:.0f} s ({imported.people / spans[2]:.0f} a second).",
        flush=True,
    )
    again = make_plan(file, create_groups=True, actor=actor, now=clock.now())
    assert (again.steps, again.groups) == ([], {}), again.counts()
    print(f"  Looking at the same file again, with nothing to do: {time.monotonic() - planned - sum(spans[1:]):.1f} s.", flush=True)


def _file(people: int, groups: int) -> bytes:
    """Everybody is in a group of the tree, every second one in the hall too, every twentieth is contributor of a second group."""
    tree = list(islice(_tree("", 1), groups - 1))
    text = io.StringIO()
    write = csv.writer(text)
    write.writerow(("email", "name", "group", "role"))
    for number in range(people):
        email, name = f"p{number:05}@example.com", f"Person {number}"
        write.writerow((email, name, tree[number % len(tree)], "reader"))
        if number % 2 == 0:
            write.writerow((email, name, _HALL, "reader"))
        if number % 20 == 1:
            write.writerow((email, name, tree[(number + 1) % len(tree)], "contributor"))
    return text.getvalue().encode()


def _tree(above: str, level: int) -> Iterator[str]:
    """Paths, parents first; the first six go all the way down."""
    for number in range(_BRANCHES):
        here = f"{above}/g{number}"
        yield here
        if level < _DEPTH:
            yield from _tree(here, level + 1)


def _costs() -> Iterator[tuple[str, Measured]]:
    for name, action in (_reads() | _pages()).items():
        yield name, meter.measured([action] * _TIMES)
    yield from _writes()
    yield from _verbs()


def _have_the_tree_approve() -> None:
    from accessportal.kernel.actors import system
    from accessportal.kernel.clock import SystemClock
    from accessportal.rules import operations as rules

    rules.apply_rules(text=RULES.replace("[/security]", f"[{_APPROVERS}]"), actor=system("bench"), now=SystemClock().now())


def _reads() -> dict[str, Callable[[], object]]:
    from accessportal.directory import queries
    from accessportal.identity.queries import actor_named
    from accessportal.kernel.actors import person
    from benchmarks.costs import CLOCK

    now, olga = CLOCK.now(), person(OLGA.email)
    return {
        "effective roles of a person": lambda: queries.roles_of(email=_SOMEBODY, now=now),
        "role on a group six levels down": lambda: queries.role_on(email=_SOMEBODY, group_id=_DEEP, now=now),
        "groups of a person": lambda: queries.groups_of(email=_SOMEBODY, now=now),
        "who acts, with their roles": lambda: actor_named(email=_SOMEBODY, now=now),
        "admins of a group": lambda: queries.Book().crowd(queries.Named(admins_of=_DEEP), now=now),
        "50 members of the hall": lambda: queries.list_members(group_id=_HALL, limit=50, actor=olga, now=now),
        "groups right below": lambda: queries.list_child_groups(group_id=_DEEP.rpartition("/")[0]),
        "50 people": lambda: queries.list_people(prefix="p0", limit=50),
        ALL_GROUPS: queries.tree,
    }


def _pages() -> dict[str, Callable[[], object]]:
    from django.urls import reverse

    from accessportal.kernel.actors import person
    from benchmarks.costs import client_of

    olga, somebody = client_of(person(OLGA.email)), client_of(person(_SOMEBODY))
    return {
        "GET console, people": partial(_get, olga, reverse("admin:console_people") + "?q=p0"),
        "GET person, as an operator": partial(_get, olga, reverse("person", args=[_SOMEBODY])),
        "GET the hall, as an operator": partial(_get, olga, reverse("group", args=[_HALL])),
        "GET the hall, as a member": partial(_get, somebody, reverse("group", args=[_HALL])),
        TREE_PAGE: partial(_get, somebody, reverse("groups")),
        PERSON_PAGE: partial(_get, somebody, reverse("person", args=[_SOMEBODY])),
    }


def _get(client: Client, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 200, (address, answer.status_code)


def _writes() -> Iterator[tuple[str, Measured]]:
    """Each in a group or of a person of its own; what is made goes again."""
    from accessportal.directory import operations
    from accessportal.directory.states import GroupRole
    from accessportal.kernel.actors import person
    from benchmarks.costs import CLOCK

    given: dict[str, Any] = {"actor": person(OLGA.email), "now": CLOCK.now()}
    # New names each time: whoever was there before goes on with a chain of events, and reads its end.
    numbers = list(islice(_NUMBERS, _TIMES))
    groups = [f"/g0/new{number}" for number in numbers]
    people = [f"new{number}@example.com" for number in numbers]
    reader, contributor = GroupRole.READER, GroupRole.CONTRIBUTOR

    def each(operation: Callable[..., object], *parts: dict[str, Any]) -> Measured:
        return meter.measured([partial(operation, **part, **given) for part in parts])

    named = [{"group_id": group_id} for group_id in groups]
    yield "create a group", each(operations.create_group, *({**one, "name": "New", "description": ""} for one in named))
    addressed = [{"email": email} for email in people]
    yield (
        "create a person in a group",
        each(operations.create_person, *({**one, "name": "New", "group_id": _HALL, "role": reader} for one in addressed)),
    )
    yield "grant a role", each(operations.grant_membership, *({**one, "group_id": "/g0/g0", "role": reader} for one in addressed))
    yield "change a role", each(operations.grant_membership, *({**one, "group_id": "/g0/g0", "role": contributor} for one in addressed))
    yield "revoke a role", each(operations.revoke_membership, *({**one, "group_id": "/g0/g0"} for one in addressed))
    yield "delete a person", each(operations.delete_person, *addressed)
    yield "move a group", each(operations.move_group, *({**one, "parent_id": "/g0/g0"} for one in named))
    yield "delete a group", each(operations.delete_group, *named)


def _verbs() -> Iterator[tuple[str, Measured]]:
    """What is done with requests that a group decides which has a third of the tree below it."""
    from accessportal.access_requests import operations
    from accessportal.catalog import queries as catalog
    from accessportal.kernel.actors import Role, person
    from benchmarks.costs import BUSY, CLOCK, submit

    accounts = catalog.list_accounts(limit=100).items
    account = next(one.account_id for one in accounts if one.ou_path.startswith("/Workloads"))
    asked = [submit("AdministratorAccess", account).request_id for _ in range(3 * _TIMES)]
    approved, denied, cancelled = asked[:_TIMES], asked[_TIMES : 2 * _TIMES], asked[2 * _TIMES :]
    approver, olga = person(_SOMEBODY), person(OLGA.email, roles=frozenset({Role.OPERATOR}))

    def each(operation: Callable[..., object], request_ids: list[str], **given: Any) -> Measured:
        return meter.measured([partial(operation, request_id=request_id, now=CLOCK.now(), **given) for request_id in request_ids])

    yield "approve", each(operations.approve, approved, actor=approver)
    yield "deny", each(operations.deny, denied, reason="Use staging", actor=approver)
    yield "cancel", each(operations.cancel, cancelled, actor=BUSY)
    longer = [{"duration_seconds": 7200, "submission_id": f"longer-{next(_NUMBERS)}"} for _ in approved]
    extend = partial(operations.extend, actor=BUSY, now=CLOCK.now())
    extensions = [partial(extend, request_id=request_id, **one) for request_id, one in zip(approved, longer, strict=True)]
    yield "extend", meter.measured(extensions)
    yield "end", each(operations.end, approved, actor=approver)
    yield "retry", each(operations.retry, approved, actor=olga)


def _told(before: dict[str, Measured], after: dict[str, Measured]) -> list[str]:
    print("\nDynamoDB with the small and the large directory: round trips, read units, write units, milliseconds (medians)\n")
    problems = meter.show_growth(before, after, most=_ALLOWED_GROWTH, may_grow=_SHOW_ALL_GROUPS)
    for name in _AT_MOST_TWO:
        if after[name].round_trips > _MOST_REQUESTS:
            problems.append(f"{name} takes {after[name].round_trips:g} requests; at most {_MOST_REQUESTS} are allowed")
    return problems


if __name__ == "__main__":
    sys.exit(main())
