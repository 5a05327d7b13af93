"""The tree of groups as pages show it: what is somebody's role where, and what fits a search. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from accessportal.directory.states import ROOT, EffectiveRole, Group


@dataclass(frozen=True, slots=True)
class Node:
    """One group in the tree. ``mine`` is the viewer's role on it; ``below`` are its groups if they are shown already."""

    group: Group
    mine: EffectiveRole | None
    below: tuple[Node, ...] | None = None

    @property
    def is_inherited(self) -> bool:
        return self.mine is not None and self.mine.group_id != self.group.group_id


@dataclass(frozen=True, slots=True)
class Crumb:
    group_id: str
    label: str


def role_from(roles: Iterable[EffectiveRole], group: Group) -> EffectiveRole | None:
    """The role that counts on ``group``: the highest; of equals the nearest, because its end is the one that people know."""
    above = {group_id: depth for depth, group_id in enumerate((*group.ancestors, group.group_id))}
    counting = [role for role in roles if role.group_id in above]
    return max(counting, key=lambda role: (role.role.rank, above[role.group_id]), default=None)


def crumbs(group: Group, above: Mapping[str, Group]) -> tuple[Crumb, ...]:
    """The way to ``group`` from the root, itself left out. ``above`` are the groups on it; one that is gone keeps its path's name."""
    return tuple(Crumb(one, above[one].name if one in above else short_name(one)) for one in group.ancestors)


def short_name(group_id: str) -> str:
    """The last part of a path; the root has none."""
    return "All groups" if group_id == ROOT else group_id.rpartition("/")[2]


def search(groups: Iterable[Group], text: str, *, limit: int) -> tuple[Group, ...]:
    """At most ``limit`` groups whose name or id contains ``text``, the closest first; with no text the first of the tree."""
    wanted = text.strip().casefold()
    found = [(_closeness(group, wanted), group.group_id, group) for group in groups if _fits(group, wanted)]
    return tuple(group for _, _, group in sorted(found, key=lambda one: one[:2])[:limit])


def _fits(group: Group, wanted: str) -> bool:
    return wanted in group.name.casefold() or wanted in group.group_id


def _closeness(group: Group, wanted: str) -> tuple[int, int]:
    name, last = group.name.casefold(), short_name(group.group_id).casefold()
    if wanted in (name, last, group.group_id):
        place = 0
    elif name.startswith(wanted) or last.startswith(wanted):
        place = 1
    else:
        place = 2
    return place, len(group.ancestors)
