"""Pure decisions about the pool."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from accessportal.kernel import texts
from accessportal.kernel.actors import Actor
from accessportal.kernel.brakes import most_at_once
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.moments import SKEW, is_recent
from accessportal.sandboxes.states import KEY_SEPARATOR, PEOPLES_KEYS, PEOPLES_TRACKS, Due, KeyRecord, Sandbox, Status, SyncPlan

# A deletion that failed so often in a row is a case for people.
MOST_FAILURES = 8
# A cleaner has a sandbox for itself this long; one that dies holds it no longer.
HOLD_SECONDS = 120.0
# No deletion is sent with less than this left: connect and read time-outs together are 14 s (upstream.client), and a call that
# arrives after the hold could delete what has been cleaned and lent anew by then.
CALL_MARGIN_SECONDS = 30.0
# A reset that has not ended by then is asked for again.
SEND_AGAIN_SECONDS = 1_800.0
# How soon a sandbox that is being reset is looked at again.
LOOK_AGAIN_SECONDS = 20.0
_FIRST_GAP_SECONDS = 5.0
_LONGEST_GAP_SECONDS = 600.0
# No cleaning is put off for longer.
LONGEST_GAP = timedelta(seconds=_LONGEST_GAP_SECONDS)
_LONGEST_TEXT = 256


def check_text(value: str, *, field: str) -> str:
    """Require a key, track or name prefix that may be stored."""
    if not value:
        raise InvalidRequest(f"{field} is missing: give 1 to {_LONGEST_TEXT} characters.", code="text_missing", field=field)
    if len(value) > _LONGEST_TEXT or not value.isprintable():
        raise InvalidRequest(
            f"{field} is too long or holds control characters: give 1 to {_LONGEST_TEXT} printable characters.",
            code="text_unusable",
            field=field,
        )
    return value


def check_programs_track(track: str) -> str:
    """Require a track that a program may give: those of people are none of its business."""
    return _check_programs_name(track, own=PEOPLES_TRACKS, field="track")


def check_programs_key(key: str, *, track: str) -> str:
    """Require a key that a program may give, or its ``track`` in the place of one: those of people's requests are none of its business."""
    return _check_programs_name(key, own=PEOPLES_KEYS, field="track" if key == track else "key")


def scoped_key(key: str, *, track: str) -> str:
    """The key as it is stored: each track has keys of its own. A track's own name as its key is that of the seed's programs."""
    return key if key == track else f"{track}{KEY_SEPARATOR}{key}"


def _check_programs_name(value: str, *, own: str, field: str) -> str:
    if value != value.strip():
        raise InvalidRequest(f"{field} has blanks at its ends: leave them out.", code="text_unusable", field=field)
    if value.startswith(own):
        text = f"What begins with “{own}” stands for people's requests in the portal. Choose another {field}."
        raise InvalidRequest(text, code="text_reserved", field=field)
    return check_text(value, field=field)


def check_reason(reason: str) -> None:
    """:raises InvalidRequest: unless it says something, in few enough characters to be kept for good."""
    texts.check_reason(reason, missing="Say why: the reason is kept in the sandbox's history.")


def check_duration(seconds: int | None) -> int | None:
    """:raises InvalidRequest: unless it is a whole number of seconds above zero, or not given."""
    if seconds is not None and seconds < 1:
        raise InvalidRequest("A sandbox is lent for at least one second.", code="duration_not_positive", field="duration")
    return seconds


def request_hash(*, track: str, name_prefix: str, duration_seconds: int | None) -> str:
    """What makes two requests with one key the same request."""
    body = json.dumps([track, name_prefix, duration_seconds], separators=(",", ":"))
    return hashlib.sha256(body.encode()).hexdigest()


def deadline(allocated_at: datetime, lab_duration_hours: float, duration_seconds: int | None) -> datetime:
    """``allocated_at`` plus what was asked for, at most the lab's duration."""
    longest = int(lab_duration_hours * 3600)
    return allocated_at + timedelta(seconds=longest if duration_seconds is None else min(longest, duration_seconds))


