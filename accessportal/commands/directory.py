"""The directory from a terminal. A change exits with 0 once it is written, whether or not Cognito has followed: the answer says which."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from django.conf import settings
from rich.console import Console

from accessportal.access_requests.queries import ACCESS_ENDS, ACCESS_OF_GROUP_ENDS
from accessportal.commands.base import command, facts, first
from accessportal.commands.flags import BadUsage, Email, Flag, GroupId, Limit, Text
from accessportal.commands.terminal import Document, Facts, Listing, named, say, show_rows
from accessportal.directory import operations, queries
from accessportal.directory.states import ROOT, Changed, Group, GroupRole, GroupVerb, Mirrored, Person, State, is_by_admin
from accessportal.identity import erasing
from accessportal.identity.erasing import Erased
from accessportal.kernel.actors import Actor, fold_email, system
from accessportal.kernel.clock import Clock
from accessportal.kernel.counts import counted
from accessportal.kernel.errors import NotAllowed, NotFound
from accessportal.kernel.pages import every
from accessportal.mirror.queries import find_pending
from accessportal.rules import queries as rules

ThePath = Annotated[str, Flag("the group's path", "GROUP")]
Told = dict[str, Any]

_show_facts = Facts(empty=(None, "", [], False), words={"ancestors": ", ".join})


def _show_change(document: Document, console: Console) -> None:
    say(console, document["did"])
    if not document["mirror"]["is_done"]:
        say(console, f"Cognito has not followed yet: {document['mirror']['reason']} The sweep goes on with it.")


_change = partial(command, show=_show_change)


def _told(did: str, changed: Changed[Any]) -> Told:
    return {"did": did, "record": changed.record, "mirror": changed.mirror}


@_change('--admin olga@example.com --name "Olga Orlov"')
def found_directory(
    *,
    admin: Annotated[str, Flag("the first admin of the root", "EMAIL")],
    name: Annotated[str, Flag("the name of that person")],
    now: datetime,
) -> Told:
    """Found the directory: the root, the portal's own groups, and the first person, who is admin of the root and operator. May be
    repeated for the same person; refused once somebody else is admin of the root."""
    changed = operations.found_directory(
        admin_email=admin,
        admin_name=name,
        operator_group=settings.OPERATOR_GROUP,
        auditor_group=settings.AUDITOR_GROUP,
        actor=system("found_directory"),
        now=now,
    )
    return _told(f"The directory is founded; {admin} is admin of the root.", changed)


@_change("/engineering/payments --name Payments --as olga@example.com")
def create_group(
    group_id: Annotated[str, Flag("a path like /engineering/payments; it is fixed for life", "ID")],
    *,
    name: str,
    description: Text = "",
    parent: Annotated[str | None, Flag("the group above (default: the leading part of the path)", "ID")] = None,
    actor: Actor,
    now: datetime,
) -> Told:
    """Create a group below another: the one that its path names, or --parent. For admins of the group above and of the path's."""
    changed = operations.create_group(group_id=group_id, name=name, description=description, parent_id=parent, actor=actor, now=now)
    return _told(f"{changed.record.group_id} was created below {changed.record.parent_id}.", changed)


@_change('/engineering/payments --name "Payments and payouts" --as olga@example.com')
def rename_group(
    group_id: GroupId,
    *,
    name: str,
    description: Annotated[str | None, Flag("without it the description stays", "TEXT")] = None,
    actor: Actor,
    now: datetime,
) -> Told:
    """Give a group another name or description. Its path is fixed for life. For its admins and those of a group above."""
    if description is None:
        description = group_named(group_id).description
    changed = operations.rename_group(group_id=group_id, name=name, description=description, actor=actor, now=now)
    return _told(f"{changed.record.group_id} is called {changed.record.name} now.", changed)


@_change(
    "/engineering/payments --parent /finance --as olga@example.com",
    about=f"Put a group, with everything below it, under another one. Its path stays. {ACCESS_OF_GROUP_ENDS} For people who are admin of "
    "both groups above.",
)
def move_group(group_id: GroupId, *, parent: Annotated[str, Flag("the new group above", "ID")], actor: Actor, now: datetime) -> Told:
    changed = operations.move_group(group_id=group_id, parent_id=parent, actor=actor, now=now)
    return _told(f"{changed.record.group_id} is below {changed.record.parent_id} now.", changed)


