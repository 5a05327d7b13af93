"""Exporting: day after day, each with its file and then its digest, which are never rewritten.

A run may die anywhere, and two may go at once. Whoever writes a name first has written it, and everybody goes on from what is there: a file
that is there already is signed as it is, if the audit log tells all that is in it. What it lacks is late, and comes in the next day's file.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import IO, Any

from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent
from accessportal.evidence import policy
from accessportal.evidence.config import Signer
from accessportal.evidence.digests import Digests
from accessportal.evidence.restored import notes_of
from accessportal.evidence.states import DayFile, ExportReport
from accessportal.evidence.store import EvidenceFiles
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Conflict, InvalidRequest, PortalError
from accessportal.kernel.pages import Unreadable
from accessportal.store.restores import every_restore


def export(
    *, files: EvidenceFiles, signer: Signer, day: date | None = None, until: datetime | None = None, actor: Actor, clock: Clock
) -> ExportReport:
    """Write every day that is over and has no digest, oldest first, up to ``day`` (default: the newest that is over). None is begun after
    ``until``. The first run of all reads the whole audit log for its oldest event.

    :raises NotAllowed: unless the actor is an operator or the portal.
    :raises InvalidRequest: for a day that is not over.
    :raises Unavailable: when nothing could be looked at.
    """
    policy.may_export(actor).require()
    newest_over = policy.newest_over(clock.now())
    last = newest_over if day is None else day
    if last > newest_over:
        raise InvalidRequest(
            f"{last} is not over, or not for an hour. Give {newest_over} or a day before.", code="day_not_over", field="day"
        )
    written, digests = [one for one in files.days() if one <= newest_over], Digests(files)
    next_day = written[-1] + policy.DAY if written else _first_day(last)
    done = events = late = 0
    stopped = ""
    while next_day is not None and next_day <= last:
        if until is not None and clock.now() >= until:
            break
        try:
            file = _export_day(next_day, before=written, digests=digests, signer=signer)
        except PortalError as error:
            stopped = f"{next_day}: {error.message}"
            break
        written.append(next_day)
        next_day += policy.DAY
        done, events, late = done + 1, events + file.lines, late + file.late
    left = (last - next_day).days + 1 if next_day is not None and next_day <= last else 0
    return ExportReport(
        days=done,
        events=events,
        late=late,
        days_left=left,
        newest=written[-1] if written else None,
        unlocked=files.lock_flaw(),
        stopped=stopped,
    )


def _first_day(last: date) -> date | None:
    oldest = audit.oldest_at()
    return None if oldest is None or oldest.date() > last else oldest.date()


def _export_day(day: date, *, before: Sequence[date], digests: Digests, signer: Signer) -> DayFile:
    files, link = digests.files, None
    if before:
        link = {"name": policy.digest_name(before[-1]), "sha256": digests.sha256(before[-1])}
    late = _late(day, before, digests)
    with tempfile.TemporaryFile() as draft:
        with gzip.GzipFile(filename="", mode="wb", fileobj=draft, mtime=0) as packed:
            for event in itertools.chain(late, audit.events_of_day(day)):
                packed.write(policy.line_of(event, day=day))
        draft.seek(0)
        if not files.put(policy.file_name(day), draft):
            _require_known(files, day, draft)
    file = _as_written(files, day)
    restores = notes_of(day, before, every_restore(past=_pass_over), files)
    digest = policy.digest_of(file, before=link, restores=restores, key_id=signer.key_id)
    digest["signature"] = signer.sign(policy.signed_bytes(digest))
    if not files.put_digest(day, digest) and not policy.tells_the_same(files.digest(day)[0], digest):
        raise Conflict(f"Another digest of {day} is there already. Verify the evidence.", code="digest_differs")
    return file


def _pass_over(_one: Unreadable) -> None:
    """A restore that can't be read excuses nothing; verify_audit names it."""


