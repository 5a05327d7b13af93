"""How a request is told to people: one word, one tone, and how often a page should look again."""

from __future__ import annotations

import enum
import re
import zlib
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.kernel.durations import format_duration
from accessportal.kernel.ids import is_request_id
from accessportal.sandboxes.states import PEOPLES_TRACKS

_SOON_SECONDS = 90
_QUICK_SECONDS = 2
_CALM_SECONDS = 15
_DELAYED_ATTEMPTS = 2


class Tone(enum.StrEnum):
    """The four colours of the look; each comes with a shape of its own (static/portal/theme.css)."""

    LIVE = "live"
    WAIT = "wait"
    STOP = "stop"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Phase:
    """``word`` is on the pill, ``sentence`` says the same to somebody who never saw the portal."""

    code: str
    word: str
    tone: Tone
    sentence: str


_ENDS = {
    Status.DENIED: Phase("denied", "Denied", Tone.STOP, "An approver said no. Nothing was granted."),
    Status.CANCELLED: Phase("cancelled", "Cancelled", Tone.DONE, "It was withdrawn before it was decided. Nothing was granted."),
    Status.LAPSED: Phase("lapsed", "Lapsed", Tone.DONE, "Nobody decided before the deadline. Nothing was granted."),
}
_CANCELLED_FOR = Phase("cancelled", "Cancelled", Tone.DONE, "It was cancelled before it was decided. Nothing was granted.")
_WAITING = Phase("waiting", "Waiting for approval", Tone.WAIT, "It has not been decided yet. Nothing is granted until it is.")
_TOO_LATE = Phase("too_late", "Too late to decide", Tone.WAIT, "The deadline for deciding has passed. It is being closed.")
_GRANTING = Phase("granting", "Being granted", Tone.WAIT, "It is approved. The access is being created.")
_GRANTING_LATE = Phase(
    "granting_late", "Grant delayed", Tone.STOP, "It is approved, but creating the access keeps failing. The portal goes on trying."
)
_ACTIVE = Phase("active", "Active", Tone.LIVE, "The access was proved to be there. It ends by itself.")
_ENDING = Phase("ending", "Ending", Tone.WAIT, "Time is up. The access is being taken back.")
_ENDING_EARLY = Phase("ending", "Ending", Tone.WAIT, "It was ended before its time. The access is being taken back.")
_ENDING_LATE = Phase(
    "ending_late", "End delayed", Tone.STOP, "Taking the access back keeps failing. The portal goes on trying until it is proved gone."
)
_ENDED = Phase("ended", "Ended", Tone.DONE, "The access was proved to be gone.")
_KEPT = Phase("ended", "Ended", Tone.DONE, "Another request held the same access when this one ended.")
_KEPT_DIRECTLY = Phase("ended", "Ended", Tone.DONE, "The same was given directly too, and stayed.")
_NEVER_GRANTED = Phase("never_granted", "Ended", Tone.DONE, "It ended before the access had been created.")


def phase_of(request: AccessRequest, now: datetime) -> Phase:
    """Where the request stands at ``now``: a deadline that has passed counts, whatever the stored state still says."""
    if request.status is Status.PENDING:
        return _TOO_LATE if request.is_undecided_past_deadline(now) else _WAITING
    if request.status is Status.ACTIVE:
        return _phase_of_active(request, now)
    if request.status is Status.REVOKED:
        return _phase_of_revoked(request)
    # Whoever withdraws it says nothing.
    return _CANCELLED_FOR if request.status is Status.CANCELLED and request.decision_reason else _ENDS[request.status]


def _phase_of_revoked(request: AccessRequest) -> Phase:
    """As its receipt says: what others held too was not gone with it."""
    if request.granted_at is None:
        return _NEVER_GRANTED
    kept_by = request.receipts[-1].kept_by if request.receipts else ()
    if not kept_by:
        return _ENDED
    return _KEPT if any(map(is_request_id, kept_by)) else _KEPT_DIRECTLY


