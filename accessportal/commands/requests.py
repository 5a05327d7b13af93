"""Requests from a terminal: ask, decide, extend, end, show, list, explain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from rich.console import Console

from accessportal.access_requests import operations, queries
from accessportal.access_requests.kind import KINDS
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.commands.base import command, document_of, first
from accessportal.commands.directory import group_named, show_reach
from accessportal.commands.flags import BadUsage, Flag, Flags, Limit, Text, read_duration
from accessportal.commands.terminal import Document, Facts, Listing, moment, say
from accessportal.kernel.actors import Actor, fold_email, system
from accessportal.kernel.durations import format_duration
from accessportal.kernel.ids import new_submission_id
from accessportal.kernel.pages import Page, Unreadable
from accessportal.rules import queries as rules

_ACTOR = system("commands")


def _target_flags() -> dict[str, Flag]:
    asked = [(kind.name, field) for kind in KINDS.values() for field in kind.fields.target]
    kinds = {field.name: " or ".join(name for name, other in asked if other.name == field.name) for _, field in asked}
    return {field.name: Flag(f"kind {kinds[field.name]}: {field.about}", field.metavar) for _, field in asked}


Kind = Annotated[str, Flag("of access (default: aws_account)", choices=tuple(KINDS))]
Target = Annotated[str, Flags(_target_flags)]
"""A flag for each part of the target of each kind."""
RequestId = Annotated[str, Flag(metavar="REQUEST_ID")]

_OF_COMMENT = ("number", "kind", "written_by", "written_at", "text")
show_request_facts = Facts(hidden={"history", "thread", "unreadable"}, words={"duration_seconds": format_duration})


def _target(kind: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return what the flags ask for. BadUsage when a flag of the kind is missing, or one of another kind is given."""
    names = [field.name for field in KINDS[kind].fields.target]
    for other in KINDS.values():
        for field in other.fields.target:
            if field.name in given and field.name not in names:
                text = f"it belongs to kind {other.name}; this is kind {kind}. Give --kind {other.name}, or leave it out."
                raise BadUsage(text, flag=_flag(field.name), code="flag_of_other_kind")
    for name in KINDS[kind].fields.needed:
        if name not in given:
            flags = " and ".join(map(_flag, names))
            raise BadUsage(f"it is missing: kind {kind} needs {flags}.", flag=_flag(name), code="flag_missing")
    return {name: given.get(name, "") for name in names}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def document_of_request(request: AccessRequest) -> dict[str, Any]:
    """The request whole, ``request_id`` first, with its title in words."""
    return document_of(request) | {"title": queries.describe(request=request).title}


@command(
    '--as alice@example.com --account payments-dev --permission-set PowerUserAccess --duration 30m --reason "Look into the failed payout"',
    show=show_request_facts,
)
def request_access(
    *,
    kind: Kind = "aws_account",
    duration: Annotated[int | None, Flag("like 30m, 8h, 2h30m or PT8H (default: the rule's duration.default)", "D", read_duration)] = None,
    reason: Annotated[str, Flag("why; the approvers and the audit log see it", "TEXT")],
    ticket: Annotated[str, Flag("the ticket, where the rule asks for one", "T")] = "",
    submission_id: Annotated[str, Flag("sent again with the same token: the same request", "TOKEN")] = "",
    actor: Actor,
    now: datetime,
    **given: Target,
) -> Document:
    """Ask for a permission set in an AWS account, membership in a group, a sandbox, an approval or a relationship.

    Prints the request, its id first."""
    target = _target(kind, given)
    request = operations.submit(
        kind=kind,
        subject_id=None,
        target=target,
        duration_seconds=duration,
        reason=reason,
        ticket_id=ticket,
        submission_id=submission_id or new_submission_id(),
        actor=actor,
        now=now,
    )
    return document_of_request(request)


@command('3f0c6a52-5d0e-4c8f-9a57-0a7c1f6d2b11 deny --as bob@example.com --reason "Use the staging account"', show=show_request_facts)
def decide(
    request_id: RequestId,
    decision: Annotated[str, Flag(choices=("approve", "deny"))],
    *,
    reason: Annotated[str, Flag("needed to deny; the requester sees it", "TEXT")] = "",
    actor: Actor,
    now: datetime,
) -> Document:
    """Approve or deny a request."""
    verb = operations.approve if decision == "approve" else operations.deny
    return document_of_request(verb(request_id=request_id, reason=reason, actor=actor, now=now))


@command("3f0c6a52-5d0e-4c8f-9a57-0a7c1f6d2b11 --as alice@example.com --duration 2h", show=show_request_facts)
def extend_access(
    request_id: RequestId,
    *,
    duration: Annotated[int, Flag("like 30m, 8h, 2h30m or PT8H, from now", "D", read_duration)],
    reason: Annotated[str, Flag("why (default: the reason of the first request)", "TEXT")] = "",
    ticket: Annotated[str, Flag("the ticket (default: the one of the first request)", "T")] = "",
    actor: Actor,
    now: datetime,
) -> Document:
    """Ask for more time: a further request for the same thing, with its own decision. Prints the new request, its id first."""
    request = operations.extend(
        request_id=request_id,
        duration_seconds=duration,
        reason=reason,
        ticket_id=ticket,
        submission_id=new_submission_id(),
        actor=actor,
        now=now,
    )
    return document_of_request(request)


@command("3f0c6a52-5d0e-4c8f-9a57-0a7c1f6d2b11 --as alice@example.com", show=show_request_facts)
def end_access(request_id: RequestId, *, reason: Text = "", actor: Actor, now: datetime) -> Document:
    """End an access before its time, with what extends it. Its holder, an approver of its rule and an operator may."""
    return document_of_request(operations.end(request_id=request_id, reason=reason, actor=actor, now=now))