@_change(
    "/engineering/payments --as olga@example.com",
    about=f"Disable a group: nobody is in it, and its memberships give nothing, until it is enabled again. {ACCESS_OF_GROUP_ENDS} "
    "For its admins.",
)
def disable_group(group_id: GroupId, *, actor: Actor, now: datetime) -> Told:
    return _set_group(group_id, State.DISABLED, actor, now)


@_change("/engineering/payments --as olga@example.com")
def enable_group(group_id: GroupId, *, actor: Actor, now: datetime) -> Told:
    """Enable a group that was disabled: its memberships count again. For its admins."""
    return _set_group(group_id, State.ENABLED, actor, now)


def _set_group(group_id: str, state: State, actor: Actor, now: datetime) -> Told:
    return _told(f"{group_id} is {state.value} now.", operations.set_group_state(group_id=group_id, state=state, actor=actor, now=now))


@_change("/engineering/payments --as olga@example.com")
def delete_group(group_id: GroupId, *, actor: Actor, now: datetime) -> Told:
    """Delete a group that has neither members nor groups below. For its admins and those of a group above."""
    return _told(f"{group_id} was deleted.", operations.delete_group(group_id=group_id, actor=actor, now=now))


@_change('alice@example.com --name "Alice Archer" --group /engineering --role reader --as olga@example.com')
def create_user(
    email: Email,
    *,
    name: str,
    group: Annotated[str | None, Flag("the group that they are in from the first moment on", "ID")] = None,
    role: Annotated[GroupRole | None, Flag("their role there; goes with --group")] = None,
    actor: Actor,
    now: datetime,
) -> Told:
    """Add a person, in a group at once (for admins of that group) or in none (for admins of the root)."""
    if bool(group) != bool(role):
        flag = "--role" if group else "--group"
        raise BadUsage("--group and --role go together: give both or neither.", flag=flag, code="group_without_role")
    changed = operations.create_person(email=email, name=name, group_id=group or None, role=role, actor=actor, now=now)
    place = f" and is {role.value} of {group}" if role else ""
    return _told(f"{changed.record.email} was created{place}.", changed)


@_change('alice@example.com --name "Alice Baker" --as olga@example.com')
def rename_user(email: Email, *, name: str, actor: Actor, now: datetime) -> Told:
    """Give a person another name. Their address is fixed for life. For admins of the root."""
    changed = operations.rename_person(email=email, name=name, actor=actor, now=now)
    return _told(f"{changed.record.email} is called {changed.record.name} now.", changed)


@_change(
    "alice@example.com --as olga@example.com",
    about=f"Disable a person: in no group, without any role, signed out at the next request. {ACCESS_ENDS} For admins of the root.",
)
def disable_user(email: Email, *, actor: Actor, now: datetime) -> Told:
    return _set_person(email, State.DISABLED, actor, now)


@_change("alice@example.com --as olga@example.com")
def enable_user(email: Email, *, actor: Actor, now: datetime) -> Told:
    """Enable a person who was disabled: their memberships count again. For admins of the root."""
    return _set_person(email, State.ENABLED, actor, now)


def _set_person(email: str, state: State, actor: Actor, now: datetime) -> Told:
    changed = operations.set_person_state(email=email, state=state, actor=actor, now=now)
    return _told(f"{changed.record.email} is {state.value} now.", changed)


@_change(
    "alice@example.com --as olga@example.com", about=f"Delete a person with all their memberships. {ACCESS_ENDS} For admins of the root."
)
def delete_user(email: Email, *, actor: Actor, now: datetime) -> Told:
    return _told(f"{email} was deleted. {ACCESS_ENDS}", operations.delete_person(email=email, actor=actor, now=now))


def _show_erased(document: Document, console: Console) -> None:
    said = "Nothing was changed (--dry-run)" if document["is_dry"] else f"{document['pseudonym']} is in the place of the person now"
    items = ", ".join(f"{table} {count}" for table, count in document["items"].items()) or "none"
    say(console, f"{said}. Items that named them: {items}; {document['items_read']} items read in {document['walks']} walks.")
    for place in document["typed"]:
        say(console, f"The name still stands in what somebody typed: {place}")


@command("alice@example.com --as olga@example.com", show=_show_erased)
def erase_person(
    email: Email,
    *,
    dry_run: Annotated[bool, Flag("count what names the person, and change nothing")] = False,
    actor: Actor,
    clock: Clock,
) -> Erased:
    """Take the address and the name of a deleted person out of everything that is kept; a pseudonym stands there then. It can't be undone.
    Reads every table, at least twice. May be run again: it goes on where it stopped. For operators."""
    return erasing.erase_person(email=email, is_dry=dry_run, actor=actor, clock=clock)


