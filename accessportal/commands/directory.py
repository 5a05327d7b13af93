"""What the directory's commands share: how they change something, and how people, groups and memberships look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar

from django.core.management.base import CommandParser
from rich.console import Console
from rich.table import Table

from accessportal.commands.base import Document, Outcome, PortalCommand, plain
from accessportal.directory import operations, queries
from accessportal.directory.states import Changed, Group, GroupRole, Holding, Membership, Person, State, is_by_admin
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import NotFound

ROLES = tuple(role.value for role in GroupRole)


class ChangeCommand(PortalCommand):
    """One change of the directory. It exits with 0 once the change is written, whether or not Cognito has followed: the answer
    says which, and the sweep does what is missing.
    """

    takes_actor = True

    def run(self, options: Mapping[str, Any]) -> Outcome:
        did, changed = self.change(options, self.actor(options), SystemClock().now())
        return Outcome({"did": did, "record": plain(changed.record), "mirror": plain(changed.mirror)})

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        """What was done, in one sentence, and what came of it. Kernel errors pass through."""
        raise NotImplementedError

    def show(self, document: Document, console: Console) -> None:
        console.print(document["did"], soft_wrap=True)
        if not document["mirror"]["is_done"]:
            console.print(f"Cognito has not followed yet: {document['mirror']['reason']} The sweep goes on with it.", soft_wrap=True)


class GroupStateCommand(ChangeCommand):
    """Enables or disables a group, by the subclass's ``state``."""

    state: ClassVar[State]

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("group_id", metavar="ID", help="the group's path")

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        changed = operations.set_group_state(group_id=options["group_id"], state=self.state, actor=actor, now=now)
        return f"{options['group_id']} is {self.state.value} now.", changed


class PersonStateCommand(ChangeCommand):
    """Enables or disables a person, by the subclass's ``state``."""

    state: ClassVar[State]

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("email", metavar="EMAIL")

    def change(self, options: Mapping[str, Any], actor: Actor, now: datetime) -> tuple[str, Changed[Any]]:
        changed = operations.set_person_state(email=options["email"], state=self.state, actor=actor, now=now)
        return f"{changed.record.email} is {self.state.value} now.", changed


def group_named(group_id: str) -> Group:
    """:raises NotFound: when there is no such group."""
    found = queries.find_group(group_id=group_id)
    if found is None:
        raise NotFound(f"There is no group {group_id[:60]}. `list_groups` lists them.", code="group_not_found")
    return found


def group_document(group: Group) -> dict[str, Any]:
    return {
        "group_id": group.group_id,
        "name": group.name,
        "description": group.description,
        "state": group.state.value,
        "parent_id": group.parent_id,
        "ancestors": list(group.ancestors),
        "member_count": group.member_count,
        "child_count": group.child_count,
    }


def person_document(person: Person) -> dict[str, Any]:
    return {
        "email": person.email,
        "name": person.name,
        "state": person.state.value,
        "is_deleting": person.is_deleting,
        "created_at": plain(person.created_at),
    }


def membership_document(membership: Membership, now: datetime) -> dict[str, Any]:
    """``role`` is what it gives now (``null``: nothing any more), ``ends_at`` when that role ends or becomes a lower one."""
    return {
        "email": membership.person,
        "group_id": membership.group_id,
        "role": plain(membership.role_at(now)),
        "ends_at": plain(membership.ends_at(now)),
        "claims": plain(membership.claims),
    }


def holding_document(holding: Holding) -> dict[str, Any]:
    """``role`` is what the membership gives now; when it gives nothing, ``reason`` says why."""
    claims = [plain(claim) for claim in holding.membership.claims]
    return {"group_id": holding.membership.group_id, "role": plain(holding.role), "reason": holding.reason, "claims": claims}


def claim_words(claim: Document) -> str:
    """``admin, given by olga@example.com`` or ``reader, by request 3f0c… until 2026-03-02T10:00:00+00:00``."""
    if is_by_admin(claim["claim_id"]):
        until = f" until {claim['ends_at']}" if claim["ends_at"] else ""
        return f"{claim['role']}, given by {claim['given_by'] or 'somebody unknown'}{until}"
    return f"{claim['role']}, by request {claim['claim_id']} until {claim['ends_at']}"


def show_facts(document: Document, console: Console, *names: str) -> None:
    """One line for each named fact that says something."""
    for name in names:
        value = document[name]
        if value not in (None, "", [], False):
            console.print(f"{name}: {', '.join(value) if isinstance(value, list) else value}", soft_wrap=True)


def show_reach(document: Document, console: Console) -> None:
    """One line for each rule that reaches a group."""
    for one in document["reach"]:
        through = "" if one["through"] == document["group_id"] else f", through {one['through']}"
        console.print(f"rule {one['rule_name']}: {document['group_id']} {one['reaching']}{through}", soft_wrap=True)
    if not document["reach"]:
        console.print("no rule reaches it")


def show_table(console: Console, rows: Iterable[Document], *columns: str) -> None:
    """The first column is never cut: it is what the next command needs."""
    table = Table(box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column.replace("_", " "), overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*("" if row[column] is None else str(row[column]) for column in columns))
    console.print(table)
