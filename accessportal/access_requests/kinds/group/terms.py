"""Rules about membership: which roles, in which groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from accessportal.directory.states import GroupRole
from accessportal.rules.loading import check_group_or_root
from accessportal.rules.states import EVERYBODY
from accessportal.rules.terms import Asked, Facts, Finding, Part, Terms, judge_offer, listed
from accessportal.rules.yaml_nodes import Place


@dataclass(frozen=True, slots=True)
class MembershipAsked(Asked):
    """``groups_above`` are the group that is asked for and every group above it."""

    kind = "group"
    group_id: str = ""
    group_name: str = ""
    groups_above: frozenset[str] = frozenset()
    role: str = ""

    def words(self) -> str:
        return f"{self.role} in {self.group_name or self.group_id}"


@dataclass(frozen=True, slots=True)
class MembershipTargets:
    """``groups`` (exactly these) and ``subtrees`` (each with every group below it in the tree)."""

    groups: tuple[str, ...] = ()
    subtrees: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MembershipTerms(Terms):
    kind = "group"
    targets_class = MembershipTargets
    offer_key = "roles"
    inputs = ("role", "group")
    at = "in"
    thing = "group"
    elsewhere = "in other groups"
    stand_ins = "the group's admins"
    asks_admins = True
    targets: MembershipTargets = field(default_factory=MembershipTargets)
    roles: tuple[str, ...] = ()

    @classmethod
    def read(cls, section: Place, *, is_deny: bool) -> Self:
        roles = section["roles"].texts(_check_role)
        if is_deny:
            _require_higher_roles(section["roles"], roles)
        return cls(_read_targets(section["targets"]), roles)

    def judge(self, asked: MembershipAsked, *, is_deny: bool) -> Iterator[Finding]:
        where = self.targets
        if asked.group_id not in where.groups and asked.groups_above.isdisjoint(where.subtrees):
            place, name = self.place(), asked.group_name or asked.group_id
            yield Finding(Part.TARGET, f"{name} is not among {place}", f"Choose a group among {place}.")
        yield from judge_offer(asked.role, self.roles, is_deny=is_deny)

    def offered(self) -> str:
        return listed(self.roles, "and") or "every role"

    def place(self) -> str:
        """``/engineering and below``, ``every group``."""
        if EVERYBODY in self.targets.subtrees:
            return "every group"
        return listed([*(f"{top} and below" for top in self.targets.subtrees), *self.targets.groups], "and")

    def lines(self) -> dict[str, str]:
        tops = (f"{top} and below" if top != EVERYBODY else "every group" for top in self.targets.subtrees)
        return {"Where": ", ".join([*tops, *self.targets.groups]), "Roles": ", ".join(self.roles) or "every one"}

    @property
    def groups(self) -> tuple[str, ...]:
        return (*self.targets.groups, *self.targets.subtrees)

    def admins_by(self, nearest_first: Sequence[str]) -> str:
        """The group that is asked for, or one below it: the admins above it decide, too."""
        if nearest_first[0] in self.targets.groups:
            return nearest_first[0]
        return next((one for one in nearest_first if one in self.targets.subtrees), "")

    def places(self, facts: Facts) -> dict[str, str]:
        where = self.targets
        covered = (one for one in sorted(facts.groups) if one in where.groups or not facts.with_above(one).isdisjoint(where.subtrees))
        return {group_id: group_id for group_id in covered}


def _read_targets(place: Place) -> MembershipTargets:
    section = place.section(optional=("groups", "subtrees"))
    if place.is_given and not place.has_items:
        message = "A rule without targets would be about no group."
        place.report(message, "Name groups or subtrees; “subtrees: [/]” means every group.")
    return MembershipTargets(section["groups"].texts(check_group_or_root), section["subtrees"].texts(check_group_or_root))


def _check_role(value: str) -> str:
    return "" if value in tuple(GroupRole) else f"is not a role: write {' or '.join(sorted(GroupRole))}, in lower case."


def _require_higher_roles(place: Place, names: Sequence[str]) -> None:
    """Who is refused a role but not one that includes it would only ask for more."""
    named = [GroupRole(name) for name in names]
    for role in sorted(GroupRole, key=lambda one: one.rank):
        lesser = [one.value for one in named if one.rank < role.rank]
        if lesser and role not in named:
            message = f"It refuses {lesser[0]} but not {role.value}, which includes it."
            place.report(message, f"Name {role.value} too, or leave roles out to refuse all.")
            return
