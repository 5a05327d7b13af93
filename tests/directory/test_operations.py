"""Olga keeps the directory; every change tells its story; nobody else may change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accessportal.audit import queries as audit
from accessportal.directory import operations, queries, store
from accessportal.directory.states import GroupRole, State, group_entity
from accessportal.kernel.actors import person
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from tests.directory.conftest import NOW, OLGA, add_group, add_person, join

MALLORY = person("mallory@example.com")

pytestmark = pytest.mark.usefixtures("directory")


def test_a_new_person_is_enabled_and_keeps_the_typed_address() -> None:
    created = operations.create_person(email=" Carol@Example.com ", name=" Carol ", actor=OLGA, now=NOW)
    assert (created.key, created.email, created.name, created.state) == ("carol@example.com", "Carol@Example.com", "Carol", State.ENABLED)
    assert queries.find_person(email="CAROL@example.com") == created


def test_an_address_belongs_to_one_person_whatever_its_letters() -> None:
    with pytest.raises(Conflict) as refused:
        operations.create_person(email="ALICE@EXAMPLE.COM", name="Other", actor=OLGA, now=NOW)
    assert refused.value.present == queries.find_person(email="alice@example.com")
    assert queries.find_person(email="alice@example.com").name == "Alice"  # type: ignore[union-attr]


def test_a_person_is_disabled_and_enabled_again() -> None:
    disabled = operations.set_person_state(email="alice@example.com", state=State.DISABLED, actor=OLGA, now=NOW)
    assert queries.find_person(email="alice@example.com") == disabled
    assert queries.groups_of(email="alice@example.com") == frozenset()
    with pytest.raises(Conflict, match="disabled already"):
        operations.set_person_state(email="alice@example.com", state=State.DISABLED, actor=OLGA, now=NOW)
    operations.set_person_state(email="alice@example.com", state=State.ENABLED, actor=OLGA, now=NOW)
    assert queries.groups_of(email="alice@example.com") == {"/engineering", "/engineering/payments"}


def test_a_group_needs_the_group_above() -> None:
    with pytest.raises(InvalidRequest, match="Create it first") as refused:
        add_group("/marketing/web")
    assert refused.value.field == "group_id"
    assert queries.find_group(group_id="/marketing/web") is None
    add_group("/marketing")
    add_group("/marketing/web")
    assert queries.find_group(group_id="/marketing").child_count == 1  # type: ignore[union-attr]


def test_a_group_exists_once() -> None:
    with pytest.raises(Conflict) as refused:
        add_group("/engineering")
    assert refused.value.present == queries.find_group(group_id="/engineering")


def test_a_group_goes_only_when_it_is_empty() -> None:
    for group_id in ("/engineering", "/engineering/payments"):
        with pytest.raises(Conflict, match="Remove them first"):
            operations.delete_group(group_id=group_id, actor=OLGA, now=NOW)
    operations.revoke_membership(email="alice@example.com", group_id="/engineering/payments", actor=OLGA, now=NOW)
    for group_id in ("/engineering/payments", "/engineering"):
        operations.delete_group(group_id=group_id, actor=OLGA, now=NOW)
        assert queries.find_group(group_id=group_id) is None


def test_a_group_made_again_goes_on_with_its_chain() -> None:
    operations.delete_group(group_id="/eng", actor=OLGA, now=NOW)
    add_group("/eng")
    again = queries.find_group(group_id="/eng")
    assert again is not None
    assert again.version == 3
    assert audit.check_head(group_entity("/eng"), version=again.version, audit_head=again.audit_head) == []


def test_a_membership_is_given_and_taken_and_given_again() -> None:
    join("mallory@example.com", "/security", GroupRole.CONTRIBUTOR)
    assert queries.groups_of(email="mallory@example.com") == {"/security"}
    with pytest.raises(Conflict, match="as contributor"):
        join("mallory@example.com", "/security", GroupRole.ADMIN)
    operations.revoke_membership(email="Mallory@example.com", group_id="/security", actor=OLGA, now=NOW)
    assert queries.groups_of(email="mallory@example.com") == frozenset()
    join("mallory@example.com", "/security", GroupRole.ADMIN)
    mallory = queries.find_person(email="mallory@example.com")
    assert mallory is not None
    assert mallory.version == 4
    assert audit.check_head(mallory.entity, version=mallory.version, audit_head=mallory.audit_head) == []
    assert [event.action for event in audit.history(mallory.entity, newest_first=False).items] == [
        "person.created",
        "membership.granted",
        "membership.revoked",
        "membership.granted",
    ]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda: join("nobody@example.com", "/security"), NotFound),
        (lambda: join("alice@example.com", "/nowhere"), NotFound),
        (lambda: join("no address", "/security"), NotFound),
        (lambda: operations.revoke_membership(email="mallory@example.com", group_id="/security", actor=OLGA, now=NOW), NotFound),
        (lambda: operations.revoke_membership(email="alice@example.com", group_id="/engineering", actor=OLGA, now=NOW), NotFound),
        (lambda: operations.delete_group(group_id="/nowhere", actor=OLGA, now=NOW), NotFound),
        (lambda: operations.set_person_state(email="nobody@example.com", state=State.DISABLED, actor=OLGA, now=NOW), NotFound),
        (lambda: add_person("not an address"), InvalidRequest),
        (lambda: add_group("/Not/A/Path"), InvalidRequest),
    ],
)
def test_what_is_not_there_is_said(change: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        change()


@pytest.mark.parametrize(
    "change",
    [
        lambda: operations.create_person(email="m@example.com", name="M", actor=MALLORY, now=NOW),
        lambda: operations.set_person_state(email="bob@example.com", state=State.DISABLED, actor=MALLORY, now=NOW),
        lambda: operations.create_group(group_id="/mallory", name="M", description="", actor=MALLORY, now=NOW),
        lambda: operations.delete_group(group_id="/eng", actor=MALLORY, now=NOW),
        lambda: operations.grant_membership(
            email="mallory@example.com", group_id="/security", role=GroupRole.ADMIN, actor=MALLORY, now=NOW
        ),
        lambda: operations.revoke_membership(email="bob@example.com", group_id="/security", actor=MALLORY, now=NOW),
    ],
)
def test_a_stranger_changes_nothing(change: Callable[[], Any]) -> None:
    with pytest.raises(NotAllowed, match="operator"):
        change()


def test_a_race_is_decided_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else puts Mallory into the group between the read and the write: the second look finds it."""
    real = store.get_membership
    reads: list[str] = []

    def late(key: str, group_id: str) -> Any:
        seen = real(key, group_id)
        if not reads:
            reads.append(key)
            join("mallory@example.com", "/security", GroupRole.CONTRIBUTOR)
        return seen

    monkeypatch.setattr(store, "get_membership", late)
    with pytest.raises(Conflict) as refused:
        join("mallory@example.com", "/security", GroupRole.ADMIN)
    assert refused.value.code == "membership_exists"
    assert queries.find_group(group_id="/security").member_count == 2  # type: ignore[union-attr]


def test_a_group_deleted_meanwhile_gets_no_member(monkeypatch: pytest.MonkeyPatch) -> None:
    real = store.get_membership

    def late(key: str, group_id: str) -> Any:
        if queries.find_group(group_id="/eng"):
            operations.delete_group(group_id="/eng", actor=OLGA, now=NOW)
        return real(key, group_id)

    monkeypatch.setattr(store, "get_membership", late)
    with pytest.raises(NotFound):
        join("mallory@example.com", "/eng")
    monkeypatch.undo()
    add_group("/eng")
    assert queries.groups_of(email="mallory@example.com") == frozenset()
