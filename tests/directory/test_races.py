"""Two at once: the rival's change is written between what the first one read and what it writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accessportal.audit import queries as audit
from accessportal.directory import operations
from accessportal.directory.operations.claims import add_claim
from accessportal.directory.states import Changed, Claim, Group, GroupRole, State
from accessportal.kernel.actors import person
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, NotFound, PortalError
from accessportal.store.transactions import transact
from tests.directory.conftest import NOW, OLGA, SETUP, add_group, add_person, join, table

pytestmark = pytest.mark.usefixtures("directory")

Change = Callable[[], Any]
ALICE = person("alice@example.com")


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], None]:
    """The given change is made right before the next transaction is written."""

    def arrange(rival: Change) -> None:
        waiting = [rival]

        def late(steps: Any) -> None:
            if waiting:
                waiting.pop()()
            transact(steps)

        for module in ("people", "groups"):
            monkeypatch.setattr(f"accessportal.directory.store.{module}.transact", late)

    return arrange


def _move(group_id: str, parent_id: str) -> Changed[Group]:
    return operations.move_group(group_id=group_id, parent_id=parent_id, actor=OLGA, now=NOW)


def _delete(group_id: str) -> Changed[Group]:
    return operations.delete_group(group_id=group_id, actor=OLGA, now=NOW)


def _disable_group(group_id: str) -> Changed[Group]:
    return operations.set_group_state(group_id=group_id, state=State.DISABLED, actor=OLGA, now=NOW)


def _disable(email: str) -> Any:
    return operations.set_person_state(email=email, state=State.DISABLED, actor=SETUP, now=NOW)


def _revoke(email: str, group_id: str) -> Any:
    return operations.revoke_membership(email=email, group_id=group_id, actor=SETUP, now=NOW)


def _delete_person(email: str) -> Any:
    return operations.delete_person(email=email, actor=SETUP, now=NOW)


def _check_whole() -> None:
    """No cycle, no orphan, no ghost, right counts, an admin at the root, whole chains: what must hold after any race."""
    items = table().scan()["Items"]
    groups = {item["pk"][2:]: item for item in items if item["sk"] == item["pk"] and item["pk"].startswith("G:")}
    branches = {(item["pk"][2:], item["sk"][2:]) for item in items if item.get("siKey1") == "GH"}
    people = {item["pk"][2:]: item for item in items if item["sk"] == item["pk"] and item["pk"].startswith("U:")}
    memberships = [(item["pk"][2:], item["sk"][2:], item) for item in items if item["pk"].startswith("U:") and item["sk"] != item["pk"]]
    assert branches == {(item["ancestors"][-1], group_id) for group_id, item in groups.items() if group_id != "/"}
    for group_id, item in groups.items():
        if group_id != "/":
            parent = groups[item["ancestors"][-1]]
            assert item["ancestors"] == [*parent["ancestors"], item["ancestors"][-1]]
            assert group_id not in item["ancestors"]
        assert item["childCount"] == sum(1 for parent_id, _ in branches if parent_id == group_id)
        assert item["memberCount"] == sum(1 for _, other, _ in memberships if other == group_id)
        admins = {who for who, other, one in memberships if other == group_id and one["role"] == "admin"}
        assert item.get("admins", set()) == admins
    assert all(who in people and group_id in groups for who, group_id, _ in memberships)
    standing = {
        who for who, group_id, one in memberships if group_id == "/" and one["role"] == "admin" and people[who]["state"] == "enabled"
    }
    assert groups["/"]["standingAdmins"] == standing
    assert standing
    [counter] = [item for item in items if item["pk"] == "C:groups"]
    assert counter["groupCount"] == len(groups)
    heads = {f"group#{group_id}": item for group_id, item in groups.items()} | {f"person#{key}": item for key, item in people.items()}
    for entity, item in heads.items():
        assert audit.check_head(entity, version=int(item["version"]), audit_head=item["audit_head"]) == []


@pytest.mark.parametrize(
    ("first", "rival", "refused"),
    [
        (lambda: _move("/engineering", "/security"), lambda: _move("/security", "/engineering"), InvalidRequest),
        (lambda: _move("/engineering", "/security"), lambda: _move("/security", "/eng"), None),
        (lambda: _move("/engineering", "/security"), lambda: add_group("/engineering/payments/cards"), None),
        (lambda: _move("/engineering", "/security"), lambda: add_group("/engineering/web"), None),
        (lambda: _move("/engineering", "/security"), lambda: _move("/eng", "/engineering/payments"), None),
        (lambda: _move("/engineering", "/security"), lambda: _move("/engineering/payments", "/eng"), None),
        (lambda: _move("/engineering", "/security"), lambda: _delete("/eng"), None),
        (lambda: _move("/engineering", "/eng"), lambda: _delete("/eng"), InvalidRequest),
        (lambda: _move("/engineering", "/eng"), lambda: _disable_group("/eng"), InvalidRequest),
        (lambda: _move("/eng", "/security"), lambda: _delete("/eng"), NotFound),
        (lambda: add_group("/engineering/web"), lambda: _move("/engineering", "/security"), None),
        (lambda: add_group("/engineering/payments/cards"), lambda: _move("/engineering", "/security"), None),
        (lambda: add_group("/eng/new"), lambda: _disable_group("/eng"), InvalidRequest),
        (lambda: add_group("/eng/new"), lambda: _delete("/eng"), InvalidRequest),
        (lambda: add_group("/eng/new"), lambda: add_group("/eng/new"), Conflict),
        (lambda: _delete("/eng"), lambda: add_group("/eng/new"), Conflict),
        (lambda: _delete("/eng"), lambda: _move("/security", "/eng"), Conflict),
        (lambda: _delete("/eng"), lambda: join("mallory@example.com", "/eng"), Conflict),
        (lambda: _delete("/eng"), lambda: _move("/eng", "/security"), None),
        (lambda: join("mallory@example.com", "/eng"), lambda: _delete("/eng"), NotFound),
        (lambda: join("mallory@example.com", "/eng"), lambda: _disable_group("/eng"), Conflict),
        (lambda: join("bob@example.com", "/security", GroupRole.CONTRIBUTOR), lambda: _disable_group("/security"), Conflict),
        (lambda: join("mallory@example.com", "/eng"), lambda: _disable("mallory@example.com"), Conflict),
        (lambda: join("mallory@example.com", "/eng"), lambda: _delete_person("mallory@example.com"), NotFound),
        (lambda: join("mallory@example.com", "/eng"), lambda: join("mallory@example.com", "/eng"), Conflict),
        (lambda: join("bob@example.com", "/eng"), lambda: _revoke("bob@example.com", "/security"), NotFound),
        (lambda: _revoke("bob@example.com", "/security"), lambda: join("bob@example.com", "/eng"), None),
        (lambda: _delete_person("bob@example.com"), lambda: join("bob@example.com", "/eng"), None),
        (lambda: _disable("mallory@example.com"), lambda: join("mallory@example.com", "/eng"), None),
        (lambda: add_person("new@example.com", "/eng", GroupRole.READER), lambda: _delete("/eng"), NotFound),
        (lambda: add_person("new@example.com", "/eng", GroupRole.READER), lambda: add_person("new@example.com"), Conflict),
    ],
)
def test_whatever_comes_between_the_tree_stays_whole(
    between: Callable[[Change], None], first: Change, rival: Change, refused: type[PortalError] | None
) -> None:
    between(rival)
    if refused is None:
        first()
    else:
        with pytest.raises(refused):
            first()
    _check_whole()


_WAYS: dict[str, Callable[[str], Any]] = {
    "revoke": lambda email: _revoke(email, "/"),
    "role change": lambda email: operations.grant_membership(email=email, group_id="/", role=GroupRole.READER, actor=SETUP, now=NOW),
    "disable": _disable,
    "delete": _delete_person,
}


@pytest.mark.parametrize("first", _WAYS)
@pytest.mark.parametrize("rival", _WAYS)
def test_two_root_admins_never_remove_each_other(between: Callable[[Change], None], first: str, rival: str) -> None:
    join("alice@example.com", "/", GroupRole.ADMIN)
    between(lambda: _WAYS[rival]("olga@example.com"))
    with pytest.raises(Conflict) as refused:
        _WAYS[first]("alice@example.com")
    assert refused.value.code == "last_root_admin"
    _check_whole()


def test_whoever_lost_the_right_meanwhile_changes_nothing_more(between: Callable[[Change], None]) -> None:
    """Alice and Olga revoke each other: the second one finds that they may not any more."""
    join("alice@example.com", "/", GroupRole.ADMIN)
    between(lambda: _revoke("alice@example.com", "/"))
    with pytest.raises(NotAllowed):
        operations.revoke_membership(email="olga@example.com", group_id="/", actor=ALICE, now=NOW)
    _check_whole()


def test_a_claim_of_a_request_meets_a_revoke(between: Callable[[Change], None]) -> None:
    claim = Claim("r-1", GroupRole.ADMIN, ends_at=NOW.replace(year=2027))
    between(lambda: join("bob@example.com", "/security", GroupRole.CONTRIBUTOR))
    held = add_claim(email="bob@example.com", group_id="/security", claim=claim, guards=(), actor=SETUP, now=NOW)
    assert {one.claim_id: one.role for one in held.claims} == {"permanent": GroupRole.CONTRIBUTOR, "r-1": GroupRole.ADMIN}
    _check_whole()
