"""A share of the threads for what may wait; the rest is told at once, and probes are always answered."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory
from django.urls import reverse
from pytest_django.fixtures import Settings

from accessportal.observe import seats
from accessportal.observe.probes import PROBES
from accessportal.observe.seats import Seats
from accessportal.observe.web_log import QUIET

Answers = list[Future[int]]


class Hanging:
    """Views that wait until they are let go."""

    def __init__(self, most: int) -> None:
        self.entered = threading.Semaphore(0)
        self._go_on = threading.Semaphore(0)
        self._seats = Seats(self._view)
        self._threads = ThreadPoolExecutor(most)

    def _view(self, _request: HttpRequest) -> HttpResponse:
        self.entered.release()
        assert self._go_on.acquire(timeout=60)
        return HttpResponse("done")

    def ask(self, count: int = 1) -> Answers:
        return [self._threads.submit(lambda: self._seats(RequestFactory().get("/")).status_code) for _ in range(count)]

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self.entered.acquire(timeout=60)

    def let_go(self, count: int) -> None:
        self._go_on.release(count)

    def end(self) -> None:
        self.let_go(100)
        self._threads.shutdown()


@contextmanager
def hanging(settings: Settings, monkeypatch: pytest.MonkeyPatch, *, patience_seconds: float) -> Iterator[Hanging]:
    """Sixteen threads: eight seats."""
    settings.WEB_THREADS = 16
    monkeypatch.setattr(seats, "_PATIENCE_SECONDS", patience_seconds)
    views = Hanging(40)
    try:
        yield views
    finally:
        views.end()


def codes(answers: Answers) -> list[int]:
    return [answer.result(60) for answer in answers]


def test_what_hangs_takes_half_of_the_threads_and_the_rest_is_told_so(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with hanging(settings, monkeypatch, patience_seconds=0.05) as views:
        stuck = views.ask(8)
        views.wait_for(8)
        beyond = codes(views.ask(20))
        # Somebody has waited in vain, so nobody waits any more.
        monkeypatch.setattr(seats, "_PATIENCE_SECONDS", 3600.0)
        later = codes(views.ask(20))
        assert not views.entered.acquire(blocking=False)
        views.let_go(8)
        assert codes(stuck) == [200] * 8
        # And all seats are free again.
        again = views.ask(8)
        views.wait_for(8)
        views.let_go(8)

        assert codes(again) == [200] * 8
    assert (beyond, later) == ([503] * 20, [503] * 20)


def test_a_burst_waits_for_those_before_it(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with hanging(settings, monkeypatch, patience_seconds=60) as views:
        first = views.ask(8)
        views.wait_for(8)
        burst = views.ask(30)
        views.let_go(38)

        assert codes([*first, *burst]) == [200] * 38


def test_a_view_that_fails_leaves_its_seat(settings: Settings) -> None:
    settings.WEB_THREADS = 4

    def fail(_request: HttpRequest) -> HttpResponse:
        raise ZeroDivisionError

    middleware = Seats(fail)
    for _ in range(10):
        with pytest.raises(ZeroDivisionError):
            middleware(RequestFactory().get("/"))


@pytest.mark.django_db
def test_what_streams_keeps_its_seat_until_it_is_sent(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.WEB_THREADS = 4
    monkeypatch.setattr(seats, "_PATIENCE_SECONDS", 0.01)
    middleware = Seats(lambda _request: StreamingHttpResponse(iter([b"a", b"b"])))
    sent = [middleware(RequestFactory().get("/")) for _ in range(2)]

    assert middleware(RequestFactory().get("/")).status_code == 503
    assert b"".join(iter(sent[0])) == b"ab"
    assert middleware(RequestFactory().get("/")).status_code == 503
    # Also what nobody has asked for.
    for one in sent:
        one.close()
    assert [middleware(RequestFactory().get("/")).status_code for _ in range(2)] == [200, 200]


def test_probes_and_scrapers_are_told_below_info() -> None:
    assert {*PROBES, reverse("metrics")} == QUIET


@pytest.fixture
def no_seats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Seats, "_take", lambda _self: False)


@pytest.mark.django_db
def test_without_a_seat_nothing_is_asked_and_one_is_told_when_to_come_again(no_seats: None, client: Client) -> None:
    page, program = client.get("/sign-in/"), client.get("/v1/sandboxes")

    assert (page.status_code, page["Retry-After"], page["Content-Type"]) == (503, "5", "text/plain; charset=utf-8")
    assert "Nothing was done" in page.content.decode()
    assert (program.status_code, program.json()["error"]["code"], program["Retry-After"]) == (503, "UNAVAILABLE", "2")
    assert client.get("/healthz").status_code == 200
    with closing(client.get("/static/portal/portal.css")) as style:
        assert style.status_code == 200
