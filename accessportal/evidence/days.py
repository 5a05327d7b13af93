"""The days of evidence as they are shown: what each digest says, and whether it holds. A look, where ``verify_evidence`` is the proof."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from itertools import islice
from typing import Any

from accessportal.evidence import policy
from accessportal.evidence.config import Signer
from accessportal.evidence.states import Day, DayState
from accessportal.evidence.store import EvidenceFiles
from accessportal.evidence.verify_evidence import is_signed_by, read_public_key
from accessportal.kernel.errors import InvalidRequest, NoAnswer, NotFound, Unavailable
from accessportal.kernel.pages import Page
from accessportal.store.reading import side_by_side

FILES: Mapping[str, Callable[[date], str]] = {"events": policy.file_name, "digest": policy.digest_name}
"""What lies there of a day, and where."""
# A digest with its bytes, or why it can't be read.
_Read = tuple[dict[str, Any], bytes] | Unavailable


def list_days(*, files: EvidenceFiles, signer: Signer, cursor: str | None = None, limit: int = 50, now: datetime) -> Page[Day]:
    """Every day from the first that was exported to the newest that is over, the newest first; each digest is held against its key and
    against the day before.

    :raises NoAnswer: when the store does not answer.
    """
    written = _written(files)
    start = _cursor_day(cursor)
    shown = (day for day in _newest_first(written, policy.newest_over(now)) if start is None or day <= start)
    days = list(islice(shown, limit + 1))
    looked_at = days[:limit]
    to_read = sorted({day for one in looked_at for day in (one, one - policy.DAY)} & set(written))
    reads: list[Callable[[], _Read]] = [partial(_read, files, day) for day in to_read]
    found = dict(zip(to_read, side_by_side(reads), strict=True))
    items = tuple(_day(one, found, signer, first=written[0], newest=written[-1]) for one in looked_at)
    return Page(items, days[limit].isoformat() if len(days) > limit else None)


def check_day(*, files: EvidenceFiles, signer: Signer, day: date) -> Day:
    """One day with its file, which is read to its end.

    :raises NotFound: for a day without a digest. :raises NoAnswer: when the store does not answer.
    """
    written = _written(files)
    if day not in written:
        raise NotFound("There is no digest of this day.", code="day_not_written")
    found = {one: _read(files, one) for one in (day, day - policy.DAY) if one in written}
    seen = _day(day, found, signer, first=written[0], newest=written[-1])
    if not seen.file_sha256:
        return seen
    try:
        sha256 = files.sha256(policy.file_name(day))
    except NoAnswer:
        raise
    except Unavailable as error:
        return _broken(seen, error.message)
    flaw = f"The SHA-256 of {policy.file_name(day)} is {sha256}, not that of its digest."
    return seen if sha256 == seen.file_sha256 else _broken(seen, flaw)


def _newest_first(written: Sequence[date], newest_over: date) -> Iterator[date]:
    if not written:
        return
    # Ahead of time nobody writes one but a forger.
    yield from (day for day in reversed(written) if day > newest_over)
    day = newest_over
    while day >= written[0]:
        yield day
        day -= policy.DAY


def _cursor_day(cursor: str | None) -> date | None:
    if cursor is None:
        return None
    try:
        return date.fromisoformat(cursor)
    except ValueError as error:
        raise InvalidRequest("This is not a page of this list. Begin with the first one.", code="cursor_forged", field="cursor") from error


def _written(files: EvidenceFiles) -> list[date]:
    return [day for day in files.days() if day > date.min]


def _read(files: EvidenceFiles, day: date) -> _Read:
    try:
        return files.digest(day)
    except NoAnswer:
        raise
    except Unavailable as error:
        return error


def _day(day: date, found: Mapping[date, _Read], signer: Signer, *, first: date, newest: date) -> Day:
    read = found.get(day)
    if read is None:
        return Day(day, DayState.DUE if day > newest else DayState.MISSING)
    seen = _by_itself(day, read, signer)
    if isinstance(read, Unavailable) or not seen.digest_sha256:
        return seen
    link = read[0]["before"]
    if day == first:
        return _broken(seen, "The day before it is missing: digests were taken away from the beginning.") if link is not None else seen
    before = _by_itself(day - policy.DAY, found.get(day - policy.DAY), signer)
    if link == {"name": policy.digest_name(before.day), "sha256": before.digest_sha256}:
        return seen
    if before.state in (DayState.MISSING, DayState.BROKEN):
        why = "It can’t be held against the day before, which is broken or missing."
        return seen if seen.state is DayState.BROKEN else replace(seen, state=DayState.UNJUDGED, flaws=(why,))
    return _broken(seen, "It does not continue the day before as that is now.")


def _by_itself(day: date, read: _Read | None, signer: Signer) -> Day:
    """Whatever the days before it are."""
    if read is None:
        return Day(day, DayState.MISSING)
    if isinstance(read, Unavailable):
        return Day(day, DayState.BROKEN, flaws=(read.message,))
    digest, content = read
    try:
        (file,), _link = digest["files"], digest["before"]
        is_ours = digest["key"] == signer.key_id
        seen = Day(
            day,
            DayState.SIGNED if is_ours else DayState.OTHER_KEY,
            lines=int(file["lines"]),
            late=int(file["late"]),
            file_sha256=str(file["sha256"]),
            digest_sha256=hashlib.sha256(content).hexdigest(),
            key_id=str(digest["key"]),
            chains=len(digest["heads"]),
        )
        if (digest["day"], file["name"]) != (day.isoformat(), policy.file_name(day)):
            seen = _broken(seen, "It is the digest of another day.")
        if is_ours and not is_signed_by(read_public_key(signer.public_key.encode()), digest):
            seen = _broken(seen, "The signature is not of this digest.")
    except (ValueError, LookupError, TypeError) as error:
        return Day(day, DayState.BROKEN, flaws=(f"It is no digest of the form {policy.FORMAT} ({type(error).__name__}).",))
    return seen


def _broken(seen: Day, flaw: str) -> Day:
    return replace(seen, state=DayState.BROKEN, flaws=(*seen.flaws, flaw))
