"""API tokens from a terminal."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Annotated

from rich.console import Console

from accessportal.authz.queries import read_scope
from accessportal.commands.base import command, document_of, first
from accessportal.commands.flags import BadUsage, Flag, Limit, read_whole_number
from accessportal.commands.terminal import Document, Facts, Listing, moment
from accessportal.kernel.actors import Actor
from accessportal.tokens import operations, queries
from accessportal.tokens.states import DEFAULT_DAYS, DEFAULT_RATE, ApiToken, Scope

_MOST_DAYS = 3650

_show = Facts(hidden={"audit_head"})


def _document(token: ApiToken, now: datetime) -> Document:
    """The token whole, with its state; its secret is no part of the record."""
    return document_of(token) | {"state": token.state(now)}


def _read_days(text: str, flag: str) -> int:
    days = read_whole_number(text, flag)
    if not 1 <= days <= _MOST_DAYS:
        raise BadUsage(f"Give 1 to {_MOST_DAYS} days, or --no-end for a token without an end.", flag=flag, code="days_out_of_range")
    return days


def _show_once(document: Document, console: Console) -> None:
    _show(document, console)
    console.print("Keep the token now: it is not shown again.")


@command('"Lab runner" --scope track --days 90 --as olga@example.com', show=_show_once, at_most_one_of=("days", "no_end"))
def create_token(
    name: Annotated[str, Flag("what the program is called, so that people know what they revoke", "NAME")],
    *,
    scope: Annotated[
        Scope,
        Flag(
            "track: lend sandboxes and give them back; admin: that, and the care of the whole pool; "
            "authz:check: ask about approvals and relationships; authz:write: that, and grant and revoke them; "
            "leases:ask: ask for account leases in people's names; leases:admin: that, and the care of the pool of accounts; "
            "history: ask who had access to what, as auditors may"
        ),
    ],
    home_scope: Annotated[
        str, Flag("with authz:check and authz:write: the scope that the token does not leave, as tenant:acme or global", "SCOPE")
    ] = "",
    rate: Annotated[int, Flag(f"requests a minute at most (default: {DEFAULT_RATE})", "N", read_whole_number)] = DEFAULT_RATE,
    days: Annotated[int, Flag(f"count for so many days (default: {DEFAULT_DAYS})", "N", _read_days)] = DEFAULT_DAYS,
    no_end: Annotated[bool, Flag("count until it is revoked, or until you are no operator any more")] = False,
    track: Annotated[
        list[str] | None,
        Flag("act for this track alone; may be repeated; lab-* for all that begin with lab- (default: any)", "TRACK"),
    ] = None,
    most_held: Annotated[
        int | None, Flag("hold so many sandboxes at a time, at most (default: any number)", "N", read_whole_number)
    ] = None,
    actor: Actor,
    now: datetime,
) -> Document:
    """Create an API token for a program and print it, this once: it can't be shown again. Operators may."""
    made = operations.create_token(
        name=name,
        scope=scope,
        rate_per_minute=rate,
        expires_at=None if no_end else now + timedelta(days=days),
        tracks=track or [],
        most_held=most_held,
        home_scope=read_scope(home_scope, field="home_scope") if home_scope else "",
        actor=actor,
        now=now,
    )
    return {"token": made.text, **_document(made.token, now)}


@command('3k9x0c2m7q1a --reason "The lab has closed" --as olga@example.com', show=_show)
def revoke_token(
    token_id: Annotated[str, Flag("the part after apt_, as list_tokens shows it", "TOKEN_ID")],
    *,
    reason: Annotated[str, Flag("kept in the history", "TEXT")] = "",
    actor: Actor,
    now: datetime,
) -> Document:
    """Revoke an API token: from now on it opens nothing. Revoking it again changes nothing. Operators may."""
    return _document(operations.revoke_token(token_id=token_id, reason=reason, actor=actor, now=now), now)


_LISTING = Listing(
    "tokens",
    {
        "token": "token_id",
        "name": "name",
        "scope": lambda row: " in ".join(filter(None, (row["scope"], row["home_scope"]))),
        "state": "state",
        "per minute": "rate_per_minute",
        "tracks": lambda row: " ".join(row["tracks"]) or "any",
        "created by": "created_by",
        "last used": moment("last_used_at", otherwise="never"),
        "until": moment("expires_at", otherwise="no end"),
    },
)


@command("--as olga@example.com", show=_LISTING)
def list_tokens(
    *,
    with_revoked: Annotated[bool, Flag("those that were revoked, too", name="--all")] = False,
    by: Annotated[str | None, Flag("every one that this person made, those that were revoked, too", "EMAIL")] = None,
    limit: Limit = 200,
    actor: Actor,
    now: datetime,
) -> Document:
    """List the API tokens that are not revoked, newest first, with when each was last used. For operators and auditors."""
    queries.may_see(actor=actor).require()
    fetch = queries.list_tokens if with_revoked else queries.list_unrevoked
    if by:
        fetch = partial(queries.list_of_maker, email=by)
    tokens, has_more = first(limit, lambda cursor: fetch(cursor=cursor))
    return {"tokens": [_document(token, now) for token in tokens], "has_more": has_more}
