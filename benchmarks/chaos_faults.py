"""The faults of :mod:`benchmarks.chaos`: each holds while its context is entered, and is taken away after that."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial

import psycopg

from benchmarks.chaos_place import Place
from benchmarks.chaos_proxy import Mode, Proxy
from benchmarks.lending_place import Part

_DEAD_SECONDS = 3.0
_LIVE_SECONDS = 12.0

Fault = Callable[[Place], AbstractContextManager[None]]


@contextlib.contextmanager
def _nothing(_place: Place) -> Iterator[None]:
    """To compare with."""
    yield


@contextlib.contextmanager
def _killed(hosts: Callable[[Place], Sequence[Part]], place: Place) -> Iterator[None]:
    """One host after the other, again and again; each is started anew a moment later, as whatever keeps it running would."""
    is_over = threading.Event()

    def kill() -> None:
        for host in itertools.cycle(hosts(place)):
            host.kill()
            is_over.wait(_DEAD_SECONDS)
            host.start()
            if is_over.wait(_LIVE_SECONDS):
                return

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextlib.contextmanager
def _set(proxy_of: Callable[[Place], Proxy], mode: Mode, place: Place) -> Iterator[None]:
    proxy = proxy_of(place)
    proxy.set(mode)
    try:
        yield
    finally:
        proxy.set(Mode.PASS)


@contextlib.contextmanager
def _database_down(place: Place) -> Iterator[None]:
    place.database.stop("immediate")
    try:
        yield
    finally:
        place.database.start()


@contextlib.contextmanager
def _database_read_only(place: Place) -> Iterator[None]:
    """As after a fail-over to a reader: every write is refused, in connections that are open too."""
    _set_read_only(place, "on")
    try:
        yield
    finally:
        _set_read_only(place, "off")


def _set_read_only(place: Place, value: str) -> None:
    with psycopg.connect(place.database.url, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        connection.execute("SELECT pg_reload_conf()")


@contextlib.contextmanager
def _clock_ahead(place: Place) -> Iterator[None]:
    """The second worker host goes two hours ahead, and then back."""
    place.workers[1].stop()
    place.shifted.start()
    try:
        yield
    finally:
        was_there = place.shifted.is_running()
        place.shifted.stop()
        place.workers[1].start()
    if not was_there:
        raise SystemExit("The worker with the wrong clock ended by itself; see worker-2.log.")


def _dynamodb(place: Place) -> Proxy:
    return place.dynamodb


def _issuer(place: Place) -> Proxy:
    return place.issuer


def _webs(place: Place) -> Sequence[Part]:
    return place.webs


def _workers(place: Place) -> Sequence[Part]:
    return place.workers


FAULTS: Mapping[str, Fault] = {
    "nothing": _nothing,
    "web-killed": partial(_killed, _webs),
    "worker-killed": partial(_killed, _workers),
    "postgres-down": _database_down,
    "postgres-read-only": _database_read_only,
    "dynamodb-refuses": partial(_set, _dynamodb, Mode.REFUSE),
    "dynamodb-hangs": partial(_set, _dynamodb, Mode.HANG),
    "dynamodb-slow": partial(_set, _dynamodb, Mode.SLOW),
    "dynamodb-drops": partial(_set, _dynamodb, Mode.DROP),
    "issuer-away": partial(_set, _issuer, Mode.REFUSE),
    "clock-ahead": _clock_ahead,
}
