"""Many clients borrow sandboxes over HTTP from several server processes, and everything that they are told is checked:

    python tools/dynamodb_local.py python -m benchmarks.lending [--kill]

The twin is the provider; its deletions sometimes fail or lose their answer. With ``--kill`` servers and cleaners are killed
(``SIGKILL``) at random and started again; clients send the same request until it is answered. Exit code 1 when two clients
held one sandbox, one was lost, or one client was told "none available" while one was free.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.installation import bare_installation, set_twin
from benchmarks.lending_clients import Task
from benchmarks.lending_place import Killer, place

if TYPE_CHECKING:
    from benchmarks.lending_proof import Heard

CLIENT_PROCESSES = 4
# The most that a token may be given, a minute.
RATE = 100_000
_VERBS = ("take", "take again", "get", "release", "release again")


@dataclass(frozen=True, slots=True)
class Plan:
    """``slack_seconds``: at most so long after an event's time its change was written."""

    takes: int
    pool: int
    clients: int
    servers: int
    cleaners: int
    seed: int
    is_killing: bool
    slack_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class Result:
    """``seconds`` from the first question to the last answer; ``problems`` is empty when all is well."""

    heard: Heard
    seconds: float
    drain_seconds: float
    kills: dict[str, int]
    problems: list[str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--takes", type=int, default=10_000, help="how many are lent (default: %(default)s)")
    parser.add_argument("--pool", type=int, default=500, help="sandboxes in the pool (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=64, help="parallel clients, a multiple of four (default: %(default)s)")
    parser.add_argument("--servers", type=int, default=4, help="server processes (default: %(default)s)")
    parser.add_argument("--cleaners", type=int, default=2, help="cleaner processes (default: %(default)s)")
    parser.add_argument("--kill", action="store_true", help="kill and restart processes at random")
    parser.add_argument("--seed", type=int, default=1, help="of clients and killer (default: %(default)s)")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="leave receipts and logs there")
    options = parser.parse_args()
    plan = Plan(options.takes, options.pool, options.clients, options.servers, options.cleaners, options.seed, options.kill)
    with ExitStack() as stack:
        twin_url = stack.enter_context(bare_installation())
        set_twin(twin_url, sandbox_fail_delete=0.02, sandbox_lose_answer=0.02, seed=plan.seed)
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lending-")))
        folder.mkdir(parents=True, exist_ok=True)
        return _report(plan, lend(plan, twin_url=twin_url, folder=folder))


def lend(plan: Plan, *, twin_url: str, folder: Path) -> Result:
    """A pool is filled, lent from, drained and checked; Django is ready here, and the environment names tables and provider."""
    from benchmarks import lending_proof

    _fill(twin_url, plan.pool)
    token = make_token()
    since = time.time()
    with place(folder, servers=plan.servers, cleaners=plan.cleaners) as (servers, cleaners):
        began = time.monotonic()
        with ExitStack() as stack:
            killer = stack.enter_context(Killer(servers, cleaners, seed=plan.seed)) if plan.is_killing else None
            run_clients(plan, ports=tuple(server.port for server in servers), token=token, folder=folder)
        seconds = time.monotonic() - began
    drain_seconds = lending_proof.drain()
    heard = lending_proof.read(folder)
    problems = list(lending_proof.problems(heard, pool=plan.pool, since=since, slack_seconds=plan.slack_seconds))
    if heard.count("taken") != plan.takes or heard.count("released") != plan.takes:
        problems.append(f"{heard.count('taken')} taken and {heard.count('released')} released, not {plan.takes}")
    return Result(heard, seconds, drain_seconds, killer.kills if killer else {}, problems)


def run_clients(plan: Plan, *, ports: tuple[int, ...], token: str, folder: Path, **habits: float) -> None:
    """All clients, until each has done its share. ``habits`` are others than those of :class:`Task`."""
    count = min(CLIENT_PROCESSES, plan.clients)
    threads, (takes, rest) = plan.clients // count, divmod(plan.takes, count)
    tasks = [Task(number, ports, token, str(folder), threads, takes + (number < rest), plan.seed, **habits) for number in range(count)]
    processes = [subprocess.Popen(task.start_arguments()) for task in tasks]
    try:
        for process in processes:
            if process.wait():
                raise SystemExit("A client process ended with an error; it is above.")
    finally:
        for process in processes:
            process.kill()


def make_token() -> str:
    from accessportal.kernel.actors import system
    from accessportal.kernel.clock import SystemClock
    from accessportal.tokens import operations
    from accessportal.tokens.states import Scope

    # Made by no person, so that there needs to be no directory in which they are an operator.
    actor = system("benchmark")
    return operations.create_token(name="lending", scope=Scope.TRACK, rate_per_minute=RATE, actor=actor, now=SystemClock().now()).text


def _fill(twin_url: str, count: int) -> None:
    from accessportal.kernel.clock import SystemClock
    from accessportal.sandboxes import operations
    from accessportal.twin.provider_world import seed_sandboxes
    from accessportal.upstream.client import provider

    seed_sandboxes(provider_url=f"{twin_url}/twin/provider", count=count, progress=lambda *_: None)
    plan = operations.sync(provider=provider(), apply=True, clock=SystemClock())
    assert len(plan.new) == count, plan
    assert plan.failures == ()


def _report(plan: Plan, result: Result) -> int:
    heard = result.heard
    print(
        f"\n{plan.clients} clients, {plan.servers} servers, {plan.cleaners} cleaners, a pool of {plan.pool}: "
        f"{heard.count('taken')} taken, {heard.count('released')} released, {heard.count('none')} times none available, "
        f"in {result.seconds:.0f} s ({heard.count('taken') / result.seconds:.1f} hand-overs a second); "
        f"cleaned up {result.drain_seconds:.0f} s later; load of this machine {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores"
    )
    if result.kills:
        print("killed and started again: " + ", ".join(f"{count} × {name}" for name, count in result.kills.items()))
    _show_calls(heard)
    for problem in result.problems[:50]:
        print(f"NOT GOOD ENOUGH: {problem}")
    if len(result.problems) > 50:
        print(f"NOT GOOD ENOUGH: and {len(result.problems) - 50} more")
    return 1 if result.problems else 0


def _show_calls(heard: Heard) -> None:
    from benchmarks.lending_proof import quantile

    print(f"\n| {'call':<14} | {'told':<22} | {'calls':>6} | {'p50 ms':>7} | {'p99 ms':>7} | {'max ms':>7} |")
    print(f"| {'-' * 14} | {'-' * 22} | {'-' * 5}: | {'-' * 6}: | {'-' * 6}: | {'-' * 6}: |")
    for verb in _VERBS:
        for told in sorted({call["told"] for call in heard.calls if call["verb"] == verb}):
            spans = [1000 * call["seconds"] for call in heard.calls if (call["verb"], call["told"]) == (verb, told)]
            figures = [quantile(spans, 0.5), quantile(spans, 0.99), max(spans)]
            print(f"| {verb:<14} | {told:<22} | {len(spans):>6} | " + " | ".join(f"{one:>7.0f}" for one in figures) + " |")


if __name__ == "__main__":
    sys.exit(main())
