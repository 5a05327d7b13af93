"""A small pool at the test's own time: track-1 and track-2 borrow, Olga operates, Mallory may not."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from accessportal.audit import queries as audit
from accessportal.kernel.actors import Role, person, system
from accessportal.kernel.pages import Page, every
from accessportal.kernel.ports import set_after_commit
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import CleanReport, ExpireReport, Released, RunKind, Sandbox, Status, SyncPlan, Taken, Unreadable
from accessportal.sandboxes.store import free_list
from accessportal.sandboxes.store import pool as pool_store
from accessportal.twin.sandbox_provider import SandboxProviderTwin
from accessportal.upstream.client import HttpProvider
from tests.conftest import FakeClock
from tests.fixtures_provider import TwinAdapter, provider_on

SETUP = system("setup")
CLIENT = system("client")
OLGA = person("olga@example.com", roles=frozenset({Role.OPERATOR}))
MALLORY = person("mallory@example.com")


@pytest.fixture
def asked_of_the_queue() -> Iterator[list[tuple[str, dict[str, str]]]]:
    """What was asked of the queue, which isn't there."""
    asked: list[tuple[str, dict[str, str]]] = []
    replaced = set_after_commit(lambda name, /, **payload: asked.append((name, payload)))
    yield asked
    set_after_commit(replaced)


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
        return {entry.sandbox_id for shard in free_list.shards() for entry in free_list.page(shard, cursor=None, limit=1000).items}

    def check_whole(self) -> None:
        """What is available is in the free list, and nothing else; every chain ends where its row says."""
        rows = self.everything()
        assert self.free_list() == {one.sandbox_id for one in rows if one.status is Status.AVAILABLE}
        for one in rows:
            assert audit.check_head(one.entity, version=one.version, audit_head=one.audit_head) == [], one
            lent = [event for event in queries.history(sandbox_id=one.sandbox_id) if event.action == "sandbox.taken"]
            fences = [event.data["fence"] for event in lent]
            assert fences == sorted(set(fences)), one


def _by_status(status: Status, cursor: str | None) -> Page[Sandbox | Unreadable]:
    return queries.list_by_status(status=status, cursor=cursor)


@dataclass
class Upstream:
    """The pool beside its provider, which the test turns up."""

    pool: Pool
    twin: SandboxProviderTwin
    adapter: TwinAdapter
    provider: HttpProvider

    def set(self, **values: float) -> None:
        self.twin.settings.change({f"sandbox_{name}": value for name, value in values.items()})

    def fill(self, count: int) -> list[Sandbox]:
        """So many at the provider, and by a first sync in the pool."""
        for number in range(count):
            self.twin.create(f"ext-{number:03}", name=f"lab-{number:03}")
        self.sync()
        return sorted(self.pool.everything(), key=lambda one: one.external_id)

    def sync(self, *, apply: bool = True, most_share: float = 0.2) -> SyncPlan:
        return operations.sync(provider=self.provider, apply=apply, most_share=most_share, clock=self.pool.clock)

    def clean(self, *, limit: int = 500) -> CleanReport:
        provider = provider_on(self.adapter, self.pool.clock)
        return operations.clean(provider=provider, clock=self.pool.clock, limit=limit, pace_seconds=0, workers=1)

    def later(self, seconds: float = 300) -> None:
        self.pool.clock.advance(seconds)

    def given_back(self, track: str = "track-1") -> Sandbox:
        """One that was lent and is to be cleaned."""
        lent = self.pool.take(track).sandbox
        self.pool.release(lent, track)
        return lent


@pytest.fixture
def pool(tables: None, clock: FakeClock) -> Pool:
    return Pool(clock)


@pytest.fixture
def upstream(pool: Pool, provider_twin: SandboxProviderTwin, provider_adapter: TwinAdapter, provider: HttpProvider) -> Upstream:
    return Upstream(pool, provider_twin, provider_adapter, provider)


def order_in_between(pool: Pool, kind: RunKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Olga's order of a run is written right after somebody else has read where the pool's own chain of events ends."""
    read = pool_store.pool_head
    ordered: list[RunKind] = []

    def meanwhile() -> tuple[int, str]:
        head = read()
        if not ordered:
            ordered.append(kind)
            operations.order_run(kind=kind, actor=OLGA, now=pool.clock.now())
        return head

    monkeypatch.setattr(pool_store, "pool_head", meanwhile)
