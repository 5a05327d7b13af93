"""What balancers and Prometheus are told meanwhile: every address for machines, at both web hosts, again and again."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

_TIMEOUT_SECONDS = 10.0
_GAP_SECONDS = 1.0
# A balancer asks by the target's address, not by the site's name.
_BALANCERS_HOST = "10.20.30.40"
ADDRESSES = ("/healthz", "/readyz", "/workz", "/metrics")


@dataclass(frozen=True, slots=True)
class Answer:
    """``told`` is a status, or what became of the connection; ``families`` how many kinds of figures were in it."""

    at: float
    port: int
    address: str
    told: str
    families: int
    seconds: float


class Probes:
    """They ask while this is entered."""

    def __init__(self, ports: Iterable[int], *, metrics_token: str) -> None:
        self.answers: list[Answer] = []
        self._token = metrics_token
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(port, address)) for port in ports for address in ADDRESSES]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, port: int, address: str) -> None:
        while not self._is_over.wait(_GAP_SECONDS):
            self.answers.append(ask(port, address, self._token))


def ask(port: int, address: str, token: str) -> Answer:
    """One answer of ``address``, on a connection of its own."""
    headers = {"Host": _BALANCERS_HOST} if address != "/metrics" else {"Authorization": f"Bearer {token}"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
    at, began = time.time(), time.monotonic()
    try:
        connection.request("GET", address, headers=headers)
        response = connection.getresponse()
        told, families = str(response.status), response.read().count(b"# TYPE ")
    except (OSError, http.client.HTTPException):
        told, families = "no answer", 0
    finally:
        connection.close()
    return Answer(at, port, address, told, families, time.monotonic() - began)


def summary(answers: Iterable[Answer], address: str) -> str:
    """In words: ``200 × 40, 503 × 20; slowest 0.4 s``, and of metrics how many kinds of figures."""
    found = [one for one in answers if one.address == address]
    counts = Counter(one.told for one in found)
    words = ", ".join(f"{told} × {count}" for told, count in sorted(counts.items())) or "not asked"
    families = sorted({one.families for one in found if one.families})
    figures = f"; {families[0]} to {families[-1]} kinds of figures" if families else ""
    return f"{words}; slowest {max((one.seconds for one in found), default=0.0):.1f} s{figures}"
