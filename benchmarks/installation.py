"""A whole installation for one benchmark: tables in DynamoDB Local, the twin as a server for the rest of AWS, a database in a
temporary folder. Everything stops and goes at the end.

Nothing here may import a room at the top: the settings read the environment once, and it is set here.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django

from accessportal.demo.env import free_port

REGION = "eu-central-1"
_START_SECONDS = 300
RULES = """
rules:
  - name: at-once
    kind: aws_account
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {ous: [/Workloads, /Sandbox, /Infrastructure]}
    permission_sets: [PowerUserAccess, ReadOnlyAccess, ViewOnlyAccess]
    duration: {min: 1m, default: 1h, max: 1d}
    approval: {required: false}
  - name: one-approval
    kind: aws_account
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {ous: [/Workloads, /Sandbox, /Infrastructure]}
    permission_sets: [AdministratorAccess]
    duration: {min: 1m, default: 1h, max: 8h}
    approval: {required: true, quorum: 1, approvers: {groups: [/security]}}
    ticket: {required: true, pattern: "CHG-[0-9]+"}
"""
GROUPS = ("/engineering", "/engineering/payments", "/security", "/security/watch")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody in the directory and in the Identity Store."""

    email: str
    name: str
    group: str


PEOPLE = (
    *(Person(f"alice{number}@example.com", f"Alice {number}", "/engineering/payments") for number in range(10)),
    *(Person(f"bob{number}@example.com", f"Bob {number}", "/security") for number in range(10)),
    Person("sam@example.com", "Sam Osei", "/security/watch"),
)
# The admin of the root, and operator by founding.
OLGA = Person("olga@example.com", "Olga Berg", "/portal/operators")


@contextlib.contextmanager
def installation(
    *, accounts: int, permission_sets: int, folder: Path | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """People, rules, accounts and permission sets are there, no request yet; yields the twin's address."""
    with bare_installation(folder=folder, settings=settings) as twin_url:
        _build(accounts, permission_sets)
        yield twin_url


@contextlib.contextmanager
def bare_installation(*, folder: Path | None = None, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Tables, database and twin are there, and nothing in them; the environment names them to every process that is started.
    Yields the twin's address. ``folder`` keeps what is written to files; ``settings`` are others than :func:`environment`'s."""
    if not os.environ.get("AWS_ENDPOINT_URL_DYNAMODB"):
        raise SystemExit("DynamoDB Local is not running here. Use `make bench`, or python tools/dynamodb_local.py COMMAND.")
    with contextlib.ExitStack() as stack:
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        twin_url = stack.enter_context(twin_server(place))
        os.environ.update(environment(twin_url, place) | dict(settings or {}))
        os.environ["PORTAL_TABLE_PREFIX"] = f"bench-{secrets.token_hex(4)}-"
        join()
        _make_tables()
        yield twin_url


def environment(twin_url: str, folder: Path) -> dict[str, str]:
    """The settings of a portal beside this twin, with its database in ``folder``; which tables are its own is not among them."""
    return {
        "AWS_ENDPOINT_URL": twin_url,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "DJANGO_SETTINGS_MODULE": "accessportal.settings",
        "PORTAL_DATABASE_URL": f"sqlite:///{folder}/bench.sqlite3",
        "PORTAL_SANDBOX_PROVIDER_URL": f"{twin_url}/twin/provider",
        "PORTAL_SECRET_KEY": secrets.token_urlsafe(50),
        "PORTAL_SECURE": "false",
        "PORTAL_DEMO": "true",
        # A few people ask for everything: more than people do, but counted as theirs is.
        "PORTAL_ASKS_PER_MINUTE": "10000",
        "PORTAL_MOST_OPEN_REQUESTS": "0",
        # Sixteen of them work on requests at a time.
        "PORTAL_WEB_THREADS": "32",
        "PORTAL_LOG_LEVEL": "ERROR",
        "PORTAL_ALLOWED_HOSTS": "localhost,127.0.0.1",
    }


def _make_tables() -> None:
    from django.core.management import call_command

    from accessportal.commands.tables import ensure_all_tables
    from accessportal.kernel.clock import SystemClock

    call_command("migrate", verbosity=0)
    ensure_all_tables(clock=SystemClock())


def join() -> None:
    """Django is ready in this process, with the installation that the environment names."""
    django.setup()
    from accessportal.kernel.ports import set_after_commit

    # The benchmarks run what they measure themselves; nothing goes into the queue.
    set_after_commit(_nobody)


def set_twin(twin_url: str, **values: Any) -> None:
    """Change how the twin behaves (``job_seconds=0.1``)."""
    request = urllib.request.Request(f"{twin_url}/twin/settings", data=json.dumps(values).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=10):
        pass


@contextlib.contextmanager
def twin_server(folder: Path) -> Iterator[str]:
    """The twin as a process of its own, its journal and log in ``folder``; yields its address."""
    port = free_port()
    command = [sys.executable, "-m", "accessportal.twin", "--port", str(port), "--journal", str(folder / "twin.journal")]
    with (folder / "twin.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait_for(f"http://127.0.0.1:{port}/twin/health", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=2):
            return
        time.sleep(0.2)
    raise SystemExit(f"The twin did not answer at {address} within {_START_SECONDS} s.")


def _build(accounts: int, permission_sets: int) -> None:
    from accessportal.catalog import operations as catalog
    from accessportal.directory import operations as directory
    from accessportal.directory.states import GroupRole
    from accessportal.kernel.actors import system
    from accessportal.kernel.clock import SystemClock
    from accessportal.rules import operations as rules
    from accessportal.twin.world import seed_world

    clock, setup = SystemClock(), system("bench")
    directory.found_directory(
        admin_email=OLGA.email,
        admin_name=OLGA.name,
        operator_group="/portal/operators",
        auditor_group="/portal/auditors",
        actor=setup,
        now=clock.now(),
    )
    for group_id in GROUPS:
        directory.create_group(group_id=group_id, name=group_id, description="", actor=setup, now=clock.now())
    for one in PEOPLE:
        directory.create_person(
            email=one.email, name=one.name, group_id=one.group, role=GroupRole.CONTRIBUTOR, actor=setup, now=clock.now()
        )
    seed_world(accounts=accounts, permission_sets=permission_sets, people=(*PEOPLE, OLGA))
    catalog.sync_catalog(now=clock.now(), clock=clock)
    rules.apply_rules(text=RULES, actor=setup, now=clock.now())


def _nobody(_name: str, /, **_payload: str) -> None:
    return
