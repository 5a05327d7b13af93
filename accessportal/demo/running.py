"""The whole portal on this machine, for ``runportal``: the local twin of AWS, the demo's data, the worker and the web server."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from typing import IO
from urllib.parse import urlsplit

from django.core.management import call_command
from django.db import connections

from accessportal.demo import env
from accessportal.demo.accounts import POOL, SIZES
from accessportal.demo.loading import DemoReport, load_demo
from accessportal.demo.past import PAST_DAYS
from accessportal.demo.supervisor import NotReady, Part, PartFailed, Supervisor, only_one, stoppable
from accessportal.evidence import config as evidence
from accessportal.evidence.operations import export
from accessportal.evidence.queries import evidence_files
from accessportal.kernel.actors import system
from accessportal.kernel.clock import Clock, SystemClock
from accessportal.leases import operations as leases
from accessportal.mirror import operations as mirror
from accessportal.observe import health
from accessportal.rules import queries as rules
from accessportal.twin import world
from accessportal.twin.world_changes import hurried

_HOST = "127.0.0.1"
_READY_SECONDS = 300
_UNFINISHED = env.HOME / "unfinished"
_MANAGE = (sys.executable, "manage.py")

Say = Callable[[str], None]


def run_portal(*, port: int, say: Say, welcome: Callable[[DemoReport], None]) -> None:
    """Run everything until somebody asks to stop, and call ``welcome`` once the pages answer. :raises StopAsked: by ctrl-C or a signal.
    :raises AlreadyRunning: from this folder. :raises PartFailed: when a part can't be kept running."""
    with stoppable(), only_one(env.LOCK_FILE) as lock:
        # A killed portal's: what it tells is no longer there.
        env.ENV_FILE.unlink(missing_ok=True)
        _run_all(port, lock, say, welcome)


def _run_all(port: int, lock: IO[str], say: Say, welcome: Callable[[DemoReport], None]) -> None:
    if not env.is_port_free(_HOST, port):
        raise PartFailed(f"Port {port} is in use by another program. Choose another: PORT={port + 1} make run")
    supervisor = Supervisor(logs=env.HOME / "logs", lock=lock, say=say)
    with contextlib.ExitStack() as stack:
        stack.callback(supervisor.stop)
        say("Starting the local twin of AWS …")
        twin = supervisor.start("twin", _twin_command())
        supervisor.wait_for(twin, _answers(f"{os.environ['AWS_ENDPOINT_URL']}/twin/health"), seconds=_READY_SECONDS)
        _set_user_pool()
        _set_cleaner()
        world.seed_evidence(
            bucket=os.environ.get("PORTAL_EVIDENCE_BUCKET", ""), key_alias=os.environ.get("PORTAL_EVIDENCE_KMS_SIGNING_KEY", "")
        )
        stack.enter_context(env.published(os.environ))
        say("Preparing the tables and the demo …")
        report = _prepare(say)
        say("Starting the worker and the web server …")
        worker = supervisor.start("worker", (*_MANAGE, "run_worker"))
        web = supervisor.start("web", _web_command(port))
        _wait_until_ready(supervisor, web, worker, port, say)
        welcome(report)
        supervisor.watch()


def _prepare(say: Say) -> DemoReport:
    """Databases, tables, demo data, evidence of the past days and schedules are there: what is due is the worker's from its start on."""
    call_command("migrate", verbosity=0, interactive=False)
    call_command("create_tables", stdout=io.StringIO())
    clock = SystemClock()
    report = _load(say, clock)
    signer = evidence.current()
    if signer is not None:
        export(files=evidence_files(), signer=signer, actor=system("runportal"), clock=clock)
    call_command("apply_schedules", stdout=io.StringIO())
    # The supervisor stays for hours; a connection kept open would hold the database file.
    connections.close_all()
    return report


def _load(say: Say, clock: Clock) -> DemoReport:
    """The demo's data. The past that a first start has not made up when it is stopped is missing for good: each later start says so."""
    is_first = not rules.current_set().version
    if is_first:
        say(f"Making up a company and its last {PAST_DAYS // 7} weeks. This is done once, and may take some minutes …")
        _UNFINISHED.touch()
    elif _UNFINISHED.exists():
        say(f"The first start was stopped before its end, so parts of the demo are missing. Remove {env.HOME} to start afresh.")
    with hurried(os.environ["AWS_ENDPOINT_URL"]):
        report = load_demo(past_days=PAST_DAYS, clock=clock)
    if is_first:
        _UNFINISHED.unlink()
    return report


def _wait_until_ready(supervisor: Supervisor, web: Part, worker: Part, port: int, say: Say) -> None:
    """The pages answer. What of the worker's has not come in time is told, and no reason to end. :raises PartFailed: when one has ended, or
    the pages do not answer."""
    serves, works = (_answers(f"http://{_HOST}:{port}/{probe}") for probe in ("readyz", "workz"))
    try:
        supervisor.wait_for(web, serves, seconds=_READY_SECONDS)
    except PartFailed as error:
        raise PartFailed(f"{error}\nThe log {web.log} says what is missing (health.changed).") from error
    say("Waiting for the worker's first jobs …")
    try:
        supervisor.wait_for(worker, works, seconds=_READY_SECONDS)
    except NotReady:
        missing = health.work(now=SystemClock().now()).missing
        connections.close_all()
        lines = [f"  {part}: {why}" for part, why in missing.items()]
        head = f"The pages answer; the worker is late, and access comes and ends late until it has come. Its log: {worker.log}"
        say("\n".join([head, *lines]))


def _set_user_pool() -> None:
    """The demo's directory is mirrored: by this process, by those that it starts, and by commands in other terminals."""
    pool = mirror.ensure_user_pool(actor=system("runportal"))
    os.environ["PORTAL_USER_POOL_ID"] = pool.pool_id
    mirror.configure(mirror.MirrorSettings(user_pool_id=pool.pool_id))


def _set_cleaner() -> None:
    """As the user pool: accounts are cleaned by a machine of the twin, below one organizational unit alone."""
    lent = world.seed_lent(list(SIZES))
    os.environ |= {"PORTAL_LEASES_CLEANER_ARN": lent.machine_arn, "PORTAL_LEASES_UNITS": f"{POOL}={lent.unit_id}"}
    leases.configure(leases.LeaseSettings(cleaner_arn=lent.machine_arn, units={lent.unit_id: POOL}))


def _twin_command() -> tuple[str, ...]:
    port = urlsplit(os.environ["AWS_ENDPOINT_URL"]).port
    return (sys.executable, "-m", "accessportal.twin", "--port", str(port), "--journal", str(env.HOME / "twin.journal"))


def _web_command(port: int) -> tuple[str, ...]:
    address = f"{_HOST}:{port}"
    flags = ("--config", "gunicorn.conf.py", "--bind", address, "--workers", "1", "--graceful-timeout", "3", "--no-control-socket")
    return (sys.executable, "-m", "gunicorn", "accessportal.wsgi:application", *flags)


def _answers(url: str) -> Callable[[], bool]:
    """Whether ``url`` answers with 200."""

    def ask() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310  (an address of this machine)
                return bool(response.status == HTTPStatus.OK)
        except OSError:
            return False

    return ask
