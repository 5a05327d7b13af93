"""The pool of AWS accounts and its leases from a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from rich.console import Console

from accessportal.access_requests import operations as requests
from accessportal.access_requests.queries import get as find_request
from accessportal.commands.base import Outcome, command, document_of, failed, first
from accessportal.commands.flags import BadUsage, Flag, Limit, Text, read_duration, read_pairs, share
from accessportal.commands.requests import document_of_request, show_request_facts
from accessportal.commands.terminal import Document, Facts, Listing, moment, say, show_report, with_history
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.brakes import MOST_SHARE
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict
from accessportal.kernel.ids import new_submission_id
from accessportal.kernel.pages import every
from accessportal.leases import operations, queries
from accessportal.leases.operations import NewAccount
from accessportal.leases.states import AccountState

AccountId = Annotated[str, Flag("twelve digits", "ACCOUNT_ID")]
LeaseId = Annotated[str, Flag("as show_account tells it", "LEASE_ID")]
Why = Annotated[str, Flag("kept in the history", "TEXT")]
MaybePool = Annotated[str, Flag("only those of this pool", "POOL")]
_HIDDEN = {"audit_head", "version", "history"}

_show = Facts(hidden=_HIDDEN, empty=(None, "", 0, [], {}, False))


def _read_ids(text: str, _flag: str) -> Sequence[str]:
    return [one for one in text.replace(",", " ").split() if one]


@command(
    "111111111111,222222222222 --pool workshop --size small --tag env=dev --as olga@example.com",
    show=Listing("accounts", {"account": "account_id", "state": "state", "pool": "pool"}),
)
def add_accounts(
    accounts: Annotated[Sequence[str], Flag("twelve digits each, with commas between", "ACCOUNT_IDS", _read_ids)],
    *,
    pool: Annotated[str, Flag("the label of the pool that they come into", "POOL")],
    name: Annotated[str, Flag("what people call it, where it is one", "TEXT")] = "",
    size: Annotated[str, Flag("what people may ask for, like small", "SIZE")] = "",
    tag: Annotated[list[str] | None, Flag("what people may ask for, too; may be repeated", "NAME=VALUE")] = None,
    actor: Actor,
    now: datetime,
) -> Document:
    """Bring AWS accounts into the pool. Each is cleaned before anybody gets it: EVERYTHING IN IT GOES. Those that are in it stay as they
    are. Operators may."""
    if name and len(accounts) != 1:
        raise BadUsage("Give --name with one account alone.", flag="--name", code="name_of_many")
    tags = read_pairs(tag or (), "--tag")
    made = operations.add_accounts([NewAccount(one, name, size, tags) for one in accounts], pool=pool, actor=actor, now=now)
    return {"accounts": [document_of(one) for one in made], "has_more": False}


@command('111111111111 --reason "The project is over" --as olga@example.com', show=_show)
def retire_account(account_id: AccountId, *, reason: Why, actor: Actor, now: datetime) -> object:
    """Take an account out of the pool: at once when nobody has it, else when it is given back. Operators may."""
    return operations.retire(account_id=account_id, reason=reason, actor=actor, now=now)


_LISTING = Listing(
    "accounts",
    {
        "account": "account_id",
        "name": "name",
        "pool": "pool",
        "size": "size",
        "state": "state",
        "person": "user",
        "since": moment("since"),
        "problem": lambda row: row["reason"] or row["error"],
    },
)


@command("--pool workshop --state failed --json", show=_LISTING)
def list_pool(
    *,
    pool: MaybePool = "",
    state: Annotated[AccountState | None, Flag("only those in this state")] = None,
    limit: Limit = 200,
) -> Document:
    """List the accounts of the pool."""
    found, has_more = first(limit, lambda cursor: queries.list_accounts(pool=pool, state=state, cursor=cursor))
    return {"accounts": [document_of(one) for one in found], "has_more": has_more}


@command("111111111111", show=with_history(_show))
def show_account(account_id: AccountId) -> Document:
    """Show an account of the pool: how it stands and why, its lease, and every holder and cleaning that it ever had, oldest first."""
    account = queries.get_account(account_id=account_id)
    lease = queries.find_lease(lease_id=account.lease_id) if account.state is AccountState.LEASED else None
    history = list(every(lambda cursor: queries.history_of_account(account_id=account_id, cursor=cursor)))[::-1]
    return document_of(account) | {"lease": lease, "history": history}


@command(
    '--pool workshop --permission-set PowerUserAccess --duration 3d --reason "Workshop" --as alice@example.com', show=show_request_facts
)
def lease_account(
    *,
    pool: Annotated[str, Flag("out of which pool", "POOL")],
    permission_set: Annotated[str, Flag("what you may do in it", "NAME")],
    size: Annotated[str, Flag("the size (default: any)", "SIZE")] = "",
    tags: Annotated[str, Flag("tags that it must have, like env=dev", "TAGS")] = "",
    duration: Annotated[int | None, Flag("like 8h, 3d or P3D (default: the rule's duration.default)", "D", read_duration)] = None,
    reason: Why,
    ticket: Annotated[str, Flag("the ticket, where the rule asks for one", "T")] = "",
    actor: Actor,
    now: datetime,
) -> Document:
    """Ask for an AWS account out of a pool. Its time runs from when the access is there; show_request tells whether it waits, and where.

    Prints the request, its id first."""
    request = requests.submit(
        kind="account_lease",
        subject_id=None,
        target={"pool": pool, "permission_set": permission_set, "size": size, "tags": tags},
        duration_seconds=duration,
        reason=reason,
        ticket_id=ticket,
        submission_id=new_submission_id(),
        actor=actor,
        now=now,
    )
    return document_of_request(request)


@command("111111111111 --as alice@example.com", show=show_request_facts)
def return_account(account_id: AccountId, *, reason: Text = "", actor: Actor, now: datetime) -> Document:
    """Give an account back. The access goes off, and it is cleaned before anybody else gets it. Whoever has it may, and operators."""
    account = queries.get_account(account_id=account_id)
    lease = queries.find_lease(lease_id=account.lease_id) if account.state is AccountState.LEASED else None
    if lease is None:
        raise Conflict("Nobody has this account, so there is nothing to give back.", code="not_leased", present=account)
    held = [find_request(request_id=claim, actor=actor, now=now) for claim in lease.claims]
    # With one that is granted all others end, too.
    last = max(held, key=lambda one: (one.is_granted, one.expires_at))
    return document_of_request(requests.end(request_id=last.request_id, reason=reason, actor=actor, now=now))


@command('3f0c6a52-5d0e-4c8f-9a57-0a7c1f6d2b11 --reason "It mines coins" --as olga@example.com', show=_show)
def freeze_lease(lease_id: LeaseId, *, reason: Why, actor: Actor, now: datetime) -> object:
    """Order that the access of a lease goes off, while account, time and lease stay. Operators may."""
    return operations.freeze(lease_id=lease_id, reason=reason, actor=actor, now=now)


@command("3f0c6a52-5d0e-4c8f-9a57-0a7c1f6d2b11 --as olga@example.com", show=_show)
def unfreeze_lease(lease_id: LeaseId, *, actor: Actor, now: datetime) -> object:
    """Order that the access of a frozen lease comes back. Operators may."""
    return operations.unfreeze(lease_id=lease_id, actor=actor, now=now)


@command("--account 111111111111", show=show_report)
def clean_accounts(
    *,
    account: Annotated[str, Flag("this one now, without waiting for its turn (default: all that are due)", "ACCOUNT_ID")] = "",
    clock: Clock,
) -> Outcome:
    """Have the cleaner begin with what is due, look how it stands, and let go free what is proved clean, as the worker does every minute.
    EVERYTHING IN THESE ACCOUNTS GOES. What must not be cleaned is refused, and each refusal is in the history."""
    if account:
        report = operations.clean_account(account_id=account, clock=clock, actor=system("clean_accounts"))
    else:
        report = operations.clean_accounts(clock=clock)
    return Outcome(
        report,
        report.stopped
        or failed(
            report.failures,
            "accounts failed",
            one="account failed",
            then="; the worker tries again, with growing gaps.",
        ),
    )


@command("--dry-run", show=show_report)
def sync_pool(
    *,
    pool: MaybePool = "",
    dry_run: Annotated[bool, Flag("show what would change, and change nothing")] = False,
    most_share: Annotated[
        float, Flag("let none leave a pool when more than this share of it would (default: 0.2)", "SHARE", type=share)
    ] = MOST_SHARE,
    clock: Clock,
) -> Outcome:
    """Hold the pools against their organizational units: new accounts come in, to be cleaned; those that are no longer there leave, with a
    brake."""
    report = operations.sync_pool(pool=pool, apply=not dry_run, most_share=most_share, clock=clock)
    return Outcome(
        report,
        report.stopped or failed(report.failures, "accounts failed", one="account failed", then="; the next run tries again."),
    )


@command("--json", show=show_report)
def read_spend(*, clock: Clock) -> Outcome:
    """Read from Cost Explorer what every lease has cost, as the worker does every six hours. AWS takes money for it."""
    report = operations.read_spend(clock=clock)
    return Outcome(
        report,
        report.stopped
        or failed(
            report.failures,
            "leases have no figure that can be used",
            one="lease has no figure that can be used",
            then="; the last ones stay.",
        ),
    )


def _show_check(document: Document, console: Console) -> None:
    show_report(document, console)
    for one in document["differences"]:
        for what in ("missing", "extra"):
            if one[what]:
                say(console, f"{one['name']}: {what} {', '.join(one[what])}")


@command("--mend", show=_show_check)
def check_pool(*, mend: Annotated[bool, Flag("make the lists as the rows are")] = False) -> Outcome:
    """Hold the lists that other programs read against the rows of the accounts and leases. Exit code 1 when one differs, or is nearly as
    long as it can be."""
    report = operations.check_pool(is_mending=mend, actor=system("check_pool"))
    problems = [
        ""
        if mend
        else failed(
            report.differences,
            "lists are not as their rows say",
            one="list is not as its rows say",
            then="; --mend makes it so.",
        ),
        failed(
            report.nearly_full,
            "lists are nearly as long as they can be: retire accounts.",
            one="list is nearly as long as it can be: retire accounts.",
        ),
        failed(report.failures, "rows can't be read.", one="row can't be read."),
    ]
    return Outcome(report, " ".join(filter(None, problems)))
