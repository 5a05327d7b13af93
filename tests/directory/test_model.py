"""A plain model of trees, roles and ends, and the store: they agree on who is where and may what, at every moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accessportal.directory import operations, queries
from accessportal.directory.states import GroupRole
from accessportal.kernel.errors import Conflict, InvalidRequest
from tests.depth import examples
from tests.directory.conftest import NOW, SEED_TIME, SETUP, table

GROUPS = ("/", "/a", "/a/b", "/a/b/c", "/ab", "/d")
PEOPLE = ("alice@example.com", "bob@example.com")
RANK = {"reader": 1, "contributor": 2, "admin": 3}
MINUTES = st.sampled_from([0, 9, 10, 15, 20, 31])
"""From the start; claims end at 10, 20 or 30."""


@dataclass
class Model:
    """``parents`` of every group but the root; ``claims`` by person, group and claim id: role and minutes to the end."""

    parents: dict[str, str]
    disabled: set[str]
    claims: dict[tuple[str, str], dict[str, tuple[str, int | None]]]
    says_place: set[str] = field(default_factory=set)

    def above(self, group: str) -> list[str]:
        """The group and those above it, the root last."""
        return [group] if group == "/" else [group, *self.above(self.parents[group])]

    def role_in(self, person: str, group: str, minute: int) -> str | None:
        """What the direct membership gives, the group's and the person's state taken into account."""
        if {person, group} & self.disabled:
            return None
        roles = [role for role, ends in self.claims.get((person, group), {}).values() if ends is None or minute < ends]
        return max(roles, key=RANK.__getitem__, default=None)

    def groups_of(self, person: str, minute: int) -> set[str]:
        direct = [group for group in GROUPS if self.role_in(person, group, minute)]
        return {above for group in direct for above in self.above(group)} - self.disabled

    def role_on(self, person: str, group: str, minute: int) -> str | None:
        roles = [role for above in self.above(group) if (role := self.role_in(person, above, minute))]
        return max(roles, key=RANK.__getitem__, default=None)

    def can_move(self, group: str, parent: str) -> bool:
        return group not in self.above(parent) and self.parents[group] != parent and parent not in self.disabled


@st.composite
def models(draw: st.DrawFn) -> Model:
    parents = {group: draw(st.sampled_from(GROUPS[:number]), label=f"parent of {group}") for number, group in enumerate(GROUPS) if number}
    disabled = draw(st.sets(st.sampled_from([*GROUPS[1:], *PEOPLE]), max_size=3))
    claim = st.tuples(st.sampled_from(sorted(RANK)), st.sampled_from([None, 10, 20, 30]))
    held = st.dictionaries(st.sampled_from(["permanent", "r-1", "r-2"]), claim, min_size=1)
    claims = draw(st.dictionaries(st.tuples(st.sampled_from(PEOPLE), st.sampled_from(GROUPS)), held, max_size=8))
    says_place = draw(st.sets(st.sampled_from(GROUPS)))
    return Model(parents, disabled, claims, says_place)


moves = st.lists(st.tuples(st.sampled_from(GROUPS[1:]), st.sampled_from(GROUPS)), max_size=3)


@pytest.mark.deep
@pytest.mark.usefixtures("empty_directory")
@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=models(), moves=moves, before=MINUTES, after=MINUTES)
def test_model_and_store_agree_at_every_moment(model: Model, moves: list[tuple[str, str]], before: int, after: int) -> None:
    _write(model)
    _agree(model, before)
    for group, parent in moves:
        if model.can_move(group, parent):
            operations.move_group(group_id=group, parent_id=parent, actor=SETUP, now=NOW)
            model.parents[group] = parent
        else:
            with pytest.raises((Conflict, InvalidRequest)):
                operations.move_group(group_id=group, parent_id=parent, actor=SETUP, now=NOW)
    _agree(model, after)


def _agree(model: Model, minute: int) -> None:
    now = NOW + timedelta(minutes=minute)
    for person in PEOPLE:
        assert queries.groups_of(email=person, now=now) == model.groups_of(person, minute)
        direct = {group: role for group in GROUPS if (role := model.role_in(person, group, minute))}
        assert {one.group_id: one.role.value for one in queries.roles_of(email=person, now=now)} == direct
    for group in GROUPS:
        _agree_on(model, group, minute, now)


def _agree_on(model: Model, group: str, minute: int, now: datetime) -> None:
    roles = {person: model.role_on(person, group, minute) for person in PEOPLE}
    assert {person: queries.role_on(email=person, group_id=group, now=now) for person in PEOPLE} == roles
    admins = [person for person, role in roles.items() if role == GroupRole.ADMIN]
    assert [one.key for one in queries.Book().crowd(queries.Named(admins_of=group), now=now).people] == admins
    there = [person for person in PEOPLE if group in model.groups_of(person, minute)]
    named = queries.Named(groups=(group,))
    assert [one.key for one in queries.Book().crowd(named, now=now).people] == there
    enabled = [person for person in PEOPLE if person not in model.disabled]
    assert queries.Book().those_in(group, enabled, now=now) == set(there)
    for number in range(len(PEOPLE) + 1):
        found = queries.Book().find_enough(named, now=now, is_enough=lambda people, number=number: len(people) >= number)  # type: ignore[misc]
        assert {one.key for one in found.people} <= set(there)
        assert len(found.people) >= number or [one.key for one in found.people] == there


def _write(model: Model) -> None:
    """The model as items, in place of what is there; nothing has a history."""
    for one, keys in ((table(), ("pk", "sk")), (table("AuditLog"), ("entity", "sequence"))):
        for item in one.scan()["Items"]:
            one.delete_item(Key={key: item[key] for key in keys})
    with table().batch_writer() as batch:
        for item in (*_people(model), *_groups(model), *_branches(model), *_memberships(model)):
            batch.put_item(item)


def _state(model: Model, name: str) -> str:
    return "disabled" if name in model.disabled else "enabled"


def _people(model: Model) -> list[dict[str, Any]]:
    return [
        {"pk": f"U:{key}", "sk": f"U:{key}", "siKey1": "U", "email": key, "state": _state(model, key), "createdAt": SEED_TIME}
        for key in PEOPLE
    ]


def _groups(model: Model) -> list[dict[str, Any]]:
    """Some that stand where their paths say do not say it, like those of other programs."""
    items = []
    for group in GROUPS:
        ancestors = model.above(group)[:0:-1]
        item: dict[str, Any] = {"pk": f"G:{group}", "sk": f"G:{group}", "siKey1": "G", "id": group, "state": _state(model, group)}
        item["childCount"] = sum(1 for parent in model.parents.values() if parent == group)
        admins = {
            who for (who, where), claims in model.claims.items() if where == group and "admin" in [role for role, _ in claims.values()]
        }
        if admins:
            item["admins"] = admins
        by_path = [part for part in GROUPS if group != "/" and (part == "/" or group.startswith(f"{part}/"))]
        if ancestors != by_path or group in model.says_place:
            item |= {"ancestors": ancestors, "treeVersion": 1}
        items.append(item | {"version": 0})
    return items


def _branches(model: Model) -> list[dict[str, Any]]:
    return [{"pk": f"G:{parent}", "sk": f"G:{group}", "siKey1": "GH"} for group, parent in model.parents.items()]


def _memberships(model: Model) -> list[dict[str, Any]]:
    return [
        {"pk": f"U:{who}", "sk": f"G:{where}", "siKey1": f"M:{where}", "role": "reader", "claims": _stored(claims)}
        for (who, where), claims in model.claims.items()
    ]


def _stored(claims: dict[str, tuple[str, int | None]]) -> dict[str, dict[str, Any]]:
    start = int(NOW.timestamp())
    return {
        claim_id: {"role": role} | ({} if ends is None else {"ends_at": start + 60 * ends}) for claim_id, (role, ends) in claims.items()
    }
