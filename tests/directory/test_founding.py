"""The first people, and what the first version left in the table."""

from __future__ import annotations

from typing import Any

import pytest

from accessportal.audit import queries as audit
from accessportal.directory import operations, queries
from accessportal.directory.states import Group, GroupRole, Person
from accessportal.kernel.actors import Actor, Role, person
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed
from tests.directory.conftest import NOW, OLGA, SEED_TIME, SETUP, add_group, join, table

pytestmark = pytest.mark.usefixtures("empty_directory")


def _found(email: str = "olga@example.com", *, actor: Actor = SETUP) -> Group:
    return operations.found_directory(
        admin_email=email,
        admin_name="Olga",
        operator_group="/portal/operators",
        auditor_group="/portal/auditors",
        actor=actor,
        now=NOW,
    ).record


def _count() -> Any:
    return table().get_item(Key={"pk": "C:groups", "sk": "C:groups"})["Item"]["groupCount"]


def test_the_first_admin_is_there_with_the_root() -> None:
    root = _found()
    assert root.standing_admins == root.admins == {"olga@example.com"}
    assert queries.role_on(email="olga@example.com", group_id="/portal/auditors", now=NOW) is GroupRole.ADMIN
    assert queries.groups_of(email="olga@example.com", now=NOW) == {"/", "/portal", "/portal/operators"}
    assert _count() == 4
    everything: list[Group | Person] = [*queries.tree().groups.values(), *queries.list_people().items]
    for one in everything:
        assert audit.check_head(one.entity, version=one.version, audit_head=one.audit_head) == []


def test_it_may_be_repeated_for_the_same_person_alone() -> None:
    _found()
    operations.revoke_membership(email="olga@example.com", group_id="/portal/operators", actor=OLGA, now=NOW)
    before = table().scan()["Items"]
    _found()
    assert table().scan()["Items"] == before, "what was taken away does not come back"
    with pytest.raises(Conflict) as refused:
        _found("mallory@example.com")
    assert refused.value.code == "directory_founded"


def test_nobody_founds_for_themselves() -> None:
    with pytest.raises(NotAllowed):
        _found("mallory@example.com", actor=person("mallory@example.com", roles=frozenset({Role.OPERATOR})))
    with pytest.raises(InvalidRequest):
        _found("no address")
    assert table().scan()["Items"] == []


def test_nothing_is_made_before_the_founding() -> None:
    with pytest.raises(Conflict) as refused:
        operations.create_group(group_id="/a", name="A", description="", actor=SETUP, now=NOW)
    assert refused.value.code == "directory_not_founded"


def _first_version(email: str, *groups: tuple[str, str]) -> None:
    with table().batch_writer() as batch:
        person_item = {"siKey1": "U", "email": email, "displayName": email, "state": "enabled", "createdAt": SEED_TIME}
        batch.put_item({"pk": f"U:{email}", "sk": f"U:{email}", **person_item, "version": 0, "audit_head": ""})
        for group_id, role in groups:
            batch.put_item({"pk": f"U:{email}", "sk": f"G:{group_id}", "siKey1": f"M:{group_id}", "role": role, "createdAt": SEED_TIME})


def _first_group(group_id: str, *children: str, members: int = 0) -> None:
    key = f"G:{group_id}"
    counts = {"memberCount": members, "childCount": len(children)}
    with table().batch_writer() as batch:
        batch.put_item({"pk": key, "sk": key, "siKey1": "G", "id": group_id, "name": group_id, "state": "enabled", **counts, "version": 0})
        for child in children:
            batch.put_item({"pk": key, "sk": f"G:{child}", "siKey1": "GH"})


@pytest.fixture
def first_version(empty_directory: None) -> None:
    """As it was before there was a root: no ancestors, no claims, no admins on groups."""
    _first_group("/a", "/a/b", members=1)
    _first_group("/a/b", members=1)
    _first_group("/c")
    _first_version("alice@example.com", ("/a", "admin"), ("/a/b", "reader"))
    _first_version("olga@example.com")


@pytest.mark.usefixtures("first_version")
def test_groups_of_the_first_version_are_read_where_their_paths_put_them() -> None:
    assert queries.groups_of(email="alice@example.com", now=NOW) == {"/a", "/a/b"}
    assert queries.role_on(email="alice@example.com", group_id="/a/b", now=NOW) is GroupRole.ADMIN
    assert [one.key for one in queries.Book().crowd(queries.Named(groups=("/a",)), now=NOW).people] == ["alice@example.com"]


@pytest.mark.usefixtures("first_version")
def test_groups_of_the_first_version_are_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accessportal.directory.operations.founding._TOPS_AT_ONCE", 1)
    _found()
    assert [one.group_id for one in queries.list_child_groups(group_id="/")] == ["/a", "/c", "/portal"]
    assert queries.groups_of(email="alice@example.com", now=NOW) == {"/", "/a", "/a/b"}
    assert [one.key for one in queries.Book().crowd(queries.Named(admins_of="/a/b"), now=NOW).people] == [
        "alice@example.com",
        "olga@example.com",
    ]
    assert _count() == 7
    root = queries.find_group(group_id="/")
    assert root is not None
    assert root.child_count == 3


@pytest.mark.usefixtures("first_version")
def test_everything_of_the_first_version_can_be_changed_afterwards() -> None:
    _found()
    add_group("/a/b/new")
    operations.move_group(group_id="/a/b", parent_id="/c", actor=OLGA, now=NOW)
    assert queries.groups_of(email="alice@example.com", now=NOW) == {"/", "/a", "/c", "/a/b"}
    join("alice@example.com", "/a", GroupRole.READER)
    operations.revoke_membership(email="alice@example.com", group_id="/a/b", actor=OLGA, now=NOW)
    operations.revoke_membership(email="alice@example.com", group_id="/a", actor=OLGA, now=NOW)
    operations.delete_group(group_id="/a", actor=OLGA, now=NOW)
    operations.delete_group(group_id="/a/b/new", actor=OLGA, now=NOW)
    operations.delete_group(group_id="/a/b", actor=OLGA, now=NOW)
    operations.delete_group(group_id="/c", actor=OLGA, now=NOW)
    assert _count() == 4


def test_a_founding_that_died_before_its_first_operator_makes_one_when_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as crash:
        crash.setattr("accessportal.directory.operations.founding.grant_membership", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            _found()
    _found()
    assert "/portal/operators" in queries.groups_of(email="olga@example.com", now=NOW)


@pytest.mark.usefixtures("first_version")
def test_a_founding_that_was_cut_off_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as crash:
        crash.setattr("accessportal.directory.operations.founding._take_in_groups", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            _found()
    _found()
    assert [one.group_id for one in queries.list_child_groups(group_id="/")] == ["/a", "/c", "/portal"]
    assert _count() == 7
