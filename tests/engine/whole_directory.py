"""What must hold in the directory after whatever many did at once, checked on the whole table with plain boto3.

The directory's own code does not read the table for these checks, or a mistake in it would hide itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

import boto3

from accessportal.audit import queries as audit
from accessportal.directory import operations
from accessportal.kernel.actors import system
from accessportal.kernel.pages import every
from accessportal.store.base import current_settings

ROOT = "/"
Item = dict[str, Any]


def found_directory(*, now: datetime) -> None:
    """The root alone, with Olga as its admin."""
    operations.found_directory(
        admin_email="olga@example.com", admin_name="Olga", operator_group="", auditor_group="", actor=system("setup"), now=now
    )


def table() -> Any:
    """As other programs see it."""
    settings = current_settings()
    return _database(settings.region).Table(f"{settings.table_prefix}AccessManagement")


@cache
def _database(region: str) -> Any:
    return boto3.resource("dynamodb", region_name=region)


def standing_admins() -> set[str]:
    """The folded addresses of those who are admins of the root, enabled and for good, as the root's item says."""
    root = table().get_item(Key={"pk": "G:/", "sk": "G:/"}, ConsistentRead=True)["Item"]
    return set(root["standingAdmins"])


def every_item() -> list[Item]:
    items: list[Item] = []
    start: dict[str, Any] = {}
    while True:
        page = table().scan(ConsistentRead=True, **start)
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


@dataclass
class Walk:
    """The whole table, sorted by what the seed says the keys mean. An item of no known kind is an error."""

    people: dict[str, Item] = field(default_factory=dict)
    groups: dict[str, Item] = field(default_factory=dict)
    memberships: dict[tuple[str, str], Item] = field(default_factory=dict)
    parents: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    group_count: int = -1

    @classmethod
    def now(cls) -> Walk:
        walk = cls()
        for item in every_item():
            walk._add(item)
        return walk

    def _add(self, item: Item) -> None:
        (pk_kind, _, name), (sk_kind, _, below) = item["pk"].partition(":"), item["sk"].partition(":")
        is_itself = item["pk"] == item["sk"]
        match pk_kind, sk_kind, item.get("siKey1"):
            case "U", "U", "U" if is_itself:
                self.people[name] = item
            case "G", "G", "G" if is_itself:
                self.groups[name] = item
            case "U", "G", kind if kind == f"M:{below}":
                self.memberships[name, below] = item
            case "G", "G", "GH" if not is_itself:
                self.parents[below].append(name)
            case "C", "C", None if item["pk"] == "C:groups":
                self.group_count = int(item["groupCount"])
            case (("D" | "I" | "A" | "R"), _, _):
                # Ours, in no list of the seed: departures, accounts of the sign-in service, what was given for a time.
                pass
            case _:
                raise AssertionError(f"an item of no known kind: {item}")

    def claims(self, key: str) -> dict[str, dict[str, str]]:
        """Group to claim to role, of one person."""
        return {
            group_id: {claim_id: claim["role"] for claim_id, claim in item["claims"].items()}
            for (one, group_id), item in self.memberships.items()
            if one == key
        }

    def path_to(self, group_id: str) -> list[str]:
        """The ids above, from the root down, walked from branch to branch."""
        above: list[str] = []
        at = group_id
        while at != ROOT:
            (at,) = self.parents[at]
            assert at not in above, f"a cycle above {group_id}: {above}"
            above.insert(0, at)
        return above


