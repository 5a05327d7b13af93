"""The bodies of the API. Times are whole seconds since 1970 (Unix), as in seed 002."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from ninja import Header, Path, Query, Schema
from pydantic import ConfigDict, Field

from accessportal.kernel.clock import epoch_of, to_epoch
from accessportal.kernel.texts import LONGEST_REASON
from accessportal.sandboxes import states
from accessportal.sandboxes.states import Released, RunKind, RunState, Sandbox, Status

# Visible ASCII, blanks inside: what travels in a header unchanged through every proxy.
HEADER_TEXT = r"^[!-~]([ -~]{0,198}[!-~])?$"
UNSEEN = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069"
REASON = rf"^[^{UNSEEN}]*[^\s{UNSEEN}][^{UNSEEN}]*$"
_ID = r"^[!-~]{1,128}$"

SandboxId = Annotated[str, Path(description="The id that the allocation told.", pattern=_ID)]
JobId = Annotated[str, Path(description="The id that the order told.", pattern=_ID)]
TrackId = Annotated[str, Header(alias="X-Track-ID", pattern=HEADER_TEXT, description="Who borrows: the track.", example="track-123")]
OptionalTrackId = Annotated[
    str,
    Header(alias="X-Track-ID", pattern=HEADER_TEXT, description="Who borrows: the track. A token of scope `track` must send it."),
]
IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        pattern=HEADER_TEXT,
        description="Names this allocation, so that a repetition gets the same sandbox. Without it the track is the key.",
    ),
]
NamePrefix = Annotated[
    str,
    Header(alias="X-Sandbox-Name-Prefix", pattern=HEADER_TEXT, description="Only sandboxes whose name begins so."),
]
Fence = Annotated[
    int,
    Header(
        alias="X-Fence",
        ge=1,
        le=2**53,
        description="The fence that the allocation told: a late repetition then can't end a newer allocation.",
    ),
]
PageLimit = Annotated[int, Query(ge=1, le=200, description="At most so many on a page.")]
PageCursor = Annotated[str, Query(min_length=1, max_length=2000, description="`next_cursor` of the page before, unchanged.")]
NextCursor = Annotated[str | None, Field(description="Send it as `cursor` for the next page; `null`: this was the last one.")]
Seconds = Annotated[int, Field(description="Seconds since 1970 (Unix time).", examples=[1759567084])]
HandOver = Annotated[int, Field(description="Grows with every hand-over of this sandbox: an older one holds it no longer.", examples=[3])]


class ErrorDetail(Schema):
    """What went wrong: `code` for programs, `message` for people."""

    code: str = Field(description="One of the codes in docs/api.md.", examples=["NO_SANDBOXES_AVAILABLE"])
    message: str = Field(description="In words, with the remedy where there is one.")
    request_id: str = Field(description="The number of this request, as in X-Request-ID and in the portal's logs.")
    field: str = Field("", description="The header, parameter or part of the body at fault; absent where there is none.")
    retry_after: int = Field(0, description="Seconds to wait before trying again; absent where waiting does not help.")


class ErrorBody(Schema):
    """The one shape of every error."""

    error: ErrorDetail


class Facts(Schema):
    """What a record says, field by field."""

    @classmethod
    def told(cls, record: object, **otherwise: Any) -> Self:
        """What ``record`` has under the names of the fields, moments in whole seconds; ``otherwise``: fields that it calls otherwise."""
        found = {name: getattr(record, name) for name in cls.model_fields if hasattr(record, name)}
        return cls(**{name: to_epoch(value) if isinstance(value, datetime) else value for name, value in found.items()} | otherwise)


class Allocation(Facts):
    """A sandbox that is lent to a track."""

    sandbox_id: str
    name: str
    external_id: str = Field(description="The provider's name of the sandbox.")
    track_id: str
    allocated_at: Seconds
    expires_at: Seconds = Field(description="From this moment the sandbox may no longer be used (Unix time).")
    fence: HandOver

    @classmethod
    def of(cls, sandbox: Sandbox) -> Allocation:
        return cls.told(sandbox, track_id=sandbox.track)


class Release(Facts):
    """The end of an allocation, the same at every repetition."""

    sandbox_id: str
    status: Literal["pending_deletion"]
    deletion_requested_at: Seconds
    fence: HandOver

    @classmethod
    def of(cls, released: Released) -> Release:
        return cls.told(released, status="pending_deletion", deletion_requested_at=to_epoch(released.released_at))


class SandboxState(Facts):
    """A sandbox as it stands. `null` stands for what does not apply in its status."""

    sandbox_id: str
    name: str
    external_id: str
    status: Status
    lab_duration_hours: float
    track_id: str | None = Field(description="Who holds it, or held it last until it is cleaned.")
    allocated_at: Seconds | None
    expires_at: Seconds | None
    grace_ends_at: Seconds | None = Field(description="Until then it may still be given back (Unix time).")
    deletion_requested_at: Seconds | None
    deletion_retry_count: int = Field(description="Failed tries to clean it, in a row.")
    problem: str | None = Field(description="Why it is in quarantine, or why cleaning failed last.")
    last_synced_at: Seconds | None
    fence: int
    created_at: Seconds
    updated_at: Seconds

    @classmethod
    def of(cls, sandbox: Sandbox) -> SandboxState:
        return cls.told(
            sandbox,
            track_id=sandbox.track or None,
            problem=sandbox.quarantine_reason or sandbox.clean_error or None,
            last_synced_at=epoch_of(sandbox.last_synced),
        )


class Unreadable(Schema):
    """A row of the pool that another program wrote and that can't be read as a sandbox."""

    sandbox_id: str
    external_id: str


class SandboxPage(Schema):
    """One page of a list."""

    items: list[SandboxState]
    unreadable: list[Unreadable]
    next_cursor: NextCursor


class LastSync(Facts):
    """The last look at the provider's list."""

    at: Seconds
    listed: int
    stopped: str | None = Field(description="Why it changed nothing, where it did not.")

    @classmethod
    def of(cls, sync: states.LastSync) -> LastSync:
        return cls.told(sync, stopped=sync.stopped or None)


class PoolStats(Schema):
    """How many sandboxes are in each status, as counted by a job every few minutes."""

    counted_at: Seconds | None = Field(description="`null`: never counted yet.")
    counts: dict[Status, int] | None
    total: int | None
    last_sync: LastSync | None
    next_return_at: Seconds | None = Field(description="When the next sandbox is expected to be free; `null`: nothing is under way.")


class Job(Schema):
    """Work that was ordered. Poll `status_url`."""

    job_id: str
    kind: RunKind
    state: RunState
    status_url: str


class JobState(Job):
    """Work that was ordered, as it stands."""

    ordered_at: Seconds
    started_at: Seconds | None
    ended_at: Seconds | None
    report: dict[str, int | str] = Field(description="What it did, in numbers and words; empty until it is done.")
    error: str | None = Field(description="Why it failed.")


class Quarantine(Schema):
    """Why a sandbox is to be kept out of use."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(min_length=1, max_length=LONGEST_REASON, pattern=REASON, examples=["The lab's disk is corrupt."])
