"""The provider's HTTP client, against answers as providers give them."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import BaseAdapter

from accessportal.kernel.errors import Unavailable
from accessportal.upstream import client as client_module
from accessportal.upstream.client import HttpProvider, UpstreamSettings
from accessportal.upstream.errors import BreakerOpen, Changed, Gone, Refused, Throttled, Transient, UpstreamError
from tests.conftest import FakeClock

ROW = '{"id": "ext-1", "name": "lab-1", "state": "ready", "lab_duration_hours": 4}'
Answer = tuple[int, str] | Exception


class Scripted(BaseAdapter):
    """Gives these answers in turn, the last one again and again."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__()
        self.answers = list(answers)
        self.requests: list[requests.PreparedRequest] = []

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        response = requests.Response()
        response.status_code, body = answer
        response.raw = io.BytesIO(body.encode())
        return response

    def close(self) -> None:
        return


def provider_that(clock: FakeClock, *answers: Answer) -> tuple[HttpProvider, Scripted]:
    scripted, session = Scripted(*answers), requests.Session()
    session.mount("https://", scripted)
    return HttpProvider(url="https://provider.example/v1/", token="secret-token", clock=clock, session=session), scripted


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((status, Gone) for status in (404, 410)),
        (412, Changed),
        (429, Throttled),
        *((status, Transient) for status in (408, 409, 500, 503)),
        *((status, Refused) for status in (302, 400, 401, 403)),
    ],
)
def test_answers_are_sorted(clock: FakeClock, status: int, error: type[UpstreamError]) -> None:
    provider, scripted = provider_that(clock, (status, "no"))

    with pytest.raises(error) as caught:
        provider.delete_sandbox("ext-1")
    assert type(caught.value) is error
    assert len(scripted.requests) == 1


def test_a_deletion_is_sent_once_with_its_generation_and_reads_are_tried_again(clock: FakeClock) -> None:
    provider, scripted = provider_that(clock, requests.ConnectionError("reset"))
    with pytest.raises(Transient):
        provider.delete_sandbox("a/b ü", generation="7")
    (sent,) = scripted.requests
    assert sent.url == "https://provider.example/v1/sandboxes/a%2Fb%20%C3%BC"
    assert (sent.headers["If-Match"], sent.headers["Authorization"]) == ('"7"', "Bearer secret-token")

    provider, scripted = provider_that(clock, (500, ""), requests.Timeout("slow"), (200, ROW))
    found = provider.get_sandbox("ext-1")
    assert found is not None
    assert (found.name, found.is_ready, found.generation) == ("lab-1", True, "")
    assert len(scripted.requests) == 3


@pytest.mark.parametrize(
    "body",
    [
        "<html>",
        "[]",
        "{}",
        '{"sandboxes": {}}',
        '{"sandboxes": [null]}',
        '{"sandboxes": [{"id": "ext-1"}]}',
        '{"sandboxes": [' + ROW.replace("ext-1", "") + "]}",
        '{"sandboxes": [' + ROW.replace("4", "0") + "]}",
        '{"sandboxes": [' + ROW.replace("4", '"four"') + "]}",
        '{"sandboxes": [' + ROW.replace("4", "0.0001") + "]}",
        '{"sandboxes": [' + ROW.replace("ext-1", ".") + "]}",
        '{"sandboxes": [' + ROW.replace("ext-1", "..") + "]}",
        '{"sandboxes": [], "next_cursor": 7}',
    ],
)
def test_a_malformed_list_is_refused_whole(clock: FakeClock, body: str) -> None:
    provider, _ = provider_that(clock, (200, body))

    with pytest.raises(Refused):
        list(provider.list_sandboxes())


def test_a_list_that_leads_in_a_circle_ends(clock: FakeClock) -> None:
    provider, _ = provider_that(clock, (200, '{"sandboxes": [], "next_cursor": "a"}'))

    with pytest.raises(Refused, match="circle"):
        list(provider.list_sandboxes())


def test_an_answer_about_another_sandbox_is_refused(clock: FakeClock) -> None:
    provider, _ = provider_that(clock, (200, ROW))

    with pytest.raises(Refused):
        provider.get_sandbox("ext-2")


def test_after_five_failures_the_provider_has_a_rest_and_one_call_tries_whether_it_is_back(clock: FakeClock) -> None:
    provider, scripted = provider_that(clock, (500, ""))
    delete: Callable[[], None] = lambda: provider.delete_sandbox("ext-1")  # noqa: E731
    for _ in range(5):
        with pytest.raises(Transient):
            delete()
    with pytest.raises(BreakerOpen):
        delete()
    assert len(scripted.requests) == 5

    clock.advance(31)
    with pytest.raises(Transient):
        delete()
    with pytest.raises(BreakerOpen):
        delete()
    assert len(scripted.requests) == 6
    clock.advance(31)
    scripted.answers = [(204, "")]
    delete()
    delete()
    assert len(scripted.requests) == 8


def test_where_no_provider_is_set_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_settings", UpstreamSettings())
    monkeypatch.setattr(client_module, "_provider", None)

    with pytest.raises(Unavailable, match="PORTAL_SANDBOX_PROVIDER_URL"):
        client_module.provider()


@pytest.mark.parametrize("names", ["machine provider.example", "default"])
def test_a_file_of_passwords_does_not_take_the_token_s_place(
    clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: str
) -> None:
    """As one left by curl or git on the machine, which the HTTP client reads by itself."""
    (tmp_path / "netrc").write_text(f"{names} login mallory password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    provider, scripted = provider_that(clock, (200, ROW))

    provider.get_sandbox("ext-1")

    assert scripted.requests[0].headers["Authorization"] == "Bearer secret-token"
