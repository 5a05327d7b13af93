"""Who is in which group, who may see and do what there, and what asking costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from unittest import mock

import pytest
from pynamodb.connection import Connection

from accessportal.directory import operations, queries
from accessportal.directory.models import DirectoryItem
from accessportal.directory.operations.claims import add_claim
from accessportal.directory.queries import book
from accessportal.directory.states import PERMANENT, Claim, GroupRole, GroupVerb, State
from accessportal.directory.store.reading import every_group
from accessportal.kernel.actors import Actor, Role, person
from accessportal.kernel.errors import InvalidRequest, NotAllowed, NotFound, Unavailable
from accessportal.kernel.pages import every
from tests.directory.conftest import NOW, OLGA, SEED_TIME, SETUP, add_group, join, table


def _disable_group(group_id: str) -> None:
    table().update_item(
        Key={"pk": f"G:{group_id}", "sk": f"G:{group_id}"},
        UpdateExpression="SET #s = :s",
        ExpressionAttributeNames={"#s": "state"},
        ExpressionAttributeValues={":s": "disabled"},
    )


def _delete_group_item(group_id: str) -> None:
    """As the seed's own "Delete a group" does, leaving members and groups below."""
    table().delete_item(Key={"pk": f"G:{group_id}", "sk": f"G:{group_id}"})


def _emails(*groups: str, users: tuple[str, ...] = ()) -> list[str]:
    return [person.key for person in queries.Book().crowd(queries.Named(groups=groups, users=users), now=NOW).people]