@_change("alice@example.com --as olga@example.com")
def forget_identity(email: Email, *, actor: Actor, now: datetime) -> Told:
    """Let another account of the sign-in service come in at an address: the next one that does is kept. Make sure first that it is
    the same person, or rightly somebody else. An address keeps its account also while nobody has it. For admins of the root."""
    person = operations.forget_identity(email=email, actor=actor, now=now)
    shown = person.email if person is not None else fold_email(email)
    # Cognito knows nothing of it.
    return _told(f"{shown} may sign in with another account now; the next one is kept.", Changed(person, Mirrored(is_done=True)))


@_change("alice@example.com /engineering/payments contributor --as olga@example.com")
def grant_role(
    email: Email,
    group_id: ThePath,
    role: Annotated[GroupRole, Flag("admin, contributor, reader", "ROLE")],
    *,
    actor: Actor,
    now: datetime,
) -> Told:
    """Put a person into a group without an end, or change the role that they have there. For admins of the group."""
    changed = operations.grant_membership(email=email, group_id=group_id, role=role, actor=actor, now=now)
    return _told(f"{changed.record.email} is {role.value} of {group_id} now.", changed)


@_change("alice@example.com /engineering/payments --as olga@example.com")
def revoke_role(email: Email, group_id: ThePath, *, actor: Actor, now: datetime) -> Told:
    """Take back what an admin has given a person in a group. Whoever came with a group and is in none afterwards is deleted.
    Memberships that a request gave end with the request. For admins of the group."""
    changed = operations.revoke_membership(email=email, group_id=group_id, actor=actor, now=now)
    more = "" if changed.record else f" Nothing else was left, so the person was deleted. {ACCESS_ENDS}"
    stays = queries.role_by_requests(email=email, group_id=group_id, now=now)
    if stays is not None:
        more = f" By a request they stay in it, as {stays.value}, until its end."
    return _told(f"The role of {email} in {group_id} was revoked.{more}", changed)


@_change("/engineering/payments --as alice@example.com")
def leave_group(group_id: ThePath, *, actor: Actor, now: datetime) -> Told:
    """Leave a group that somebody else put you into, without asking its admins. What requests give there ends with the request.
    Where an admin of the root or the portal put you, ask an admin of the root."""
    changed = operations.leave_group(group_id=group_id, actor=actor, now=now)
    stays = queries.role_by_requests(email=actor.name, group_id=group_id, now=now)
    more = f" By a request you stay in it, as {stays.value}, until its end." if stays is not None else ""
    return _told(f"You have left {group_id}.{more}", changed)


@command(
    "--under /engineering --as alice@example.com",
    show=Listing("groups", named("group_id", "name", "state", "parent_id", "member_count", "child_count")),
)
def list_groups(
    *, under: Annotated[str, Flag("the group above (default: /, which lists all)", "ID")] = ROOT, limit: Limit = 200, actor: Actor
) -> Told:
    """List the groups below another one, at any depth, in order of their paths."""
    if under != ROOT:
        group_named(under)
    groups, has_more = first(limit, lambda cursor: queries.list_groups(under=under, cursor=cursor))
    return {"groups": list(map(_group, groups)), "has_more": has_more}


@command("--prefix ali --as olga@example.com", show=Listing("people", named("email", "name", "state", "created_at")))
def list_users(
    *, prefix: Annotated[str, Flag("only those whose address starts so", "TEXT")] = "", limit: Limit = 200, actor: Actor, now: datetime
) -> Told:
    """List people in order of their addresses. For operators, auditors, and whoever has a role on the root."""
    # Whoever may see the members of the root may see those of every group, so everybody.
    decision = queries.may(verb=GroupVerb.SEE_MEMBERS, group=None, actor=actor, now=now)
    if not decision.allowed:
        raise NotAllowed("Only people with a role on the group /, operators and auditors see everybody.", code=decision.code)
    people, has_more = first(limit, lambda cursor: queries.list_people(prefix=prefix, cursor=cursor))
    return {"people": list(map(_person, people)), "has_more": has_more}


def _show_group(document: Document, console: Console) -> None:
    _show_facts({name: document[name] for name in ("group_id", "name", "description", "state", "ancestors")}, console)
    if document["mirror"]:
        console.print("Cognito has not followed the latest change yet.")
    show_reach(document, console)
    console.print(counted(len(document["children"]), "group right below", "groups right below"))
    if document["children"]:
        show_rows(document["children"], named("group_id", "name", "state", "member_count", "child_count"), console)
    if document["members"] is None:
        say(console, document["members_hidden"])
        return
    console.print(counted(len(document["members"]), "member", "members"))
    if document["members"]:
        show_rows(document["members"], named("email", "role", "ends_at"), console)


