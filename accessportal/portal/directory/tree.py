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
