"""Taking and giving back over HTTP, beside a program that makes the seed's own three calls with plain boto3
(:mod:`benchmarks.lending_plain`), on one DynamoDB Local with the same clients:

    python tools/dynamodb_local.py python -m benchmarks.lending_compared

First one client alone, then all of them, each program after the other. It takes a minute and a half.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accessportal.demo.env import free_port
from benchmarks.installation import bare_installation
from benchmarks.lending import Plan, make_token, run_clients
from benchmarks.lending_place import Part, Server, wait_until_it_answers

_BATCH = 25
_INDEXES = {"StatusIndex": "status", "TrackIndex": "allocated_to_track", "IdempotencyIndex": "idempotency_key"}

# By port.
_Servers = dict[int, Part]


@dataclass(frozen=True, slots=True)
class Figures:
    """What the clients of one program saw; times in milliseconds. ``cpu``: of its servers, for each hand-over and its end."""

    rate: float
    cpu: float
    take: tuple[float, float]
    release: tuple[float, float]
    refused: int
    dropped: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--takes", type=int, default=1_280, help="how many are lent by each program (default: %(default)s)")
    parser.add_argument("--alone", type=int, default=200, help="how many are lent to one client alone (default: %(default)s)")
    parser.add_argument("--pool", type=int, default=2_000, help="sandboxes in each pool (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=64, help="parallel clients, a multiple of four (default: %(default)s)")
    parser.add_argument("--servers", type=int, default=4, help="server processes of each program (default: %(default)s)")
    options = parser.parse_args()
    crowd = Plan(options.takes, options.pool, options.clients, options.servers, cleaners=0, seed=1, is_killing=False)
    alone = replace(crowd, takes=options.alone, clients=1)
    with bare_installation(), tempfile.TemporaryDirectory(prefix="compared-") as name:
        token = make_token()
        found = {}
        for program, place in (("theirs", _theirs), ("ours", _ours)):
            folder = Path(name) / program
            folder.mkdir()
            with place(folder, options.servers, options.pool) as servers:
                found[program] = [_measure(plan, servers, token, folder / str(plan.clients)) for plan in (alone, crowd)]
        _report(found, options.clients)
    return 0


@contextmanager
def _theirs(folder: Path, servers: int, pool: int) -> Iterator[_Servers]:
    table = f"{os.environ['PORTAL_TABLE_PREFIX']}Plain"
    _make_plain_table(table)
    _fill(table, (_plain_row(number) for number in range(pool)))
    found: _Servers = {}
    for port in (free_port() for _ in range(servers)):
        command = [sys.executable, "-m", "benchmarks.lending_plain", str(port), table]
        found[port] = Part(f"plain-{port}", command, folder / f"{port}.log")
    with _running(found):
        yield found


@contextmanager
def _ours(folder: Path, servers: int, pool: int) -> Iterator[_Servers]:
    from benchmarks.sandboxes import free_copies

    _fill(f"{os.environ['PORTAL_TABLE_PREFIX']}SandboxPool", free_copies(pool))
    found: _Servers = {server.port: server for server in (Server(number, folder) for number in range(servers))}
    with _running(found):
        yield found


@contextmanager
def _running(servers: _Servers) -> Iterator[None]:
    try:
        for part in servers.values():
            part.start()
        for port, part in servers.items():
            wait_until_it_answers(part, port)
        yield
    finally:
        for part in servers.values():
            part.stop()


def _measure(plan: Plan, servers: _Servers, token: str, folder: Path) -> Figures:
    from benchmarks import lending_proof

    folder.mkdir()
    used = _cpu_seconds(servers)
    run_clients(plan, ports=tuple(servers), token=token, folder=folder, again_share=0.0, longest_hold_seconds=0.0)
    used = _cpu_seconds(servers) - used
    heard = lending_proof.read(folder)
    began, ended = min(call["at"] for call in heard.calls), max(call["at"] + call["seconds"] for call in heard.calls)
    return Figures(
        rate=heard.count("released") / (ended - began),
        cpu=1000 * used / heard.count("released"),
        take=_quantiles(heard.calls, "take"),
        release=_quantiles(heard.calls, "release"),
        refused=sum(call["told"] in {"409", "503"} for call in heard.calls),
        dropped=sum(not call["told"].isdigit() for call in heard.calls),
    )


def _cpu_seconds(servers: _Servers) -> float:
    return sum(part.cpu_seconds() for part in servers.values())


def _quantiles(calls: Sequence[dict[str, Any]], verb: str) -> tuple[float, float]:
    from benchmarks.lending_proof import quantile

    spans = [1000 * call["seconds"] for call in calls if call["verb"] == verb]
    return quantile(spans, 0.5), quantile(spans, 0.99)


def _report(found: dict[str, list[Figures]], clients: int) -> None:
    print(f"\nload of this machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| clients | program | hand-overs a second | CPU ms each | take p50, p99 ms | release p50, p99 ms | refused | dropped |")
    print("| ------: | ------- | ------------------: | ----------: | ---------------: | ------------------: | ------: | ------: |")
    for at, many in enumerate((1, clients)):
        for program, figures in found.items():
            one = figures[at]
            take, release = (f"{p50:.1f}, {p99:.1f}" for p50, p99 in (one.take, one.release))
            print(f"| {many} | {program} | {one.rate:.1f} | {one.cpu:.1f} | {take} | {release} | {one.refused} | {one.dropped} |")
    (their_one, their_crowd), (our_one, our_crowd) = found["theirs"], found["ours"]
    print(
        f"\nours by theirs: alone take {our_one.take[0] / their_one.take[0]:.2f}, release {our_one.release[0] / their_one.release[0]:.2f}; "
        f"together rate {our_crowd.rate / their_crowd.rate:.2f}, take p99 {our_crowd.take[1] / their_crowd.take[1]:.2f}, "
        f"release p99 {our_crowd.release[1] / their_crowd.release[1]:.2f}"
    )


def _make_plain_table(name: str) -> None:
    names = ["PK", "SK", *_INDEXES.values(), "allocated_at"]
    _client().create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": one, "AttributeType": "N" if one == "allocated_at" else "S"} for one in names],
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": index,
                "KeySchema": [{"AttributeName": hash_key, "KeyType": "HASH"}, {"AttributeName": "allocated_at", "KeyType": "RANGE"}],
                "Projection": {"ProjectionType": "ALL"},
            }
            for index, hash_key in _INDEXES.items()
        ],
    )


def _plain_row(number: int) -> dict[str, Any]:
    sandbox_id = str(uuid.uuid4())
    texts = {"PK": f"SBX#{sandbox_id}", "SK": "META", "sandbox_id": sandbox_id, "name": f"lab-{number:06}", "external_id": f"ext-{number}"}
    numbers = {"lab_duration_hours": 4, "deletion_retry_count": 0, "allocated_at": 0, "created_at": 1759567084, "updated_at": 1759567084}
    row: dict[str, Any] = {name: {"S": text} for name, text in (texts | {"status": "available"}).items()}
    return row | {name: {"N": str(value)} for name, value in numbers.items()}


def _fill(table: str, items: Iterator[dict[str, Any]]) -> None:
    from benchmarks.sandboxes import write_all

    write_all(_client(), table, items)


def _client() -> Any:
    import boto3

    return boto3.session.Session().client("dynamodb")


if __name__ == "__main__":
    sys.exit(main())