@pytest.mark.usefixtures("directory")
class TestGroupsOf:
    def test_every_group_above_counts(self) -> None:
        assert queries.groups_of(email="Alice@Example.COM", now=NOW) == {"/", "/engineering", "/engineering/payments"}
        assert queries.groups_of(email="mallory@example.com", now=NOW) == frozenset()

    @pytest.mark.parametrize("email", ["nobody@example.com", "", "no address", "x" * 5000, "\ud800@example.com"])
    def test_nobody_is_in_no_group(self, email: str) -> None:
        assert queries.groups_of(email=email, now=NOW) == frozenset()
        assert queries.find_person(email=email) is None

    def test_a_deleted_group_above_takes_nothing_from_the_one_below(self) -> None:
        _delete_group_item("/engineering")
        assert queries.groups_of(email="alice@example.com", now=NOW) == {"/", "/engineering/payments"}
        assert queries.Book().crowd(queries.Named(groups=("/engineering",)), now=NOW).missing_groups == ("/engineering",)
        assert _emails("/engineering") == []
        assert _emails("/engineering/payments") == ["alice@example.com"]

    def test_a_membership_in_a_group_that_is_gone_or_disabled_counts_nowhere(self) -> None:
        _disable_group("/engineering/payments")
        assert queries.groups_of(email="alice@example.com", now=NOW) == frozenset()
        assert _emails("/engineering") == []
        _delete_group_item("/engineering/payments")
        assert queries.groups_of(email="alice@example.com", now=NOW) == frozenset()
        assert _emails("/engineering") == []

    def test_no_answer_is_not_an_empty_answer(self) -> None:
        table().delete()
        with pytest.raises(Unavailable):
            queries.groups_of(email="alice@example.com", now=NOW)
        with pytest.raises(Unavailable):
            queries.Book().crowd(queries.Named(groups=("/engineering",)), now=NOW)
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
        assert queries.Book().crowd(queries.Named(groups=("/eng",)), now=NOW).missing_groups == ()

    def test_unknown_groups_are_named(self) -> None:
        crowd = queries.Book().crowd(queries.Named(groups=("/nowhere", "Not A Path", "/security")), now=NOW)
        assert crowd.missing_groups == ("/nowhere", "Not A Path")
        assert [person.key for person in crowd.people] == ["bob@example.com"]

    def test_disabled_people_are_not_there(self) -> None:
        operations.set_person_state(email="bob@example.com", state=State.DISABLED, actor=OLGA, now=NOW)
        assert _emails("/security", users=("bob@example.com",)) == []

    def test_the_index_is_not_believed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The index still shows Mallory in ``/security``, and ``/eng`` below it; the table does not."""
        monkeypatch.setattr(book, "list_candidates", lambda _: ("mallory@example.com", "bob@example.com"))
        everything = [replace(one, ancestors=("/", "/security")) if one.group_id == "/eng" else one for one in every_group()]
        monkeypatch.setattr(book, "every_group", lambda: iter(everything))
        assert _emails("/security") == ["bob@example.com"]

    def test_whoever_can_not_be_read_stops_the_crowds_that_they_are_in_alone(self) -> None:
        claim = Claim("request-1", GroupRole.READER, ends_at=NOW + timedelta(hours=1))
        add_claim(email="mallory@example.com", group_id="/security", claim=claim, guards=(), actor=SETUP, now=NOW)
        key = {"pk": "U:mallory@example.com", "sk": "U:mallory@example.com"}
        table().put_item(Item={**key, "siKey1": "U", "email": "mallory@example.com", "state": "somewhere", "createdAt": SEED_TIME})
        security, engineering = queries.Named(groups=("/security",)), queries.Named(groups=("/engineering",))
        seen = queries.Book()
        seen.look_up([security, engineering])

        assert [one.key for one in seen.crowd(engineering, now=NOW).people] == ["alice@example.com"]
        with pytest.raises(Unavailable, match=r"U:mallory@example\.com"):
            seen.crowd(security, now=NOW)
        assert [one.key for one in seen.crowd(security, now=NOW + timedelta(hours=1)).people] == ["bob@example.com"]

    def test_a_membership_that_can_not_be_read_stops_the_crowds_of_its_group_alone(self) -> None:
        item = {"pk": "U:mallory@example.com", "sk": "G:/security", "siKey1": "M:/security", "role": "boss", "createdAt": SEED_TIME}
        table().put_item(Item=item)
        security, engineering = queries.Named(groups=("/security",)), queries.Named(groups=("/engineering",))
        seen = queries.Book()
        seen.look_up([security, engineering])

        assert [one.key for one in seen.crowd(engineering, now=NOW).people] == ["alice@example.com"]
        with pytest.raises(Unavailable, match=r"U:mallory@example\.com, G:/security"):
            seen.crowd(security, now=NOW)

    def test_more_than_one_page_and_one_batch(self) -> None:
        """Written as another program would, with nothing but the seed's attributes."""
        with table().batch_writer() as batch:
            for number in range(230):
                email = f"p{number:03}@example.com"
                batch.put_item(
                    {
                        "pk": f"U:{email}",
                        "sk": f"U:{email}",
                        "siKey1": "U",
                        "email": email,
                        "state": "enabled",
                        "createdAt": SEED_TIME,
                    }
                )
                batch.put_item({"pk": f"U:{email}", "sk": "G:/eng", "siKey1": "M:/eng", "role": "reader"})
        with mock.patch("accessportal.store.listing._BIG_PAGE", 100):
            assert len(_emails("/eng")) == 230


@pytest.mark.usefixtures("directory")
class TestLists:
    def test_people_page_by_page_and_by_prefix(self) -> None:
        first = queries.list_people(limit=2)
        assert [person.email for person in first.items] == ["Alice@Example.com", "bob@example.com"]
        rest = queries.list_people(limit=2, cursor=first.next_cursor)
        assert [person.email for person in rest.items] == ["mallory@example.com", "olga@example.com"]
        assert rest.next_cursor is None
        assert [person.key for person in queries.list_people(prefix=" ALI").items] == ["alice@example.com"]

    def test_a_cursor_fits_its_own_list_alone(self) -> None:
        cursor = queries.list_people(limit=1).next_cursor
        for forged in (cursor, "forged", ""):
            with pytest.raises(InvalidRequest):
                queries.list_people(prefix="b", limit=1, cursor=forged)
            with pytest.raises(InvalidRequest):
                queries.list_groups(under="/engineering", limit=1, cursor=forged)

    def test_groups_under_a_place_in_the_tree(self) -> None:
        add_group("/web", parent_id="/engineering")
        everything = every(lambda cursor: queries.list_groups(cursor=cursor, limit=1))
        assert [group.group_id for group in everything] == ["/", "/eng", "/engineering", "/engineering/payments", "/security", "/web"]
        under = every(lambda cursor: queries.list_groups(under="/engineering", cursor=cursor, limit=1))
        assert [group.group_id for group in under] == ["/engineering/payments", "/web"]
        assert queries.list_groups(under="/eng").items == ()
        with pytest.raises(InvalidRequest):
            queries.list_groups(under="eng")

    def test_the_tree(self) -> None:
        add_group("/web", parent_id="/engineering")
        found = queries.tree()
        assert found.children == {"/": ("/eng", "/engineering", "/security"), "/engineering": ("/engineering/payments", "/web")}
        assert [one.group_id for one in queries.list_child_groups(group_id="/engineering")] == ["/engineering/payments", "/web"]

    def test_members_of_one_group(self) -> None:
        join("bob@example.com", "/engineering/payments")
        pages = every(lambda cursor: queries.list_members(group_id="/engineering/payments", cursor=cursor, limit=1, actor=OLGA, now=NOW))
        assert [(one.person, one.role_at(NOW)) for one in pages] == [
            ("alice@example.com", GroupRole.ADMIN),
            ("bob@example.com", GroupRole.READER),
        ]


