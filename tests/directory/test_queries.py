"""Who is in which group: the same answer from both ends, whatever the tree looks like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import boto3
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pynamodb.connection import Connection

from accessportal.directory import operations, policy, queries
from accessportal.directory.models import DirectoryItem
from accessportal.directory.states import Membership, State
from accessportal.kernel.errors import InvalidRequest, Unavailable
from accessportal.kernel.pages import every
from tests.directory.conftest import NOW, OLGA, PREFIX, add_group, add_person, join


def _table() -> Any:
    return boto3.resource("dynamodb", region_name="eu-central-1").Table(f"{PREFIX}AccessManagement")


def _disable_group(group_id: str) -> None:
    _table().update_item(
        Key={"pk": f"G:{group_id}", "sk": f"G:{group_id}"},
        UpdateExpression="SET #s = :s",
        ExpressionAttributeNames={"#s": "state"},
        ExpressionAttributeValues={":s": "disabled"},
    )


def _delete_group_item(group_id: str) -> None:
    """As the seed's own "Delete a group" does, leaving members and groups below."""
    _table().delete_item(Key={"pk": f"G:{group_id}", "sk": f"G:{group_id}"})


def _emails(*groups: str, users: tuple[str, ...] = ()) -> list[str]:
    return [person.key for person in queries.people_in(groups=groups, users=users).people]


@pytest.mark.usefixtures("directory")
class TestGroupsOf:
    def test_every_group_above_counts(self) -> None:
        assert queries.groups_of(email="Alice@Example.COM") == {"/engineering", "/engineering/payments"}
        assert queries.groups_of(email="mallory@example.com") == frozenset()

    @pytest.mark.parametrize("email", ["nobody@example.com", "", "no address", "x" * 5000, "\ud800@example.com"])
    def test_nobody_is_in_no_group(self, email: str) -> None:
        assert queries.groups_of(email=email) == frozenset()
        assert queries.find_person(email=email) is None

    def test_a_deleted_group_above_takes_nothing_from_the_one_below(self) -> None:
        _delete_group_item("/engineering")
        assert queries.groups_of(email="alice@example.com") == {"/engineering/payments"}
        assert queries.people_in(groups=["/engineering"]).missing_groups == ("/engineering",)
        assert _emails("/engineering") == []
        assert _emails("/engineering/payments") == ["alice@example.com"]

    def test_a_membership_in_a_group_that_is_gone_or_disabled_counts_nowhere(self) -> None:
        _disable_group("/engineering/payments")
        assert queries.groups_of(email="alice@example.com") == frozenset()
        assert _emails("/engineering") == []
        _delete_group_item("/engineering/payments")
        assert queries.groups_of(email="alice@example.com") == frozenset()
        assert _emails("/engineering") == []

    def test_it_costs_two_requests(self) -> None:
        with mock.patch.object(Connection, "dispatch", autospec=True, side_effect=Connection.dispatch) as dispatch:
            queries.groups_of(email="alice@example.com")
        assert [call.args[1] for call in dispatch.call_args_list] == ["Query", "BatchGetItem"]
        assert all(
            '"ConsistentRead": true' in str(call.args[2]).replace("'", '"').replace("True", "true") for call in dispatch.call_args_list
        )

    def test_no_answer_is_not_an_empty_answer(self) -> None:
        _table().delete()
        with pytest.raises(Unavailable):
            queries.groups_of(email="alice@example.com")
        with pytest.raises(Unavailable):
            queries.people_in(groups=["/engineering"])
        with pytest.raises(Unavailable):
            queries.find_group(group_id="/engineering")


@pytest.mark.usefixtures("directory")
class TestPeopleIn:
    def test_everybody_below_and_single_users(self) -> None:
        assert _emails("/engineering") == ["alice@example.com"]
        assert _emails("/engineering", "/security", users=("MALLORY@example.com", "nobody@example.com", "junk")) == [
            "alice@example.com",
            "bob@example.com",
            "mallory@example.com",
        ]
        assert _emails() == []

    def test_a_like_named_group_is_another_tree(self) -> None:
        assert _emails("/eng") == []
        assert queries.people_in(groups=["/eng"]).missing_groups == ()

    def test_unknown_groups_are_named(self) -> None:
        crowd = queries.people_in(groups=["/nowhere", "/", "Not A Path", "/security"])
        assert crowd.missing_groups == ("/", "/nowhere", "Not A Path")
        assert [person.key for person in crowd.people] == ["bob@example.com"]

    def test_disabled_people_are_not_there(self) -> None:
        operations.set_person_state(email="bob@example.com", state=State.DISABLED, actor=OLGA, now=NOW)
        assert _emails("/security", users=("bob@example.com",)) == []

    def test_the_index_is_not_believed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The index still shows Mallory in ``/security``; the table does not."""
        stale = queries.list_members(group_id="/security").items[0]
        ghost = Membership(person="mallory@example.com", group_id="/security", role=stale.role)

        def lagging(group_id: str) -> Iterator[Membership]:
            yield from (ghost, stale)

        monkeypatch.setattr("accessportal.directory.store.every_member", lagging)
        assert _emails("/security") == ["bob@example.com"]

    def test_more_than_one_page_and_one_batch(self) -> None:
        """Written as another program would, with nothing but the seed's attributes."""
        with _table().batch_writer() as batch:
            for number in range(230):
                email = f"p{number:03}@example.com"
                batch.put_item(
                    {
                        "pk": f"U:{email}",
                        "sk": f"U:{email}",
                        "siKey1": "U",
                        "email": email,
                        "state": "enabled",
                        "createdAt": "2022-08-10T23:55:20.322Z",
                    }
                )
                batch.put_item({"pk": f"U:{email}", "sk": "G:/eng", "siKey1": "M:/eng", "role": "reader"})
        with mock.patch("accessportal.directory.store._BIG_PAGE", 100):
            assert len(_emails("/eng")) == 230


