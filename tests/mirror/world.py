"""A small mirrored company, and short words for what happens in it. Each change is made at the clock's present moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from accessportal.audit import queries as audit
from accessportal.directory import operations
from accessportal.directory.states import Changed, GroupRole, State
from accessportal.kernel.actors import Actor, person, system
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.mirror import operations as mirror
from accessportal.mirror import queries as mirror_queries
from accessportal.mirror.states import MirrorReport
from tests.conftest import FakeClock
from tests.fixtures_twin import Twin
from tests.mirror import mirrored
from tests.moto_snapshots import Tables

ALICE, BOB, MALLORY = "alice@example.com", "bob@example.com", "mallory@example.com"
PAYMENTS = "/engineering/payments"


@dataclass
class World:
    """Olga is admin of the root. Alice contributes to payments, Bob is admin of security, Mallory is in no group."""

    twin: Twin
    clock: FakeClock
    pool: str
    olga: Actor = field(default_factory=lambda: person("olga@example.com"))
    _kept: Tables | None = None

    def found(self) -> None:
        operations.found_directory(
            admin_email="olga@example.com",
            admin_name="Olga",
            operator_group="/portal/operators",
            auditor_group="/portal/auditors",
            actor=system("setup"),
            now=self.clock.now(),
        )

    def build(self) -> None:
        self.found()
        for group_id in ("/engineering", PAYMENTS, "/security"):
            self.create_group(group_id)
        self.create_person(ALICE, PAYMENTS, GroupRole.CONTRIBUTOR)
        self.create_person(BOB, "/security", GroupRole.ADMIN)
        self.create_person(MALLORY)

    def keep(self) -> None:
        """Remember the state of table and pool, for :meth:`start_over`."""
        self._kept = Tables.take()

    def start_over(self) -> None:
        assert self._kept is not None
        self._kept.put_back()

    # What people do

    def create_person(self, email: str, group_id: str | None = None, role: GroupRole | None = None) -> Changed[Any]:
        name = email.partition("@")[0].title()
        return operations.create_person(email=email, name=name, group_id=group_id, role=role, actor=self.olga, now=self.clock.now())

    def rename_person(self, email: str, name: str) -> Changed[Any]:
        return operations.rename_person(email=email, name=name, actor=self.olga, now=self.clock.now())

    def set_person(self, email: str, state: State) -> Changed[Any]:
        return operations.set_person_state(email=email, state=state, actor=self.olga, now=self.clock.now())

    def delete_person(self, email: str) -> Changed[Any]:
        return operations.delete_person(email=email, actor=self.olga, now=self.clock.now())

    def create_group(self, group_id: str) -> Changed[Any]:
        return operations.create_group(group_id=group_id, name=group_id, description="", actor=system("setup"), now=self.clock.now())

    def rename_group(self, group_id: str) -> Changed[Any]:
        return operations.rename_group(group_id=group_id, name="Renamed", description="", actor=self.olga, now=self.clock.now())

    def move_group(self, group_id: str, parent_id: str) -> Changed[Any]:
        return operations.move_group(group_id=group_id, parent_id=parent_id, actor=self.olga, now=self.clock.now())

    def set_group(self, group_id: str, state: State) -> Changed[Any]:
        return operations.set_group_state(group_id=group_id, state=state, actor=self.olga, now=self.clock.now())

    def delete_group(self, group_id: str) -> Changed[Any]:
        return operations.delete_group(group_id=group_id, actor=self.olga, now=self.clock.now())

    def grant(self, email: str, group_id: str, role: GroupRole = GroupRole.READER) -> Changed[Any]:
        return operations.grant_membership(email=email, group_id=group_id, role=role, actor=self.olga, now=self.clock.now())

    def revoke(self, email: str, group_id: str) -> Changed[Any]:
        return operations.revoke_membership(email=email, group_id=group_id, actor=self.olga, now=self.clock.now())

    def hold(
        self, email: str = ALICE, group_id: str = "/security", role: GroupRole = GroupRole.READER, claim: str = "request-1"
    ) -> Proof | Waiting:
        return mirror.hold_membership(
            email=email,
            group_id=group_id,
            role=role,
            claim=claim,
            ends_at=self.clock.now() + timedelta(hours=1),
            guards=(),
            actor=system("worker"),
            clock=self.clock,
        )

    def release(self, email: str = ALICE, group_id: str = "/security", claim: str = "request-1") -> Proof | Waiting:
        return mirror.release_membership(email=email, group_id=group_id, claim=claim, actor=system("worker"), clock=self.clock)

    def sweep(self) -> MirrorReport:
        return mirror.sweep_mirror(clock=self.clock, workers=1)

    # What must be so

    def is_in(self, email: str, cognito_group: str) -> bool:
        return email in mirrored.present(self.pool).groups.get(cognito_group, frozenset())

    def check(self, where: str = "") -> None:
        """Nothing is pending, table and pool are equal, and every chain is whole."""
        assert mirrored.pending() == [], where
        assert mirrored.present(self.pool) == mirrored.wanted(self.clock.now()), where
        self.check_chains(where)

    def check_chains(self, where: str = "") -> None:
        for item in mirrored.items():
            if item["pk"] == item["sk"] and "audit_head" in item:
                kind = "person" if item["pk"].startswith("U:") else "group"
                entity = f"{kind}#{item['pk'][2:]}"
                assert audit.check_head(entity, version=int(item["version"]), audit_head=item["audit_head"]) == [], f"{where}: {entity}"

    def settle(self, *, sweeps: int = 12) -> None:
        """Sweeps, as the worker makes them, until nothing is pending."""
        for _ in range(sweeps):
            self.sweep()
            if not mirrored.pending():
                return
            self.clock.advance(301)
        raise AssertionError(f"still pending: {mirror_queries.page_of_pending().items}")