def _phase_of_active(request: AccessRequest, now: datetime) -> Phase:
    is_delayed = request.work_attempts >= _DELAYED_ATTEMPTS and bool(request.work_error)
    if request.work is Work.REVOKE or request.is_over(now):
        if is_delayed:
            return _ENDING_LATE
        return _ENDING_EARLY if request.ended_by else _ENDING
    if request.work is Work.GRANT or request.granted_at is None:
        return _GRANTING_LATE if is_delayed else _phase_of_granting(request)
    return _ACTIVE


def _phase_of_granting(request: AccessRequest) -> Phase:
    """A pool can be empty: that is waiting in a queue, not work under way."""
    queued = kind_named(request.kind).fields.queued
    if queued is None or not request.work_error:
        return _GRANTING
    word, sentence = queued
    return Phase("queued", word, Tone.WAIT, sentence)


def seconds_to_next_look(request: AccessRequest, now: datetime) -> int | None:
    """How long a page that shows the request may wait before it asks again; ``None``: nothing will change any more."""
    if request.status.is_terminal:
        return None
    phase = phase_of(request, now)
    # In a line somebody may wait for days.
    is_stable = phase.code == "queued" or (phase is _ACTIVE and request.time_left(now).total_seconds() > _SOON_SECONDS)
    return _CALM_SECONDS if is_stable else _QUICK_SECONDS


def mark_of(request: AccessRequest, now: datetime) -> str:
    """Equal marks, equal page: a page that refreshes itself sends the mark it shows and gets nothing when it still holds."""
    told = zlib.crc32(request.work_error.encode())
    return f"{request.version}.{phase_of(request, now).code}.{request.work_attempts}.{told:x}.{seconds_to_next_look(request, now)}"


def seconds_after_end(moment: datetime, request: AccessRequest) -> float:
    return max((moment - request.expires_at).total_seconds(), 0.0)


def aws_address(start_url: str, request: AccessRequest) -> str:
    """The access portal of AWS, opened at this account and permission set (its documented short-cut link)."""
    query = urlencode({"account_id": request.account_id, "role_name": request.permission_set})
    return f"{start_url.rstrip('/')}/#/console?{query}"


def cli_profile(start_url: str, region: str, request: AccessRequest, account_name: str) -> str:
    """What ``aws configure sso`` would write to ``~/.aws/config``."""
    name = "-".join(re.findall(r"[A-Za-z0-9_-]{1,64}", f"{account_name}-{request.permission_set}"))
    return f"""[profile {name}]
sso_session = access-portal
sso_account_id = {request.account_id}
sso_role_name = {request.permission_set}
region = {region}

[sso-session access-portal]
sso_start_url = {start_url}
sso_region = {region}
sso_registration_scopes = sso:account:access
"""


def holder(track: str) -> str:
    """Who has a sandbox: the name of a program's track, or the address of a person."""
    return track.removeprefix(PEOPLES_TRACKS)


def typed_duration(seconds: int) -> str:
    """As somebody would type it into the form: ``2h30m``."""
    return format_duration(seconds).replace(" min", "m").replace(" ", "")


def words_for_length(seconds: int) -> str:
    """A length that people typed as it is, and what came of a time of day to the minute: ``8 h``, ``about 35 min``."""
    if seconds % 60 == 0:
        return format_duration(seconds)
    return f"about {format_duration(max(60, round(seconds / 60) * 60))}"


def words_for_lateness(seconds: float) -> str:
    """How late something was, honest to a tenth of a second: ``0.4 s``, ``3 min 10 s``."""
    return f"{seconds:.1f} s" if seconds < 60 else words_for_time(seconds)


def words_for_time(seconds: float) -> str:
    """Say time left or gone as people do: ``3 d 4 h``, ``2 h 12 min``, ``9 min``, ``4 min 30 s`` (below five), ``45 s``. ``times.js`` ticks
    by the same rule."""
    whole = max(int(seconds), 0)
    days, hours, minutes, rest = whole // 86_400, whole // 3_600 % 24, whole // 60 % 60, whole % 60
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    if minutes >= 5 or (minutes and not rest):
        return f"{minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
