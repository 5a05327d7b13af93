"""Moving a group, with everything below it, to another place in the tree."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from accessportal.audit.operations import told
from accessportal.audit.states import Draft
from accessportal.directory.operations.finding import group_named
from accessportal.directory.operations.writing import ask_to_look, settled
from accessportal.directory.policy.rights import may_move
from accessportal.directory.policy.tree import require_depth, require_parent, require_place
from accessportal.directory.queries.lists import find_group
from accessportal.directory.queries.rights import actor_rights_on
from accessportal.directory.states import Changed, Group, Mirrored
from accessportal.directory.store import groups as groups_store
from accessportal.directory.store.reading import get_group, get_groups, list_branches
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import Conflict

# One transaction holds 100 items; the moved group, both parents, both branches and the event need theirs.
MOST_BELOW = 90


def move_group(*, group_id: str, parent_id: str, actor: Actor, now: datetime) -> Changed[Group]:
    """Put the group with everything below it right below ``parent_id``, for admins of both parents without an end. Ids and memberships
    stay, what is inherited changes at once; Cognito knows of no tree and has nothing to follow."""

    def attempt() -> Group:
        group = group_named(group_id)
        parent = find_group(group_id=parent_id)
        parents = [above for above in (group.parent_id, parent.group_id if parent else None) if above]
        may_move(group, parents=parents, rights=actor_rights_on(parents, actor=actor, now=now), actor=actor).require()
        place = require_parent(parent, parent_id, field="parent_id")
        require_place(group, place)
        below = _everything_below(group)
        moved = replace(group, ancestors=(*place.ancestors, place.group_id))
        kept_from = len(group.ancestors)
        replaced = [replace(one, ancestors=(*moved.ancestors, *one.ancestors[kept_from:])) for one in below]
        require_depth([moved, *replaced], field="parent_id")
        data = {"group_id": group_id, "old_parent_id": group.parent_id or "", "parent_id": parent_id, "groups_moved": 1 + len(below)}
        changed, event = told(moved, Draft("group.moved", group_id, data), actor=actor, now=now)
        old_parent = get_group(group.parent_id) if group.parent_id else None
        groups_store.move_group(
            changed, below=replaced, old_parent=old_parent, parent=place, lost=group.ancestors, by=actor.name, at=now, event=event
        )
        return changed

    moved = settled(attempt)
    ask_to_look()
    return Changed(moved, Mirrored(is_done=True))


def _everything_below(group: Group) -> list[Group]:
    """Read every group below strongly, parents first. Each is read before its branches, so that a change meanwhile fails on its
    ``tree_version``; one query of both might show a new version beside old branches."""
    found: list[Group] = []
    ids = list_branches(group.group_id)
    while ids:
        if len(found) + len(ids) > MOST_BELOW:
            raise Conflict(
                f"More than {MOST_BELOW} groups are below {group.group_id}, too many to move at once. Move its parts one by one.",
                code="group_too_large",
                present=group,
            )
        level = get_groups(ids)
        found += level.values()
        ids = tuple(child for group_id in level for child in list_branches(group_id))
    return found
