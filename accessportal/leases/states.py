"""Records of the pool of accounts (seed 004): the account, its lease, what a person has, and the seed's states and lists."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from accessportal.kernel.clock import Precise
from accessportal.kernel.errors import Conflict, NotFound, Unavailable
from accessportal.kernel.runs import Report

SHARDS = 4
"""In so many shares the accounts of a pool in one state lie, so that none is a hot partition."""
MOST_ACCOUNTS = 30_000
MOST_LEASES = 10_000
"""The seed keeps all ids of a state in one item, which DynamoDB ends at 400 KB: 31,500 accounts, 11,000 leases."""
NEARLY_FULL = 0.8


class AccountState(enum.StrEnum):
    """The seed's three; ``dirty``: given back, to be cleaned; ``failed``: out of use, for a reason."""

    INITIAL = "initial"
    AVAILABLE = "available"
    LEASED = "leased"
    DIRTY = "dirty"
    FAILED = "failed"

    @property
    def is_cleaned_next(self) -> bool:
        return self in (AccountState.INITIAL, AccountState.DIRTY)


class LeaseState(enum.StrEnum):
    """``starting``: the account is taken, and the access is not proved yet. ``frozen``: the access is off, the account stays."""

    STARTING = "starting"
    ACTIVE = "active"
    FROZEN = "frozen"


class Verdict(enum.StrEnum):
    """What follows from what a lease has cost, the more severe the later."""

    NOTHING = ""
    WARN = "warn"
    FREEZE = "freeze"
    END = "end"


@dataclass(frozen=True, slots=True)
class Budget:
    """From which cost on, in cents, a lease is warned of, frozen or ended; ``None``: never."""

    warn: int | None = None
    freeze: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """An AWS account of the pool. ``fence`` grows with every hand-over. ``lease_id`` and ``user`` are those of its lease, or of the last
    one while it is to be cleaned. ``since``: when it came into its state. ``due_at``: when cleaning is next to look at it, after
    ``attempts`` failures, the last with ``error``; ``run``: the execution that cleans it now. ``certificate``: of its last cleaning.
    ``reason``: why it is out of use, or will be when it is given back. ``is_retiring``: it leaves when it is given back.
    ``costs_since``: from when on the last holder's costs were counted, who may take it back."""

    account_id: str
    state: AccountState
    pool: str
    added_at: datetime
    since: Precise
    name: str = ""
    size: str = ""
    tags: Mapping[str, Any] = field(default_factory=dict)
    fence: int = 0
    lease_id: str = ""
    user: str = ""
    due_at: Precise | None = None
    attempts: int = 0
    error: str = ""
    run: str = ""
    certificate: Mapping[str, Any] = field(default_factory=dict)
    cleaned_at: datetime | None = None
    reason: str = ""
    is_retiring: bool = False
    costs_since: datetime | None = None
    version: int = 0
    audit_head: str = ""

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return f"account#{self.account_id}"

    @property
    def is_being_cleaned(self) -> bool:
        """A cleaner has begun, and its answer is not known yet."""
        return self.state.is_cleaned_next and bool(self.run)

    def in_state(self, state: AccountState, *, now: datetime) -> Account:
        """The account as it comes into ``state``, with nothing due."""
        return replace(self, state=state, since=now, due_at=None, attempts=0, error="", run="")

    def at_rest(self, state: AccountState, *, now: datetime) -> Account:
        """As :meth:`in_state`, and nobody's."""
        return replace(self.in_state(state, now=now), lease_id="", user="")


@dataclass(frozen=True, slots=True)
class LeaseData:
    """What the seed says of a lease."""

    state: LeaseState
    account: str
    user: str


@dataclass(frozen=True, slots=True)
class Lease:
    """``claims``: for which requests the account is lent, each until when; before the access was proved the ends are not counted yet.
    ``fence``: of the hand-over. ``wanted``: the state that was ordered for ``freeze_reason``, tried next at ``due_at``. ``spent``: what the
    account has cost, in cents of ``spent_unit``, as far as it was known at ``spent_as_of``. ``reached``: the most severe consequence that
    this has had. ``costs_since``: from when on they are counted, of what was taken back; of others from its start."""

    lease_id: str
    data: LeaseData
    pool: str
    permission_set: str
    fence: int
    duration_seconds: int
    taken_at: Precise
    claims: Mapping[str, datetime] = field(default_factory=dict)
    started_at: datetime | None = None
    ends_at: datetime | None = None
    wanted: LeaseState | None = None
    freeze_reason: str = ""
    due_at: Precise | None = None
    attempts: int = 0
    error: str = ""
    spent: int = 0
    spent_unit: str = ""
    spent_as_of: datetime | None = None
    reached: Verdict = Verdict.NOTHING
    costs_since: datetime | None = None
    version: int = 0
    audit_head: str = ""

    @property
    def entity(self) -> str:
        """The name of its chain in the audit log."""
        return f"lease#{self.lease_id}"

    @property
    def state(self) -> LeaseState:
        return self.data.state

    @property
    def account_id(self) -> str:
        return self.data.account

    @property
    def user(self) -> str:
        return self.data.user

    @property
    def expected_end(self) -> datetime:
        """When it ends, or would if its access were there from the taking on."""
        return self.ends_at or self.taken_at + timedelta(seconds=self.duration_seconds)

    def in_state(self, state: LeaseState) -> Lease:
        """The lease in ``state``, with nothing ordered any more."""
        return replace(self, data=replace(self.data, state=state), wanted=None, due_at=None, attempts=0, error="")


