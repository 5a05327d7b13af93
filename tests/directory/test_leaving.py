"""What a group's admin does to people outside their group: nothing that these can't see and undo."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from accessportal.audit import queries as audit
from accessportal.directory import operations, queries
from accessportal.directory.operations.claims import add_claim, remove_claim
from accessportal.directory.states import Claim, GroupRole, GroupVerb, State
from accessportal.kernel.actors import person
from accessportal.kernel.errors import Conflict, NotAllowed, NotFound
from tests.directory.conftest import NOW, OLGA, SETUP, add_group, add_person, join, table

ALICE, BOB, MALLORY = person("alice@example.com"), person("bob@example.com"), person("mallory@example.com")
PAYMENTS = "/engineering/payments"

pytestmark = pytest.mark.usefixtures("directory")


def put(email: str, group_id: str = PAYMENTS, role: GroupRole = GroupRole.READER, **by: Any) -> None:
    operations.grant_membership(email=email, group_id=group_id, role=role, actor=by.get("by", ALICE), now=NOW)


def leave(actor: Any, group_id: str = PAYMENTS) -> Any:
    return operations.leave_group(group_id=group_id, actor=actor, now=NOW)


def groups(email: str) -> frozenset[str]:
    return queries.groups_of(email=email, now=NOW)


class TestLeaving:
    def test_people_leave_what_a_groups_admin_put_them_into(self) -> None:
        put("bob@example.com")
        assert queries.may(verb=GroupVerb.LEAVE, group=queries.find_group(group_id=PAYMENTS), actor=BOB, now=NOW).allowed
        leave(BOB)
        assert groups("bob@example.com") == {"/", "/security"}
        (told,) = audit.history("person#bob@example.com", limit=1).items
        assert (told.action, told.actor, told.scope, told.data["reason"]) == (
            "user.revoked",
            "bob@example.com",
            PAYMENTS,
            "left by themselves",
        )
        assert audit.find_breaks("person#bob@example.com") == []
        found = queries.find_group(group_id=PAYMENTS)
        assert found is not None
        assert found.member_count == 1

    def test_whoever_leaves_the_last_group_stays_in_the_directory(self) -> None:
        operations.create_person(email="nina@example.com", name="Nina", group_id=PAYMENTS, role=GroupRole.READER, actor=ALICE, now=NOW)
        leave(person("nina@example.com"))
        assert groups("nina@example.com") == frozenset()
        found = queries.find_person(email="nina@example.com")
        assert found is not None
        assert found.is_enabled

    @pytest.mark.parametrize("by_request", [False, True])
    def test_no_groups_admin_deletes_by_adding_and_removing(self, *, by_request: bool) -> None:
        operations.create_person(email="nina@example.com", name="Nina", group_id=PAYMENTS, role=GroupRole.READER, actor=ALICE, now=NOW)
        leave(person("nina@example.com"))
        claim = Claim("r-1", GroupRole.READER, ends_at=NOW + timedelta(hours=1))
        if by_request:
            add_claim(email="nina@example.com", group_id="/security", claim=claim, guards=(), actor=SETUP, now=NOW)
        put("nina@example.com")
        if by_request:
            remove_claim(email="nina@example.com", group_id="/security", claim_id="r-1", actor=SETUP, now=NOW)
        operations.revoke_membership(email="nina@example.com", group_id=PAYMENTS, actor=ALICE, now=NOW)
        assert queries.find_person(email="nina@example.com") is not None

    @pytest.mark.parametrize("by", [OLGA, SETUP], ids=["an admin of the root", "the portal"])
    def test_what_the_company_gave_stays(self, by: Any) -> None:
        put("bob@example.com", by=by)
        with pytest.raises(NotAllowed) as refused:
            leave(BOB)
        assert refused.value.code == "kept_in_group"
        assert PAYMENTS in groups("bob@example.com")

    def test_what_another_program_gave_stays(self) -> None:
        item = {"pk": "U:bob@example.com", "sk": f"G:{PAYMENTS}", "role": "reader", "createdAt": "2022-08-10T23:55:20.322Z"}
        table().put_item(Item=item)
        with pytest.raises(NotAllowed):
            leave(BOB)

    def test_what_a_request_gave_is_not_left(self) -> None:
        claim = Claim("r-1", GroupRole.READER, ends_at=NOW.replace(year=2027))
        add_claim(email="bob@example.com", group_id=PAYMENTS, claim=claim, guards=(), actor=SETUP, now=NOW)
        with pytest.raises(NotAllowed) as refused:
            leave(BOB)
        assert refused.value.code == "not_in_group"
        put("bob@example.com", role=GroupRole.CONTRIBUTOR)
        leave(BOB)
        held = queries.find_membership(email="bob@example.com", group_id=PAYMENTS)
        assert held is not None
        assert [one.claim_id for one in held.claims] == ["r-1"]

    @pytest.mark.parametrize(("actor", "group_id"), [(MALLORY, PAYMENTS), (BOB, "/nowhere"), (SETUP, PAYMENTS)])
    def test_nobody_leaves_where_they_are_not(self, actor: Any, group_id: str) -> None:
        with pytest.raises((NotAllowed, NotFound)):
            leave(actor, group_id)

    def test_a_disabled_group_can_be_left(self) -> None:
        put("bob@example.com")
        operations.set_group_state(group_id=PAYMENTS, state=State.DISABLED, actor=OLGA, now=NOW)
        leave(BOB)
        assert queries.find_membership(email="bob@example.com", group_id=PAYMENTS) is None

    def test_the_last_admin_of_the_root_stays(self) -> None:
        put("alice@example.com", "/", GroupRole.ADMIN, by=OLGA)
        operations.revoke_membership(email="olga@example.com", group_id="/", actor=ALICE, now=NOW)
        with pytest.raises((NotAllowed, Conflict)):
            leave(ALICE, "/")


class TestWhatAnAdminSees:
    @pytest.fixture
    def spread(self, directory: None) -> None:
        """Bob is in ``/security`` and, by Alice, in her group and in one below it."""
        add_group(f"{PAYMENTS}/cards")
        add_group("/security/lab")
        join("bob@example.com", "/security/lab", GroupRole.ADMIN)
        put("bob@example.com")
        put("bob@example.com", f"{PAYMENTS}/cards")

    @pytest.mark.usefixtures("spread")
    def test_their_own_part_of_the_tree_alone(self) -> None:
        why = queries.explain_person(email="bob@example.com", actor=ALICE, now=NOW)
        assert [one.membership.group_id for one in why.direct] == [PAYMENTS, f"{PAYMENTS}/cards"]
        assert why.groups == {"/", "/engineering", PAYMENTS, f"{PAYMENTS}/cards"}
        assert why.inherited == ()
        assert not why.is_whole
        assert "security" not in repr(why)

    @pytest.mark.usefixtures("spread")
    @pytest.mark.parametrize("actor", [OLGA, BOB, SETUP], ids=["an admin of the root", "themselves", "the portal"])
    def test_these_see_everything(self, actor: Any) -> None:
        why = queries.explain_person(email="bob@example.com", actor=actor, now=NOW)
        assert why.is_whole
        assert {one.membership.group_id for one in why.direct} == {"/security", "/security/lab", PAYMENTS, f"{PAYMENTS}/cards"}

    def test_a_reader_of_the_same_group_sees_nobody(self) -> None:
        put("bob@example.com")
        with pytest.raises(NotFound):
            queries.explain_person(email="alice@example.com", actor=BOB, now=NOW)


def test_people_are_told_who_put_them_where() -> None:
    add_person("nina@example.com", "/eng", GroupRole.READER)
    put("nina@example.com")
    later = NOW.replace(day=20)
    told = queries.put_into(email="nina@example.com", since=NOW.replace(microsecond=0), book=queries.Book())
    assert {(one.group_id, claim.given_by) for one, claim in told} == {("/eng", "olga@example.com"), (PAYMENTS, "alice@example.com")}
    assert queries.put_into(email="nina@example.com", since=later, book=queries.Book()) == ()
    assert queries.put_into(email="mallory@example.com", since=NOW, book=queries.Book()) == ()