def end_of(allocated_at: datetime, lab_duration_hours: float, claims: Mapping[str, datetime]) -> datetime:
    """When an allocation ends that stands for ``claims``: with the latest of them, at most after the lab's duration."""
    return min(deadline(allocated_at, lab_duration_hours, None), max(claims.values()))


def may_release(sandbox: Sandbox, track: str, now: datetime) -> Decision:
    """Whether ``track`` may end the present allocation: its owner, until the end of grace."""
    if sandbox.status is not Status.ALLOCATED or sandbox.track != track:
        return refuse("This sandbox is not lent to this track.", code="NOT_SANDBOX_OWNER")
    if sandbox.is_over(now):
        return refuse("The time of this allocation is over, grace included; the sandbox is taken back.", code="ALLOCATION_EXPIRED")
    return allow("its owner may give it back")


def rule_for_programs(waiting: int, *, programs_first: bool) -> str:
    """What a program that got none is told of the line."""
    people = "One person waits" if waiting == 1 else f"{waiting} people wait"
    if programs_first:
        return f"{people} in line; programs may take what becomes free before them."
    return f"{people} in line, and what becomes free goes to them first: programs may take what nobody waits for."


def may_revive(sandbox: Sandbox | None, record: KeyRecord | None, track: str, now: datetime) -> Decision:
    """Whether ``track`` may have again what it gave back, the hand-over that ``record`` tells of: until it is to be cleaned, which is at
    once for what an operator ended."""
    if sandbox is None or record is None or sandbox.last_released_by != track or sandbox.last_released_fence != record.fence:
        return refuse("What was given back is not there any more. Ask for a new sandbox.", code="not_given_back")
    is_there = sandbox.status is Status.PENDING_DELETION and sandbox.fence == record.fence
    is_due = sandbox.due_at is None or sandbox.due_at <= now
    # A deletion that was sent is noted without a generation where the provider tells none; one that failed is due again later.
    is_begun = sandbox.held_by or sandbox.delete_generation or sandbox.delete_sent_at is not None or sandbox.clean_error
    if not is_there or is_due or is_begun:
        return refuse("Its cleaning has begun. Ask for a new sandbox.", code="cleaning_begun")
    return allow("its cleaning has not begun")


def is_in_grace(sandbox: Sandbox, now: datetime) -> bool:
    """Whether it may still be given back, and no longer be used."""
    return sandbox.expires_at is not None and now >= sandbox.expires_at and not sandbox.is_over(now)


def may_operate(actor: Actor) -> Decision:
    """Whether ``actor`` may restore, quarantine and release other people's sandboxes."""
    if actor.is_operator or actor.is_system:
        return allow("operators may")
    return refuse("Only operators may change the pool by hand.", code="operators_only")


def retry_gap_seconds(failures: int) -> float:
    """Seconds to wait after failure number ``failures`` (from 1): doubling, at most ten minutes."""
    return float(min(_LONGEST_GAP_SECONDS, _FIRST_GAP_SECONDS * 2 ** (failures - 1)))


def brake(plan: SyncPlan, most_share: float) -> str:
    """Why this plan must not be carried out without an operator; empty when it may."""
    if plan.known and not plan.listed and most_share < 1:
        return f"The provider's list is empty, but the pool knows {plan.known} sandboxes."
    allowed = most_at_once(plan.known, most_share)
    going = len(plan.going_stale) + len(plan.not_ready)
    if going > allowed:
        missing = f"{going} of {plan.known} sandboxes are missing from the provider's list, or listed as not ready"
        return f"{missing}; at most {allowed} may go stale at once."
    return ""


