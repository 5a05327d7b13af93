"""Olga is admin of everything, Alice of one group; every change tells its story; nobody else may change anything."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from accessportal.audit import queries as audit
from accessportal.directory import operations, queries
from accessportal.directory.operations import memberships
from accessportal.directory.operations.claims import add_claim, remove_claim
from accessportal.directory.states import (
    PERMANENT,
    Changed,
    Claim,
    GivenRole,
    Group,
    GroupRole,
    Person,
    State,
    group_entity,
    person_entity,
    under,
)
from accessportal.directory.store.given import forget_given, list_given
from accessportal.directory.store.people import write_person
from accessportal.kernel.actors import Actor, Role, person
from accessportal.kernel.clock import whole_second
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from accessportal.kernel.lasting import FOR_A_TIME
from accessportal.mirror import operations as mirror
from tests.conftest import FakeClock
from tests.directory.conftest import NOW, OLGA, SETUP, add_group, add_person, join, table

ALICE = person("alice@example.com")
BOB = person("bob@example.com")
MALLORY = person("mallory@example.com")
OPERATOR = person("opal@example.com", roles=frozenset({Role.OPERATOR, Role.AUDITOR}))
LATER = NOW + timedelta(hours=1)

pytestmark = pytest.mark.usefixtures("directory")


def _person(email: str) -> Person:
    found = queries.find_person(email=email)
    assert found is not None
    return found


def _group(group_id: str) -> Group:
    found = queries.find_group(group_id=group_id)
    assert found is not None
    return found


def _revoke(email: str, group_id: str, *, actor: Actor = OLGA) -> Person | None:
    return operations.revoke_membership(email=email, group_id=group_id, actor=actor, now=NOW).record


def _claims(email: str, group_id: str) -> dict[str, GroupRole]:
    found = queries.find_membership(email=email, group_id=group_id)
    return {claim.claim_id: claim.role for claim in found.claims} if found else {}


def _claim_of(email: str, group_id: str, claim_id: str) -> Claim:
    found = queries.find_membership(email=email, group_id=group_id)
    claim = found.claim(claim_id) if found else None
    assert claim is not None
    return claim


def _hold(email: str, group_id: str, role: GroupRole, claim_id: str = "r-1") -> None:
    claim = Claim(claim_id, role, ends_at=LATER)
    add_claim(email=email, group_id=group_id, claim=claim, guards=(), actor=SETUP, now=NOW)


def _release(email: str, group_id: str, claim_id: str = "r-1") -> None:
    remove_claim(email=email, group_id=group_id, claim_id=claim_id, actor=SETUP, now=NOW)


def _actions(entity: str) -> list[str]:
    return [event.action for event in audit.history(entity, newest_first=False).items]


def _check_chain(one: Person | Group) -> None:
    assert audit.check_head(one.entity, version=one.version, audit_head=one.audit_head) == []


class TestPeople:
    def test_a_new_person_is_enabled_and_keeps_the_typed_address(self) -> None:
        created = operations.create_person(email=" Carol@Example.com ", name=" Carol ", actor=OLGA, now=NOW).record
        assert (created.key, created.email, created.name) == ("carol@example.com", "Carol@Example.com", "Carol")
        assert queries.find_person(email="CAROL@example.com") == created

    def test_an_address_belongs_to_one_person_whatever_its_letters(self) -> None:
        with pytest.raises(Conflict) as refused:
            operations.create_person(email="ALICE@EXAMPLE.COM", name="Other", actor=OLGA, now=NOW)
        assert refused.value.present == _person("alice@example.com")

    def test_the_first_membership_comes_with_the_person(self) -> None:
        created = operations.create_person(
            email="carol@example.com", name="Carol", group_id="/engineering/payments", role=GroupRole.READER, actor=ALICE, now=NOW
        ).record
        assert _claims("carol@example.com", "/engineering/payments") == {PERMANENT: GroupRole.READER}
        assert _group("/engineering/payments").member_count == 2
        assert _actions(created.entity) == ["user.created", "user.granted"]
        _check_chain(created)

    def test_a_group_admin_adds_people_to_their_own_group_alone(self) -> None:
        for group_id, role in ((None, None), ("/security", GroupRole.READER)):
            with pytest.raises(NotAllowed):
                operations.create_person(email="carol@example.com", name="C", group_id=group_id, role=role, actor=ALICE, now=NOW)
        with pytest.raises(InvalidRequest) as refused:
            operations.create_person(email="carol@example.com", name="C", group_id="/security", actor=OLGA, now=NOW)
        assert refused.value.field == "role"
        assert queries.find_person(email="carol@example.com") is None

    def test_a_person_is_disabled_and_enabled_again(self) -> None:
        disabled = operations.set_person_state(email="alice@example.com", state=State.DISABLED, actor=OLGA, now=NOW).record
        assert _person("alice@example.com") == disabled
        assert queries.groups_of(email="alice@example.com", now=NOW) == frozenset()
        with pytest.raises(Conflict, match="disabled already"):
            operations.set_person_state(email="alice@example.com", state=State.DISABLED, actor=OLGA, now=NOW)
        with pytest.raises(Conflict, match="Enable the person first"):
            join("alice@example.com", "/security")
        operations.set_person_state(email="alice@example.com", state=State.ENABLED, actor=OLGA, now=NOW)
        assert queries.groups_of(email="alice@example.com", now=NOW) == {"/", "/engineering", "/engineering/payments"}

    def test_a_person_is_renamed(self) -> None:
        renamed = operations.rename_person(email="alice@example.com", name=" Alice Archer ", actor=OLGA, now=NOW).record
        assert renamed.name == "Alice Archer"
        with pytest.raises(Conflict):
            operations.rename_person(email="alice@example.com", name="Alice Archer", actor=OLGA, now=NOW)
        _check_chain(_person("alice@example.com"))

    def test_a_deleted_person_leaves_no_membership_and_comes_again_with_the_old_chain(self) -> None:
        join("alice@example.com", "/security", GroupRole.ADMIN)
        operations.delete_person(email="alice@example.com", actor=OLGA, now=NOW)
        assert queries.find_person(email="alice@example.com") is None
        assert table().get_item(Key={"pk": "U:alice@example.com", "sk": "G:/security"}).get("Item") is None
        assert (_group("/security").member_count, _group("/security").admins) == (1, frozenset())
        assert _actions(person_entity("alice@example.com"))[-3:] == ["user.revoked", "user.revoked", "user.deleted"]
        add_person("alice@example.com")
        again = _person("alice@example.com")
        assert again.version == 7
        assert queries.groups_of(email="alice@example.com", now=NOW) == frozenset()
        _check_chain(again)

    def test_a_person_in_very_many_groups_is_deleted_in_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("accessportal.directory.operations.deleting.MOST_AT_ONCE", 2)
        for number in range(5):
            add_group(f"/many-{number}")
            join("bob@example.com", f"/many-{number}")
        operations.delete_person(email="bob@example.com", actor=OLGA, now=NOW)
        assert queries.find_person(email="bob@example.com") is None
        assert [_group(f"/many-{number}").member_count for number in range(5)] == [0] * 5
        assert _actions(person_entity("bob@example.com"))[-1] == "user.deleted"
        assert audit.find_breaks(person_entity("bob@example.com")) == []

    def test_a_deletion_that_was_cut_off_is_finished(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("accessportal.directory.operations.deleting.MOST_AT_ONCE", 1)
        join("bob@example.com", "/eng")
        with monkeypatch.context() as crash:
            crash.setattr("accessportal.directory.operations.deleting._finish", lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                operations.delete_person(email="bob@example.com", actor=OLGA, now=NOW)
        half = _person("bob@example.com")
        assert (half.is_deleting, half.state) == (True, State.DISABLED)
        with pytest.raises(Conflict, match="being deleted"):
            join("bob@example.com", "/engineering")
        with pytest.raises(Conflict, match="being deleted"):
            _revoke("bob@example.com", "/eng")
        operations.continue_deleting(key="alice@example.com", now=NOW)
        operations.continue_deleting(key="bob@example.com", now=NOW)
        assert queries.find_person(email="bob@example.com") is None
        assert queries.find_person(email="alice@example.com") is not None

    def test_without_a_pool_too_the_sweep_finishes_a_deletion(self, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("accessportal.directory.operations.deleting.MOST_AT_ONCE", 1)
        join("bob@example.com", "/eng")
        with monkeypatch.context() as crash:
            crash.setattr("accessportal.directory.operations.deleting._finish", lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                operations.delete_person(email="bob@example.com", actor=OLGA, now=NOW)
        clock.advance(60)
        report = mirror.sweep_mirror(clock=clock, workers=1)
        assert (report.done, report.waiting, report.failures) == (1, 0, ())
        assert queries.find_person(email="bob@example.com") is None
        assert _group("/eng").member_count == 0

    def test_signing_in_is_told_and_binds_the_identity(self) -> None:
        operations.record_sign_in(email="alice@example.com", identity="issuer#1", method="openid_connect", actor=ALICE, now=NOW)
        operations.record_sign_out(email="alice@example.com", actor=ALICE, now=NOW)
        with pytest.raises(NotAllowed) as refused:
            operations.record_sign_in(email="alice@example.com", identity="issuer#2", method="openid_connect", actor=ALICE, now=NOW)
        assert refused.value.code == "identity_differs"
        with pytest.raises(NotAllowed):
            operations.record_sign_in(email="alice@example.com", method="password", actor=MALLORY, now=NOW)
        alice = _person("alice@example.com")
        assert (alice.signed_in_at, alice.identity) == (NOW, "issuer#1")
        _check_chain(alice)


class TestGroups:
    def test_a_group_needs_the_group_above(self) -> None:
        with pytest.raises(InvalidRequest, match="Create or enable it first") as refused:
            add_group("/marketing/web")
        assert refused.value.field == "group_id"
        add_group("/marketing")
        add_group("/marketing/web")
        assert _group("/marketing").child_count == 1
        assert _group("/marketing/web").ancestors == ("/", "/marketing")

    def test_a_group_may_stand_elsewhere_than_its_path_says(self) -> None:
        add_group("/web", parent_id="/engineering")
        assert _group("/web").ancestors == ("/", "/engineering")
        with pytest.raises(InvalidRequest) as refused:
            add_group("/web/x", parent_id="Not a path")
        assert refused.value.field == "parent_id"

    @pytest.mark.parametrize(
        ("group_id", "is_allowed"),
        [
            ("/engineering/payments/cards", True),
            ("/engineering/payments/deep/below", True),
            ("/portal-operators", False),
            ("/engineering/web", False),
            ("/security/approvers", False),
            ("/nowhere/yet", False),
        ],
    )
    def test_nobody_takes_a_path_that_others_answer_for(self, group_id: str, *, is_allowed: bool) -> None:
        """Rules, the portal's own roles and other programs know a group by its path, wherever it stands."""

        def create() -> Changed[Group]:
            return operations.create_group(
                group_id=group_id, name="Ours", description="", parent_id="/engineering/payments", actor=ALICE, now=NOW
            )

        if is_allowed:
            assert create().record.parent_id == "/engineering/payments"
            return
        with pytest.raises(NotAllowed, match="may create groups below it"):
            create()
        assert queries.find_group(group_id=group_id) is None

    def test_a_group_exists_once(self) -> None:
        with pytest.raises(Conflict) as refused:
            add_group("/engineering")
        assert refused.value.present == _group("/engineering")

    def test_a_group_goes_only_when_it_is_empty(self) -> None:
        for group_id in ("/engineering", "/engineering/payments"):
            with pytest.raises(Conflict, match="Remove them first"):
                operations.delete_group(group_id=group_id, actor=OLGA, now=NOW)
        join("alice@example.com", "/security")
        _revoke("alice@example.com", "/engineering/payments")
        for group_id in ("/engineering/payments", "/engineering"):
            operations.delete_group(group_id=group_id, actor=OLGA, now=NOW)
            assert queries.find_group(group_id=group_id) is None
        assert _group("/").child_count == 2

    def test_a_group_made_again_goes_on_with_its_chain(self) -> None:
        operations.delete_group(group_id="/eng", actor=OLGA, now=NOW)
        add_group("/eng")
        assert _group("/eng").version == 3
        _check_chain(_group("/eng"))

    def test_a_group_is_renamed_disabled_and_enabled(self) -> None:
        join("mallory@example.com", "/engineering", GroupRole.ADMIN)
        operations.rename_group(group_id="/engineering/payments", name="Pay", description="Money", actor=MALLORY, now=NOW)
        operations.set_group_state(group_id="/engineering/payments", state=State.DISABLED, actor=ALICE, now=NOW)
        assert queries.groups_of(email="alice@example.com", now=NOW) == frozenset()
        with pytest.raises(NotAllowed):
            operations.set_group_state(group_id="/engineering/payments", state=State.ENABLED, actor=ALICE, now=NOW)
        with pytest.raises(Conflict, match="disabled"):
            join("bob@example.com", "/engineering/payments")
        with pytest.raises(InvalidRequest):
            add_group("/engineering/payments/cards")
        operations.set_group_state(group_id="/engineering/payments", state=State.ENABLED, actor=MALLORY, now=NOW)
        assert _group("/engineering/payments").name == "Pay"
        assert _actions(group_entity("/engineering/payments")) == ["group.created", "group.renamed", "group.disabled", "group.enabled"]
        _check_chain(_group("/engineering/payments"))

    def test_there_is_room_for_so_many_groups(self, monkeypatch: pytest.MonkeyPatch) -> None:
        table().update_item(Key={"pk": "C:groups", "sk": "C:groups"}, AttributeUpdates={"groupCount": {"Value": 3333}})
        with pytest.raises(Conflict) as refused:
            add_group("/one-more")
        assert refused.value.code == "too_many_groups"

    def test_a_tree_has_at_most_twenty_levels_below_the_root(self) -> None:
        parent = "/"
        for number in range(20):
            add_group(f"/d{number}", parent_id=parent)
            parent = f"/d{number}"
        with pytest.raises(InvalidRequest) as refused:
            add_group("/d20", parent_id=parent)
        assert refused.value.code == "group_too_deep"
        with pytest.raises(InvalidRequest, match="Choose a place further up"):
            operations.move_group(group_id="/engineering", parent_id="/d18", actor=OLGA, now=NOW)
        operations.move_group(group_id="/eng", parent_id="/d18", actor=OLGA, now=NOW)


