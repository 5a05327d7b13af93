"""The form of evidence: names, lines, digests, and which days are due. Pure; ``verify_evidence.py`` reads what is made here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from accessportal.audit.queries import body_of
from accessportal.audit.states import AuditEvent
from accessportal.evidence.states import DayFile
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.errors import InvalidRequest

FORMAT = 1
DAY = timedelta(days=1)
# Events carry the clock of their process, and the index of a day lags.
MARGIN = timedelta(hours=1)
# For what came too late for their own files.
DAYS_READ_AGAIN = 3
DIGESTS = "digests"
_DIGEST_NAME = re.compile(r"(\d{4}-\d\d-\d\d)\.json")
EVENTS = "events"
_FILE_NAME = re.compile(r"[0-9A-Za-z._-]{1,99}\.jsonl\.gz")
_BUCKET = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/?(.*)")
_NOTE = re.compile(r'"late_of":"[0-9-]+",')


_OVER = frozenset({"request.denied", "request.cancelled", "request.lapsed", "request.revoked"})


def cutoff(now: datetime, *, keep_days: int) -> datetime:
    """Up to when what was over goes: whole days (UTC)."""
    return datetime.combine(now.astimezone(UTC).date() - keep_days * DAY, time.min, UTC)


def is_of_request(entity: str) -> bool:
    """Whether a chain is of a kind that goes: no name of a request comes again, and nothing that stays is derived from its events."""
    return entity.startswith("request#")


def tells_of_end(action: str) -> bool:
    """Whether an event of a request tells that it is over: after that come comments alone."""
    return action in _OVER


def may_export(actor: Actor) -> Decision:
    """Whether ``actor`` may write evidence."""
    if actor.is_system or actor.is_operator:
        return allow("operators and the portal itself export evidence")
    return refuse("Only operators may export evidence. Ask an operator.", code="operators_only")


def newest_over(now: datetime) -> date:
    """The newest day that is over, by the margin."""
    return (now.astimezone(UTC) - MARGIN).date() - DAY


def file_name(day: date) -> str:
    return f"{EVENTS}/{day}.jsonl.gz"


def digest_name(day: date) -> str:
    return f"{DIGESTS}/{day}.json"


def day_of(digest_file: str) -> date | None:
    """The day of a name in the folder of digests; ``None`` for what is none."""
    found = _DIGEST_NAME.fullmatch(digest_file)
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None


def is_file_of_events(name: str) -> bool:
    """Whether a name in the folder of events is one that may be looked at."""
    return _FILE_NAME.fullmatch(name) is not None


def bucket_of(address: str) -> tuple[str, str]:
    """Bucket and prefix of ``s3://bucket/prefix``. :raises InvalidRequest: for what is no such address."""
    found = _BUCKET.fullmatch(address)
    if found is None:
        raise InvalidRequest("Give a bucket and a prefix like s3://bucket/prefix.", code="address_unreadable", field="address")
    return found[1], found[2].strip("/")


def line_of(event: AuditEvent, *, day: date) -> bytes:
    """The event as its line in the file of ``day``; it says so when it belongs to a day before that was written already."""
    line = body_of(event) | {"hash": event.hash}
    if event.seal:
        line["seal"] = event.seal
    if event.flaw:
        line["flaw"] = event.flaw
    elif event.at.date() < day:
        line["late_of"] = event.at.date().isoformat()
    return json.dumps(line, sort_keys=True, separators=(",", ":"), default=repr).encode() + b"\n"


def event_of(told: Mapping[str, Any]) -> AuditEvent:
    """The event that a line tells, with pseudonyms where it has them."""
    given = {one.name: told[one.name] for one in fields(AuditEvent) if one.name in told}
    return AuditEvent(**{**given, "at": datetime.fromisoformat(told["at"])})


def without_note(line: bytes) -> bytes:
    """The line as the file of its own day would have it."""
    return _NOTE.sub("", line.decode()).encode()


def digest_of(
    file: DayFile, *, before: Mapping[str, str] | None, restores: Sequence[Mapping[str, Any]] = (), key_id: str
) -> dict[str, Any]:
    """What is signed of a day. ``before``: name and SHA-256 of the digest of the day before; ``restores``: notes of what restores of the
    tables have taken from chains that were exported before."""
    noted = {"restores": list(restores)} if restores else {}
    return noted | {
        "format": FORMAT,
        "day": file.day.isoformat(),
        "files": [{"name": file_name(file.day), "sha256": file.sha256, "lines": file.lines, "late": file.late}],
        "heads": {entity: list(head) for entity, head in file.heads.items()},
        "before": before,
        "key": key_id,
    }


def signed_bytes(digest: Mapping[str, Any]) -> bytes:
    """What the signature of a digest is over: itself without it, in one way of writing."""
    body = {name: value for name, value in digest.items() if name != "signature"}
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def tells_the_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two digests differ by their key alone."""
    names = {"key", "signature"}
    return {k: v for k, v in one.items() if k not in names} == {k: v for k, v in other.items() if k not in names}
