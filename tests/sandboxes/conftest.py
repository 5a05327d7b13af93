"""A small pool at the test's own time: track-1 and track-2 borrow, Olga operates, Mallory may not."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pytest

from accessportal.audit import queries as audit
from accessportal.kernel.actors import Role, person, system
from accessportal.kernel.pages import Page, every
from accessportal.sandboxes import operations, queries, store
from accessportal.sandboxes.states import ExpireReport, Released, Sandbox, Status, Taken
from tests.conftest import FakeClock

SETUP = system("setup")
CLIENT = system("client")
OLGA = person("olga@example.com", roles=frozenset({Role.OPERATOR}))
MALLORY = person("mallory@example.com")


@dataclass
class Pool:
    """Short words for what clients and operators do, at the clock's time."""

    clock: FakeClock

    def fill(self, count: int, *, hours: float = 4) -> list[Sandbox]:
        return [self.add(f"ext-{number:03}", hours=hours) for number in range(count)]

    def add(self, external_id: str, *, name: str = "", hours: float = 4) -> Sandbox:
        name = name or f"lab-{external_id}"
        return operations.add(external_id=external_id, name=name, lab_duration_hours=hours, actor=SETUP, now=self.clock.now())

    def take(self, track: str = "track-1", *, key: str = "", name_prefix: str = "", seconds: int | None = None) -> Taken:
        return operations.take(
            key=key or track, track=track, name_prefix=name_prefix, duration_seconds=seconds, actor=CLIENT, now=self.clock.now()
        )

    def release(self, sandbox: Sandbox, track: str = "track-1", *, fence: int | None = None) -> Released:
        return operations.release(sandbox_id=sandbox.sandbox_id, track=track, fence=fence, actor=CLIENT, now=self.clock.now())

    def expire(self) -> ExpireReport:
        return operations.expire(clock=self.clock)

    def now_of(self, sandbox: Sandbox) -> Sandbox:
        return queries.get(sandbox_id=sandbox.sandbox_id)

    def status_of(self, sandbox: Sandbox) -> Status:
        return self.now_of(sandbox).status

    def everything(self) -> list[Sandbox]:
        found: list[Sandbox] = []
        for status in Status:
            for one in every(functools.partial(_by_status, status)):
                assert isinstance(one, Sandbox)
                found.append(one)
        return found

    def free_list(self) -> set[str]:
        return {entry.sandbox_id for shard in store.free_shards() for entry in store.page_free(shard, cursor=None, limit=1000).items}

    def check_whole(self) -> None:
        """What is available is in the free list, and nothing else; every chain ends where its row says."""
        rows = self.everything()
        assert self.free_list() == {one.sandbox_id for one in rows if one.status is Status.AVAILABLE}
        for one in rows:
            assert audit.check_head(one.entity, version=one.version, audit_head=one.audit_head) == [], one
            lent = [event for event in queries.history(sandbox_id=one.sandbox_id) if event.action == "sandbox.taken"]
            fences = [event.data["fence"] for event in lent]
            assert fences == sorted(set(fences)), one


def _by_status(status: Status, cursor: str | None) -> Page[Sandbox | store.Unreadable]:
    return queries.list_by_status(status=status, cursor=cursor)


@pytest.fixture
def pool(tables: None, clock: FakeClock) -> Pool:
    return Pool(clock)
