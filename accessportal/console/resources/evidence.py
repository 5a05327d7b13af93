"""The days of evidence outside: which are written, signed and whole, and their files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from django.conf import settings

from accessportal.console.resource import Ask, Column, Pattern, Resource, Row, Section
from accessportal.evidence import config
from accessportal.evidence.days import check_day, list_days
from accessportal.evidence.queries import evidence_files
from accessportal.evidence.states import Day, DayState
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import NotFound
from accessportal.kernel.pages import Page
from accessportal.observe import health, heartbeats
from accessportal.web.exporting import exported

WORDS = {
    DayState.SIGNED: ("Signed", "live", "The digest is signed by this portal’s key, and continues the day before."),
    DayState.OTHER_KEY: ("Another key", "wait", "The digest continues the day before. It is signed by a key that this portal has no more."),
    DayState.UNJUDGED: ("Not judged", "wait", "Nothing is wrong with the digest itself."),
    DayState.BROKEN: ("Broken", "stop", "What is there is not what was written. Verify the evidence."),
    DayState.MISSING: ("Missing", "stop", "There is no digest of this day, and later ones are there."),
    DayState.DUE: ("To be written", "wait", "The day is over, and the next run writes it."),
}


def day_of(key: str) -> date:
    """:raises NotFound:"""
    try:
        return date.fromisoformat(key)
    except ValueError as error:
        raise NotFound("There is no digest of this day.", code="day_not_written") from error


def _fetch(ask: Ask) -> Page[Day]:
    signer = config.current()
    return Page(()) if signer is None else list_days(files=evidence_files(), signer=signer, now=ask.now, **ask.part)


class Evidence(Resource):
    name = "evidence"
    singular = "day of evidence"
    plural = "Evidence"
    icon = "file-check"
    about = "The signed copy of the audit log outside the portal, day by day: what is written, whether it holds, and its files."
    notice_template = "console/evidence/notice.html"
    headline_template = "console/evidence/state.html"
    has_history = False
    columns = (
        Column("Day (UTC)", "console/evidence/cell_day.html", "col-who"),
        Column("State", "console/evidence/cell_state.html", "col-state"),
        Column("Events", "console/evidence/cell_events.html", "col-time"),
        Column("SHA-256 of the file", "console/evidence/cell_sha256.html", "col-context"),
    )
    file_columns = exported("day", "state", "lines", "late", "chains", "file_sha256", "digest_sha256", "key_id", "flaws")
    patterns = (
        Pattern(
            name="all",
            label="Evidence",
            fetch=_fetch,
            empty_title="No day was written yet",
            empty_hint="Each day is written when it has been over for an hour, once a key and a store of evidence are set.",
        ),
    )
    sections = (
        Section("What was looked at now", "console/evidence/looked_at.html"),
        Section("Files", "console/evidence/files.html", is_aside=True),
    )

    def read(self, key: str, actor: Actor, now: datetime) -> Day:
        """With its file, which is read to its end."""
        day, signer = day_of(key), config.current()
        if signer is None:
            raise NotFound("No evidence is kept: neither a key nor a store is set.", code="evidence_not_set")
        return check_day(files=evidence_files(), signer=signer, day=day)

    def title(self, record: Day) -> str:
        return f"Evidence of {record.day}"

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        signer = config.current()
        options = settings.STORAGES.get("evidence", {}).get("OPTIONS", {})
        return {
            "key_id": signer.key_id if signer else "",
            "bucket": options.get("bucket_name", ""),
            "folder": options.get("location", ""),
            "trouble": health.evidence(ask.now),
            "last": heartbeats.last_beat(heartbeats.EVIDENCE),
        }

    def rows(self, items: Sequence[Day], ask: Ask) -> list[Row]:
        unwritten = {DayState.MISSING, DayState.DUE}
        return [Row("" if one.state in unwritten else one.day.isoformat(), one, WORDS[one.state]) for one in items]

    def details(self, record: Day, ask: Ask) -> dict[str, Any]:
        return {"word": WORDS[record.state]}
