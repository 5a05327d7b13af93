"""Changes of groups and of their place in the tree."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from accessportal.directory import models
from accessportal.directory.models import DirectoryItem
from accessportal.directory.policy.tree import path_ancestors
from accessportal.directory.states import ROOT, Group, State
from accessportal.directory.store.conversion import iso
from accessportal.directory.store.departures import departure_step
from accessportal.directory.store.following import work_step
from accessportal.directory.store.people import PersonChange, is_version, person_steps
from accessportal.store.transactions import Change, Insert, Remove, Step, transact

MOST_GROUPS = 3_333


def insert_group(group: Group, *, parent: Group, by: str, at: datetime, event: Insert) -> None:
    """Write the group, its branch in the tree and the counts. The parent must still stand where it was read, or the new ancestors would be
    wrong; its version is not asked, so that many groups can be made below it at once."""
    transact(
        [
            Insert(_group_item(group, by=by, at=at)),
            _branch(parent.group_id, group.group_id, by=by, at=at),
            _adopt_child(parent),
            _count(DirectoryItem.group_count.add(1), DirectoryItem.group_count < MOST_GROUPS),
            event,
            *work_step(item_pk=models.group_pk(group.group_id), now=at),
        ]
    )


def insert_root(root: Group, *, groups: int, admin: PersonChange, by: str, at: datetime, events: Sequence[Insert]) -> None:
    """Write the root, the counter of ``groups``, and the first admin with their membership."""
    counter_pk, counter_sk = models.counter_key()
    transact(
        [
            Insert(_group_item(root, by=by, at=at)),
            Insert(DirectoryItem(counter_pk, counter_sk, group_count=groups)),
            *person_steps(admin, by=by, at=at),
            *events,
            *work_step(item_pk=models.group_pk(ROOT), now=at),
            *work_step(item_pk=models.person_pk(admin.key), now=at),
        ]
    )


def change_group(group: Group, *, by: str, at: datetime, event: Insert) -> None:
    """Give the group (already at its next version) its name, description and state."""
    actions = [
        DirectoryItem.name.set(group.name),
        DirectoryItem.description.set(group.description),
        DirectoryItem.state.set(group.state.value),
    ]
    item_pk = models.group_pk(group.group_id)
    steps: list[Step] = [_next_version(group, actions, by=by, at=at), event, *work_step(item_pk=item_pk, now=at)]
    if not group.is_enabled:
        steps.append(departure_step(item_pk=item_pk, now=at, lost=(group.group_id, *group.ancestors)))
    transact(steps)


def move_group(
    group: Group,
    *,
    below: Sequence[Group],
    old_parent: Group | None,
    parent: Group,
    lost: Sequence[str],
    by: str,
    at: datetime,
    event: Insert,
) -> None:
    """Put the group and those ``below`` it, with their new ancestors, below ``parent``. Each must have the ``tree_version`` that was read,
    and the parent must stand where it was, or two groups could be moved below each other. ``lost``: the groups above before."""
    moved: list[Action] = [DirectoryItem.ancestors.set(list(group.ancestors)), DirectoryItem.tree_version.add(1)]
    steps: list[Step] = [
        _next_version(group, moved, by=by, at=at, condition=_has_tree_version(group)),
        *(_replace(one) for one in below),
        _branch(parent.group_id, group.group_id, by=by, at=at),
        _adopt_child(parent),
        event,
        departure_step(item_pk=models.group_pk(group.group_id), now=at, lost=lost),
    ]
    if old_parent is not None:
        steps += _leave(old_parent.group_id, group.group_id)
    transact(steps)


def remove_group(group: Group, *, parent_exists: bool, at: datetime, event: Insert) -> None:
    """Delete the group (told at its next version), while it is empty, and its branch in the tree."""
    pk, sk = models.group_key(group.group_id)
    empty = (DirectoryItem.member_count == 0) & (DirectoryItem.child_count == 0) & is_version(group.version - 1)
    steps: list[Step] = [
        Remove(DirectoryItem, pk, empty & _has_tree_version(group), sk),
        _count(DirectoryItem.group_count.add(-1), DirectoryItem.group_count > 0),
        event,
        *work_step(item_pk=models.group_pk(group.group_id), now=at),
        departure_step(item_pk=models.group_pk(group.group_id), now=at, lost=(group.group_id, *group.ancestors)),
    ]
    if parent_exists and group.parent_id is not None:
        steps += _leave(group.parent_id, group.group_id)
    transact(steps)


def place_groups(tops: Sequence[tuple[Group, Insert]], rest: Sequence[Group], *, by: str, at: datetime) -> None:
    """Write down where groups stand that do not say so yet, and their admins. ``tops`` (already at their next version) become the root's
    children."""
    steps: list[Step] = []
    for group, event in tops:
        steps += [
            _next_version(group, _placed(group), by=by, at=at, condition=DirectoryItem.ancestors.does_not_exist()),
            _branch(ROOT, group.group_id, by=by, at=at),
            event,
        ]
    for group in rest:
        pk, sk = models.group_key(group.group_id)
        steps.append(Change(DirectoryItem, pk, _placed(group), DirectoryItem.ancestors.does_not_exist(), sk))
    if tops:
        pk, sk = models.group_key(ROOT)
        actions = [DirectoryItem.child_count.add(len(tops)), DirectoryItem.tree_version.add(1)]
        steps.append(Change(DirectoryItem, pk, actions, DirectoryItem.state.exists(), sk))
    transact(steps)


def _placed(group: Group) -> list[Action]:
    actions: list[Action] = [DirectoryItem.ancestors.set(list(group.ancestors)), DirectoryItem.tree_version.add(1)]
    if group.admins:
        actions.append(DirectoryItem.admins.add(set(group.admins)))
    return actions


def _group_item(group: Group, *, by: str, at: datetime) -> DirectoryItem:
    moment = iso(at)
    pk, sk = models.group_key(group.group_id)
    return DirectoryItem(
        pk,
        sk,
        si_key1=models.GROUPS,
        id=group.group_id,
        name=group.name,
        description=group.description,
        state=group.state.value,
        created_at=moment,
        created_by=by,
        updated_at=moment,
        updated_by=by,
        member_count=group.member_count,
        child_count=group.child_count,
        ancestors=list(group.ancestors),
        tree_version=group.tree_version,
        admins=set(group.admins) or None,
        standing_admins=set(group.standing_admins) or None,
        version=group.version,
        audit_head=group.audit_head,
    )


def _next_version(group: Group, actions: Sequence[Action], *, by: str, at: datetime, condition: Condition | None = None) -> Change:
    pk, sk = models.group_key(group.group_id)
    stamped = [
        *actions,
        DirectoryItem.version.set(group.version),
        DirectoryItem.audit_head.set(group.audit_head),
        DirectoryItem.updated_at.set(iso(at)),
        DirectoryItem.updated_by.set(by),
    ]
    is_as_read = is_version(group.version - 1)
    return Change(DirectoryItem, pk, stamped, is_as_read if condition is None else is_as_read & condition, sk)


def _replace(group: Group) -> Change:
    """New ancestors for a group that is moved along with one above it."""
    pk, sk = models.group_key(group.group_id)
    actions = [DirectoryItem.ancestors.set(list(group.ancestors)), DirectoryItem.tree_version.add(1)]
    return Change(DirectoryItem, pk, actions, _has_tree_version(group), sk)


def _adopt_child(parent: Group) -> Change:
    pk, sk = models.group_key(parent.group_id)
    stands = DirectoryItem.ancestors == list(parent.ancestors)
    if parent.ancestors == path_ancestors(parent.group_id):
        stands |= DirectoryItem.ancestors.does_not_exist()
    actions = [DirectoryItem.child_count.add(1), DirectoryItem.tree_version.add(1)]
    return Change(DirectoryItem, pk, actions, (DirectoryItem.state == State.ENABLED.value) & stands, sk)


def _leave(parent_id: str, group_id: str) -> list[Step]:
    branch_pk, branch_sk = models.branch_key(parent_id, group_id)
    pk, sk = models.group_key(parent_id)
    actions = [DirectoryItem.child_count.add(-1), DirectoryItem.tree_version.add(1)]
    return [
        Remove(DirectoryItem, branch_pk, DirectoryItem.sk.exists(), branch_sk),
        Change(DirectoryItem, pk, actions, DirectoryItem.state.exists(), sk),
    ]


def _branch(parent_id: str, group_id: str, *, by: str, at: datetime) -> Insert:
    pk, sk = models.branch_key(parent_id, group_id)
    return Insert(DirectoryItem(pk, sk, si_key1=models.HIERARCHY, created_at=iso(at), created_by=by))


def _count(action: Action, condition: Condition) -> Change:
    pk, sk = models.counter_key()
    return Change(DirectoryItem, pk, [action], condition, sk)


def _has_tree_version(group: Group) -> Condition:
    written = DirectoryItem.tree_version == group.tree_version
    return written if group.tree_version else written | DirectoryItem.tree_version.does_not_exist()