def _show_with_history(document: Document, console: Console) -> None:
    show_request_facts(document, console)
    console.print("history:")
    for event in document["history"]:
        say(console, f"  {event['at']}  {event['action']}  by {event['actor']}")
    for one in document["thread"]:
        say(console, f"{one['kind'].lower()} {one['number']} by {one['written_by']}, {one['written_at']}: {one['text']}")
    for words in document["unreadable"]:
        say(console, words)


@command("3f0c6a52-5d0e-4c8f-9a57-0a7c1f6d2b11 --json", show=_show_with_history)
def show_request(request_id: RequestId, *, now: datetime) -> Document:
    """Show one request whole: its state, place in the line, facts, receipts, history and comments."""
    request = queries.get(request_id=request_id, actor=_ACTOR, now=now)
    place = queries.place_in_line(request=request, now=now)
    unreadable: list[Unreadable] = []
    comments = queries.thread_of(request=request, past=unreadable.append)
    thread = [{name: value for name, value in document_of(one).items() if name in _OF_COMMENT} for one in comments]
    told = {"place": place, "history": queries.history(request=request), "thread": thread, "unreadable": list(map(str, unreadable))}
    return document_of_request(request) | told


_LISTING = Listing(
    "requests",
    {
        "request": "request_id",
        "status": "status",
        "work": "work",
        "subject": "subject_id",
        "what": "title",
        "until": moment("expires_at"),
        "problem": "work_error",
    },
)


@command("--status ACTIVE --json", show=_LISTING, at_most_one_of=("status", "subject", "stuck"))
def list_requests(
    *,
    status: Annotated[Status | None, Flag("by end or deadline", "S")] = None,
    subject: Annotated[str | None, Flag("a person by e-mail address, or a group by path; newest first", "EMAIL")] = None,
    stuck: Annotated[bool, Flag("work outside that is overdue or has failed again and again")] = False,
    kind: Annotated[str | None, Flag("only those of this kind", choices=tuple(KINDS))] = None,
    limit: Limit = 200,
    now: datetime,
) -> Document:
    """List requests: those of a status, of a person or group, or stuck. Without a choice: what is pending or active."""
    fetch: list[Callable[[str | None], Page[AccessRequest]]]
    if stuck:
        fetch = [lambda cursor: queries.list_stuck(actor=_ACTOR, now=now, cursor=cursor)]
    elif subject is not None:
        subject_id = subject if subject.startswith("/") else fold_email(subject)
        fetch = [lambda cursor: queries.list_by_subject(subject_id=subject_id, actor=_ACTOR, now=now, cursor=cursor)]
    else:
        wanted = [status] if status else [Status.PENDING, Status.ACTIVE]
        fetch = [partial(_by_status, one, now) for one in wanted]
    found, has_more = first(limit, *(partial(_of_kind, kind, one) if kind else one for one in fetch))
    return {"requests": list(map(document_of_request, found)), "has_more": has_more}


def _of_kind(kind: str, fetch: Callable[[str | None], Page[AccessRequest]], cursor: str | None) -> Page[AccessRequest]:
    page = fetch(cursor)
    return replace(page, items=tuple(request for request in page.items if request.kind == kind))


def _by_status(status: Status, now: datetime, cursor: str | None) -> Page[AccessRequest]:
    return queries.list_by_status(status=status, actor=_ACTOR, now=now, cursor=cursor)


_VERDICTS = {"at_once": "Allowed at once", "needs_approval": "Allowed after approval", "impossible": "Not possible"}


def _show_explained(document: Document, console: Console) -> None:
    if "reach" in document:
        show_reach(document, console)
        return
    say(console, f"{_VERDICTS[document['outcome']]}: {document['reason']}")
    if document["rule_name"]:
        console.print(f"rule: {document['rule_name']}")
    if document["max_duration_seconds"]:
        console.print(f"longest: {format_duration(document['max_duration_seconds'])}")
    if document["approvers"]:
        people = ", ".join(person["email"] for person in document["approvers"]["people"]) or "nobody"
        others = "" if document["approvers"]["is_whole"] else ", perhaps others in the groups below"
        say(console, f"approvals needed: {document['quorum']}, by {people}{others}")
    for remedy in document["remedies"]:
        say(console, f"would change it: {remedy}")
    for name, reasons in document["misses"]:
        say(console, f"{name} does not decide: {' '.join(reasons)}")


@command("--as alice@example.com --account payments-prod --permission-set ReadOnlyAccess --duration 4h", show=_show_explained)
def explain_rule(
    *,
    kind: Kind = "aws_account",
    reaching: Annotated[str | None, Flag("say instead which rules the people in this group approve or are served by", "PATH")] = None,
    duration: Annotated[int | None, Flag("like 30m, 8h, 2h30m or PT8H; without it, it is not judged", "D", read_duration)] = None,
    ticket: Annotated[str | None, Flag("without it, it is not judged", "T")] = None,
    actor: Actor,
    now: datetime,
    **given: Target,
) -> Document:
    """Say what the rules answer to a person asking for something, why, who could approve, and what would change it."""
    if reaching is not None:
        place = group_named(reaching)
        return {
            "group_id": place.group_id,
            "reach": rules.reach_of(group_id=place.group_id, groups_above=place.ancestors, among=rules.current_rules()),
        }
    target = _target(kind, given)
    decision, preview = queries.explain(
        kind=kind, subject_id=actor.name, target=target, duration_seconds=duration, ticket_id=ticket, book=queries.ApproverBook(now=now)
    )
    return {"allowed": decision.allowed, "outcome": preview.outcome, "code": decision.code} | document_of(preview)
