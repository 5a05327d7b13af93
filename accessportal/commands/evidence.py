"""Evidence from a terminal: exporting days, checking a folder, and keys."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

from django.conf import settings
from rich.console import Console

from accessportal.audit import config as audit_config
from accessportal.commands.base import Outcome, command, failed
from accessportal.commands.flags import BadUsage, Flag, read_file, share
from accessportal.commands.terminal import Document, say, show_report
from accessportal.evidence.config import Signer, current, new_key, read_key
from accessportal.evidence.operations import export
from accessportal.evidence.queries import evidence_files, on_this_machine
from accessportal.evidence.retention import remove_old
from accessportal.evidence.verify_evidence import Break, verify
from accessportal.identity.pseudonyms import find_person_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.brakes import MOST_SHARE
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict
from accessportal.kernel.texts import cut


def _read_day(text: str, flag: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise BadUsage(f"“{cut(text)}” is no day: give one like 2026-11-28.", flag=flag, code="day_unreadable") from None


def _signer() -> Signer:
    signer = current()
    if signer is None:
        words = "No evidence is kept: set PORTAL_EVIDENCE_KEY and PORTAL_EVIDENCE_DIR, or another key and store (docs/evidence.md)."
        raise Conflict(words, code="evidence_not_set")
    return signer


@command("--day 2026-11-28 --as olga@example.com", show=show_report)
def export_evidence(
    *,
    day: Annotated[date | None, Flag("up to this day (default: the newest that is over)", "DAY", _read_day)] = None,
    actor: Actor,
    clock: Clock,
) -> Outcome:
    """Write each day that is over and was not written yet, oldest first: its events and a signed digest. What is written is never
    rewritten. The worker does it every hour; may run beside it."""
    report = export(files=evidence_files(), signer=_signer(), day=day, actor=actor, clock=clock)
    return Outcome(report, report.stopped)


@command("--dry-run --as olga@example.com", show=show_report)
def remove_old_events(
    *,
    dry_run: Annotated[bool, Flag("count what would go, and change nothing")] = False,
    most_share: Annotated[
        float, Flag("the most of all chains that may go at once (0 to 1, default 0.2)", "SHARE", type=share)
    ] = MOST_SHARE,
    public_key: Annotated[
        list[str] | None,
        Flag("a file with a public key in PEM that signed digests before; may be repeated (default: that of this installation)", "FILE"),
    ] = None,
    actor: Actor,
    clock: Clock,
) -> Outcome:
    """Remove from the audit log the chains of requests that were over longer ago than PORTAL_AUDIT_KEEP_DAYS, as far as evidence has all of
    them. The worker does it, a part of the log each day; may run beside it."""
    if settings.AUDIT_KEEP_DAYS is None:
        words = "Events are kept for ever: set PORTAL_AUDIT_KEEP_DAYS (docs/settings.md)."
        raise Conflict(words, code="keep_days_not_set")
    report = remove_old(
        files=evidence_files(),
        public_keys=[_signer().public_key.encode(), *(read_file(name, "--public-key") for name in public_key or [])],
        keep_days=settings.AUDIT_KEEP_DAYS,
        most_share=most_share,
        keeps_unpublished=bool(settings.EVENTS_TOPIC_ARN),
        is_dry=dry_run,
        actor=actor,
        clock=clock,
    )
    return Outcome(report, report.stopped or failed(report.failures, "chains could not be removed.", one="chain could not be removed."))


@command("person-4bq7… --as olga@example.com")
def whose_pseudonym(
    pseudonym: Annotated[str, Flag("as it stands in evidence: person-… or name-…", "PSEUDONYM")], *, actor: Actor
) -> Document:
    """Tell whose a pseudonym in evidence is: the key of pseudonyms is tried on everybody who is or was here. Of somebody who was erased
    nobody can tell. Reads the whole directory and the audit log. For operators."""
    return {"pseudonym": pseudonym, "person": find_person_of(pseudonym=pseudonym, actor=actor)}


def _show_verdict(document: Document, console: Console) -> None:
    looked = f"{document['days']} days ({document['first_day']} to {document['last_day']}), {document['events']} events"
    say(console, f"{looked} of {document['chains']} chains, {document['late']} of them late.")
    for line in (*document["notes"], *(f"RESTORED {one}" for one in document["restored"]), *document["breaks"]):
        say(console, line)
    if document["unjudged"]:
        say(console, f"Fine by themselves, and not judged by what is broken before them: {', '.join(document['unjudged'])}")


@command("/mnt/evidence --last-day 2026-11-28", show=_show_verdict)
def verify_evidence(
    place: Annotated[str, Flag("the folder with digests and events, or s3://bucket/prefix", "PLACE")],
    *,
    public_key: Annotated[
        list[str] | None, Flag("a file with a public key in PEM; may be repeated (default: that of this installation)", "FILE")
    ] = None,
    last_day: Annotated[date | None, Flag("a day that must be there", "DAY", _read_day)] = None,
) -> Outcome:
    """Check evidence with the keys of this installation. accessportal/evidence/verify_evidence.py does the same without it.
    Exit code 1 when something is wrong."""
    keys = audit_config.current()
    pems = [read_file(name, "--public-key") for name in public_key or []] or [_signer().public_key.encode()]
    try:
        with on_this_machine(place) as (folder, written_over):
            verdict = verify(folder, public_keys=pems, audit_keys=keys.secrets or None, plain_until=keys.plain_until, last_day=last_day)
    except ValueError as error:
        raise BadUsage(str(error), flag="--public-key", code="public_key_unreadable") from error
    over = [Break(name, 0, "somebody has written over it or deleted it since; its first version was looked at") for name in written_over]
    breaks = [str(one) for one in (*verdict.breaks, *over)]
    document = vars(verdict) | {"restored": [str(one) for one in verdict.restored], "breaks": breaks}
    return Outcome(document, failed(breaks, "breaks in the evidence.", one="break in the evidence."))


def _show_key(document: Document, console: Console) -> None:
    if document["key"]:
        say(console, f"PORTAL_EVIDENCE_KEY={document['key']}")
    say(console, f"The public half, for auditors (key {document['key_id']}):")
    say(console, document["public_key"])


@command("--public --pem public.pem", show=_show_key)
def make_evidence_key(
    *,
    public: Annotated[bool, Flag("show the public half of the key that is set, and make none")] = False,
    pem: Annotated[str, Flag("write the public half to this file, too", "FILE")] = "",
) -> Document:
    """Make a key that signs digests of evidence, and show its public half. Keep the key outside the tables and the store of evidence.
    Nothing else is changed."""
    key = "" if public else new_key()
    signer = _signer() if public else read_key(key)
    if pem:
        try:
            Path(pem).write_text(signer.public_key)
        except OSError as error:
            raise BadUsage(f"{pem} can't be written ({error.strerror}).", flag="--pem", code="file_unwritable") from error
    return {"key": key, "key_id": signer.key_id, "public_key": signer.public_key}
