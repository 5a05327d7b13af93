"""Records of the sandbox pool (seed 002): the sandbox, its states and moves, the idempotency key, and what runs report."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from accessportal.kernel.clock import Precise
from accessportal.kernel.errors import Conflict, NotFound
from accessportal.kernel.runs import Report


class Status(enum.StrEnum):
    """The seed's four, and ``quarantined`` for what cleaning cannot cure."""

    AVAILABLE = "available"
    ALLOCATED = "allocated"
    PENDING_DELETION = "pending_deletion"
    STALE = "stale"
    QUARANTINED = "quarantined"


ALLOWED_MOVES: dict[Status, frozenset[Status]] = {
    Status.AVAILABLE: frozenset({Status.ALLOCATED, Status.STALE, Status.QUARANTINED}),
    Status.ALLOCATED: frozenset({Status.PENDING_DELETION, Status.QUARANTINED}),
    Status.PENDING_DELETION: frozenset({Status.AVAILABLE, Status.ALLOCATED, Status.QUARANTINED}),
    Status.STALE: frozenset({Status.AVAILABLE, Status.PENDING_DELETION, Status.QUARANTINED}),
    Status.QUARANTINED: frozenset({Status.PENDING_DELETION}),
}


class Due(enum.StrEnum):
    """What a job must do with a sandbox at ``due_at``."""

    EXPIRE = "expire"
    CLEAN = "clean"


class RunDue(enum.StrEnum):
    """What a job must do with a run at ``due_at``: perform it, or forget it when it has long ended."""

    PERFORM = "run"
    FORGET = "forget"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """One sandbox; empty strings and ``None``: the row has no such attribute. ``fence`` grows with every hand-over. ``version`` 0: no
    program of ours has written it yet. ``generation``: the provider's word for the life in which it became free last. ``claims``: for whom
    it is lent, where it is not for a track, each until when."""

    sandbox_id: str
    name: str
    external_id: str
    status: Status
    lab_duration_hours: float
    created_at: datetime
    updated_at: datetime
    allocated_at: datetime | None = None
    track: str = ""
    key: str = ""
    expires_at: datetime | None = None
    grace_ends_at: datetime | None = None
    lent_at: datetime | None = None
    fence: int = 0
    due: Due | None = None
    due_at: Precise | None = None
    deletion_requested_at: datetime | None = None
    deletion_retry_count: int = 0
    delete_sent_at: Precise | None = None
    delete_generation: str = ""
    generation: str = ""
    clean_error: str = ""
    quarantine_reason: str = ""
    held_by: str = ""
    held_until: Precise | None = None
    last_synced: datetime | None = None
    missing_since: datetime | None = None
    last_released_by: str = ""
    last_released_at: datetime | None = None
    last_released_fence: int = 0
    claims: Mapping[str, datetime] = field(default_factory=dict)
    version: int = 0
    audit_head: str = ""

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return entity_of(self.sandbox_id)

    @property
    def is_foreign(self) -> bool:
        """Its present allocation was written by another program, and no program of ours has taken note of it yet."""
        return self.allocated_at is not None and self.lent_at != self.allocated_at

    @property
    def fence_held(self) -> int:
        """The fence of its present hand-over, or of its last; also when no program of ours has taken note of it yet."""
        return self.fence + (1 if self.is_foreign else 0)

    @property
    def sent_key(self) -> str:
        """The key as its client sent it."""
        return self.key.rpartition(KEY_SEPARATOR)[2]

    def is_over(self, now: datetime) -> bool:
        """Allocated, and past its deadline and grace: whether or not a job has come by."""
        return self.status is Status.ALLOCATED and self.grace_ends_at is not None and now >= self.grace_ends_at


# Tracks and keys of people, whose allocations belong to their requests: no program may name them.
PEOPLES_TRACKS = "person:"
PEOPLES_KEYS = "request:"

# Between track and key, which can't hold it.
KEY_SEPARATOR = "\n"

POOL_ENTITY = "sandboxpool#current"


def entity_of(sandbox_id: str) -> str:
    return f"sandbox#{sandbox_id}"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for a row that is no sandbox as this code knows them: somebody else wrote it."""

    sandbox_id: str
    external_id: str


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What a key stands for; while ``is_open`` the same request gets the same sandbox. ``request_hash`` is empty for an allocation by
    another program."""

    key: str
    request_hash: str
    sandbox_id: str
    fence: int
    track: str
    is_open: bool
    version: int