def is_reset_since(sandbox: Sandbox, generation: str) -> bool:
    """Whether the provider, which shows it in the life ``generation``, has ended the one in which it became free for its present
    hand-over, or for the next. Nobody but a cleaning does that, so there was a hand-over of which our row knows nothing."""
    is_ours = mending_of(sandbox) is Mending.NOTHING and sandbox.status in {Status.ALLOCATED, Status.AVAILABLE}
    return is_ours and bool(sandbox.generation and generation) and sandbox.generation != generation


def doubt_after_restore(sandbox: Sandbox, generation: str, *, is_ready: bool) -> str:
    """Why nobody may have it before it was cleaned, though the restored row says so; empty when the row is believed."""
    if is_reset_since(sandbox, generation) or (sandbox.status is Status.ALLOCATED and not is_ready):
        return "the provider has reset it since then, so it was given back, and perhaps lent anew"
    if sandbox.status in {Status.AVAILABLE, Status.STALE}:
        return "it may have been lent since then"
    return ""


class Mending(enum.Enum):
    """What our own notes on a row lack because another program changed it."""

    NOTHING = "nothing"
    ADOPT = "adopt"
    TAKE_IN = "take in"
    LIST_AS_FREE = "list as free"


def mending_of(sandbox: Sandbox) -> Mending:
    """Other programs write the seed's attributes alone: neither deadline nor fence, nor what is due."""
    match sandbox.status:
        case Status.ALLOCATED if sandbox.is_foreign or sandbox.due is not Due.EXPIRE:
            return Mending.ADOPT
        case Status.PENDING_DELETION if sandbox.due is not Due.CLEAN:
            return Mending.TAKE_IN
        case Status.AVAILABLE if not sandbox.version or sandbox.due or sandbox.lent_at:
            return Mending.LIST_AS_FREE
    return Mending.NOTHING


def is_unlisted(sandbox: Sandbox) -> bool:
    """Available by another program's hand, and so in no free list of ours."""
    return mending_of(sandbox) is Mending.LIST_AS_FREE


def as_lent(sandbox: Sandbox, *, grace_seconds: int) -> Sandbox:
    """An allocation that another program wrote, with the deadlines that it gets: the lab's duration, then grace."""
    if sandbox.allocated_at is None or not sandbox.is_foreign:
        return sandbox
    expires_at = deadline(sandbox.allocated_at, sandbox.lab_duration_hours, None)
    return dataclasses.replace(sandbox, expires_at=expires_at, grace_ends_at=expires_at + timedelta(seconds=grace_seconds))


def stands_for(record: KeyRecord, sandbox: Sandbox | None) -> bool:
    """Whether the key is open and its sandbox is still lent as it was when the key was written: by this key, to this track."""
    return (
        record.is_open
        and sandbox is not None
        and sandbox.sandbox_id == record.sandbox_id
        and sandbox.status is Status.ALLOCATED
        and not sandbox.is_foreign
        and sandbox.fence == record.fence
        and sandbox.key == record.key
        and sandbox.track == record.track
    )


def may_send(sandbox: Sandbox, now: datetime) -> bool:
    """Whether enough of the cleaner's hold is left for one more call that changes something."""
    return sandbox.held_until is not None and (sandbox.held_until - now).total_seconds() > CALL_MARGIN_SECONDS


def needs_deletion(sandbox: Sandbox, now: datetime) -> bool:
    """Whether its deletion has not been sent yet, or so long ago that it must have been lost."""
    return sandbox.delete_sent_at is None or not is_recent(sandbox.delete_sent_at, now=now, within=timedelta(seconds=SEND_AGAIN_SECONDS))


def is_missed_anew(sandbox: Sandbox, now: datetime) -> bool:
    """Whether the first look that lacks the sandbox is this one, or one that a wrong clock noted."""
    return sandbox.missing_since is None or sandbox.missing_since > now + SKEW


def is_second_sight(sandbox: Sandbox, now: datetime, *, gap_seconds: int) -> bool:
    """Whether the sandbox was noted as missing at a look that is long enough ago to count as another one."""
    return sandbox.missing_since is not None and (now - sandbox.missing_since).total_seconds() >= gap_seconds