ALICE, BOB, MALLORY = person("alice@example.com"), person("bob@example.com"), person("mallory@example.com")
OPAL = person("opal@example.com", roles=frozenset({Role.OPERATOR}))
ANA = person("ana@example.com", roles=frozenset({Role.AUDITOR}))


@pytest.mark.usefixtures("directory")
class TestRights:
    @pytest.mark.parametrize("actor", [OLGA, ALICE, OPAL, ANA, SETUP])
    def test_who_sees_the_members(self, actor: Actor) -> None:
        assert queries.list_members(group_id="/engineering/payments", actor=actor, now=NOW).items
        for stranger in (BOB, MALLORY):
            with pytest.raises(NotAllowed):
                queries.list_members(group_id="/engineering/payments", actor=stranger, now=NOW)
        with pytest.raises(NotFound):
            queries.list_members(group_id="/nowhere", actor=actor, now=NOW)

    def test_what_may_be_done_with_a_group(self) -> None:
        group = queries.find_group(group_id="/engineering/payments")
        allowed = {
            actor.name: {verb for verb, decision in queries.verbs_on(group=group, actor=actor, now=NOW).items() if decision.allowed}
            for actor in (OLGA, ALICE, BOB, OPAL)
        }
        assert allowed == {
            "olga@example.com": set(GroupVerb) - {GroupVerb.LEAVE},
            "alice@example.com": set(GroupVerb) - {GroupVerb.LEAVE, GroupVerb.MOVE},
            "bob@example.com": set(),
            "opal@example.com": {GroupVerb.SEE_MEMBERS},
        }
        assert queries.may(verb="create_group", group=None, actor=OLGA, now=NOW).allowed
        assert not queries.may(verb="create_group", group=None, actor=ALICE, now=NOW).allowed
        assert queries.may_with_people(verb="delete", actor=OLGA, now=NOW).allowed

    def test_who_sees_a_person(self) -> None:
        join("mallory@example.com", "/engineering")
        join("bob@example.com", "/engineering", GroupRole.ADMIN)
        for actor in (ALICE, BOB, OLGA, OPAL, ANA, SETUP):
            assert queries.get_person_for(email="Alice@example.com", actor=actor, now=NOW).key == "alice@example.com"
        for email in ("alice@example.com", "nobody@example.com", "junk"):
            with pytest.raises(NotFound) as refused:
                queries.get_person_for(email=email, actor=MALLORY, now=NOW)
            assert refused.value.message == "Nobody whom you may see has this address."

    def test_disabled_people_have_no_rights(self) -> None:
        operations.set_person_state(email="alice@example.com", state=State.DISABLED, actor=OLGA, now=NOW)
        group = queries.find_group(group_id="/engineering/payments")
        assert not queries.may(verb="grant", group=group, actor=ALICE, now=NOW).allowed


