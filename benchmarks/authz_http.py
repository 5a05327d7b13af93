"""Many clients ask ``/v1/authz/check`` of the served product at once, and every answer is judged:

    python tools/dynamodb_local.py python -m benchmarks.authz_http

Half of the questions are about records that count, half about ones that are not there. Exit code 1 when an answer was wrong or missing.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.installation import bare_installation
from benchmarks.lending import CLIENT_PROCESSES, RATE
from benchmarks.lending_place import place

_ANSWER_SECONDS = 60.0
_WARM_UP = 20


@dataclass(frozen=True, slots=True)
class Task:
    """``threads`` clients with a connection each ask ``checks`` times, about records of which every one with an even number counts."""

    ports: tuple[int, ...]
    token: str
    threads: int
    checks: int
    records: int
    seed: int


@dataclass(frozen=True, slots=True)
class Heard:
    """``told``: how often each answer was given: ``right``, ``wrong``, or the status and code of an error."""

    seconds: list[float]
    told: dict[str, int]

    @classmethod
    def together(cls, parts: list[Heard]) -> Heard:
        told = sum((Counter(part.told) for part in parts), Counter[str]())
        return cls([one for part in parts for one in part.seconds], dict(told))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checks", type=int, default=10_000, help="how many are asked (default: %(default)s)")
    parser.add_argument("--records", type=int, default=2_000, help="about so many names (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=64, help="parallel clients, a multiple of four (default: %(default)s)")
    parser.add_argument("--servers", type=int, default=2, help="server processes (default: %(default)s)")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(asdict(_ask(Task(**json.loads(options.task))))))
        return 0
    with bare_installation(), tempfile.TemporaryDirectory(prefix="authz-") as folder:
        token = _fill(options.records)
        with place(Path(folder), servers=options.servers, cleaners=0) as (servers, _):
            ports = tuple(server.port for server in servers)
            tasks = [
                Task(ports, token, options.clients // CLIENT_PROCESSES, options.checks // CLIENT_PROCESSES, options.records, number)
                for number in range(CLIENT_PROCESSES)
            ]
            began = time.monotonic()
            heard = _run(tasks)
            seconds = time.monotonic() - began
    return _report(heard, options.clients, options.servers, seconds)


def _fill(records: int) -> str:
    """A token for all of tenant ``bench``, in which every record with an even number counts."""
    from accessportal.authz import operations
    from accessportal.authz.queries import APPROVALS, caller_of, read_scope
    from accessportal.authz.states import Approval
    from accessportal.kernel.actors import system
    from accessportal.kernel.clock import SystemClock
    from accessportal.tokens.operations import create_token
    from accessportal.tokens.states import Scope

    # Made by no person, so that there needs to be no directory in which they are an operator.
    actor, now, home = system("benchmark"), SystemClock().now(), read_scope("tenant:bench")
    for number in range(0, records, 2):
        wanted = Approval(home, *_names(number), actor.name, now)
        operations.grant(APPROVALS, wanted, ttl_seconds=86_400, caller=caller_of(actor), now=now)
    made = create_token(name="checks", scope=Scope.AUTHZ_CHECK, home_scope=home, rate_per_minute=RATE, actor=actor, now=now)
    return made.text


def _names(number: int) -> tuple[str, str, str]:
    return f"bot-{number}@example.com", f"https://api.example.com/data/{number}", "GET"


def _run(tasks: list[Task]) -> Heard:
    command = [sys.executable, "-m", "benchmarks.authz_http", "--task"]
    processes = [subprocess.Popen([*command, json.dumps(asdict(task))], stdout=subprocess.PIPE, text=True) for task in tasks]
    heard = [Heard(**json.loads(process.communicate()[0])) for process in processes]
    return Heard.together(heard)


def _ask(task: Task) -> Heard:
    share = task.checks // task.threads
    with ThreadPoolExecutor(task.threads) as threads:
        parts = list(threads.map(lambda number: _client(task, number, share), range(task.threads)))
    return Heard.together(parts)


def _client(task: Task, number: int, share: int) -> Heard:
    chance = random.Random(f"{task.seed}-{number}")
    connection = http.client.HTTPConnection("127.0.0.1", task.ports[number % len(task.ports)], timeout=_ANSWER_SECONDS)
    headers = {"Authorization": f"Bearer {task.token}", "Content-Type": "application/json"}
    seconds, told = list[float](), Counter[str]()
    for turn in range(_WARM_UP + share):
        asked = chance.randrange(task.records)
        body = dict(zip(("identity", "resource", "action"), _names(asked), strict=True), kind="approval", scope="tenant:bench")
        began = time.monotonic()
        connection.request("POST", "/v1/authz/check", body=json.dumps(body), headers=headers)
        response = connection.getresponse()
        text = response.read()
        if turn >= _WARM_UP:
            seconds.append(time.monotonic() - began)
        told[_judged(response.status, json.loads(text), counts=asked % 2 == 0)] += 1
    return Heard(seconds, dict(told))


def _judged(status: int, body: dict[str, Any], *, counts: bool) -> str:
    if status != http.client.OK:
        return f"{status} {body['error']['code']}"
    return "right" if body["allowed"] is counts else "wrong"


def _report(heard: Heard, clients: int, servers: int, seconds: float) -> int:
    from benchmarks.lending_proof import quantile

    spans = sorted(1000 * one for one in heard.seconds)
    print(
        f"\n/v1/authz/check, {clients} clients, {servers} servers: {len(spans)} checks in {seconds:.0f} s with the warm-up, "
        f"p50 {quantile(spans, 0.5):.0f} ms, p99 {quantile(spans, 0.99):.0f} ms, max {spans[-1]:.0f} ms; "
        f"load of this machine {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores"
    )
    problems = {told: count for told, count in heard.told.items() if told != "right"}
    if problems:
        print("NOT GOOD ENOUGH: " + ", ".join(f"{count} × {told}" for told, count in problems.items()))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
