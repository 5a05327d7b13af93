"""Who had access, and when, from a terminal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any

from rich.console import Console

from accessportal.commands.base import Outcome, command, first
from accessportal.commands.flags import Flag, read_moment, read_whole_number
from accessportal.commands.terminal import Columns, Document, moment, say, show_report, show_rows
from accessportal.history import operations, queries
from accessportal.history.states import Answer, Held, ThingKind
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.pages import Page

_PAGE = 200
_USUAL = timedelta(days=30)
_LIMIT = Flag("show so many at most (0: all; default: 200)", "N", read_whole_number)
_COLUMNS: Columns = {
    "who": "who",
    "what": lambda row: f"{row['interval']['thing']['kind']} {row['interval']['thing']['name']}",
    "right": lambda row: row["interval"]["right"],
    "from": moment("from_at"),
    "until": lambda row: moment("until")(row["interval"]),
    "gone": moment("over_at", otherwise="not yet"),
    "by": lambda row: row["interval"]["rule"] or row["interval"]["reason"],
    "decided by": lambda row: ", ".join(row["interval"]["decided_by"]),
    "through": lambda row: " in ".join(one["thing"]["name"] for one in row["path"]),
}


def _show(document: Document, console: Console) -> None:
    if document["held"]:
        show_rows(document["held"], _COLUMNS, console)
    else:
        console.print("Nobody." if "thing" in document else "Nothing.")
    if document["has_more"]:
        console.print("There are more: --limit 0 lists all.")
    for name in document["unfollowed"]:
        say(console, f"Incomplete: events of {name} could not be read.")
    say(console, moment("known_until")(document).join(("Known up to ", ": of what happened since, some may be missing.")))


def _all(limit: int, ask: Callable[[str | None], Answer]) -> dict[str, Any]:
    """As many of the pages as ``limit`` allows, in one document."""
    answers: list[Answer] = []

    def fetch(cursor: str | None) -> Page[Held]:
        answers.append(ask(cursor))
        return answers[-1].page

    held, has_more = first(limit, fetch)
    rows = [{"who": one.who, "from_at": one.from_at, "over_at": one.over_at, "interval": one.interval, "path": one.path} for one in held]
    unfollowed = sorted({name for answer in answers for name in answer.unfollowed})
    return {"held": rows, "has_more": has_more, "unfollowed": unfollowed, "known_until": answers[0].known_until}


@command("--account payments-prod --at 2026-03-02T08:15:00Z --as ana@example.com", show=_show, one_of=[kind.value for kind in ThingKind])
def who_had(
    *,
    account: Annotated[str | None, Flag("an account, by id or name", "ACCOUNT")] = None,
    group: Annotated[str | None, Flag("a group, by its path", "PATH")] = None,
    sandbox: Annotated[str | None, Flag("a sandbox, by its id", "ID")] = None,
    lease: Annotated[str | None, Flag("an account that is lent, by id or name", "ACCOUNT")] = None,
    approval: Annotated[str | None, Flag("a resource within its scope, like tenant:acme/docs/plan", "SCOPE/RESOURCE")] = None,
    relationship: Annotated[str | None, Flag("an object within its scope, like tenant:acme/team", "SCOPE/OBJECT")] = None,
    right: Annotated[str, Flag("only with this permission set, role, action or relation", "NAME")] = "",
    at: Annotated[datetime | None, Flag("the moment, like 2026-03-02T08:15:00Z (default: now)", "T", read_moment)] = None,
    begin: Annotated[datetime | None, Flag("or from this moment on (at most a year before --to)", "T", read_moment, name="--from")] = None,
    end: Annotated[datetime | None, Flag("before this moment (default: now, with --from)", "T", read_moment, name="--to")] = None,
    limit: Annotated[int, _LIMIT] = 200,
    actor: Actor,
    now: datetime,
) -> Document:
    """Show who had access to a thing at a moment, or in a time: since when, until when, by which request and rule, decided by whom. A group
    is followed by whoever was in it then. Auditors and operators may."""
    given = {"account": account, "group": group, "sandbox": sandbox, "lease": lease, "approval": approval, "relationship": relationship}
    kind, name = next((kind, text) for kind in ThingKind if (text := given[kind.value]) is not None)
    if (at and begin) or (end and not begin):
        raise InvalidRequest("Give --at, or --from with --to.", code="time_ambiguous", field="from")
    thing = queries.find_thing(kind, name)
    since, until = begin or at or now, (end or now) if begin else None

    def ask(cursor: str | None) -> Answer:
        return queries.who_had(thing=thing, right=right, at=since, until=until, cursor=cursor, limit=_PAGE, actor=actor)

    return {"thing": thing} | ({"from": since, "to": until} if begin else {"at": since}) | _all(limit, ask)


@command("alice@example.com --from 2026-03-01T00:00:00Z --to 2026-04-01T00:00:00Z --as ana@example.com", show=_show)
def what_had(
    email: Annotated[str, Flag("whose", "EMAIL")],
    *,
    begin: Annotated[datetime | None, Flag("from this moment on (default: 30 days before --to)", "T", read_moment, name="--from")] = None,
    end: Annotated[datetime | None, Flag("before this moment (default: now)", "T", read_moment, name="--to")] = None,
    limit: Annotated[int, _LIMIT] = 200,
    actor: Actor,
    now: datetime,
) -> Document:
    """Show everything that somebody had in a time, by themselves and by their groups. Everybody may for themselves, auditors and operators
    for all."""
    until = end or now
    since = begin or until - _USUAL

    def ask(cursor: str | None) -> Answer:
        return queries.what_had(email=email, begin=since, end=until, cursor=cursor, limit=_PAGE, actor=actor)

    return {"email": email, "from": since, "to": until} | _all(limit, ask)


@command("--minutes 30 --as olga@example.com", show=show_report)
def rebuild_history(
    *,
    minutes: Annotated[int, Flag("stop after so many minutes; the worker goes on (default: at the end)", "N", read_whole_number)] = 0,
    actor: Actor,
    clock: Clock,
) -> Outcome:
    """Make the history of who had what from nothing, out of the audit log, or go on where that was left. Nothing is answered meanwhile.
    After a restore of the tables it is needed."""
    until = clock.now() + timedelta(minutes=minutes) if minutes else None
    report = operations.rebuild(until=until, actor=actor, clock=clock)
    return Outcome(report, report.stopped)