class TestMoving:
    def test_everything_below_comes_along(self) -> None:
        add_group("/engineering/payments/cards")
        moved = operations.move_group(group_id="/engineering", parent_id="/security", actor=OLGA, now=NOW).record
        assert moved.ancestors == ("/", "/security")
        assert _group("/engineering/payments/cards").ancestors == ("/", "/security", "/engineering", "/engineering/payments")
        assert queries.groups_of(email="alice@example.com", now=NOW) == {"/", "/security", "/engineering", "/engineering/payments"}
        assert [one.group_id for one in queries.list_child_groups(group_id="/security")] == ["/engineering"]
        assert [one.group_id for one in queries.list_child_groups(group_id="/")] == ["/eng", "/security"]
        assert (_group("/").child_count, _group("/security").child_count) == (2, 1)
        _check_chain(_group("/engineering"))
        operations.move_group(group_id="/engineering", parent_id="/", actor=OLGA, now=NOW)
        assert _group("/engineering/payments/cards").ancestors == ("/", "/engineering", "/engineering/payments")

    @pytest.mark.parametrize(
        ("group_id", "parent_id", "code"),
        [
            ("/engineering", "/engineering", "group_cycle"),
            ("/engineering", "/engineering/payments", "group_cycle"),
            ("/engineering", "/", "group_not_moved"),
            ("/engineering", "/nowhere", "parent_missing"),
            ("/engineering", "Not a path", "parent_missing"),
            ("/", "/engineering", "group_is_root"),
            ("/nowhere", "/engineering", "group_not_found"),
        ],
    )
    def test_what_can_not_be_moved(self, group_id: str, parent_id: str, code: str) -> None:
        before = queries.tree()
        with pytest.raises((Conflict, InvalidRequest, NotFound, NotAllowed)) as refused:
            operations.move_group(group_id=group_id, parent_id=parent_id, actor=OLGA, now=NOW)
        assert refused.value.code == code
        assert queries.tree() == before

    def test_too_much_at_once_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("accessportal.directory.operations.moving.MOST_BELOW", 2)
        for name in "abc":
            add_group(f"/engineering/payments/{name}")
        with pytest.raises(Conflict, match="Move its parts") as refused:
            operations.move_group(group_id="/engineering", parent_id="/security", actor=OLGA, now=NOW)
        assert refused.value.code == "group_too_large"

    def test_it_takes_admins_of_both_places(self) -> None:
        def move() -> None:
            operations.move_group(group_id="/engineering/payments", parent_id="/security", actor=MALLORY, now=NOW)

        join("mallory@example.com", "/engineering", GroupRole.ADMIN)
        with pytest.raises(NotAllowed, match="Only admins of /security"):
            move()
        join("mallory@example.com", "/engineering", GroupRole.READER)
        join("mallory@example.com", "/security", GroupRole.ADMIN)
        with pytest.raises(NotAllowed, match="Only admins of /engineering"):
            move()
        join("mallory@example.com", "/engineering", GroupRole.ADMIN)
        move()


