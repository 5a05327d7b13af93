"""The demo from a terminal: running everything on one machine, and filling it."""

from __future__ import annotations

import os
from typing import Annotated

from django.conf import settings
from rich.console import Console

from accessportal.commands import terminal
from accessportal.commands.base import Error, PortalCommand, command, document_of
from accessportal.commands.flags import BadUsage, Flag, read_whole_number
from accessportal.commands.terminal import Document, Facts, say
from accessportal.demo.directory import PEOPLE
from accessportal.demo.history import make_history
from accessportal.demo.loading import DemoReport, load_sandboxes, sign_in_lines
from accessportal.demo.loading import load_demo as load
from accessportal.demo.running import run_portal
from accessportal.demo.supervisor import AlreadyRunning, PartFailed, StopAsked
from accessportal.kernel.clock import Clock


def _show_loaded(document: Document, console: Console) -> None:
    Facts(hidden={"password", "sign_in"}, empty=())(document, console)
    say(console, f"Sign in with the password {document['password']} as {', '.join(document['sign_in'])}")


@command("--accounts 5000 --permission-sets 500 --requests 1000 --sandboxes 200", show=_show_loaded)
def load_demo(
    *,
    accounts: Annotated[int, Flag("so many AWS accounts (default: 60)", "N", read_whole_number)] = 60,
    permission_sets: Annotated[int, Flag("so many permission sets (default: 12)", "N", read_whole_number)] = 12,
    requests: Annotated[int, Flag("so many requests of history, finished and open ones (default: 0)", "N", read_whole_number)] = 0,
    sandboxes: Annotated[int, Flag("so many sandboxes in the twin and in the pool (default: 0)", "N", read_whole_number)] = 0,
    clock: Clock,
) -> Document:
    """Fill the portal with demo people, accounts and rules. What is there already stays as it is. Refused outside a demo."""
    if not settings.DEMO:
        raise Error("This is not a demo (PORTAL_DEMO is off): made-up people with a shared password would be a way in.")
    with terminal.progress() as progress:
        tell = terminal.bars(progress)
        report = load(accounts=accounts, permission_sets=permission_sets, clock=clock, progress=tell)
        for done, _request in enumerate(make_history(count=requests, now=clock.now()), start=1):
            tell("requests", done, requests)
        new = load_sandboxes(count=sandboxes, clock=clock, progress=tell) if sandboxes else 0
    return document_of(report) | {"requests": requests, "new_sandboxes": new, "sign_in": [one.email for one in PEOPLE]}


def _read_port(text: str, flag: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise BadUsage(f"“{text}” is not a port: give a whole number from 1 to 65535.", flag=flag, code="port_unreadable")
    return int(text)


def _show_stopped(_document: Document, console: Console) -> None:
    console.print("Stopped. Everything is kept in .portal/ for the next time.")


@command("--port 8001", show=_show_stopped)
def runportal(
    *,
    port: Annotated[int | None, Flag("the web server's port (default: the variable PORT, or 8000)", read=_read_port)] = None,
    this: PortalCommand,
) -> Document:
    """Run everything on this machine: the local twin of AWS, the tables, the demo's people, accounts and rules, the worker and the
    web server. Ctrl-C stops all of it; what was done is kept in .portal/ for the next time."""
    chosen = _read_port(os.environ.get("PORT", "8000"), "--port") if port is None else port
    if os.environ.get("AWS_ACCESS_KEY_ID") != "local-twin":
        raise Error("runportal must be started as: python manage.py runportal (manage.py prepares its environment).")
    try:
        run_portal(port=chosen, say=this.say, welcome=lambda report: _welcome(this, chosen, report))
    except StopAsked:
        pass
    except (AlreadyRunning, PartFailed) as error:
        raise Error(str(error)) from error
    return {"stopped": True}


def _welcome(this: PortalCommand, port: int, report: DemoReport) -> None:
    if this.as_json:
        this.print_json({"url": f"http://localhost:{port}/", "password": report.password, "people": [one.email for one in PEOPLE]})
        this.stdout.flush()
        return
    lines = ["", f"Access Portal is at http://localhost:{port}/", "", *sign_in_lines(report), ""]
    lines += ["Logs are in .portal/logs/. Commands in a second terminal reach the same data: .venv/bin/python manage.py list_requests"]
    this.say("\n".join([*lines, "Ctrl-C stops everything."]))
