from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.commands.base import BadUsage, Document, Error, Outcome, PortalCommand
from accessportal.demo.directory import PEOPLE
from accessportal.demo.loading import DemoReport, sign_in_lines
from accessportal.demo.running import run_portal
from accessportal.demo.supervisor import AlreadyRunning, PartFailed, StopAsked


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
        try:
            run_portal(port=port, say=self._say, welcome=lambda report: self._welcome(port, report))
        except StopAsked:
            pass
        except (AlreadyRunning, PartFailed) as error:
            raise Error(str(error)) from error
        return Outcome({"stopped": True})

    def show(self, document: Document, console: Console) -> None:
        console.print("Stopped. Everything is kept in .portal/ for the next time.")

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
