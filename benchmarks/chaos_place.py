"""Where :mod:`benchmarks.chaos` happens: two web hosts, two worker hosts, and everything that they lean on, some of it behind a proxy.

The hosts reach DynamoDB and the issuer through a proxy each. This process reaches them directly: it is the one that tells the truth.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.chaos_proxy import Proxy
from benchmarks.installation import PEOPLE, installation, set_twin
from benchmarks.lending_place import Part, Server, wait_until_it_answers
from tests.oidc import local_issuer
from tools import dynamodb_local, postgres

METRICS_TOKEN = "a-token-for-the-metrics"
_ACCOUNTS = 12
_PERMISSION_SETS = 4
_JOB_SECONDS = 0.5


class Missing(Exception):
    """Something that this machine must have; the message says what to install."""


class WorkerHost(Part):
    def __init__(
        self, number: int, folder: Path, settings: Mapping[str, str], *, program: Sequence[str] = ("manage.py", "run_worker")
    ) -> None:
        super().__init__(f"worker-{number}", [sys.executable, *program], folder / f"worker-{number}.log", settings=settings)


@dataclass(frozen=True, slots=True)
class Place:
    """``shifted`` is a worker host with its clock ahead; it runs only in the place of the second one."""

    folder: Path
    webs: tuple[Server, Server]
    workers: tuple[WorkerHost, WorkerHost]
    shifted: WorkerHost
    dynamodb: Proxy
    issuer: Proxy
    database: postgres.Cluster

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.webs, *self.workers, self.shifted)

    @property
    def journal(self) -> Path:
        """The twin's own book of what was done."""
        return self.folder / "twin.journal"


@contextlib.contextmanager
def place(folder: Path, *, slow_seconds: float, drop_share: float, seed: int) -> Iterator[Place]:
    """Everything answers; whatever happens, nothing of it runs any more at the end.

    :raises Missing: when this machine lacks a program.
    """
    with contextlib.ExitStack() as stack:
        try:
            engine_url = stack.enter_context(dynamodb_local.running(dynamodb_local.emulator()))
            database = stack.enter_context(postgres.running())
        except (dynamodb_local.Missing, postgres.Missing) as error:
            raise Missing(str(error)) from error
        os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = engine_url
        dynamodb = stack.enter_context(Proxy(_port_of(engine_url), slow_seconds=slow_seconds, drop_share=drop_share, seed=seed))
        issuer = stack.enter_context(_issuer())
        settings = _settings(database, issuer.url)
        twin_url = stack.enter_context(installation(accounts=_ACCOUNTS, permission_sets=_PERMISSION_SETS, folder=folder, settings=settings))
        set_twin(twin_url, job_seconds=_JOB_SECONDS)
        behind = {"AWS_ENDPOINT_URL_DYNAMODB": dynamodb.url}
        found = Place(
            folder=folder,
            webs=(Server(0, folder, settings=behind), Server(1, folder, settings=behind)),
            workers=(WorkerHost(0, folder, behind), WorkerHost(1, folder, behind)),
            shifted=WorkerHost(2, folder, behind, program=("-m", "benchmarks.chaos_clock")),
            dynamodb=dynamodb,
            issuer=issuer,
            database=database,
        )
        stack.callback(_stop, found.parts)
        for running in (*found.webs, *found.workers):
            running.start()
        for web in found.webs:
            wait_until_it_answers(web, web.port)
        yield found


def _stop(parts: Sequence[Part]) -> None:
    """All at once: each takes its time to end what it is at."""
    with ThreadPoolExecutor(len(parts)) as pool:
        for done in [pool.submit(part.stop) for part in parts]:
            done.result()


@contextlib.contextmanager
def _issuer() -> Iterator[Proxy]:
    """Everybody's account is known there, and its name is the proxy's address."""
    with local_issuer.running() as issuer, Proxy(_port_of(issuer.url)) as proxy:
        issuer.url = proxy.url
        for one in PEOPLE:
            issuer.know(one.email, one.name)
        yield proxy


def _settings(database: postgres.Cluster, issuer_url: str) -> dict[str, str]:
    return {
        "PORTAL_DATABASE_URL": database.url,
        "PORTAL_DEMO": "false",
        "PORTAL_OIDC_ISSUER": issuer_url,
        "PORTAL_OIDC_CLIENT_ID": local_issuer.CLIENT_ID,
        "PORTAL_OIDC_CLIENT_SECRET": local_issuer.CLIENT_SECRET,
        "PORTAL_METRICS_TOKEN": METRICS_TOKEN,
        "PORTAL_WORKERS": "1",
        "PORTAL_LOG_LEVEL": "WARNING",
    }


def _port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port