class TestMemberships:
    def test_given_taken_and_given_again(self) -> None:
        join("mallory@example.com", "/eng")
        join("mallory@example.com", "/security", GroupRole.CONTRIBUTOR)
        with pytest.raises(Conflict, match="as contributor") as refused:
            join("mallory@example.com", "/security", GroupRole.CONTRIBUTOR)
        assert refused.value.code == "membership_exists"
        _revoke("Mallory@example.com", "/security")
        join("mallory@example.com", "/security", GroupRole.ADMIN)
        assert _actions(person_entity("mallory@example.com"))[1:] == ["user.granted", "user.granted", "user.revoked", "user.granted"]
        _check_chain(_person("mallory@example.com"))

    def test_a_role_is_changed_in_one_step(self) -> None:
        before = _group("/engineering/payments")
        join("alice@example.com", "/engineering/payments", GroupRole.READER)
        assert _claims("alice@example.com", "/engineering/payments") == {PERMANENT: GroupRole.READER}
        after = _group("/engineering/payments")
        assert (before.member_count, after.member_count) == (1, 1)
        assert before.admins == {"alice@example.com"}
        assert after.admins == frozenset()
        [event] = audit.history(person_entity("alice@example.com"), limit=1).items
        assert event.action == "user.role_changed"
        assert (event.data["role"], event.data["old_role"]) == ("reader", "admin")

    def test_the_last_revoke_deletes_the_person(self) -> None:
        assert _revoke("bob@example.com", "/security") is None
        assert queries.find_person(email="bob@example.com") is None
        assert _actions(person_entity("bob@example.com"))[-2:] == ["user.revoked", "user.deleted"]
        assert _group("/security").member_count == 0

    def test_somebody_who_came_into_no_group_outlasts_their_groups(self) -> None:
        """Any group's admin could delete them else, by adding and removing them."""
        operations.grant_membership(
            email="mallory@example.com", group_id="/engineering/payments", role=GroupRole.READER, actor=ALICE, now=NOW
        )

        left = _revoke("mallory@example.com", "/engineering/payments", actor=ALICE)

        assert left is not None
        assert left.is_enabled
        assert queries.find_person(email="mallory@example.com") == left
        assert _actions(person_entity("mallory@example.com")) == ["user.created", "user.granted", "user.revoked"]

    @pytest.mark.parametrize(
        ("to", "role", "wanted", "is_allowed"),
        [
            ("alice@example.com", GroupRole.READER, "/engineering/payments", True),
            ("mallory@example.com", GroupRole.ADMIN, "/engineering/payments", True),
            ("bob@example.com", GroupRole.ADMIN, "/security", False),
            ("Bob@example.com", GroupRole.READER, "/security/watch", False),
            ("mallory@example.com", GroupRole.ADMIN, "/security", False),
            ("mallory@example.com", GroupRole.ADMIN, "/security/watch", False),
            ("mallory@example.com", GroupRole.CONTRIBUTOR, "/security", True),
            ("new@example.com", GroupRole.ADMIN, "/security", False),
            ("new@example.com", GroupRole.READER, "/security/watch", False),
        ],
    )
    def test_an_admin_for_a_time_makes_nothing_last_that_outlasts_it(
        self, to: str, role: GroupRole, wanted: str, *, is_allowed: bool
    ) -> None:
        """Alice is admin of payments for good, Bob of security until his request ends; before it he only reads there."""
        add_group("/security/watch")
        _hold("bob@example.com", "/security", GroupRole.ADMIN)
        actor = ALICE if wanted == "/engineering/payments" else BOB

        def give() -> object:
            if to == "new@example.com":
                return operations.create_person(email=to, name="New", group_id=wanted, role=role, actor=actor, now=NOW)
            return operations.grant_membership(email=to, group_id=wanted, role=role, actor=actor, now=NOW)

        if is_allowed:
            give()
            later = role if actor is ALICE else None
            assert queries.role_on(email=to, group_id=wanted, now=LATER) is later, "who is admin for a time gives until then"
            return
        with pytest.raises(NotAllowed, match="only until 2026-") as refused:
            give()
        assert refused.value.code == FOR_A_TIME
        assert queries.role_on(email=to, group_id="/security", now=LATER) in {None, GroupRole.READER}

    def test_what_an_admin_for_a_time_gives_ends_with_their_right_however_that_ends(self, clock: FakeClock) -> None:
        add_group("/security/watch")
        join("alice@example.com", "/security/watch")
        _hold("bob@example.com", "/security", GroupRole.ADMIN)
        for email, group_id in (("mallory@example.com", "/security"), ("alice@example.com", "/security/watch")):
            operations.grant_membership(email=email, group_id=group_id, role=GroupRole.CONTRIBUTOR, actor=BOB, now=NOW)
        claim = _claim_of("mallory@example.com", "/security", under("r-1"))
        assert (claim.ends_at, claim.given_by) == (whole_second(LATER), "bob@example.com")
        assert _claims("alice@example.com", "/security/watch") == {PERMANENT: GroupRole.READER, under("r-1"): GroupRole.CONTRIBUTOR}

        # His request is ended long before its end.
        mirror.release_membership(email="bob@example.com", group_id="/security", claim="r-1", actor=SETUP, clock=clock)

        assert queries.find_membership(email="mallory@example.com", group_id="/security") is None
        assert _claims("alice@example.com", "/security/watch") == {PERMANENT: GroupRole.READER}
        assert list_given("r-1") == ()

    def test_what_was_given_ends_with_the_right_also_where_its_note_lost_its_words(self, clock: FakeClock) -> None:
        _hold("bob@example.com", "/security", GroupRole.ADMIN)
        operations.grant_membership(email="mallory@example.com", group_id="/security", role=GroupRole.CONTRIBUTOR, actor=BOB, now=NOW)
        note = {"pk": "R:r-1", "sk": "U:mallory@example.com G:/security"}
        table().put_item(Item=note)

        mirror.release_membership(email="bob@example.com", group_id="/security", claim="r-1", actor=SETUP, clock=clock)

        assert queries.find_membership(email="mallory@example.com", group_id="/security") is None
        assert list_given("r-1") == ()
        forget_given("r-1", GivenRole("mallory@example.com", "/security"))

    def test_nothing_is_given_with_a_right_that_is_taken_away_at_this_moment(
        self, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _hold("bob@example.com", "/security", GroupRole.ADMIN)
        write = write_person

        def taken_away_first(*args: Any, **more: Any) -> None:
            monkeypatch.setattr(memberships, "write_person", write)
            mirror.release_membership(email="bob@example.com", group_id="/security", claim="r-1", actor=SETUP, clock=clock)
            write(*args, **more)

        monkeypatch.setattr(memberships, "write_person", taken_away_first)
        with pytest.raises(NotAllowed, match="Only admins of /security"):
            operations.grant_membership(email="mallory@example.com", group_id="/security", role=GroupRole.READER, actor=BOB, now=NOW)
        assert queries.find_membership(email="mallory@example.com", group_id="/security") is None

    def test_an_admin_for_a_time_takes_away_what_ends_alone(self) -> None:
        join("alice@example.com", "/security", GroupRole.ADMIN)
        _hold("bob@example.com", "/security", GroupRole.ADMIN)
        operations.grant_membership(email="mallory@example.com", group_id="/security", role=GroupRole.READER, actor=BOB, now=NOW)

        with pytest.raises(NotAllowed, match="You are admin of /security only until"):
            operations.revoke_membership(email="alice@example.com", group_id="/security", actor=BOB, now=NOW)
        operations.revoke_membership(email="mallory@example.com", group_id="/security", actor=BOB, now=NOW)

        assert _claims("mallory@example.com", "/security") == {}
        assert queries.find_person(email="mallory@example.com") is not None

    def test_what_is_given_for_good_takes_the_place_of_what_was_given_for_a_time(self) -> None:
        _hold("bob@example.com", "/security", GroupRole.ADMIN)
        operations.grant_membership(email="mallory@example.com", group_id="/security", role=GroupRole.CONTRIBUTOR, actor=BOB, now=NOW)
        join("mallory@example.com", "/security", GroupRole.READER)
        assert _claims("mallory@example.com", "/security") == {PERMANENT: GroupRole.READER}
        with pytest.raises(Conflict, match="already, as reader"):
            operations.grant_membership(email="mallory@example.com", group_id="/security", role=GroupRole.READER, actor=BOB, now=NOW)

    def test_a_group_admin_can_not_enable_somebody_by_making_them_anew(self) -> None:
        join("bob@example.com", "/engineering/payments")
        _revoke("bob@example.com", "/security")
        operations.set_person_state(email="bob@example.com", state=State.DISABLED, actor=OLGA, now=NOW)

        left = _revoke("bob@example.com", "/engineering/payments", actor=ALICE)

        assert left is not None
        assert not left.is_enabled
        with pytest.raises(Conflict, match="in the directory already"):
            operations.create_person(
                email="bob@example.com", name="Bob", group_id="/engineering/payments", role=GroupRole.READER, actor=ALICE, now=NOW
            )
        assert queries.explain_person(email="bob@example.com", actor=OLGA, now=NOW).direct == ()
        assert _actions(person_entity("bob@example.com"))[-2:] == ["user.disabled", "user.revoked"]

    def test_a_request_never_shortens_what_an_admin_gave(self) -> None:
        _hold("bob@example.com", "/security", GroupRole.ADMIN)
        assert queries.role_on(email="bob@example.com", group_id="/security", now=NOW) is GroupRole.ADMIN
        assert queries.role_on(email="bob@example.com", group_id="/security", now=LATER) is GroupRole.READER
        _release("bob@example.com", "/security")
        _release("bob@example.com", "/security")
        assert _claims("bob@example.com", "/security") == {PERMANENT: GroupRole.READER}
        assert _group("/security").admins == frozenset()
        _check_chain(_person("bob@example.com"))

    def test_an_admin_never_takes_what_a_request_gave(self) -> None:
        _hold("bob@example.com", "/security", GroupRole.CONTRIBUTOR)
        assert _revoke("bob@example.com", "/security") is not None
        assert _claims("bob@example.com", "/security") == {"r-1": GroupRole.CONTRIBUTOR}
        with pytest.raises(Conflict, match="r-1") as refused:
            _revoke("bob@example.com", "/security")
        assert refused.value.code == "membership_temporary"
        _release("bob@example.com", "/security")
        assert queries.find_person(email="bob@example.com") is not None, "a request's end deletes nobody"
        assert _group("/security").member_count == 0

    def test_the_same_claim_is_written_once(self) -> None:
        _hold("bob@example.com", "/security", GroupRole.CONTRIBUTOR)
        version = _person("bob@example.com").version
        _hold("bob@example.com", "/security", GroupRole.CONTRIBUTOR)
        assert _person("bob@example.com").version == version

    def test_nobody_is_in_more_groups_than_cognito_holds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("accessportal.directory.operations.memberships.MOST_MEMBERSHIPS", 1)
        with pytest.raises(Conflict) as refused:
            join("bob@example.com", "/eng")
        assert refused.value.code == "too_many_memberships"
        with pytest.raises(Conflict, match="has room for"):
            _hold("bob@example.com", "/eng", GroupRole.READER)
        join("bob@example.com", "/security", GroupRole.ADMIN)

    def test_no_group_has_more_admins_than_can_be_read_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("accessportal.directory.operations.memberships.MOST_ADMINS", 1)
        with pytest.raises(Conflict) as refused:
            join("bob@example.com", "/engineering/payments", GroupRole.ADMIN)
        assert refused.value.code == "too_many_admins"
        join("bob@example.com", "/engineering/payments", GroupRole.CONTRIBUTOR)


class TestTheRootKeepsAnAdmin:
    @pytest.mark.parametrize(
        "change",
        [
            lambda: _revoke("olga@example.com", "/"),
            lambda: join("olga@example.com", "/", GroupRole.READER),
            lambda: operations.set_person_state(email="olga@example.com", state=State.DISABLED, actor=OLGA, now=NOW),
            lambda: operations.delete_person(email="olga@example.com", actor=OLGA, now=NOW),
        ],
    )
    def test_whatever_is_done(self, change: Callable[[], Any]) -> None:
        _hold("bob@example.com", "/", GroupRole.ADMIN)
        with pytest.raises(Conflict) as refused:
            change()
        assert refused.value.code == "last_root_admin"
        join("alice@example.com", "/", GroupRole.ADMIN)
        change()
        assert _group("/").standing_admins == {"alice@example.com"}
        assert "olga@example.com" not in [one.key for one in queries.Book().crowd(queries.Named(admins_of="/"), now=LATER).people]

    def test_whoever_is_enabled_again_counts_again(self) -> None:
        join("alice@example.com", "/", GroupRole.ADMIN)
        for state in (State.DISABLED, State.ENABLED):
            operations.set_person_state(email="olga@example.com", state=state, actor=ALICE, now=NOW)
        assert _group("/").standing_admins == {"alice@example.com", "olga@example.com"}

    @pytest.mark.parametrize("state", State)
    def test_the_root_is_neither_disabled_nor_deleted(self, state: State) -> None:
        with pytest.raises(NotAllowed):
            operations.set_group_state(group_id="/", state=state, actor=OLGA, now=NOW)
        with pytest.raises(NotAllowed):
            operations.delete_group(group_id="/", actor=OLGA, now=NOW)
        operations.rename_group(group_id="/", name="Acme", description="", actor=OLGA, now=NOW)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda: join("nobody@example.com", "/security"), NotFound),
        (lambda: join("alice@example.com", "/nowhere"), NotFound),
        (lambda: join("no address", "/security"), NotFound),
        (lambda: _revoke("mallory@example.com", "/security"), NotFound),
        (lambda: _revoke("alice@example.com", "/engineering"), NotFound),
        (lambda: operations.delete_group(group_id="/nowhere", actor=OLGA, now=NOW), NotFound),
        (lambda: operations.rename_group(group_id="/nowhere", name="N", description="", actor=OLGA, now=NOW), NotFound),
        (lambda: operations.set_person_state(email="nobody@example.com", state=State.DISABLED, actor=OLGA, now=NOW), NotFound),
        (lambda: operations.delete_person(email="nobody@example.com", actor=OLGA, now=NOW), NotFound),
        (lambda: _hold("nobody@example.com", "/security", GroupRole.READER), NotFound),
        (lambda: add_person("not an address"), InvalidRequest),
        (lambda: add_group("/Not/A/Path"), InvalidRequest),
        (lambda: add_group("/"), InvalidRequest),
    ],
)
def test_what_is_not_there_is_said(change: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        change()


_CHANGES: list[Callable[[Actor], Any]] = [
    lambda actor: operations.create_person(email="m@example.com", name="M", actor=actor, now=NOW),
    lambda actor: operations.create_person(email="m@example.com", name="M", group_id="/eng", role=GroupRole.READER, actor=actor, now=NOW),
    lambda actor: operations.set_person_state(email="bob@example.com", state=State.DISABLED, actor=actor, now=NOW),
    lambda actor: operations.rename_person(email="bob@example.com", name="B", actor=actor, now=NOW),
    lambda actor: operations.create_group(group_id="/mallory", name="M", description="", actor=actor, now=NOW),
    lambda actor: operations.rename_group(group_id="/eng", name="M", description="", actor=actor, now=NOW),
    lambda actor: operations.set_group_state(group_id="/eng", state=State.DISABLED, actor=actor, now=NOW),
    lambda actor: operations.move_group(group_id="/security", parent_id="/engineering", actor=actor, now=NOW),
    lambda actor: (
        operations.grant_membership(email="alice@example.com", group_id="/eng", role=GroupRole.ADMIN, actor=actor, now=NOW)
        if queries.find_group(group_id="/eng").is_enabled  # type: ignore[union-attr]
        else None
    ),
    lambda actor: operations.revoke_membership(email="bob@example.com", group_id="/security", actor=actor, now=NOW),
    lambda actor: operations.delete_group(group_id="/engineering/payments/x", actor=actor, now=NOW),
    lambda actor: operations.delete_person(email="alice@example.com", actor=actor, now=NOW),
]


@pytest.mark.parametrize("number", range(len(_CHANGES)))
def test_strangers_and_operators_change_nothing_and_root_admins_everything(number: int) -> None:
    add_group("/engineering/payments/x")
    for actor in (MALLORY, OPERATOR):
        with pytest.raises(NotAllowed, match="Only admins of"):
            _CHANGES[number](actor)
    _CHANGES[number](OLGA)