@pytest.mark.usefixtures("directory")
class TestWhy:
    def test_direct_for_a_time_and_inherited(self) -> None:
        ends_at = NOW.replace(microsecond=0) + timedelta(hours=1)
        add_group("/engineering/payments/cards")
        join("bob@example.com", "/engineering/payments/cards", GroupRole.ADMIN)
        claim = Claim("r-1", GroupRole.CONTRIBUTOR, ends_at=ends_at)
        add_claim(email="bob@example.com", group_id="/engineering", claim=claim, guards=(), actor=SETUP, now=NOW)
        why = queries.explain_person(email="bob@example.com", actor=BOB, now=NOW)
        assert [(one.membership.group_id, one.role) for one in why.direct] == [
            ("/engineering", GroupRole.CONTRIBUTOR),
            ("/engineering/payments/cards", GroupRole.ADMIN),
            ("/security", GroupRole.READER),
        ]
        [given] = why.direct[0].membership.claims
        assert (given.claim_id, given.ends_at, given.given_by) == ("r-1", ends_at, "system:setup")
        [permanent] = why.direct[2].membership.claims
        assert (permanent.claim_id, permanent.ends_at, permanent.given_by) == (PERMANENT, None, "olga@example.com")
        assert [(one.group_id, one.role, one.source_id) for one in why.inherited] == [
            ("/engineering/payments", GroupRole.CONTRIBUTOR, "/engineering")
        ]
        later = queries.explain_person(email="bob@example.com", actor=BOB, now=ends_at)
        assert (later.direct[0].role, later.direct[0].reason) == (None, "Its time is up.")
        assert later.inherited == ()
        assert later.groups == {"/", "/engineering", "/engineering/payments", "/engineering/payments/cards", "/security"}

    def test_what_gives_nothing_says_why(self) -> None:
        operations.set_group_state(group_id="/security", state=State.DISABLED, actor=OLGA, now=NOW)
        assert queries.explain_person(email="bob@example.com", actor=OLGA, now=NOW).direct[0].reason == "The group is disabled."
        _delete_group_item("/security")
        assert queries.explain_person(email="bob@example.com", actor=OLGA, now=NOW).direct[0].reason == "The group does not exist any more."
        operations.set_person_state(email="bob@example.com", state=State.DISABLED, actor=OLGA, now=NOW)
        assert queries.explain_person(email="bob@example.com", actor=OLGA, now=NOW).direct[0].reason == "The person is disabled."
        with pytest.raises(NotFound):
            queries.explain_person(email="bob@example.com", actor=MALLORY, now=NOW)


@pytest.mark.usefixtures("directory")
class TestCosts:
    """What each question costs, in requests to DynamoDB."""

    @pytest.mark.parametrize(
        ("ask", "requests"),
        [
            (lambda: queries.groups_of(email="alice@example.com", now=NOW), ["Query", "BatchGetItem"]),
            (lambda: queries.find_person_with_groups(email="alice@example.com", now=NOW), ["Query", "BatchGetItem"]),
            (lambda: queries.roles_of(email="alice@example.com", now=NOW), ["Query", "BatchGetItem"]),
            (lambda: queries.role_on(email="alice@example.com", group_id="/eng", now=NOW), ["Query", "BatchGetItem"]),
            (
                lambda: queries.list_members(group_id="/engineering/payments", actor=ALICE, now=NOW),
                ["GetItem", "Query", "BatchGetItem", "Query"],
            ),
            (lambda: queries.list_members(group_id="/engineering/payments", actor=OPAL, now=NOW), ["GetItem", "Query", "Query"]),
        ],
    )
    def test_requests(self, ask: Callable[[], object], requests: list[str]) -> None:
        with mock.patch.object(Connection, "dispatch", autospec=True, side_effect=Connection.dispatch) as dispatch:
            ask()
        assert [call.args[1] for call in dispatch.call_args_list] == requests
        strong = [call for call in dispatch.call_args_list if "IndexName" not in str(call.args[2])]
        assert all("'ConsistentRead': True" in str(call.args[2]) for call in strong)

    def test_a_moved_group_costs_one_more(self) -> None:
        operations.move_group(group_id="/engineering", parent_id="/security", actor=OLGA, now=NOW)
        self.test_requests(lambda: queries.groups_of(email="alice@example.com", now=NOW), ["Query", "BatchGetItem", "BatchGetItem"])
        self.test_requests(lambda: queries.roles_of(email="alice@example.com", now=NOW), ["Query", "BatchGetItem"])


def test_the_item_class_has_the_tables_keys() -> None:
    assert (DirectoryItem.base_table_name, DirectoryItem.kind_index.Meta.index_name) == ("AccessManagement", "siKey1-pk-index")
