"""The crash table: for every write and every outside call of every operation, the process dies right before it and right after it.
The person does the same again, the sweep comes, and table and Cognito are equal, with every chain whole and no event lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from accessportal.audit import queries as audit
from accessportal.directory.operations import deleting
from accessportal.directory.states import GroupRole, State
from accessportal.kernel.errors import Conflict, NotFound
from accessportal.kernel.proofs import Proof
from tests.conftest import FakeClock
from tests.crashing import MOMENTS, Killed, Process, living
from tests.fixtures_twin import Twin
from tests.mirror import mirrored
from tests.mirror.world import ALICE, BOB, MALLORY, PAYMENTS, World

_READS = frozenset({"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"}) | frozenset(
    {"AdminGetUser", "AdminListGroupsForUser", "GetGroup", "ListUsers", "ListGroups", "ListUsersInGroup", "ListUserPools"}
)

_SHARES = 4


@dataclass(frozen=True)
class Case:
    """What is done, what was done before, and which events it must have left, each once: (entity, action)."""

    name: str
    do: Callable[[World], object]
    events: tuple[tuple[str, str], ...]
    before: Callable[[World], object] = lambda _world: None
    least_steps: int = 3


def held(world: World) -> None:
    assert isinstance(world.hold(), Proof)


def in_many_groups(world: World) -> None:
    """More than the two that are deleted in one transaction here."""
    for number in range(5):
        world.create_group(f"/g{number:02}")
        world.grant(MALLORY, f"/g{number:02}")


CASES = (
    Case("create_person", lambda w: w.create_person("new@example.com"), (("person#new@example.com", "user.created"),)),
    Case(
        "create_person_in_group",
        lambda w: w.create_person("new@example.com", PAYMENTS, GroupRole.ADMIN),
        (("person#new@example.com", "user.created"), ("person#new@example.com", "user.granted")),
    ),
    Case("rename_person", lambda w: w.rename_person(ALICE, "Alice Archer"), ((f"person#{ALICE}", "user.renamed"),)),
    Case("disable_person", lambda w: w.set_person(ALICE, State.DISABLED), ((f"person#{ALICE}", "user.disabled"),)),
    Case(
        "enable_person",
        lambda w: w.set_person(ALICE, State.ENABLED),
        ((f"person#{ALICE}", "user.enabled"),),
        before=lambda w: w.set_person(ALICE, State.DISABLED),
    ),
    Case("delete_person", lambda w: w.delete_person(ALICE), ((f"person#{ALICE}", "user.deleted"),)),
    Case(
        "delete_person_in_parts",
        lambda w: w.delete_person(MALLORY),
        ((f"person#{MALLORY}", "user.disabled"), (f"person#{MALLORY}", "user.deleted")),
        before=in_many_groups,
    ),
    Case("create_group", lambda w: w.create_group("/sales"), (("group#/sales", "group.created"),), least_steps=5),
    Case("rename_group", lambda w: w.rename_group(PAYMENTS), ((f"group#{PAYMENTS}", "group.renamed"),), least_steps=1),
    Case("move_group", lambda w: w.move_group(PAYMENTS, "/security"), ((f"group#{PAYMENTS}", "group.moved"),), least_steps=1),
    Case("disable_group", lambda w: w.set_group(PAYMENTS, State.DISABLED), ((f"group#{PAYMENTS}", "group.disabled"),), least_steps=5),
    Case(
        "enable_group",
        lambda w: w.set_group(PAYMENTS, State.ENABLED),
        ((f"group#{PAYMENTS}", "group.enabled"),),
        before=lambda w: w.set_group(PAYMENTS, State.DISABLED),
        least_steps=8,
    ),
    Case(
        "delete_group",
        lambda w: w.delete_group("/sales"),
        (("group#/sales", "group.deleted"),),
        before=lambda w: w.create_group("/sales"),
        least_steps=5,
    ),
    Case("grant", lambda w: w.grant(MALLORY, PAYMENTS), ((f"person#{MALLORY}", "user.granted"),)),
    Case("change_role", lambda w: w.grant(ALICE, PAYMENTS, GroupRole.ADMIN), ((f"person#{ALICE}", "user.role_changed"),), least_steps=4),
    Case(
        "revoke",
        lambda w: w.revoke(ALICE, PAYMENTS),
        ((f"person#{ALICE}", "user.revoked"),),
        before=lambda w: w.grant(ALICE, "/security"),
    ),
    Case(
        "revoke_the_last", lambda w: w.revoke(ALICE, PAYMENTS), ((f"person#{ALICE}", "user.revoked"), (f"person#{ALICE}", "user.deleted"))
    ),
    Case("hold", lambda w: w.hold(), ((f"person#{ALICE}", "user.granted"),)),
    Case("release", lambda w: w.release(), ((f"person#{ALICE}", "user.revoked"),), before=held),
    Case(
        "release_beside_a_permanent_one",
        lambda w: w.release(BOB, claim="request-2"),
        ((f"person#{BOB}", "user.revoked"),),
        before=lambda w: w.hold(BOB, claim="request-2"),
    ),
)


def survive(process: Process, action: Callable[[], object]) -> None:
    """What a person does whose page broke: the same again. That it was done already is as good."""
    try:
        action()
    except Killed:
        process.reboot()
        try:
            action()
        except (Conflict, NotFound):
            return


def settle(world: World, process: Process, where: str) -> None:
    for _ in range(8):
        try:
            world.sweep()
        except Killed:
            process.reboot()
        if not mirrored.pending():
            return
        world.clock.advance(301)
    raise AssertionError(f"{where}: still pending: {mirrored.pending()}")


def events_of(entity: str) -> list[str]:
    return [event.action for event in audit.history(entity, limit=200).items]


@pytest.mark.deep
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_crash_at_any_step_is_healed(world: World, monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    monkeypatch.setattr(deleting, "MOST_AT_ONCE", 2)
    case.before(world)
    world.clock.advance(1)
    world.settle()
    world.keep()
    former = {entity: events_of(entity) for entity, _ in case.events}
    case.do(world)
    world.clock.advance(1)
    world.settle()
    undisturbed = mirrored.present(world.pool)
    fatal, steps = 0, 0
    while True:
        for after in MOMENTS:
            world.start_over()
            process = Process(fatal=fatal, after=after)
            with living(process, monkeypatch, reads=_READS):
                survive(process, lambda: case.do(world))
                settle(world, process, f"{case.name}, step {fatal}")
            where = f"killed {'after' if after else 'before'} step {fatal} of {process.names}"
            world.check(where)
            assert mirrored.present(world.pool) == undisturbed, where
            for entity, action in case.events:
                assert (events_of(entity).count(action) - former[entity].count(action)) == 1, f"{where}: {events_of(entity)}"
            steps = len(process.names)
        if not process.died:
            # This step was never reached: every step before it has been died at.
            assert fatal >= steps >= case.least_steps
            return
        fatal += 1


@pytest.mark.deep
@pytest.mark.parametrize("after", MOMENTS, ids=lambda after: "after" if after else "before")
@pytest.mark.parametrize("share", range(_SHARES))
def test_a_crash_while_founding_is_healed(
    twin: Twin, user_pool: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, share: int, *, after: bool
) -> None:
    world = World(twin=twin, clock=clock, pool=user_pool)
    world.keep()
    fatal = share
    while True:
        world.start_over()
        process = Process(fatal=fatal, after=after)
        with living(process, monkeypatch, reads=_READS):
            survive(process, world.found)
            settle(world, process, f"step {fatal}")
        world.check(f"killed {'after' if after else 'before'} step {fatal} of {process.names}")
        assert events_of("person#olga@example.com").count("user.created") == 1
        if not process.died:
            assert fatal > 10
            return
        fatal += _SHARES