@dataclass
class Checker:
    """Remembers which chains were found whole up to which event, so that a walk costs what has changed since the last one."""

    _checked: dict[str, tuple[int, str]] = field(default_factory=dict)

    def check(self) -> Walk:
        walk = Walk.now()
        _check_tree(walk)
        _check_members(walk)
        _check_root(walk)
        self._check_chains(walk)
        return walk

    def _check_chains(self, walk: Walk) -> None:
        heads = {f"group#{group_id}": item for group_id, item in walk.groups.items()}
        heads |= {f"person#{key}": item for key, item in walk.people.items()}
        for entity, item in heads.items():
            version, head = int(item["version"]), item["audit_head"]
            if self._checked.get(entity) != (version, head):
                assert audit.check_head(entity, version=version, audit_head=head) == [], entity
                _check_story(entity, walk)
                self._checked[entity] = (version, head)
        for entity in set(audit.every_entity()) - heads.keys():
            assert audit.find_breaks(entity) == [], entity
            assert audit.history(entity, limit=1).items[0].action.endswith(".deleted"), f"{entity} is gone, but nobody deleted it"
            self._checked.pop(entity, None)


def _check_tree(walk: Walk) -> None:
    assert walk.group_count == len(walk.groups)
    assert walk.parents.keys() == walk.groups.keys() - {ROOT}, "a group without a branch, or a branch without its group"
    children = Counter(parent for parents in walk.parents.values() for parent in parents)
    assert children.keys() <= walk.groups.keys(), "an orphan"
    for group_id, item in walk.groups.items():
        assert item["ancestors"] == walk.path_to(group_id), group_id
        assert len(item["ancestors"]) <= 20
        assert item["childCount"] == children[group_id], group_id


def _check_members(walk: Walk) -> None:
    members = Counter(group_id for _, group_id in walk.memberships)
    admins: dict[str, set[str]] = defaultdict(set)
    for (key, group_id), item in walk.memberships.items():
        assert key in walk.people, f"a ghost in {group_id}: {key}"
        assert group_id in walk.groups, f"{key} is in {group_id}, which is not there"
        roles = {claim["role"] for claim in item["claims"].values()}
        assert item["role"] in roles
        if "admin" in roles:
            admins[group_id].add(key)
    for group_id, item in walk.groups.items():
        assert item["memberCount"] == members[group_id], group_id
        assert item.get("admins", set()) == admins[group_id], group_id
    assert max(Counter(key for key, _ in walk.memberships).values(), default=0) <= 100


def _check_root(walk: Walk) -> None:
    standing = {
        key
        for (key, group_id), item in walk.memberships.items()
        if group_id == ROOT
        and item["claims"].get("permanent", {}).get("role") == "admin"
        and walk.people[key]["state"] == "enabled"
        and not walk.people[key].get("deleting")
    }
    assert standing, "nobody is admin of the root"
    assert walk.groups[ROOT]["standingAdmins"] == standing
    assert walk.groups[ROOT]["state"] == "enabled"
    assert [group_id for group_id, item in walk.groups.items() if "standingAdmins" in item] == [ROOT]


def _check_story(entity: str, walk: Walk) -> None:
    """What the events tell, one after the other, is what the table says now."""
    kind, _, name = entity.partition("#")
    events = every(lambda cursor: audit.history(entity, cursor=cursor, limit=200, newest_first=False))
    told: dict[str, Any] = {}
    claims: dict[str, dict[str, str]] = defaultdict(dict)
    for event in events:
        told |= {field: event.data[field] for field in ("state", "parent_id", "name") if field in event.data}
        verb = event.action.partition(".")[2]
        if verb in {"created", "deleted"}:
            claims.clear()
        elif verb in {"granted", "role_changed"}:
            claims[event.data["group_id"]][event.data["claim"]] = event.data["role"]
        elif verb == "revoked":
            del claims[event.data["group_id"]][event.data["claim"]]
    if kind == "person":
        assert {group_id: some for group_id, some in claims.items() if some} == walk.claims(name), entity
        assert told["state"] == walk.people[name]["state"], entity
        assert told["name"] == walk.people[name]["displayName"], entity
    else:
        assert told["state"] == walk.groups[name]["state"], entity
        assert told["name"] == walk.groups[name]["name"], entity
        assert told["parent_id"] == (walk.path_to(name) or [""])[-1], entity
