"""The twin's sandbox provider over HTTP, and after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from accessportal.kernel.clock import SystemClock
from accessportal.twin.provider_world import seed_sandboxes
from accessportal.twin.server import TwinServer
from accessportal.twin.settings import TwinSettings
from accessportal.upstream.client import HttpProvider
from accessportal.upstream.errors import Changed, Gone, Transient
from tests.twin.test_server import running


def provider_of(server: TwinServer) -> HttpProvider:
    return HttpProvider(url=f"{server.url}/twin/provider", token="any", clock=SystemClock())


def test_it_lists_deletes_resets_and_remembers(tmp_path: Path) -> None:
    journal = tmp_path / "twin.journal"
    with running(journal, TwinSettings(calls_per_second=0, page_size=2)) as server:
        told: list[int] = []
        seed_sandboxes(provider_url=f"{server.url}/twin/provider", count=5, progress=lambda _what, done, _of: told.append(done))
        provider = provider_of(server)
        pages = list(provider.list_sandboxes())
        assert [len(page) for page in pages] == [2, 2, 1]
        assert told == [1, 2, 3, 4, 5]

        first = pages[0][0]
        provider.delete_sandbox(first.external_id, generation="1")
        reset = provider.get_sandbox(first.external_id)
        assert reset is not None
        assert (reset.is_ready, reset.generation) == (True, "2")
        with pytest.raises(Changed):
            provider.delete_sandbox(first.external_id, generation="1")
        server.front.settings.change({"sandbox_recycle": 0})
        provider.delete_sandbox(first.external_id)
        assert provider.get_sandbox(first.external_id) is None
        with pytest.raises(Gone):
            provider.delete_sandbox(first.external_id)

    with running(journal) as server:
        provider = provider_of(server)
        assert [one.external_id for page in provider.list_sandboxes() for one in page] == [f"demo-{number:05}" for number in range(1, 5)]
        server.front.settings.change({"sandbox_lose_answer": 1})
        with pytest.raises(Transient):
            provider.delete_sandbox("demo-00001")
        found = provider.get_sandbox("demo-00001")
        assert found is not None
        assert found.generation == "2"
