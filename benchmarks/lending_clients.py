"""Clients of the lending API: threads with a connection each that take, hold shortly and give back, and write down what they are told.

    python -m benchmarks.lending_clients TASK

Nothing of the portal is imported: what these say is what a client outside sees. Whatever happens to a connection or a server, the
same request is sent again, to the next server, until it is answered.
"""

from __future__ import annotations

import dataclasses
import http.client
import json
import random
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

_ANSWER_SECONDS = 60.0
_PATIENCE_SECONDS = 300.0
# Sooner than a client would that waits for the promised time: more pressure while the pool is empty.
_EMPTY_SECONDS = (2.0, 6.0)
_TRACK_AS_KEY_SHARE = 0.2
_RETRIED = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Task:
    """``threads`` clients together take until they have been lent ``takes`` sandboxes, and repeat ``again_share`` of what they ask.
    ``folder`` gets what they were told."""

    number: int
    ports: tuple[int, ...]
    token: str
    folder: str
    threads: int
    takes: int
    seed: int
    longest_hold_seconds: float = 0.2
    again_share: float = 0.1

    def start_arguments(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.lending_clients", json.dumps(dataclasses.asdict(self))]


@dataclass(frozen=True, slots=True)
class Answered:
    """``asked_at``: when the question was sent for the first time, ``last_asked_at`` for the last (epoch seconds)."""

    status: int
    headers: Mapping[str, str]
    text: str
    asked_at: float
    last_asked_at: float
    answered_at: float
    attempts: int

    @property
    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found


class Connection:
    """One HTTP connection that is made anew, to the next server, when it breaks."""

    def __init__(self, ports: tuple[int, ...], token: str, chance: random.Random, book: Book) -> None:
        self._ports = ports
        self._at = chance.randrange(len(ports))
        self._token = token
        self._chance = chance
        self._book = book
        self._open: http.client.HTTPConnection | None = None

    def next_server(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None
        self._at = (self._at + 1) % len(self._ports)

    def ask(self, verb: str, method: str, path: str, headers: Mapping[str, str]) -> Answered:
        """The answer, whatever it says, after as many attempts as it takes."""
        began, attempts = time.time(), 0
        while True:
            attempts += 1
            asked = time.time()
            try:
                status, found, text = self._send(method, path, headers)
            except (OSError, http.client.HTTPException) as error:
                self._book.call(verb, type(error).__name__, asked)
                self.next_server()
                self._wait(self._chance.uniform(0.01, 0.3), began)
                continue
            self._book.call(verb, str(status), asked)
            if status not in _RETRIED:
                return Answered(status, found, text, began, asked, time.time(), attempts)
            if status == http.client.INTERNAL_SERVER_ERROR:
                self._book.fault(f"{verb}: 500 {text[:300]}")
            self._wait(min(2.0, float(found.get("retry-after", "0.2"))), began)

    def _send(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, dict[str, str], str]:
        if self._open is None:
            self._open = http.client.HTTPConnection("127.0.0.1", self._ports[self._at], timeout=_ANSWER_SECONDS)
        self._open.request(method, path, headers={"Authorization": f"Bearer {self._token}", **headers})
        response = self._open.getresponse()
        text = response.read().decode()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, text

    def _wait(self, seconds: float, began: float) -> None:
        if time.time() - began > _PATIENCE_SECONDS:
            raise TimeoutError(f"no answer within {_PATIENCE_SECONDS:.0f} s")
        time.sleep(seconds)


class Book:
    """What the clients of one process were told: receipts (docs/subsystems/sandboxes.md), calls with their time, and faults."""

    def __init__(self, folder: Path, number: int) -> None:
        self._lock = threading.Lock()
        self._hungry = folder / "hungry"
        self._files = {kind: (folder / f"{kind}-{number}.jsonl").open("w") for kind in ("receipts", "calls", "faults")}

    def receipt(self, kind: str, track: str, asked_at: float, answered_at: float, **more: Any) -> None:
        self._write("receipts", {"kind": kind, "track": track, "asked_at": asked_at, "answered_at": answered_at, **more})

    def call(self, verb: str, told: str, asked_at: float) -> None:
        """``told`` is a status, or the name of what happened to the connection."""
        self._write("calls", {"verb": verb, "told": told, "at": asked_at, "seconds": time.time() - asked_at})

    def fault(self, words: str) -> None:
        """The API said what it should not."""
        self._write("faults", {"at": time.time(), "words": words})

    def empty(self) -> None:
        """The cleaners wait for this, so that the pool runs dry again and again."""
        self._hungry.touch()

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _write(self, kind: str, row: dict[str, Any]) -> None:
        with self._lock:
            file: TextIO = self._files[kind]
            file.write(json.dumps(row) + "\n")
            file.flush()


class Client:
    """One borrower after the other, on one connection."""

    def __init__(self, name: str, task: Task, connection: Connection, chance: random.Random, book: Book) -> None:
        self._name = name
        self._task = task
        self._connection = connection
        self._chance = chance
        self._book = book

    def borrow(self) -> bool:
        """Take, hold, give back; ``False`` when none was free."""
        headers = self._take_headers()
        track = headers["X-Track-ID"]
        answer = self._connection.ask("take", "POST", "/v1/allocate", headers)
        if answer.status == http.client.CONFLICT:
            self._refused(track, answer)
            return False
        if answer.status not in {200, 201} or (answer.status == 200 and answer.attempts == 1):
            self._book.fault(f"take: {answer.status} at attempt {answer.attempts}: {answer.text[:300]}")
            return False
        held = answer.body
        key = headers.get("Idempotency-Key", track)
        hand_over = {"sandbox_id": held["sandbox_id"], "fence": held["fence"]}
        self._book.receipt("taken", track, answer.asked_at, answer.answered_at, key=key, **hand_over)
        time.sleep(self._chance.uniform(0, self._task.longest_hold_seconds))
        if self._chance.random() < self._task.again_share:
            self._look_again(headers, answer)
        self._give_back(track, hand_over)
        return True

    def _take_headers(self) -> dict[str, str]:
        if self._chance.random() < _TRACK_AS_KEY_SHARE:
            # Always the same key: closed by each release, and new again.
            return {"X-Track-ID": self._name}
        return {"X-Track-ID": self._name, "Idempotency-Key": str(uuid.UUID(int=self._chance.getrandbits(128)))}

    def _refused(self, track: str, answer: Answered) -> None:
        error = answer.body["error"]
        if error["code"] != "NO_SANDBOXES_AVAILABLE" or answer.headers.get("retry-after") != str(error.get("retry_after")):
            self._book.fault(f"take: 409 {answer.text[:300]} with Retry-After {answer.headers.get('retry-after')}")
            return
        self._book.receipt("none", track, answer.last_asked_at, answer.answered_at)
        self._book.empty()
        time.sleep(self._chance.uniform(*_EMPTY_SECONDS))

    def _look_again(self, headers: dict[str, str], first: Answered) -> None:
        """The same request at another server gets the same answer, and the sandbox is shown as lent."""
        self._connection.next_server()
        again = self._connection.ask("take again", "POST", "/v1/allocate", headers)
        if (again.status, again.text) != (200, first.text):
            self._book.fault(f"take again: {again.status} {again.text[:300]} after {first.text[:300]}")
        track = {"X-Track-ID": headers["X-Track-ID"]}
        seen = self._connection.ask("get", "GET", f"/v1/sandboxes/{first.body['sandbox_id']}", track)
        if seen.status != 200 or seen.body["status"] != "allocated" or seen.body["fence"] != first.body["fence"]:
            self._book.fault(f"get: {seen.status} {seen.text[:300]} after {first.text[:300]}")

    def _give_back(self, track: str, hand_over: dict[str, Any]) -> None:
        path = f"/v1/sandboxes/{hand_over['sandbox_id']}/mark-for-deletion"
        headers = {"X-Track-ID": track, "X-Fence": str(hand_over["fence"])}
        answer = self._connection.ask("release", "POST", path, headers)
        if answer.status != 200 or answer.body["fence"] != hand_over["fence"]:
            self._book.fault(f"release: {answer.status} {answer.text[:300]} of {hand_over}")
            return
        self._book.receipt("released", track, answer.asked_at, answer.answered_at, **hand_over)
        if self._chance.random() < self._task.again_share:
            self._connection.next_server()
            again = self._connection.ask("release again", "POST", path, headers)
            if (again.status, again.text) != (200, answer.text):
                self._book.fault(f"release again: {again.status} {again.text[:300]} after {answer.text[:300]}")


class _Quota:
    """What is left to be taken by all clients of the process."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._lock = threading.Lock()

    def claim(self) -> bool:
        with self._lock:
            if self._left == 0:
                return False
            self._left -= 1
            return True

    def give_back(self) -> None:
        with self._lock:
            self._left += 1


def run(task: Task) -> None:
    book, quota = Book(Path(task.folder), task.number), _Quota(task.takes)
    with ThreadPoolExecutor(task.threads) as pool:
        for done in [pool.submit(_one_client, task, number, book, quota) for number in range(task.threads)]:
            done.result()
    book.close()


def _one_client(task: Task, number: int, book: Book, quota: _Quota) -> None:
    name = f"track-{task.number}-{number}"
    chance = random.Random(f"{task.seed} {name}")
    client = Client(name, task, Connection(task.ports, task.token, chance, book), chance, book)
    while quota.claim():
        if not client.borrow():
            quota.give_back()


if __name__ == "__main__":
    fields = json.loads(sys.argv[1])
    run(Task(**{**fields, "ports": tuple(fields["ports"])}))
