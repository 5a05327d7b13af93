"""One person, one group, and lists of them for pages and commands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from datetime import datetime

from accessportal.directory.policy.tree import fitting
from accessportal.directory.policy.words import is_group_id, key_of
from accessportal.directory.queries.book import Book
from accessportal.directory.queries.rights import verbs_on
from accessportal.directory.states import PERMANENT, ROOT, Claim, Group, GroupRole, GroupVerb, Membership, Person, Tree, highest
from accessportal.directory.store.accounts import get_owner
from accessportal.directory.store.reading import (
    every_group,
    get_group,
    get_groups,
    get_membership,
    get_people,
    get_person,
    list_children,
    page_of_groups,
    page_of_groups_below,
    page_of_members,
    page_of_people,
)
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.errors import InvalidRequest, NotFound
from accessportal.kernel.pages import Page, Unreadable
from accessportal.store.reading import Sift


def find_person(*, email: str) -> Person | None:
    """Find the person with this address, in any spelling of its letters; strongly read."""
    key = key_of(email)
    return get_person(key) if key else None


def find_people(*, emails: Collection[str], past: Callable[[Unreadable], object] | None = None) -> dict[str, Person]:
    """Find those of ``emails`` whom the directory knows, by folded address; strongly read, a hundred a request. ``past`` as in
    :func:`every`."""
    keys = {key for key in map(key_of, emails) if key}
    return {person.key: person for person in get_people(keys, past=past)}


def find_owner(*, identity: str) -> Person | None:
    """The person whom an account of the sign-in service is bound to, enabled or not; strongly read."""
    owner = get_owner(identity)
    person = get_person(owner.key) if owner is not None else None
    return person if person is not None and person.identity == identity else None


def put_into(*, email: str, since: datetime, book: Book) -> tuple[tuple[Membership, Claim], ...]:
    """The memberships that other people gave the person by themselves since a moment, and by which claim, the newest first."""
    key, (_, held) = key_of(email), book.held_by(email)
    claims = [(one, claim) for one in held for claim in one.claims if claim.is_by_admin and claim.given_by != key and "@" in claim.given_by]
    given = [(claim.given_at, one, claim) for one, claim in claims if claim.given_at is not None and claim.given_at >= since]
    return tuple((one, claim) for _, one, claim in sorted(given, key=lambda told: told[0], reverse=True))


def find_group(*, group_id: str) -> Group | None:
    """The group with this id, enabled or not; strongly read."""
    return get_group(group_id) if is_group_id(group_id) else None


def find_groups(*, group_ids: Iterable[str]) -> dict[str, Group]:
    """Those of ``group_ids`` that exist, enabled or not, by id; strongly read, a hundred a request."""
    return get_groups(filter(is_group_id, group_ids))


def find_membership(*, email: str, group_id: str) -> Membership | None:
    """The person's membership directly in the group, whether or not it gives anything now; strongly read."""
    key = key_of(email)
    return get_membership(key, group_id) if key and is_group_id(group_id) else None


def find_lasting_role(*, email: str, group_id: str) -> GroupRole | None:
    """The role that the person has directly in the group without an end."""
    held = find_membership(email=email, group_id=group_id)
    claim = held.claim(PERMANENT) if held is not None else None
    return claim.role if claim is not None else None


def role_by_requests(*, email: str, group_id: str, now: datetime) -> GroupRole | None:
    """The highest role that requests give the person directly in the group at ``now``, which no admin takes away."""
    held = find_membership(email=email, group_id=group_id)
    claims = held.claims if held is not None else ()
    return highest(*(claim.role for claim in claims if not claim.is_by_admin and claim.counts_at(now)))


def list_people(*, prefix: str = "", cursor: str | None = None, limit: int = 50) -> Page[Person]:
    """People in order of address, those whose address starts with ``prefix``. It may lag a moment behind a change."""
    return page_of_people(prefix=fold_email(prefix), cursor=cursor, limit=limit)


def list_disabled(*, cursor: str | None = None, limit: int = 50) -> Page[Person]:
    """Those who are disabled, in order of address. A page may be short and still have a next one. It may lag a moment behind a change."""
    return page_of_people(prefix="", cursor=cursor, limit=limit, sift=Sift(lambda people: (one for one in people if not one.is_enabled)))


def list_groups(*, under: str = ROOT, cursor: str | None = None, limit: int = 50) -> Page[Group]:
    """List all groups, or those below ``under`` at any depth in the tree, in order of path. It may lag a moment behind a change."""
    if not is_group_id(under):
        raise InvalidRequest("Give / or a group path like /engineering.", code="group_id_invalid", field="under")
    if under == ROOT:
        return page_of_groups(cursor=cursor, limit=limit)
    return page_of_groups_below(under, cursor=cursor, limit=limit)


def list_child_groups(*, group_id: str, past: Callable[[Unreadable], object] | None = None) -> tuple[Group, ...]:
    """The groups right below, in order of path, by the seed's two steps. It may lag a moment behind a change. ``past`` as in
    :func:`every`."""
    return list_children(group_id, past=past) if is_group_id(group_id) else ()


def list_members(
    *, group_id: str, cursor: str | None = None, limit: int = 50, actor: Actor, now: datetime, book: Book | None = None
) -> Page[Membership]:
    """List the memberships directly in a group, in order of address, those past their end included, for whoever may see them. It may lag a
    moment."""
    group = find_group(group_id=group_id) if book is None else book.groups([group_id]).get(group_id)
    if group is None:
        raise NotFound("There is no group with this path.", code="group_not_found")
    verbs_on(group=group, actor=actor, now=now, book=book)[GroupVerb.SEE_MEMBERS].require()
    return page_of_members(group_id, cursor=cursor, limit=limit)


def tree(*, past: Callable[[Unreadable], object] = lambda _one: None) -> Tree:
    """Every group with the ids right below it, for pages. One read of all groups from the index: it may lag a moment. Those that
    can't be read are left out; ``past`` is told of them."""
    groups = {group.group_id: group for group in every_group(past=past)}
    children: dict[str, list[str]] = defaultdict(list)
    for group_id, group in sorted(groups.items()):
        if group.parent_id is not None:
            children[group.parent_id].append(group_id)
    return Tree(groups=groups, children={parent: tuple(ids) for parent, ids in children.items()})


def search_groups(*, text: str, limit: int) -> tuple[Group, ...]:
    """At most ``limit`` groups whose name or id contains ``text``, the closest first. It may lag a moment."""
    return fitting(tree().groups.values(), text, limit=limit)
