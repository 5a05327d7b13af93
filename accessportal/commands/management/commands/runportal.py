from __future__ import annotations

import contextlib
import io
import os
import sys
import urllib.request
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import IO, Any
from urllib.parse import urlsplit

from django.core.management import call_command
from django.core.management.base import CommandParser
from django.db import connections
from rich.console import Console

from accessportal.commands import demo_env
from accessportal.commands.base import BadUsage, Document, Error, Outcome, PortalCommand
from accessportal.commands.demo import DemoReport, load_demo, sign_in_lines
from accessportal.commands.demo_directory import PEOPLE
from accessportal.commands.supervisor import AlreadyRunning, Part, PartFailed, StopAsked, Supervisor, only_one, stoppable
from accessportal.commands.tables import ensure_all_tables
from accessportal.directory import operations as directory
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.ports import after_commit

_HOST = "127.0.0.1"
_MANAGE = (sys.executable, "manage.py")


class Command(PortalCommand):
    help = (
        "Run everything on this machine: the local twin of AWS, the tables, the demo's people, accounts and rules, the worker and the "
        "web server. Ctrl-C stops all of it; what was done is kept in .portal/ for the next time."
    )
    example = "runportal --port 8001"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        default = os.environ.get("PORT", "8000")
        parser.add_argument("--port", default=default, help="the web server's port (default: the variable PORT, or 8000)")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        self._as_json = bool(options["as_json"])
        port = _read_port(str(options["port"]))
        if os.environ.get("AWS_ACCESS_KEY_ID") != "local-twin":
            raise Error("runportal must be started as: python manage.py runportal (manage.py prepares its environment).")
        with stoppable():
            try:
                with only_one(demo_env.LOCK_FILE) as lock:
                    # A killed portal's: what it tells is no longer there.
                    demo_env.ENV_FILE.unlink(missing_ok=True)
                    self._run_all(port, lock)
            except StopAsked:
                pass
            except (AlreadyRunning, PartFailed) as error:
                raise Error(str(error)) from error
        return Outcome({"stopped": True})

    def _run_all(self, port: int, lock: IO[str]) -> None:
        if not demo_env.is_port_free(_HOST, port):
            raise Error(f"Port {port} is in use by another program. Choose another: PORT={port + 1} make run")
        supervisor = Supervisor(logs=demo_env.HOME / "logs", lock=lock, say=self._say)
        with contextlib.ExitStack() as stack:
            stack.callback(supervisor.stop)
            self._say("Starting the local twin of AWS …")
            twin = supervisor.start("twin", _twin_command())
            supervisor.wait_for(twin, _answers(f"{os.environ['AWS_ENDPOINT_URL']}/twin/health"), seconds=60)
            _set_user_pool()
            stack.enter_context(demo_env.published(os.environ))
            report = self._prepare()
            self._say("Starting the worker and the web server …")
            supervisor.start("worker", (*_MANAGE, "run_worker"))
            web = supervisor.start("web", _web_command(port))
            self._wait_until_ready(supervisor, web, port)
            self._welcome(port, report)
            supervisor.watch()

    def show(self, document: Document, console: Console) -> None:
        console.print("Stopped. Everything is kept in .portal/ for the next time.")

    def _prepare(self) -> DemoReport:
        """Databases, tables, demo data and schedules are there, and a first tick and sweep are queued for the worker."""
        self._say("Preparing the tables and the demo …")
        call_command("migrate", verbosity=0, interactive=False)
        ensure_all_tables(clock=SystemClock())
        report = load_demo(clock=SystemClock())
        call_command("apply_schedules", stdout=io.StringIO())
        after_commit("tick")
        after_commit("mirror_directory")
        # The supervisor stays for hours; a connection kept open would hold the database file.
        connections.close_all()
        return report

    def _wait_until_ready(self, supervisor: Supervisor, web: Part, port: int) -> None:
        serves, works = (_answers(f"http://{_HOST}:{port}/{probe}") for probe in ("readyz", "workz"))
        try:
            supervisor.wait_for(web, lambda: serves() and works(), seconds=60)
        except PartFailed as error:
            hint = "The logs .portal/logs/web.log (health.changed) and .portal/logs/worker.log say what is missing."
            raise PartFailed(f"{error}\n{hint}") from error

    def _welcome(self, port: int, report: DemoReport) -> None:
        if self._as_json:
            self.print_json({"url": f"http://localhost:{port}/", "password": report.password, "people": [one.email for one in PEOPLE]})
            self.stdout.flush()
            return
        lines = ["", f"Access Portal is at http://localhost:{port}/", "", *sign_in_lines(report), ""]
        lines += ["Logs are in .portal/logs/. Commands in a second terminal reach the same data: .venv/bin/python manage.py list_requests"]
        lines += ["Ctrl-C stops everything."]
        self._say("\n".join(lines))

    def _say(self, text: str) -> None:
        """To people; with ``--json`` standard output is for the program that reads it."""
        stream = self.stderr if self._as_json else self.stdout
        stream.write(text, style_func=str)
        stream.flush()


def _read_port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise BadUsage(f"“{text}” is not a port: give a whole number from 1 to 65535.", flag="--port", code="port_unreadable")
    return int(text)


def _set_user_pool() -> None:
    """The demo's directory is mirrored: by this process, by those that it starts, and by commands in other terminals."""
    pool = directory.ensure_user_pool(actor=system("runportal"))
    os.environ["PORTAL_USER_POOL_ID"] = pool.pool_id
    directory.configure(directory.DirectorySettings(user_pool_id=pool.pool_id))


def _twin_command() -> tuple[str, ...]:
    port = urlsplit(os.environ["AWS_ENDPOINT_URL"]).port
    return (sys.executable, "-m", "accessportal.twin", "--port", str(port), "--journal", str(demo_env.HOME / "twin.journal"))


def _web_command(port: int) -> tuple[str, ...]:
    flags = ("--bind", f"{_HOST}:{port}", "--workers", "1", "--threads", "8", "--graceful-timeout", "3", "--no-control-socket")
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
