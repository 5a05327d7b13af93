"""What a client and the server behind it see of each mode of the fault proxy."""

from __future__ import annotations

import asyncio
import gc
import http.client
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

from benchmarks.chaos_proxy import Mode, Proxy

# For a hang of the test alone.
_PATIENCE_SECONDS = 30


class Service:
    """It answers everything, and knows what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.was_asked = threading.Event()

    def __call__(self, environ: Any, start_response: Any) -> Any:
        self.asked.append(Request(environ).path)
        self.was_asked.set()
        return Response("well")(environ, start_response)


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def port(service: Service) -> Iterator[int]:
    server = make_server("127.0.0.1", 0, service, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def proxy(port: int) -> Iterator[Proxy]:
    with Proxy(port, slow_seconds=0.2, drop_share=1.0) as proxy:
        yield proxy


def connection_to(proxy: Proxy) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=_PATIENCE_SECONDS)


def ask(proxy: Proxy, path: str = "/") -> bytes:
    connection = connection_to(proxy)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def test_pass_hands_on_both_ways(proxy: Proxy, service: Service) -> None:
    assert ask(proxy, "/one") == b"well"
    assert service.asked == ["/one"]


def test_refuse_takes_nobody_and_ends_when_it_is_told_to(proxy: Proxy, service: Service) -> None:
    proxy.set(Mode.REFUSE)
    with pytest.raises(ConnectionRefusedError):
        ask(proxy)
    assert service.asked == []

    proxy.set(Mode.PASS)
    assert ask(proxy) == b"well"


def test_refuse_cuts_what_is_open(proxy: Proxy) -> None:
    connection = connection_to(proxy)
    connection.connect()
    proxy.set(Mode.HANG)
    connection.request("GET", "/")
    proxy.set(Mode.REFUSE)

    with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
        connection.getresponse()
    connection.close()


def test_hang_takes_connections_and_lets_nothing_through_until_it_is_over(proxy: Proxy, service: Service) -> None:
    proxy.set(Mode.HANG)
    connection = connection_to(proxy)
    connection.request("GET", "/late")
    # As long as anything would need that got through.
    assert not service.was_asked.wait(0.3)

    proxy.set(Mode.PASS)
    assert connection.getresponse().read() == b"well"
    connection.close()


def test_what_hung_arrives_even_when_its_client_has_given_up(proxy: Proxy, service: Service) -> None:
    proxy.set(Mode.HANG)
    connection = connection_to(proxy)
    connection.request("GET", "/abandoned")
    connection.close()

    proxy.set(Mode.PASS)
    assert service.was_asked.wait(_PATIENCE_SECONDS)
    assert service.asked == ["/abandoned"]


class Lingering(Proxy):
    """It needs a while to end a connection."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.is_ending = threading.Event()

    async def _carry_answers(self, *streams: Any) -> None:
        try:
            await super()._carry_answers(*streams)
        except asyncio.CancelledError:
            self.is_ending.set()
            await asyncio.sleep(_PATIENCE_SECONDS)


def test_a_connection_that_just_ends_is_closed_with_the_proxy(port: int, service: Service) -> None:
    with Lingering(port) as proxy:
        connection = connection_to(proxy)
        connection.request("GET", "/abandoned")
        assert service.was_asked.wait(_PATIENCE_SECONDS)
        connection.close()
        assert proxy.is_ending.wait(_PATIENCE_SECONDS)
    # What was left open complains when it is thrown away, and pytest hears it.
    gc.collect()


def test_slow_delays_the_answer(proxy: Proxy) -> None:
    proxy.set(Mode.SLOW)
    began = time.monotonic()
    assert ask(proxy) == b"well"
    assert time.monotonic() - began >= 0.2


def test_drop_loses_the_answer_of_what_was_done(proxy: Proxy, service: Service) -> None:
    proxy.set(Mode.DROP)
    with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
        ask(proxy, "/done")
    assert service.asked == ["/done"]
