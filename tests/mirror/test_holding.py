"""Memberships for the workflow: a proof is given only when table and Cognito both have it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from accessportal.directory import queries
from accessportal.directory.models import DirectoryItem, person_key
from accessportal.directory.states import PERMANENT, GroupRole, State
from accessportal.kernel.actors import system
from accessportal.kernel.errors import Conflict
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.mirror import operations as mirror
from accessportal.store.transactions import Guard
from tests.mirror.world import ALICE, BOB, PAYMENTS, World


def claims_of(email: str, group_id: str) -> list[str]:
    found = queries.find_membership(email=email, group_id=group_id)
    return [claim.claim_id for claim in found.claims] if found else []


def test_held_and_released_with_proof(world: World) -> None:
    held = world.hold()
    assert isinstance(held, Proof)
    assert (held.is_present, held.kept_by) == (True, ())
    assert held.called_at is not None
    assert world.is_in(ALICE, "/security:reader")
    world.check()
    again = world.hold()
    assert isinstance(again, Proof)
    assert again.called_at is None, "no call was needed"

    released = world.release()
    assert isinstance(released, Proof)
    assert (released.is_present, released.kept_by) == (False, ())
    assert not world.is_in(ALICE, "/security:reader")
    assert isinstance(world.release(), Proof), "repeating it is harmless"
    world.check()


def test_a_permanent_membership_stays_with_its_own_role(world: World) -> None:
    world.hold(ALICE, PAYMENTS, GroupRole.ADMIN)
    assert world.is_in(ALICE, f"{PAYMENTS}:admin")
    released = world.release(ALICE, PAYMENTS)
    assert isinstance(released, Proof)
    assert (released.is_present, released.kept_by) == (True, (PERMANENT,))
    assert world.is_in(ALICE, f"{PAYMENTS}:contributor")
    assert not world.is_in(ALICE, f"{PAYMENTS}:admin")
    world.check()


def test_past_its_end_a_claim_gives_nothing_even_before_it_is_released(world: World) -> None:
    world.hold()
    world.clock.advance(3600)
    comparison = mirror.compare_mirror(apply=True, actor=system("mirror"), clock=world.clock)
    assert [one.differences for one in comparison.differences] == [("still in /security:reader",)]
    assert not world.is_in(ALICE, "/security:reader")


@pytest.mark.parametrize("fault", ["cognito_throttle", "cognito_server_error", "cognito_lose_answer"])
def test_without_cognito_there_is_no_proof(world: World, fault: str) -> None:
    world.twin.settings.change({fault: 1.0})
    waiting = world.hold()
    assert isinstance(waiting, Waiting)
    assert (waiting.code, waiting.is_error) == ("mirror_failed", True)
    assert claims_of(ALICE, "/security") == ["request-1"], "it is written first"
    world.twin.settings.change({fault: 0.0})
    assert isinstance(world.hold(), Proof)

    world.twin.settings.change({fault: 1.0})
    assert isinstance(world.release(), Waiting)
    assert claims_of(ALICE, "/security") == []
    world.twin.settings.change({fault: 0.0})
    assert isinstance(world.release(), Proof)
    assert not world.is_in(ALICE, "/security:reader")
    world.check()


@pytest.mark.parametrize(
    ("break_it", "code"),
    [
        (lambda w: w.delete_person(ALICE), "person_not_found"),
        (lambda w: w.set_person(ALICE, State.DISABLED), "person_disabled"),
        (lambda w: w.set_group("/security", State.DISABLED), "group_disabled"),
    ],
)
def test_what_can_not_be_held_says_why(world: World, break_it: Any, code: str) -> None:
    break_it(world)
    waiting = world.hold()
    assert isinstance(waiting, Waiting)
    assert (waiting.code, waiting.is_error) == (code, True)
    assert claims_of(ALICE, "/security") == []


def test_a_group_that_is_not_there_can_not_be_held(world: World) -> None:
    waiting = world.hold(group_id="/nowhere")
    assert isinstance(waiting, Waiting)
    assert waiting.code == "group_not_found"


@pytest.mark.parametrize(
    ("break_it", "code"),
    [
        (lambda w: w.set_person(ALICE, State.DISABLED), "person_disabled"),
        (lambda w: w.set_group("/security", State.DISABLED), "group_disabled"),
    ],
)
def test_what_is_held_and_gives_nothing_is_no_proof(world: World, break_it: Any, code: str) -> None:
    world.hold()
    break_it(world)
    waiting = world.hold()
    assert isinstance(waiting, Waiting)
    assert waiting.code == code


def test_released_for_somebody_or_a_group_that_is_gone(world: World) -> None:
    world.hold()
    world.delete_person(ALICE)
    for proof in (world.release(), world.release(BOB, "/nowhere"), world.release("nobody@example.com")):
        assert isinstance(proof, Proof)
        assert not proof.is_present
    world.check()


def test_nothing_is_claimed_when_a_guard_does_not_hold(world: World) -> None:
    pk, sk = person_key(BOB)
    guard = Guard(DirectoryItem, pk, DirectoryItem.state == "gone", sk)
    with pytest.raises(Conflict):
        mirror.hold_membership(
            email=ALICE,
            group_id="/security",
            role=GroupRole.READER,
            claim="request-1",
            ends_at=world.clock.now() + timedelta(hours=1),
            guards=[guard],
            actor=system("worker"),
            clock=world.clock,
        )
    assert claims_of(ALICE, "/security") == []
    world.check()


def test_without_a_pool_the_table_is_the_proof(world: World) -> None:
    mirror.configure(mirror.MirrorSettings())
    assert isinstance(world.hold(), Proof)
    assert claims_of(ALICE, "/security") == ["request-1"]
    assert not world.is_in(ALICE, "/security:reader")
    released = world.release()
    assert isinstance(released, Proof)
    assert not released.is_present
