"""Any changes in any order, with Cognito throttled, broken, silent or away under way: when the trouble is over, the sweep makes
table and pool equal; and while it lasts, nothing is said to be done that is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from accessportal.directory.states import Changed, GroupRole, State
from accessportal.kernel.actors import system
from accessportal.kernel.errors import PortalError
from accessportal.kernel.proofs import Proof
from accessportal.mirror import operations as mirror
from tests.depth import examples
from tests.mirror import mirrored
from tests.mirror.world import World

PEOPLE = ("alice@example.com", "bob@example.com", "mallory@example.com")
GROUPS = ("/engineering", "/engineering/payments", "/security", "/sales")
FAULTS = ("cognito_throttle", "cognito_server_error", "cognito_lose_answer")
people, groups = st.sampled_from(PEOPLE), st.sampled_from(GROUPS)
roles, states = st.sampled_from(GroupRole), st.sampled_from(State)


def machine_in(world: World) -> type[RuleBasedStateMachine]:
    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self._calm()
            world.twin.front.reseed()
            world.start_over()

        @rule(email=people, group_id=groups, role=roles)
        def grant(self, email: str, group_id: str, role: GroupRole) -> None:
            self._try(lambda: world.grant(email, group_id, role))

        @rule(email=people, group_id=groups)
        def revoke(self, email: str, group_id: str) -> None:
            changed = self._try(lambda: world.revoke(email, group_id))
            if changed is not None and changed.mirror.is_done:
                assert mirrored.present(world.pool).users.get(email) == mirrored.wanted(world.clock.now()).users.get(email)
                assert self._groups_of(email, mirrored.present(world.pool)) == self._groups_of(email, mirrored.wanted(world.clock.now()))

        @rule(email=people, group_id=groups, role=roles, claim=st.sampled_from(("request-1", "request-2")))
        def hold(self, email: str, group_id: str, role: GroupRole, claim: str) -> None:
            if isinstance(self._try(lambda: world.hold(email, group_id, role, claim)), Proof):
                assert any(world.is_in(email, f"{group_id}:{one}") for one in mirrored.ROLES)

        @rule(email=people, group_id=groups, claim=st.sampled_from(("request-1", "request-2")))
        def release(self, email: str, group_id: str, claim: str) -> None:
            proof = self._try(lambda: world.release(email, group_id, claim))
            if isinstance(proof, Proof) and not proof.is_present:
                assert not any(world.is_in(email, f"{group_id}:{one}") for one in mirrored.ROLES)

        @rule(email=people)
        def create_or_delete_person(self, email: str) -> None:
            if self._try(lambda: world.create_person(email)) is None:
                self._try(lambda: world.delete_person(email))

        @rule(email=people, state=states)
        def set_person(self, email: str, state: State) -> None:
            self._try(lambda: world.set_person(email, state))

        @rule(group_id=groups)
        def create_or_delete_group(self, group_id: str) -> None:
            if self._try(lambda: world.create_group(group_id)) is None:
                self._try(lambda: world.delete_group(group_id))

        @rule(group_id=groups, state=states)
        def set_group(self, group_id: str, state: State) -> None:
            self._try(lambda: world.set_group(group_id, state))

        @rule(fault=st.sampled_from(FAULTS), chance=st.sampled_from((0.0, 0.3, 0.8)), seed=st.integers(0, 99))
        def trouble(self, fault: str, chance: float, seed: int) -> None:
            world.twin.settings.change({fault: chance, "seed": seed})
            world.twin.front.reseed()

        @rule(is_away=st.booleans())
        def outage(self, is_away: bool) -> None:
            world.twin.settings.change({"cognito_outage": is_away})

        @rule(seconds=st.sampled_from((1, 61, 400)))
        def sweep_later(self, seconds: int) -> None:
            world.clock.advance(seconds)
            world.sweep()

        @precondition(lambda self: bool(mirrored.pending()))
        @rule()
        def calm_settles_all(self) -> None:
            self._settle()

        def teardown(self) -> None:
            self._settle()

        def _settle(self) -> None:
            self._calm()
            world.clock.advance(301)
            world.settle()
            # A claim that has run out meanwhile is the workflow's to release; the comparison takes it off before.
            image, wanted = mirrored.present(world.pool), mirrored.wanted(world.clock.now())
            assert image.users == wanted.users
            assert image.groups.keys() == wanted.groups.keys()
            for name, members in image.groups.items():
                assert members >= wanted.groups[name], name
            mirror.compare_mirror(apply=True, most_share=1, actor=system("test"), clock=world.clock)
            world.check()

        def _calm(self) -> None:
            world.twin.settings.change({**dict.fromkeys(FAULTS, 0.0), "cognito_outage": False})

        def _groups_of(self, email: str, image: mirrored.Image) -> set[str]:
            return {name for name, members in image.groups.items() if email in members}

        def _try(self, action: Any) -> Changed[Any] | Any | None:
            try:
                return action()
            except PortalError:
                return None

    return Machine


@pytest.mark.deep
def test_cognito_ends_as_the_table_says(world: World) -> None:
    world.keep()
    run_state_machine_as_test(
        machine_in(world),
        settings=settings(max_examples=examples(6), stateful_step_count=20, suppress_health_check=list(HealthCheck)),
    )