@command("/engineering/payments --as alice@example.com", show=_show_group)
def show_group(group_id: GroupId, *, actor: Actor, now: datetime) -> Told:
    """Show a group: its place, the groups right below, and its members to those who may see them."""
    group = group_named(group_id)
    children = queries.list_child_groups(group_id=group.group_id)
    document = _group(group) | {"children": list(map(_group, children))}
    document["reach"] = rules.reach_of(group_id=group.group_id, groups_above=group.ancestors, among=rules.current_rules())
    return document | _members(group, actor, now) | {"mirror": find_pending(group.entity)}


def _members(group: Group, actor: Actor, now: datetime) -> Told:
    """``role`` is what a membership gives now (``null``: nothing any more), ``ends_at`` when that role ends or becomes a lower one.
    Whoever may not see the members gets ``null`` and the reason."""
    decision = queries.may(verb=GroupVerb.SEE_MEMBERS, group=group, actor=actor, now=now)
    if not decision.allowed:
        return {"members": None, "members_hidden": decision.reason}
    members = every(lambda cursor: queries.list_members(group_id=group.group_id, cursor=cursor, actor=actor, now=now))
    told = [
        {"email": one.person, "group_id": one.group_id, "role": one.role_at(now), "ends_at": one.ends_at(now), "claims": one.claims}
        for one in members
    ]
    return {"members": told}


def _show_user(document: Document, console: Console) -> None:
    _show_facts({name: document[name] for name in ("email", "name", "state", "created_at")}, console)
    if document["mirror"]:
        console.print("Cognito has not followed the latest change yet.")
    for membership in document["memberships"]:
        gives = membership["role"] or f"nothing now. {membership['reason']}"
        say(console, f"in {membership['group_id']}: {gives}")
        for claim in membership["claims"]:
            say(console, f"    {_claim_words(claim)}")
    for role in document["inherited"]:
        say(console, f"on {role['group_id']}: {role['role']}, from {role['source_id']}")
    if not document["memberships"]:
        console.print("in no group")
    if not document["is_whole"]:
        console.print("other groups are not shown: you are not their admin")


@command("alice@example.com --as alice@example.com", show=_show_user)
def show_user(email: Email, *, actor: Actor, now: datetime) -> Told:
    """Show a person: the groups they are directly in, why and until when, and the roles that these give them elsewhere."""
    why = queries.explain_person(email=email, actor=actor, now=now)
    memberships = [
        {"group_id": one.membership.group_id, "role": one.role, "reason": one.reason, "claims": one.membership.claims} for one in why.direct
    ]
    document = _person(why.person) | {"memberships": memberships} | facts(why, "inherited", "groups", "is_whole")
    return document | {"mirror": find_pending(why.person.entity)}


def group_named(group_id: str) -> Group:
    """:raises NotFound: when there is no such group."""
    found = queries.find_group(group_id=group_id)
    if found is None:
        raise NotFound(f"There is no group {group_id[:60]}. `list_groups` lists them.", code="group_not_found")
    return found


def show_reach(document: Document, console: Console) -> None:
    """One line for each rule that reaches a group."""
    for one in document["reach"]:
        through = "" if one["through"] == document["group_id"] else f", through {one['through']}"
        say(console, f"rule {one['rule_name']}: {document['group_id']} {one['reaching']}{through}")
    if not document["reach"]:
        console.print("no rule reaches it")


def _group(group: Group) -> Told:
    return facts(group, "group_id", "name", "description", "state", "parent_id", "ancestors", "member_count", "child_count")


def _person(person: Person) -> Told:
    return facts(person, "email", "name", "state", "is_deleting", "created_at")


def _claim_words(claim: Mapping[str, Any]) -> str:
    """``admin, given by olga@example.com`` or ``reader, by request 3f0c… until 2026-03-02T10:00:00+00:00``."""
    if is_by_admin(claim["claim_id"]):
        until = f" until {claim['ends_at']}" if claim["ends_at"] else ""
        return f"{claim['role']}, given by {claim['given_by'] or 'somebody unknown'}{until}"
    return f"{claim['role']}, by request {claim['claim_id']} until {claim['ends_at']}"
