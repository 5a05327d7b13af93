"""Groups: mine, the tree, and one group with whoever is in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from accessportal.access_requests import queries as requests
from accessportal.directory import queries as directory
from accessportal.directory.states import PERMANENT, ROOT, EffectiveRole, Group, GroupRole, GroupVerb, Membership, Person
from accessportal.identity.middleware import PortalRequest, actor_of, book_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import NotFound
from accessportal.kernel.pages import Unreadable
from accessportal.mirror import queries as mirror
from accessportal.portal import live as live_part
from accessportal.portal.deeds import Page, ask_or_do
from accessportal.portal.directory.group_deeds import GROUP_DEEDS, MEMBER_DEEDS, address_of, child_id, right_of
from accessportal.portal.directory.tree import Node, crumbs, role_from
from accessportal.portal.directory.waiting_for_cognito import waits
from accessportal.rules import queries as rules
from accessportal.web.events import latest_of
from accessportal.web.forms import MAX_NAME

_CHOICES = 20
_FOUND = 50
_MEMBERS = 50


@dataclass(frozen=True, slots=True)
class MemberRow:
    """``role`` and ``ends_at`` as they stand now; ``lasting`` is the role without an end, if any. ``is_given``: by an admin. ``has_page``:
    the viewer may open the person's page."""

    person: Person
    membership: Membership
    role: GroupRole | None
    ends_at: datetime | None
    lasting: GroupRole | None
    is_given: bool
    has_page: bool


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """My groups and the tree. ``q`` searches it; ``open`` is the group whose branch is shown, for browsers without scripts."""
    book = book_of(request)
    roles = directory.roles_of(email=actor_of(request).name, now=book.now, book=book.directory)
    text = _typed(request, "q")
    context = _found(text, roles) if text else _opened(request.GET.get("open", ROOT), roles)
    if cast(PortalRequest, request).htmx and request.GET.get("part") == "tree":
        return render(request, "portal/groups_tree.html", context)
    return render(request, "portal/groups.html", context | {"mine": _mine(roles), "now": book.now})


@require_safe
def branch(request: HttpRequest, group_id: str) -> HttpResponse:
    """The groups right below one, for a branch that was just opened."""
    book = book_of(request)
    roles = directory.roles_of(email=actor_of(request).name, now=book.now, book=book.directory)
    known(group_id, book.directory)
    unreadable: list[Unreadable] = []
    nodes = _nodes(directory.list_child_groups(group_id=group_id, past=unreadable.append), roles)
    return render(request, "portal/groups_branch.html", {"nodes": nodes, "branch_unreadable": unreadable})


@require_safe
def choices(request: HttpRequest) -> HttpResponse:
    """The groups that fit what is typed into a form, the closest first."""
    text = _typed(request, "parent_id")
    found = directory.search_groups(text=text, limit=_CHOICES + 1)
    context = {"groups": found[:_CHOICES], "is_more": len(found) > _CHOICES, "text": text}
    return render(request, "portal/choices_groups.html", context)


@require_safe
def show(request: HttpRequest, group_id: str) -> HttpResponse:
    """One group."""
    return render(request, "portal/group.html", _page(request, group_id))


@require_safe
def live(request: HttpRequest, group_id: str) -> HttpResponse:
    """What changes on the page of a group, asked for while something there is under way."""
    return live_part.answer(request, "portal/group_live.html", _page(request, group_id))


@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, deed: str, group_id: str) -> HttpResponse:
    """Managing the group, or leaving it: GET asks, POST does it."""
    chosen = GROUP_DEEDS.get(deed)
    if chosen is None:
        raise Http404(f"Nothing called “{deed}” can be done to a group.")
    group = known(group_id, book_of(request).directory)
    chosen.may(group, actor_of(request), book_of(request).now).require()
    about = {"group": group, "child_prefix": child_id(group, {})}
    return ask_or_do(request, chosen, group, Page(address_of(group_id), group.name, about))


def _page(request: HttpRequest, group_id: str) -> dict[str, Any]:
    actor, now, book = actor_of(request), book_of(request).now, book_of(request).directory
    group = known(group_id, book)
    roles = directory.roles_of(email=actor.name, now=now, book=book)
    rights = directory.verbs_on(group=group, actor=actor, now=now, book=book)
    mine = role_from(roles, group)
    if mine is not None and mine.group_id == group_id:
        rights[GroupVerb.LEAVE] = directory.may(verb=GroupVerb.LEAVE, group=group, actor=actor, now=now)
    waiting = waits(request)
    unreadable: list[Unreadable] = []
    context = {
        "group": group,
        "crumbs": crumbs(group, book.groups(group.ancestors)),
        "mine": mine,
        "may_ask": group.is_enabled
        and requests.can_ask_to_join(group=group, above=mine.role if mine is not None else None, actor=actor, book=book_of(request)),
        "reach": rules.reach_of(group_id=group_id, groups_above=group.ancestors, among=book_of(request).rules.values())
        if rights[GroupVerb.SEE_MEMBERS].allowed
        else (),
        "admins": book.crowd(directory.Named(admins_of=group_id), now=now).people,
        "below": _nodes(directory.list_child_groups(group_id=group_id, past=unreadable.append), roles),
        "unreadable": unreadable,
        "waits": waiting,
        "now": now,
        **(latest_of(group) if actor.reads_everything else {}),
        **_offered(group, rights),
        **_members(request, group, actor, rights, unreadable, now),
    }
    is_pending = any(not one.is_done for one in waiting) or context["behind"]
    query = urlencode({"cursor": request.GET.get("cursor", "")})
    return live_part.rendered(request, "portal/group_body.html", context | {"is_pending": is_pending, "live_query": query})


