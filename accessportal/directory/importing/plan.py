"""What an import would change: the file held against the directory as it is. Nothing is written here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime

from accessportal.directory import queries
from accessportal.directory.importing.file import PeopleFile, Problem, WantedMembership, WantedPerson
from accessportal.directory.operations.memberships import MOST_MEMBERSHIPS
from accessportal.directory.policy.tree import MAX_ANCESTORS, path_ancestors
from accessportal.directory.queries.book import Book
from accessportal.directory.states import PERMANENT, ROOT, Group, GroupRole, GroupVerb, Membership, Person
from accessportal.directory.store.groups import MOST_GROUPS
from accessportal.kernel.actors import Actor

THREADS = 8


@dataclass(frozen=True, slots=True)
class Step:
    """What is missing of one person: they themselves (``is_new``), and these memberships."""

    person: WantedPerson
    is_new: bool
    memberships: tuple[WantedMembership, ...]


@dataclass(slots=True)
class Plan:
    """``groups`` are to be made, parents first, each with the line that names it; ``steps`` have something to do. ``names_kept`` counts
    people who are called otherwise in the directory: an import renames nobody."""

    groups: dict[str, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    new_people: int = 0
    new_memberships: int = 0
    role_changes: int = 0
    unchanged: int = 0
    names_kept: int = 0

    def counts(self) -> dict[str, int]:
        return {
            "new_groups": len(self.groups),
            "new_people": self.new_people,
            "new_memberships": self.new_memberships,
            "role_changes": self.role_changes,
            "unchanged": self.unchanged,
            "names_kept": self.names_kept,
        }


def make_plan(file: PeopleFile, *, create_groups: bool, actor: Actor, now: datetime) -> Plan:
    """Find what must be written so that the directory holds everything in ``file``; what the file does not name stays as it is. With
    ``problems`` nothing should be written."""
    plan = Plan()
    groups = queries.tree().groups
    _plan_groups(plan, file, groups, create_groups=create_groups)
    if not plan.problems:
        _plan_people(plan, file)
    if not plan.problems:
        _check_rights(plan, groups, actor, now)
    plan.problems.sort(key=lambda problem: problem.line)
    return plan


def _plan_groups(plan: Plan, file: PeopleFile, groups: Mapping[str, Group], *, create_groups: bool) -> None:
    for group_id, line in file.groups.items():
        group = groups.get(group_id)
        if group is not None:
            if not group.is_enabled:
                plan.problems.append(Problem(line, f"The group {group_id} is disabled: enable it first."))
        elif not create_groups or group_id == ROOT:
            plan.problems.append(Problem(line, f"There is no group {group_id}: create it first, or give --create-groups."))
        else:
            for missing in _from_the_root(group_id):
                if missing not in groups:
                    plan.groups.setdefault(missing, line)
    _check_room(plan, groups)
    plan.groups = dict(sorted(plan.groups.items(), key=lambda pair: (pair[0].count("/"), pair[0])))


def _check_room(plan: Plan, groups: Mapping[str, Group]) -> None:
    """What a group's place and Cognito's limits rule out."""
    for group_id, line in plan.groups.items():
        above = group_id.rpartition("/")[0] or ROOT
        if above in groups and not groups[above].is_enabled:
            plan.problems.append(Problem(line, f"The group {above} is disabled: enable it first."))
        if len(_above(group_id, groups)) > MAX_ANCESTORS:
            plan.problems.append(Problem(line, f"{group_id} would have more than {MAX_ANCESTORS} groups above it."))
    if plan.groups and len(groups) + len(plan.groups) > MOST_GROUPS:
        line = min(plan.groups.values())
        plan.problems.append(Problem(line, f"With {len(plan.groups)} more there would be over {MOST_GROUPS} groups."))


def _above(group_id: str, groups: Mapping[str, Group]) -> tuple[str, ...]:
    """The groups that will be above a new one: those above its nearest group that exists, which may have been moved."""
    new = [place for place in _from_the_root(group_id) if place not in groups]
    nearest = groups.get(_nearest(group_id, groups))
    return (*(nearest.ancestors if nearest else ()), *([nearest.group_id] if nearest else []), *new[:-1])


def _from_the_root(group_id: str) -> tuple[str, ...]:
    """``/a/b`` gives ``/a`` and ``/a/b``."""
    return (*path_ancestors(group_id)[1:], group_id)


def _plan_people(plan: Plan, file: PeopleFile) -> None:
    known = queries.find_people(emails=file.people.keys())
    with ThreadPoolExecutor(THREADS, thread_name_prefix="plan") as pool:
        memberships = dict(pool.map(lambda key: (key, Book().held_by(key)[1]), [key for key in file.people if key in known]))
    for person in file.people.values():
        _plan_person(plan, person, known.get(person.key), memberships.get(person.key, ()))


def _plan_person(plan: Plan, person: WantedPerson, known: Person | None, memberships: tuple[Membership, ...]) -> None:
    present = {membership.group_id: membership for membership in memberships}
    missing = []
    for wanted in person.memberships:
        role = _permanent_role(present.get(wanted.group_id))
        if role is wanted.role:
            plan.unchanged += 1
            continue
        missing.append(wanted)
        plan.new_memberships += role is None
        plan.role_changes += role is not None
    problem = _personal_problem(person, known, present.keys() | {wanted.group_id for wanted in missing}) if missing else ""
    if problem:
        plan.problems.append(Problem(missing[0].line, problem))
    if known is None:
        plan.new_people += 1
    else:
        plan.names_kept += known.name != person.name
        plan.unchanged += not person.memberships
    if known is None or missing:
        plan.steps.append(Step(person, is_new=known is None, memberships=tuple(missing)))


def _personal_problem(person: WantedPerson, known: Person | None, groups: Collection[str]) -> str:
    """Why nothing can be given to this person, or nothing."""
    if known is not None and known.is_deleting:
        return f"{person.email} is being deleted: wait until that is done."
    if known is not None and not known.is_enabled:
        return f"{person.email} is disabled: enable the person first."
    if len(groups) > MOST_MEMBERSHIPS:
        return f"{person.email} would be in {len(groups)} groups, and Cognito has room for {MOST_MEMBERSHIPS}."
    return ""


def _permanent_role(membership: Membership | None) -> GroupRole | None:
    """The role that an admin gave; what a request gave besides is no business of an import."""
    claim = membership.claim(PERMANENT) if membership else None
    return claim.role if claim else None


def _check_rights(plan: Plan, groups: Mapping[str, Group], actor: Actor, now: datetime) -> None:
    """Note a problem for each place where ``actor`` would be refused, before anything is written. What is imported is for good, as a new
    group is."""
    if ROOT not in groups:
        plan.problems.append(Problem(1, "The directory is not founded yet: run found_directory first."))
        return
    places: dict[str, int] = {}
    for group_id, line in plan.groups.items():
        places.setdefault(_nearest(group_id, groups), line)
    for step in plan.steps:
        for wanted in step.memberships:
            places.setdefault(_nearest(wanted.group_id, groups), wanted.line)
        if step.is_new and not step.memberships:
            places.setdefault(ROOT, step.person.line)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="plan") as pool:
        decisions = pool.map(lambda place: queries.may(verb=GroupVerb.CREATE_GROUP, group=groups[place], actor=actor, now=now), places)
        refused = [(line, decision.reason) for line, decision in zip(places.values(), decisions, strict=True) if not decision.allowed]
    plan.problems += [Problem(line, reason) for line, reason in refused]


def _nearest(group_id: str, groups: Mapping[str, Group]) -> str:
    """The group itself where it exists, else the one that new groups on the way to it will be made below."""
    return next((place for place in reversed(_from_the_root(group_id)) if place in groups), ROOT)
