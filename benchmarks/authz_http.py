"""Many clients ask ``/v1/authz/check`` of the served product at once, and every answer is judged:

    python tools/dynamodb_local.py python -m benchmarks.authz_http

Half of the questions are about records that count, half about ones that are not there. Exit code 1 when an answer was wrong or missing:
each kind of these is told with how often and when it came, the number of one such request, and what the servers logged last.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.installation import bare_installation
from benchmarks.lending import CLIENT_PROCESSES, RATE
from benchmarks.lending_place import place

_ANSWER_SECONDS = 60.0
_WARM_UP = 20
_LAST_LINES = 20


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
    """How long each answer took, and of each that was not right the moment, what it was instead, and its request's number."""

    seconds: list[float]
    wrong: list[tuple[float, str, str]]

    @classmethod
    def together(cls, parts: list[Heard]) -> Heard:
        return cls([one for part in parts for one in part.seconds], [one for part in parts for one in part.wrong])


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
            print(f"From {time.strftime('%H:%M:%S')} on {options.clients} clients ask.", flush=True)
            began = time.monotonic()
            heard = _run(tasks)
            seconds = time.monotonic() - began
            _report(heard, options.clients, options.servers, seconds)
            return _tell_wrong(heard, began, Path(folder))


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
    heard = Heard([], [])
    for turn in range(_WARM_UP + share):
        asked, request_id = chance.randrange(task.records), f"{task.seed}-{number}-{turn}"
        headers = {"Authorization": f"Bearer {task.token}", "Content-Type": "application/json", "X-Request-ID": request_id}
        body = dict(zip(("identity", "resource", "action"), _names(asked), strict=True), kind="approval", scope="tenant:bench")
        began = time.monotonic()
        try:
            connection.request("POST", "/v1/authz/check", body=json.dumps(body), headers=headers)
            response = connection.getresponse()
            wrong = _judged(response.status, response.read(), counts=asked % 2 == 0)
        except (OSError, http.client.HTTPException) as error:
            # The next request connects anew.
            connection.close()
            wrong = f"no answer: {type(error).__name__}"
        if turn >= _WARM_UP:
            heard.seconds.append(time.monotonic() - began)
        if wrong:
            heard.wrong.append((time.monotonic(), wrong, request_id))
    return heard


def _judged(status: int, text: bytes, *, counts: bool) -> str:
    """What is wrong with the answer; "" for one that is right."""
    try:
        body: dict[str, Any] = json.loads(text)
        if status != http.client.OK:
            return f"{status} {body['error']['code']}"
        if body["allowed"] is counts:
            return ""
        return f"{'yes' if body['allowed'] else 'no'} ({body['why']}) about what {'counts' if counts else 'is not there'}"
    except (ValueError, LookupError, TypeError):
        return f"{status} with a body that says nothing"


def _report(heard: Heard, clients: int, servers: int, seconds: float) -> None:
    from benchmarks.lending_proof import quantile

    spans = sorted(1000 * one for one in heard.seconds)
    print(
        f"\n/v1/authz/check, {clients} clients, {servers} servers: {len(spans)} checks in {seconds:.0f} s with the warm-up, "
        f"p50 {quantile(spans, 0.5):.0f} ms, p99 {quantile(spans, 0.99):.0f} ms, max {spans[-1]:.0f} ms; "
        f"load of this machine {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores"
    )


def _tell_wrong(heard: Heard, began: float, folder: Path) -> int:
    """Each kind of them: all in one second are the servers' doing, those over the whole run the answers' own."""
    kinds = dict[str, list[tuple[float, str]]]()
    for at, wrong, request_id in sorted(heard.wrong):
        kinds.setdefault(wrong, []).append((at - began, request_id))
    for wrong, found in kinds.items():
        when = f"{found[0][0]:.1f} to {found[-1][0]:.1f} s after the beginning"
        print(f"NOT GOOD ENOUGH: {len(found)} × {wrong}, {when}, first for the request {found[0][1]}")
    for log in sorted(folder.glob("*.log")) if kinds else ():
        print(f"{log.name} ends with:", *log.read_text().splitlines()[-_LAST_LINES:], sep="\n  ")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
