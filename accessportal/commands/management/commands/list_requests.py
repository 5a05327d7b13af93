from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console

from accessportal.access_requests import queries
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.commands.base import Document, Outcome, PortalCommand, add_limit, first, limit_of
from accessportal.commands.requests import TARGETS, request_document, show_requests
from accessportal.kernel.actors import fold_email, system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.pages import Page

_ACTOR = system("commands")


class Command(PortalCommand):
    help = "List requests: those of a status, of a person or group, or stuck. Without a choice: what is pending or active."
    example = "list_requests --status ACTIVE --json"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--status", type=str.upper, choices=[status.value for status in Status], metavar="S", help="by end or deadline")
        which.add_argument("--subject", metavar="EMAIL", help="a person by e-mail address, or a group by path; newest first")
        which.add_argument("--stuck", action="store_true", help="work outside that is overdue or has failed again and again")
        parser.add_argument("--kind", choices=list(TARGETS), help="only those of this kind")
        add_limit(parser)

    def run(self, options: Mapping[str, Any]) -> Outcome:
        limit = limit_of(options)
        found: list[AccessRequest] = []
        has_more = False
        for fetch in _lists(options):
            some, more = first(limit, partial(_of_kind, options["kind"], fetch) if options["kind"] else fetch)
            found += some
            has_more = has_more or more
        return Outcome({"requests": [request_document(request) for request in found], "has_more": has_more})

    def show(self, document: Document, console: Console) -> None:
        if not document["requests"]:
            console.print("None.")
            return
        show_requests(document["requests"], console)
        if document["has_more"]:
            console.print("There are more: --limit 0 lists all.")


def _lists(options: Mapping[str, Any]) -> list[Callable[[str | None], Page[AccessRequest]]]:
    if options["stuck"]:
        return [lambda cursor: queries.list_stuck(actor=_ACTOR, now=SystemClock().now(), cursor=cursor)]
    if options["subject"] is not None:
        subject = options["subject"] if options["subject"].startswith("/") else fold_email(options["subject"])
        return [lambda cursor: queries.list_by_subject(subject_id=subject, actor=_ACTOR, now=SystemClock().now(), cursor=cursor)]
    wanted = [Status(options["status"])] if options["status"] else [Status.PENDING, Status.ACTIVE]
    return [partial(_by_status, status) for status in wanted]


def _of_kind(kind: str, fetch: Callable[[str | None], Page[AccessRequest]], cursor: str | None) -> Page[AccessRequest]:
    page = fetch(cursor)
    return replace(page, items=tuple(request for request in page.items if request.kind == kind))


def _by_status(status: Status, cursor: str | None) -> Page[AccessRequest]:
    return queries.list_by_status(status=status, actor=_ACTOR, now=SystemClock().now(), cursor=cursor)