def _late(day: date, before: Sequence[date], digests: Digests) -> list[AuditEvent]:
    """What came too late for the files of ``before``, in order: of the last of these days all of it; of older days what is in chains that
    go on now."""
    recent = before[-policy.DAYS_READ_AGAIN :]
    seen = _hashes(policy.without_note(line) for one in recent for line in digests.files.lines(one))
    days = ((one, event) for one in recent for event in audit.events_of_day(one))
    late = [event for one, event in days if hashlib.sha256(policy.line_of(event, day=one)).digest() not in seen]
    firsts: dict[str, tuple[int, str]] = {}
    for event in itertools.chain(late, audit.events_of_day(day)):
        here = event.sequence, audit.name_outside(event)
        firsts[event.entity] = min(firsts.get(event.entity, here), here)
    return sorted([*late, *_left_out(day, firsts, before, digests)], key=lambda event: (event.at, event.entity, event.sequence))


def _left_out(day: date, firsts: Mapping[str, tuple[int, str]], before: Sequence[date], digests: Digests) -> Iterator[AuditEvent]:
    """What comes before ``firsts`` in their chains, happened before ``day`` and is in no file, back to an event that is in one. It takes a
    query for each chain that no recent file has, and the digests of the days on which these were last changed."""
    recent = before[-policy.DAYS_READ_AGAIN :]
    ends: dict[date, list[tuple[AuditEvent, Iterator[AuditEvent]]]] = defaultdict(list)
    for entity, (first, name) in firsts.items():
        if before and max(digests.last(one, name) or 0 for one in recent) < first - 1:
            chain = _back_from(first, entity, day)
            if (event := next(chain, None)) is not None:
                ends[event.at.date()].append((event, chain))
    for of_day in ends.values():
        filed = _filed_about(of_day[0][0], before, digests)
        for event, chain in of_day:
            if not filed(event):
                yield event
                yield from itertools.takewhile(lambda one: not _filed_about(one, before, digests)(one), chain)


def _back_from(first: int, entity: str, day: date) -> Iterator[AuditEvent]:
    cursor: str | None = None
    while True:
        page = audit.history(entity, until=first - 1, limit=1, cursor=cursor)
        yield from (event for event in page.items if event.at.date() < day)
        if (cursor := page.next_cursor) is None:
            return


def _filed_about(event: AuditEvent, before: Sequence[date], digests: Digests) -> Callable[[AuditEvent], bool]:
    """Whether one of the same day is in its file, or in one of the next, where late ones are. What a digest that is missing or can't be
    read would tell is not told anew, nor what was sealed since: its file has it under another name."""
    at = event.at.date()
    days = [one for one in before if at <= one <= at + policy.DAY * policy.DAYS_READ_AGAIN]

    def is_filed(one: AuditEvent) -> bool:
        lasts = (digests.last(day, audit.name_outside(one)) for day in days)
        return bool(one.seal) or at not in before or any(last is None or last >= one.sequence for last in lasts)

    return is_filed


def _hashes(lines: Iterable[bytes]) -> frozenset[bytes]:
    return frozenset(hashlib.sha256(line).digest() for line in lines)


def _require_known(files: EvidenceFiles, day: date, draft: IO[bytes]) -> None:
    """:raises Conflict: when the file that is there has a line that the audit log does not tell: then nothing is signed."""
    draft.seek(0)
    with gzip.open(draft) as lines:
        known = _hashes(lines)
    if not known >= _hashes(files.lines(day)):
        words = f"{policy.file_name(day)} is there without a digest, and tells what the audit log does not. It is not signed."
        raise Conflict(words, code="file_differs")


def _as_written(files: EvidenceFiles, day: date) -> DayFile:
    heads: dict[str, tuple[int, str]] = {}
    count = late = 0
    for line in files.lines(day):
        told: dict[str, Any] = json.loads(line)
        count += 1
        late += "late_of" in told
        heads[told["entity"]] = max(heads.get(told["entity"], (0, "")), (told["sequence"], told["hash"]))
    return DayFile(day, files.sha256(policy.file_name(day)), count, late, heads)