@pytest.mark.usefixtures("directory")
class TestLists:
    def test_people_page_by_page_and_by_prefix(self) -> None:
        first = queries.list_people(limit=2)
        assert [person.email for person in first.items] == ["Alice@Example.com", "bob@example.com"]
        rest = queries.list_people(limit=2, cursor=first.next_cursor)
        assert [person.email for person in rest.items] == ["mallory@example.com"]
        assert rest.next_cursor is None
        assert [person.key for person in queries.list_people(prefix=" ALI").items] == ["alice@example.com"]

    def test_a_cursor_fits_its_own_list_alone(self) -> None:
        cursor = queries.list_people(limit=1).next_cursor
        for forged in (cursor, "forged", ""):
            with pytest.raises(InvalidRequest):
                queries.list_people(prefix="b", limit=1, cursor=forged)

    def test_groups_under_a_path(self) -> None:
        everything = every(lambda cursor: queries.list_groups(cursor=cursor, limit=1))
        assert [group.group_id for group in everything] == ["/eng", "/engineering", "/engineering/payments", "/security"]
        assert [group.group_id for group in queries.list_groups(under="/engineering").items] == ["/engineering/payments"]
        assert queries.list_groups(under="/eng").items == ()
        with pytest.raises(InvalidRequest):
            queries.list_groups(under="eng")

    def test_members_of_one_group(self) -> None:
        join("bob@example.com", "/engineering/payments")
        pages = every(lambda cursor: queries.list_members(group_id="/engineering/payments", cursor=cursor, limit=1))
        assert [(member.person, member.role.value) for member in pages] == [("alice@example.com", "admin"), ("bob@example.com", "reader")]


_PATHS = ["/a", "/a/b", "/a/b/c", "/a/bc", "/ab", "/ab/c"]
_PEOPLE = [f"{name}@example.com" for name in ("alice", "bob", "carol")]


@pytest.fixture
def full_tree(empty_directory: None) -> None:
    for email in _PEOPLE:
        add_person(email)
    for group_id in _PATHS:
        add_group(group_id)
    for email in _PEOPLE:
        for group_id in _PATHS:
            join(email, group_id)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    member_of=st.sets(st.tuples(st.sampled_from(_PEOPLE), st.sampled_from(_PATHS))),
    gone=st.sets(st.sampled_from(_PATHS)),
    disabled=st.sets(st.sampled_from([*_PATHS, *_PEOPLE])),
    asked=st.sets(st.sampled_from(_PATHS)),
)
def test_both_ends_agree(full_tree: None, member_of: set[tuple[str, str]], gone: set[str], disabled: set[str], asked: set[str]) -> None:
    """People_in(groups) are exactly those enabled people of whose groups_of one is asked; and both follow the plain definition."""
    _arrange(member_of, gone, disabled)
    standing = set(_PATHS) - gone - disabled
    expected = {
        email: {above for who, group_id in member_of if who == email and group_id in standing for above in policy.with_ancestors(group_id)}
        & standing
        if email not in disabled
        else set()
        for email in _PEOPLE
    }
    assert {email: set(queries.groups_of(email=email)) for email in _PEOPLE} == expected
    crowd = queries.people_in(groups=asked)
    assert {person.key for person in crowd.people} == {email for email, groups in expected.items() if groups & asked}
    assert set(crowd.missing_groups) == asked - standing


def _arrange(member_of: set[tuple[str, str]], gone: set[str], disabled: set[str]) -> None:
    """Write the wanted tree over what is there, as raw items: the operations would (rightly) refuse some of these."""
    with _table().batch_writer() as batch:
        for email in _PEOPLE:
            state = "disabled" if email in disabled else "enabled"
            batch.put_item(
                {
                    "pk": f"U:{email}",
                    "sk": f"U:{email}",
                    "siKey1": "U",
                    "email": email,
                    "state": state,
                    "createdAt": "2022-08-10T23:55:20.322Z",
                }
            )
            for group_id in _PATHS:
                key = {"pk": f"U:{email}", "sk": f"G:{group_id}"}
                if (email, group_id) in member_of:
                    batch.put_item({**key, "siKey1": f"M:{group_id}", "role": "reader"})
                else:
                    batch.delete_item(key)
        for group_id in _PATHS:
            key = {"pk": f"G:{group_id}", "sk": f"G:{group_id}"}
            if group_id in gone:
                batch.delete_item(key)
            else:
                batch.put_item({**key, "siKey1": "G", "id": group_id, "state": "disabled" if group_id in disabled else "enabled"})


def test_the_item_class_has_the_tables_keys() -> None:
    assert (DirectoryItem.base_table_name, DirectoryItem.kind_index.Meta.index_name) == ("AccessManagement", "siKey1-pk-index")
