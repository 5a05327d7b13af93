"""Holding one side against another by hand: requests and the directory, assignments and claims, Cognito and the directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

from accessportal.access_requests import operations as access_requests
from accessportal.assignments.states import Comparison, Remedy
from accessportal.commands import terminal
from accessportal.commands.base import Outcome, command, failed
from accessportal.commands.flags import BadUsage, Flag, share
from accessportal.commands.terminal import Document, say, show_report
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.brakes import MOST_SHARE
from accessportal.kernel.clock import Clock
from accessportal.kernel.counts import counted
from accessportal.mirror import operations as mirror

_MIRROR = system("mirror")
_COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())

Operator = Annotated[Actor, Flag("the operator who does this (default: the portal itself)")]
"""The portal itself as its jobs are it: before there are any people, too."""


@command("--most-share 0.5 --json", show=show_report)
def compare_subjects(
    *,
    most_share: Annotated[float, Flag("the most that may end at once (0 to 1, default 0.2)", "SHARE", type=share)] = MOST_SHARE,
    clock: Clock,
) -> Outcome:
    """Hold every open request against the directory: access of people and groups that are disabled, gone or no longer served ends,
    as does what somebody took away, and what they wait for is cancelled. Ends nothing when it would be more than a set share."""
    report = access_requests.compare_subjects(most_share=most_share, actor=system("compare_subjects"), clock=clock)
    return Outcome(
        report,
        report.stopped or failed(report.failures, "items failed", one="item failed", then="; the next comparison looks again."),
    )


def _show_reconciled(document: Document, console: Console) -> None:
    for name in ("missing", "unknown", "left_over", "dead_claims"):
        for one in document[name]:
            say(console, f"{one['finding_id']}  {name.replace('_', ' ')}: {_finding_words(one)}")
    for reason in document["waiting"]:
        say(console, f"waits: {reason}")
    at = document["comparison"]
    say(
        console,
        f"Compared {counted(at['pairs_read'], 'list', 'lists')} with {counted(document['listed'], 'assignment', 'assignments')} "
        f"from {at['begun_at']} to {at['finished_at']}: "
        f"missing {len(document['missing'])}, unknown {len(document['unknown'])}, left over {len(document['left_over'])}, "
        f"dead claims {len(document['dead_claims'])}; mended {document['mended']}.",
    )
    say(console, f"Not made by the portal, and no difference: {len(document['not_ours'])} (named with --json).")


def _finding_words(finding: Mapping[str, Any]) -> str:
    key = finding["key"]
    held = ", ".join(finding["claims"]) if "claims" in finding else finding["request_id"]
    who = f"{key['principal_type'].lower()} {key['principal_id']}"
    return f"{key['permission_set_arn']} in {key['account_id']} for {who}{f', held by {held}' if held else ''}"


@command("--apply --json", show=_show_reconciled, at_most_one_of=("adopt_unknown", "remove_unknown"))
def reconcile_assignments(
    *,
    apply: Annotated[bool, Flag("make again what is missing and remove what is left over")] = False,
    adopt_unknown: Annotated[bool, Flag("record what is unknown as held from outside; it is never removed")] = False,
    remove_unknown: Annotated[bool, Flag("remove what is unknown")] = False,
    finding: Annotated[
        list[str] | None,
        Flag("mend this finding of the last comparison alone, without comparing anew; may be given more than once", "ID"),
    ] = None,
    most_share: Annotated[float, Flag("the most that may go at once (0 to 1, default 0.2)", "SHARE", type=share)] = MOST_SHARE,
    clock: Clock,
) -> Outcome:
    """Compare every assignment of the portal's permission sets with the claims on it. Reports what is missing, unknown or left over;
    changes nothing without --apply, and stops before removing more than a set share. What is of a kind that the portal does not make
    without a record (a group's, or with a permission set that no rule gives) is a list of its own. A comparison that was stopped is
    gone on with."""
    told = {Remedy.REPAIR: apply, Remedy.ADOPT: adopt_unknown, Remedy.REMOVE_UNKNOWN: remove_unknown}
    remedies = [remedy for remedy, is_told in told.items() if is_told]
    if finding and not remedies:
        text = "Say what is to be done about it: --apply, --adopt-unknown or --remove-unknown."
        raise BadUsage(text, flag="--finding", code="no_remedy")
    with terminal.progress(*_COLUMNS) as progress:
        bar = progress.add_task("Counting", total=None)

        def tell(at: Comparison) -> None:
            total = at.pairs if at.is_counted else None
            progress.update(bar, completed=at.pairs_read, total=total, description="Comparing" if at.is_counted else "Counting")

        report = access_requests.reconcile_assignments(
            remedies=remedies, chosen=finding or [], most_share=most_share, tell=tell, actor=system("reconcile"), clock=clock
        )
    unread = (f"{one.account_id or 'the accounts'} of {one.permission_set_arn}: {one.error}" for one in report.unread)
    return Outcome(report, "; ".join(filter(None, [report.stopped, *unread, *report.unreadable])))


def _show_pool(document: Document, console: Console) -> None:
    done = "created" if document["created"] else "exists"
    say(console, f"The user pool {document['name']} {done}: {document['user_pool_id']}")
    if not document["is_set"]:
        say(
            console,
            f"Set {document['setting']} for every process. Then python manage.py mirror_directory puts in who is there already. "
            "If people sign in with the pool itself, set PORTAL_USER_POOL_INVITES=true before: Cognito then sends each a password.",
        )


@command("--name accessportal", show=_show_pool)
def create_user_pool(
    *,
    name: Annotated[str, Flag(f"the pool's name (default: {mirror.POOL_NAME})")] = mirror.POOL_NAME,
    actor: Operator = _MIRROR,
) -> Document:
    """Find or create the Cognito user pool that follows the directory, and say how to set it. May be repeated: a pool of that name
    is found again."""
    pool = mirror.ensure_user_pool(name=name, actor=actor)
    setting = f"PORTAL_USER_POOL_ID={pool.pool_id}"
    return {"user_pool_id": pool.pool_id, "name": name, "created": pool.is_new, "setting": setting, "is_set": pool.is_set}


def _show_mirror(document: Document, console: Console) -> None:
    comparison = document["comparison"]
    for difference in comparison["differences"]:
        say(console, f"{difference['entity']}: {'; '.join(difference['differences'])}")
    for failure in comparison["failures"]:
        say(console, f"{failure['item']} waits: {failure['error']}")
    if document["sweep"]:
        console.print(f"pending changes that Cognito has followed: {document['sweep']['done']}")
    console.print(f"users, groups and members of groups in the pool: {comparison['listed']}")
    console.print(f"differences: {len(comparison['differences'])}, mended: {comparison['mended']}")


@command("--check --json", show=_show_mirror)
def mirror_directory(
    *,
    check: Annotated[bool, Flag("change nothing; exit with 1 when the two differ")] = False,
    most_share: Annotated[
        float,
        Flag("the most of the pool that may go at once because the directory does not know it (0 to 1, default 0.2)", "SHARE", type=share),
    ] = MOST_SHARE,
    actor: Operator = _MIRROR,
    clock: Clock,
) -> Outcome:
    """Make the Cognito user pool equal to the directory: first the changes that it has not followed yet, then everything against
    everything. Stops before removing more than a set share of what the directory does not know. The worker does the first every
    minute and the second every day."""
    sweep = None if check else mirror.sweep_mirror(clock=clock, limit_seconds=None)
    with terminal.progress() as progress:
        bar = progress.add_task("reading the groups of the pool", total=None)
        comparison = mirror.compare_mirror(
            apply=not check,
            most_share=most_share,
            progress=lambda done, total: progress.update(bar, completed=done, total=total),
            actor=actor,
            clock=clock,
        )
    differs = comparison.failures or (comparison.differences if check else comparison.stopped)
    problem = comparison.stopped or "Cognito differs from the directory, or may; see above."
    return Outcome({"check": check, "sweep": sweep, "comparison": comparison}, problem if differs else "")
