"""The twin's sandbox provider in the test's process: the real HTTP client, with the twin where the network would be."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import requests
from requests.adapters import BaseAdapter

from accessportal.kernel.clock import Clock
from accessportal.twin.protocol import LostAnswerError
from accessportal.twin.sandbox_provider import PREFIX, SandboxProviderTwin
from accessportal.twin.settings import TwinSettings
from accessportal.upstream.client import HttpProvider
from tests.conftest import FakeClock

URL = f"http://provider.example{PREFIX.removesuffix('/sandboxes')}"


class TwinAdapter(BaseAdapter):
    """Hands requests to the twin. ``before`` is called with each: a test's place to let others act in between."""

    def __init__(self, twin: SandboxProviderTwin) -> None:
        super().__init__()
        self.twin = twin
        self.calls: list[str] = []
        self.before: Callable[[str], None] = lambda _call: None
        self.after: Callable[[str], None] = lambda _call: None

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        assert timeout, "every call to the provider has a time limit"
        address = urlsplit(request.url or "")
        call = f"{request.method} {unquote(str(address.path)).removeprefix(PREFIX).strip('/') or 'list'}"
        self.calls.append(call)
        self.before(call)
        assert request.body is None, "the client sends no bodies"
        try:
            answer = self.twin.answer(
                request.method or "",
                unquote(str(address.path)),
                str(address.query),
                {name: str(value) for name, value in request.headers.items()},
                b"",
            )
        except LostAnswerError as lost:
            raise requests.ConnectionError("the connection was closed without an answer") from lost
        self.after(call)
        response = requests.Response()
        response.status_code = answer.status
        response.headers.update(answer.headers)
        response.raw = io.BytesIO(answer.body)
        response.request = request
        response.url = request.url or ""
        return response

    def close(self) -> None:
        return


def provider_on(adapter: TwinAdapter, clock: Clock) -> HttpProvider:
    """A client of its own, as every worker process has one."""
    session = requests.Session()
    session.mount("http://", adapter)
    return HttpProvider(url=URL, token="test-token", clock=clock, session=session)


@pytest.fixture
def provider_twin(clock: FakeClock) -> SandboxProviderTwin:
    return SandboxProviderTwin(clock=clock, settings=TwinSettings())


@pytest.fixture
def provider_adapter(provider_twin: SandboxProviderTwin) -> TwinAdapter:
    return TwinAdapter(provider_twin)


@pytest.fixture
def provider(provider_adapter: TwinAdapter, clock: FakeClock) -> HttpProvider:
    return provider_on(provider_adapter, clock)