@dataclass(frozen=True, slots=True)
class Held:
    """A lease as the seed names it beside its person."""

    lease: str
    account: str


@dataclass(frozen=True, slots=True)
class Person:
    """What a person has: ``data`` is the newest of the ``leases``."""

    user: str
    data: Held
    leases: tuple[Held, ...]
    version: int = 0


@dataclass(frozen=True, slots=True)
class LentTo:
    """Who has, or had, which account by a lease, at which hand-over, and for which claims; without any it has ended."""

    user: str
    account_id: str
    fence: int
    claims: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Count:
    """How many accounts were in each state at ``counted_at``; ``handed_out``: how many were lent since the count before. Known of the last
    count alone: the same of each of the ``pools``, the ``ends`` of leases, soonest first (of what is to be cleaned: when that began), and
    how many rows are ``unreadable``, which are in no state."""

    counted_at: datetime
    counts: Mapping[AccountState, int]
    handed_out: int
    pools: Mapping[str, Mapping[AccountState, int]] = field(default_factory=dict)
    ends: tuple[datetime, ...] = ()
    unreadable: int = 0

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Difference:
    """A list that is not as the rows say: ``missing`` and ``extra`` are ids, one that is there twice is extra once."""

    name: str
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    def __str__(self) -> str:
        lacks = f"lacks {', '.join(self.missing)}" if self.missing else ""
        much = f"should not hold {', '.join(self.extra)}" if self.extra else ""
        return f"{self.name} {' and '.join(filter(None, (lacks, much)))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport(Report):
    """The seed's lists against the rows. ``mended``: so many ids were put in or taken out."""

    accounts: int
    leases: int
    differences: tuple[Difference, ...] = ()
    nearly_full: tuple[str, ...] = ()
    mended: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeReport(Report):
    """Who waited, and was handed what was free: their claims."""

    served: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleReport(Report):
    """What was done in the pool after a restore of the tables: the accounts whose fence is above all former ones now."""

    raised: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where an account is: ``above`` are the ids of the organizational units that it is in and of the root; none when it is not in the
    organization."""

    above: tuple[str, ...]
    is_management: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanReport(Report):
    """What a run of cleaning did, by account ids. ``waiting``: the cleaner is at work. ``refused``: not to be cleaned. ``dropped``: its
    answer came for an account that had moved on. ``out_of_use``: failed once too often."""

    begun: tuple[str, ...] = ()
    cleaned: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    out_of_use: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport(Report):
    """The pools against their organizational units, by account ids. ``gone``: no longer below them, and so retired. ``elsewhere``: below
    a unit of another pool than theirs, which they leave first. ``kept_out``: somebody retired them, and they come in by hand alone."""

    listed: int
    known: int
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    kept_out: tuple[str, ...] = ()
    is_applied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendReport(Report):
    """What the leases have cost, by their ids. ``unknown``: those of which AWS has told nothing for too long."""

    leases: int
    read: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class NoSuchAccount(NotFound):
    """The pool has none with this id."""

    def __init__(self) -> None:
        super().__init__("There is no such account in the pool.", code="account_not_found")


class NoSuchLease(NotFound):
    """There is none with this id, or it has ended."""

    def __init__(self) -> None:
        super().__init__("There is no such lease, or it has ended.", code="lease_not_found")


class ListFull(Conflict):
    """A list of the seed holds as many ids as one item can."""

    def __init__(self, name: str, most: int) -> None:
        message = f"{name} holds {most:,} ids, as many as it can. Retire accounts first, or use another installation for the others."
        super().__init__(message, code="pool_full")


class TooManySetAside(Unavailable):
    """So many accounts of a pool are out of use that a look which says that one more may not go out is likelier wrong."""

    def __init__(self, pool: str, flaw: str) -> None:
        message = (
            f"It is not lent, and not put out of use: {flaw} Many of the pool {pool} are out of use: look at them, and at Organizations."
        )
        super().__init__(message, code="too_many_set_aside")
