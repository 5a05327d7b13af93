"""Short words for what people do in the directory, each at the moment of the call, in groups and with people of one round."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unittest import mock

from accessportal.directory import operations
from accessportal.directory.states import GroupRole, State
from accessportal.kernel.actors import person, system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import PortalError
from accessportal.mirror import operations as mirror
from accessportal.store.transactions import Step, transact
from tests.engine.stage import at_once, lost, patient

SETUP = system("setup")
Action = Callable[[], Any]
READER, CONTRIBUTOR, ADMIN = GroupRole.READER, GroupRole.CONTRIBUTOR, GroupRole.ADMIN


class Place:
    """Groups and people of one round, by short names: ``a/x`` is the group ``/r7/a/x``, ``bob`` is ``bob.7@example.com``."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self.number = next(numbers)
        self.create("")

    def group(self, name: str) -> str:
        if name == "/":
            return name
        return f"/r{self.number}/{name}" if name else f"/r{self.number}"

    def email(self, name: str) -> str:
        return f"{name}.{self.number}@example.com"

    def _by(self, actor: str = "") -> dict[str, Any]:
        return {"actor": person(self.email(actor)) if actor else SETUP, "now": datetime.now(UTC)}

    def groups(self, *names: str) -> None:
        for name in names:
            self.create(name)

    def create(self, name: str, parent: str | None = None) -> Any:
        parent_id = None if parent is None else self.group(parent)
        return operations.create_group(group_id=self.group(name), name=name or "Round", description="", parent_id=parent_id, **self._by())

    def move(self, name: str, parent: str) -> Any:
        return operations.move_group(group_id=self.group(name), parent_id=self.group(parent), **self._by())

    def rename(self, name: str, new: str) -> Any:
        return operations.rename_group(group_id=self.group(name), name=new, description=new, **self._by())

    def set_group(self, name: str, state: State) -> Any:
        return operations.set_group_state(group_id=self.group(name), state=state, **self._by())

    def delete(self, name: str) -> Any:
        return operations.delete_group(group_id=self.group(name), **self._by())

    def come(self, who: str, name: str | None = None, role: GroupRole = READER) -> Any:
        at, has = (None, None) if name is None else (self.group(name), role)
        return operations.create_person(email=self.email(who), name=who.title(), group_id=at, role=has, **self._by())

    def grant(self, who: str, name: str, role: GroupRole = READER, *, by: str = "") -> Any:
        return operations.grant_membership(email=self.email(who), group_id=self.group(name), role=role, **self._by(by))

    def revoke(self, who: str, name: str, *, by: str = "") -> Any:
        return operations.revoke_membership(email=self.email(who), group_id=self.group(name), **self._by(by))

    def set_person(self, who: str, state: State, *, by: str = "") -> Any:
        return operations.set_person_state(email=self.email(who), state=state, **self._by(by))

    def rename_person(self, who: str, new: str) -> Any:
        return operations.rename_person(email=self.email(who), name=new, **self._by())

    def delete_person(self, who: str, *, by: str = "") -> Any:
        return operations.delete_person(email=self.email(who), **self._by(by))

    def hold(self, who: str, name: str, claim: str, role: GroupRole = READER) -> Any:
        return mirror.hold_membership(
            email=self.email(who),
            group_id=self.group(name),
            role=role,
            claim=claim,
            ends_at=datetime.now(UTC) + timedelta(hours=1),
            guards=(),
            actor=SETUP,
            clock=SystemClock(),
        )

    def release(self, who: str, name: str, claim: str) -> Any:
        return mirror.release_membership(email=self.email(who), group_id=self.group(name), claim=claim, actor=SETUP, clock=SystemClock())

    def sign_in(self, who: str) -> Any:
        me = person(self.email(who))
        return operations.record_sign_in(email=me.name, method="password", actor=me, now=datetime.now(UTC))


@contextmanager
def _all_have_read(count: int) -> Iterator[Callable[[Action], Action]]:
    """Of ``count`` threads none writes before each has come to its first write or has ended without one."""
    waiting, met = threading.Barrier(count), threading.local()

    def meet() -> None:
        if not getattr(met, "done", False):
            met.done = True
            with _no_matter_if_broken():
                waiting.wait(timeout=10)

    def late(steps: Sequence[Step]) -> None:
        meet()
        transact(steps)

    def watched(action: Action) -> Any:
        try:
            return action()
        finally:
            if not getattr(met, "done", False):
                waiting.abort()

    with (
        mock.patch("accessportal.directory.store.people.transact", late),
        mock.patch("accessportal.directory.store.groups.transact", late),
    ):
        yield lambda action: partial(watched, action)


@contextmanager
def _no_matter_if_broken() -> Iterator[None]:
    try:
        yield
    except threading.BrokenBarrierError:
        return


def run(actions: Sequence[Action], *, number: int) -> list[Any]:
    """At once; in the rounds with odd numbers everybody reads before anybody writes."""
    tried = [partial(patient, action) for action in actions]
    if number % 2 == 0:
        return at_once(tried)
    with _all_have_read(len(tried)) as watched:
        return at_once([watched(action) for action in tried])


def codes(outcomes: Sequence[Any]) -> list[str]:
    """Why the others were refused: each is told by a kernel error."""
    told = []
    for error in lost(outcomes):
        assert isinstance(error, PortalError), repr(error)
        told.append(error.code)
    return told