def _members(
    request: HttpRequest, group: Group, actor: Actor, rights: Mapping[GroupVerb, Decision], unreadable: list[Unreadable], now: datetime
) -> dict[str, Any]:
    """One page of members with those of them whom Cognito has not followed yet, or why they are not shown."""
    sees = rights[GroupVerb.SEE_MEMBERS]
    if not sees.allowed:
        return {"sees_members": False, "why_hidden": sees.reason, "members": (), "behind": _behind(group)}
    cursor = request.GET.get("cursor") or None
    page = directory.list_members(
        group_id=group.group_id, cursor=cursor, limit=_MEMBERS, actor=actor, now=now, book=book_of(request).directory
    )
    unreadable.extend(page.unreadable)
    people = directory.find_people(emails=[membership.person for membership in page.items], past=unreadable.append)
    sees_all = actor.reads_everything or rights[GroupVerb.GRANT].allowed
    # What is done to the group itself is for admins without an end alone.
    stays = rights[GroupVerb.RENAME].allowed
    rows = [_row(one, people[one.person], sees_all=sees_all, actor=actor, now=now) for one in page.items if one.person in people]
    return {
        "sees_members": True,
        "members": rows,
        "stays": stays,
        # Who is admin by a request is not offered to make their own role last.
        "fixed_member": "" if stays else actor.name,
        "next_cursor": page.next_cursor,
        "is_first_page": cursor is None,
        "behind": _behind(group, *(row.person for row in rows)),
    }


def _behind(*shown: Group | Person) -> frozenset[str]:
    """Those on the page that Cognito has not followed yet, by their audit names."""
    return frozenset(mirror.find_pending_among([one.entity for one in shown]))


def _row(membership: Membership, person: Person, *, sees_all: bool, actor: Actor, now: datetime) -> MemberRow:
    permanent = membership.claim(PERMANENT)
    return MemberRow(
        person=person,
        membership=membership,
        role=membership.role_at(now),
        ends_at=membership.ends_at(now),
        lasting=permanent.role if permanent is not None else None,
        is_given=any(claim.is_by_admin for claim in membership.claims),
        has_page=sees_all or person.key == actor.name,
    )


def _offered(group: Group, rights: Mapping[GroupVerb, Decision]) -> dict[str, Any]:
    """The deeds that the actor may do and that fit the present state; those about one member apart."""
    allowed = {verb for verb, decision in rights.items() if decision.allowed}
    offered = [deed for deed in GROUP_DEEDS.values() if right_of(deed.name) in allowed and deed.fits(group)]
    return {
        "deeds": [deed for deed in offered if deed.name not in MEMBER_DEEDS],
        "may_delete": GroupVerb.DELETE in allowed,
        "member_deeds": {deed.name for deed in offered if deed.name in MEMBER_DEEDS},
    }


def known(group_id: str, book: directory.Book) -> Group:
    """:raises NotFound: when there is no such group."""
    group = book.groups([group_id]).get(group_id)
    if group is None:
        raise NotFound("There is no such group.", code="group_not_found")
    return group


def _typed(request: HttpRequest, name: str) -> str:
    return request.GET.get(name, "")[:MAX_NAME].replace("\0", "").strip()


def _mine(roles: Iterable[EffectiveRole]) -> list[Node]:
    """The groups in which somebody has a role themselves; what these give below is told in words."""
    groups = directory.find_groups(group_ids=[role.group_id for role in roles])
    return [Node(groups[role.group_id], role) for role in roles if role.group_id in groups]


def _found(text: str, roles: tuple[EffectiveRole, ...]) -> dict[str, Any]:
    groups = directory.search_groups(text=text, limit=_FOUND + 1)
    return {"text": text, "found": _nodes(groups[:_FOUND], roles), "is_more": len(groups) > _FOUND}


def _opened(group_id: str, roles: tuple[EffectiveRole, ...]) -> dict[str, Any]:
    """The tree from the root, with one branch open down to ``group_id``; an unknown one opens nothing."""
    wanted = directory.find_group(group_id=group_id)
    way = (*wanted.ancestors, wanted.group_id) if wanted is not None else (ROOT,)
    root = directory.find_group(group_id=ROOT)
    unreadable: list[Unreadable] = []
    return {"text": "", "root": _open(root, way, roles, unreadable) if root is not None else None, "unreadable": unreadable}


def _open(group: Group, way: tuple[str, ...], roles: tuple[EffectiveRole, ...], unreadable: list[Unreadable]) -> Node:
    children = directory.list_child_groups(group_id=group.group_id, past=unreadable.append)
    below = tuple(
        _open(child, way, roles, unreadable) if child.group_id in way else Node(child, role_from(roles, child)) for child in children
    )
    return Node(group, role_from(roles, group), below)


def _nodes(groups: Iterable[Group], roles: tuple[EffectiveRole, ...]) -> tuple[Node, ...]:
    return tuple(Node(group, role_from(roles, group)) for group in groups)