@dataclass(frozen=True, slots=True)
class Holder:
    """What a person holds by claims: key to sandbox id; or what a program holds: sandbox id to fence. What is over already may
    still stand in it."""

    track: str
    holds: Mapping[str, str]
    version: int


@dataclass(frozen=True, slots=True)
class Taken:
    """``is_repeat``: the key had been answered before, and this is that answer."""

    sandbox: Sandbox
    is_repeat: bool


@dataclass(frozen=True, slots=True)
class Released:
    """The end of one allocation, the same at every repetition."""

    sandbox_id: str
    track: str
    fence: int
    released_at: datetime


@dataclass(frozen=True, slots=True)
class ExpireReport(Report):
    """What one run did, by sandbox id. ``mended``: other programs had changed the row, and our own notes follow now."""

    expired: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CleanReport(Report):
    """What one run did, by sandbox id. ``waiting``: deleted, and not ready yet. ``stopped``: why the rest was left for later."""

    cleaned: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What whoever has a place in the line waits for: the key and the track that it is lent under, how its name begins, and how many the
    person may have."""

    key: str
    track: str
    name_prefix: str
    most_held: int


@dataclass(frozen=True, slots=True)
class ServeReport(Report):
    """Which sandboxes a run handed over to those who waited."""

    served: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SettleReport(Report):
    """What was done in the pool after a restore of the tables. ``raised``: rows whose fence is above all former ones now."""

    raised: int
    quarantined: tuple[str, ...] = ()
    added: int = 0


@dataclass(frozen=True, slots=True)
class SyncPlan(Report):
    """What a look at the provider's whole list means. ``going_stale`` are missed for the second time, ``missing`` for the first;
    ``not_ready`` are free with us, and listed as not ready; ``new_not_ready`` come in once they are listed as ready.
    """

    listed: int
    known: int
    new: tuple[str, ...] = ()
    new_not_ready: tuple[str, ...] = ()
    seen: int = 0
    seen_again: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    going_stale: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ()
    lent_but_missing: tuple[str, ...] = ()
    to_mend: tuple[str, ...] = ()
    is_applied: bool = False


class NoSuchSandbox(NotFound):
    """The pool has none with this id."""

    def __init__(self) -> None:
        super().__init__("There is no such sandbox in the pool.", code="sandbox_not_found")


class SyncStopped(Conflict):
    """The list would take too much away: nothing was written. ``present`` is the plan."""

    def __init__(self, message: str, *, plan: SyncPlan) -> None:
        super().__init__(message, code="sync_stopped", present=plan)
        self.plan = plan


class NoneFree(Conflict):
    """No sandbox was free. ``next_return_at`` is when the next one is expected back (``None``: nothing is under way); ``returns`` what was
    counted when there was none."""

    def __init__(self, message: str, *, next_return_at: datetime | None, returns: tuple[int, ...]) -> None:
        super().__init__(message, code="NO_SANDBOXES_AVAILABLE", present=next_return_at)
        self.next_return_at = next_return_at
        self.returns = returns


@dataclass(frozen=True, slots=True)
class Stats:
    """How many sandboxes were in each status at ``counted_at``. ``unreadable`` rows, known for the last count alone, are in none."""

    counted_at: datetime
    counts: Mapping[Status, int]
    unreadable: tuple[Unreadable, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class LastSync:
    """The last look at the provider's list; ``stopped`` says why it changed nothing. ``shortest_lab_seconds``: for how long every sandbox
    could be lent (0: not known)."""

    at: datetime
    listed: int
    stopped: str
    shortest_lab_seconds: int = 0


class RunKind(enum.StrEnum):
    """What can be ordered. ``cleanup`` expires what is over and cleans what is due."""

    SYNC = "sync"
    CLEANUP = "cleanup"


class RunState(enum.StrEnum):
    """``queued`` and ``running`` runs are open; the other two are ends."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Run:
    """Work on the pool that somebody ordered; ``report`` and ``error`` say what came of it. While it is running it is one performer's alone
    until ``held_until``."""

    run_id: str
    kind: RunKind
    state: RunState
    ordered_by: str
    ordered_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    report: Mapping[str, int | str] = field(default_factory=dict)
    error: str = ""
    held_by: str = ""
    held_until: datetime | None = None
    version: int = 1

    @property
    def is_open(self) -> bool:
        return self.state in {RunState.QUEUED, RunState.RUNNING}


class NoSuchRun(NotFound):
    """None with this id is remembered."""

    def __init__(self) -> None:
        super().__init__("There is no such run; runs are remembered for a week after their end.", code="run_not_found")
