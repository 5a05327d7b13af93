"""The audit log from a terminal: walking its chains, and what follows a restore of the tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from rich.console import Console
from rich.progress import Progress, TaskID

from accessportal.audit.operations import begin_restore, new_key, require_restore_right
from accessportal.audit.states import ChainBreak
from accessportal.commands import restoring, terminal
from accessportal.commands.audit_items import Item, break_of, breaks_of_places, breaks_of_pool, breaks_of_rules, every_item
from accessportal.commands.audit_walk import Walk, breaks_of_twins
from accessportal.commands.base import Outcome, PortalCommand, command, failed
from accessportal.commands.flags import BadUsage, Flag, read_file, read_moment, read_whole_number
from accessportal.commands.terminal import Document, say
from accessportal.evidence.config import current
from accessportal.evidence.heads import SignedHeads, read_signed_heads
from accessportal.evidence.queries import evidence_files
from accessportal.evidence.retention import removed_before
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock, to_epoch
from accessportal.kernel.counts import counted
from accessportal.kernel.pages import Unreadable
from accessportal.store.restores import Restore, every_restore

_MOST_WORKERS = 64
_CHANGE_OVER = timedelta(hours=25)
# Where nobody sits in front of it, a line for every so many.
_TOLD_EVERY = 10_000


def _read_workers(text: str, flag: str) -> int:
    workers = read_whole_number(text, flag)
    if not 1 <= workers <= _MOST_WORKERS:
        raise BadUsage(f"Give a number from 1 to {_MOST_WORKERS}.", flag=flag, code="workers_invalid")
    return workers


def _show_breaks(document: Document, console: Console) -> None:
    for one in document["breaks"]:
        say(console, f"{one['entity']}, event {one['sequence']}: {one['problem']}")
    console.print(
        f"{counted(document['chains'], 'chain', 'chains')} walked, {document['gone']} of them of things that are gone; "
        f"{counted(len(document['breaks']), 'break', 'breaks')}."
    )
    if document["digests"]:
        heads = counted(document["heads"], "signed head", "signed heads")
        lost = f", but for {document['lost']} whose events a restore has lost" if document["lost"] else ""
        console.print(f"Compared with {heads} of {counted(document['digests'], 'digest', 'digests')}{lost}.")
    if document["removed"]:
        removed = counted(document["removed"], "chain of a request was", "chains of requests were")
        console.print(f"{removed} removed because of age; evidence tells all of it.")


@command("--json", show=_show_breaks)
def verify_audit(
    *,
    workers: Annotated[int, Flag("how many read the log side by side, 1 to 64 (default: 4)", "N", _read_workers)] = 4,
    public_key: Annotated[
        list[str] | None,
        Flag("a file with a public key in PEM that signed digests before; may be repeated (default: that of this installation)", "FILE"),
    ] = None,
    without_evidence: Annotated[bool, Flag("leave out the signed heads of the store of evidence")] = False,
    now: datetime,
    this: PortalCommand,
) -> Outcome:
    """Walk the audit chain of everything that has one, what is gone too, compare it with the item and with every head that was ever signed,
    and report each break. Reads all tables and every digest. Exit code 1 when there is a break."""
    breaks: list[ChainBreak] = []
    signed = _signed_heads(public_key or [], is_wanted=not without_evidence)

    def pass_over(one: Unreadable) -> None:
        breaks.append(break_of(one))

    with terminal.progress() as progress:
        reading = progress.add_task("Items", total=None)
        items: dict[str, Item] = {}
        twins: list[Item] = []
        for item in every_item(pass_over):
            # A copy under another key has the name of the chain, too.
            if items.setdefault(item.entity, item) is not item:
                twins.append(item)
            progress.advance(reading)
        progress.update(reading, total=len(items))
        bar = progress.add_task("Chains", total=len(items))
        walk = Walk(items, unread=[one.entity for one in breaks], signed=signed, began=now, tell=lambda: _tell(progress, bar, this))
        walk.run(workers=workers)
    breaks += [*walk.breaks, *breaks_of_twins(twins, began=now), *breaks_of_places(items), *breaks_of_pool(pass_over), *breaks_of_rules()]
    document: dict[str, Any] = {"chains": walk.chains, "gone": walk.gone, "digests": 0, "heads": 0, "lost": 0, "removed": 0}
    if signed is not None:
        # Read after the log: what went meanwhile was ordered before.
        before = removed_before(now)
        document["removed"] = signed.take_out_removed(before) if before is not None else 0
        unsigned, lost = signed.breaks_of_chains(every_restore(past=pass_over))
        breaks += [*signed.breaks, *unsigned]
        document |= {"digests": signed.days, "heads": signed.count, "lost": lost}
    # Also what can't be read a second time.
    breaks = list(dict.fromkeys(breaks))
    return Outcome(
        document | {"breaks": breaks},
        failed(breaks, "breaks in the audit log.", one="break in the audit log."),
    )


def _signed_heads(public_keys: Sequence[str], *, is_wanted: bool) -> SignedHeads | None:
    signer = current() if is_wanted else None
    if signer is None:
        if public_keys:
            words = "There are no signed heads to check with it: set up evidence here (docs/evidence.md), and leave out --without-evidence."
            raise BadUsage(words, flag="--public-key", code="evidence_not_set")
        return None
    pems = [signer.public_key.encode(), *(read_file(name, "--public-key") for name in public_keys)]
    try:
        return read_signed_heads(evidence_files(), public_keys=pems)
    except ValueError as error:
        raise BadUsage(str(error), flag="--public-key", code="public_key_unreadable") from error


def _tell(progress: Progress, bar: TaskID, this: PortalCommand) -> None:
    progress.advance(bar)
    done = int(progress.tasks[bar].completed)
    if not terminal.is_watched() and done % _TOLD_EVERY == 0:
        this.stderr.write(f"{done} chains walked")


def _show_key(document: Document, console: Console) -> None:
    for line in (document["key"], "", *document["steps"]):
        say(console, line)


@command("--json", show=_show_key)
def rotate_audit_key(*, now: datetime) -> Document:
    """Make a key for the hashes of the audit log, and say what to set. Nothing is changed: keys lie outside the tables, and in each chain
    the next event takes up the new one."""
    key = new_key(now)
    over_at = (now + _CHANGE_OVER).replace(minute=0, second=0, microsecond=0)
    first = f"The first key ever: set PORTAL_AUDIT_KEYS to it, and PORTAL_AUDIT_PLAIN_UNTIL={over_at:%Y-%m-%dT%H:%M:%SZ}; by then every"
    steps = [
        f"{first} process must have it.",
        "A later one: put the new key behind the others, with a comma; when every process has it, put it first.",
        "Never take a key away that any event was written with: verify_audit needs it.",
        "Keep the keys where nobody who writes to the tables reads.",
    ]
    return {"key_id": key.partition(":")[0], "key": key, "steps": steps}


def _show_restore(document: Document, console: Console) -> None:
    for name, told in document["steps"].items():
        say(console, f"{name}: {told}")
    for one in document["findings"]:
        say(console, f"{one['kind']}: {one['what']} {one['words']}.")
    restore = document["restore"]
    if restore["confirmed_at"]:
        say(console, f"Confirmed by {restore['confirmed_by']}: grants go on.")
    elif not restore["version"]:
        console.print("Nothing was changed (--dry-run).")
    else:
        console.print("Grants are held. Look at the above, then: after_restore --confirm --as YOU")


@command("--restored-to 2026-03-02T08:15:00Z --as olga@example.com", show=_show_restore, one_of=("restored_to", "confirm"))
def after_restore(
    *,
    restored_to: Annotated[
        datetime | None, Flag("the moment that the tables were restored to, like 2026-03-02T08:15:00Z", "T", read_moment)
    ] = None,
    confirm: Annotated[
        bool, Flag("all was looked at: end what may have ended since then, clean what was put aside, and grant again")
    ] = False,
    dry_run: Annotated[bool, Flag("show what must be looked at, and change nothing")] = False,
    keep_token: Annotated[
        list[str] | None,
        Flag("a token that surely was not revoked since then; may be repeated (default: every token is revoked)", "TOKEN_ID"),
    ] = None,
    actor: Actor,
    clock: Clock,
) -> Outcome:
    """Tell the portal that its tables were restored to an earlier moment. From then on nothing is granted until somebody confirms;
    fences and published sequences go on above all former ones; sessions end, API tokens are revoked, who is disabled in Cognito is
    disabled, free sandboxes are put aside. Names what must be looked at. May be run again at any time: it goes on where it stopped."""
    if restored_to is not None:
        return _restored(restored_to, keep_token or [], actor, clock, is_dry=dry_run)
    if keep_token:
        raise BadUsage("Tokens are kept by the run before: use --restored-to T --keep-token.", flag="--keep-token", code="flags_differ")
    if dry_run:
        text = "Confirming has nothing to show first: use --restored-to T --dry-run."
        raise BadUsage(text, flag="--dry-run", code="flags_differ")
    restore, counts = restoring.confirm(actor=actor, clock=clock)
    return Outcome({"restore": restore, "steps": counts, "findings": [], "unread": []})


def _restored(restored_to: datetime, keep_tokens: list[str], actor: Actor, clock: Clock, *, is_dry: bool) -> Outcome:
    steps: dict[str, str] = {}
    if is_dry:
        require_restore_right(actor)
        restore = Restore(to_epoch(clock.now()), restored_to, actor.name)
    else:
        restore = begin_restore(restored_to=restored_to, actor=actor, now=clock.now())
    look = restoring.Look(restore, clock)
    look.before_the_steps()
    if not is_dry:
        restore, steps = restoring.run_steps(restoring.Context(restore, frozenset(keep_tokens), actor, clock))
    look.after_the_steps()
    problem = "; ".join([*(f"{name}: {told}" for name, told in steps.items() if told.startswith("failed")), *look.unread])
    document = {"restore": restore, "steps": steps, "findings": look.findings, "unread": look.unread}
    return Outcome(document, problem and f"{problem} Run it again when that is mended.")
