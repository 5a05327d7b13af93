"""The bodies of ``/v1/leases`` and of the care of the pool of accounts."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Self

from ninja import Header, Path, Query, Schema
from pydantic import ConfigDict, Field

from accessportal.access_requests import states
from accessportal.access_requests.states import AccessRequest, Status, Work
from accessportal.api.authz_schemas import Whole
from accessportal.api.schemas import HEADER_TEXT, REASON, UNSEEN, Facts, NextCursor, Seconds
from accessportal.kernel.clock import epoch_of, to_epoch
from accessportal.kernel.durations import LONGEST_SECONDS
from accessportal.kernel.pages import Page
from accessportal.kernel.texts import LONGEST_REASON
from accessportal.leases.states import Account, AccountState, Lease
from accessportal.leases.states import LeaseState as State
from accessportal.rules.states import LONGEST_TICKET

_UUID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_LINE = rf"^[^\t\n\r{UNSEEN}]*$"
_LONGEST_PERSON = 254
_LONGEST_PART = 128
_LONGEST_TAGS = 500
_SHORTEST_SECONDS = 60

LeaseRequestId = Annotated[str, Path(description="`request_id`, as the answer to asking told it.", pattern=_UUID)]
LeaseId = Annotated[str, Path(description="`lease_id` of a lease of the pool.", pattern=_UUID)]
AccountId = Annotated[str, Path(description="The twelve digits of an AWS account.", pattern=r"^[0-9]{12}$")]
LeaseKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        pattern=HEADER_TEXT,
        description="Names this request among those of this token for this person: sent again, it is the same request.",
    ),
]
_ADDRESS: dict[str, Any] = {
    "min_length": 3,
    "max_length": _LONGEST_PERSON,
    "pattern": rf"^[^\s{UNSEEN}@]+@[^\s{UNSEEN}@]+$",
}
Person = Annotated[str, Field(**_ADDRESS, examples=["alice@example.com"])]
PersonName = Annotated[str, Query(**_ADDRESS, description="Whose, by e-mail address.")]
PoolName = Annotated[str, Query(min_length=1, max_length=_LONGEST_PART, pattern=_LINE, description="The pool, as operators label it.")]
Part = Annotated[str, Field(max_length=_LONGEST_PART, pattern=_LINE)]
Reason = Annotated[str, Field(min_length=1, max_length=LONGEST_REASON, pattern=REASON)]


class _Body(Schema):
    model_config = ConfigDict(extra="forbid")


class _Page(Schema):
    items: list[Any]
    unreadable: list[str] = Field(description="What another program has damaged, in words.")
    next_cursor: NextCursor

    @classmethod
    def of(cls, page: Page[Any], items: Iterable[Any]) -> Self:
        return cls(items=list(items), unreadable=[str(one) for one in page.unreadable], next_cursor=page.next_cursor)


class LeaseRequest(_Body):
    """Who is to have what, for how long, and why."""

    person: Person = Field(description="Who gets it, by e-mail address: the rules are asked what they may have.")
    pool: Part = Field(description="The pool, as operators label it.", examples=["workshop"])
    permission_set: Part = Field(description="What the person may do in the account.", examples=["PowerUserAccess"])
    size: Part = Field("", description="Only accounts of this size; any where none is given.")
    tags: Annotated[str, Field(max_length=_LONGEST_TAGS, pattern=_LINE)] = Field(
        "", description="Only accounts with these tags.", examples=["env=dev, team=web"]
    )
    continues: Annotated[str, Field(pattern=rf"{_UUID}|^$")] = Field(
        "", description="To keep an account for longer: the `request_id` with which it was asked for, or of a request that kept it."
    )
    duration_seconds: Whole | None = Field(
        None,
        description="For how long, from the moment at which the access is there; the rule's usual time where none is given.",
        json_schema_extra={"minimum": _SHORTEST_SECONDS, "maximum": LONGEST_SECONDS},
    )
    reason: Reason = Field(description="What it is for. Those who approve and audit read it.", examples=["Workshop of 12 March"])
    ticket_id: Annotated[str, Field(max_length=LONGEST_TICKET, pattern=_LINE)] = Field("", description="Where the rule asks for one.")

    @property
    def target(self) -> dict[str, str]:
        return self.dict(include={"pool", "permission_set", "size", "tags"})


class ReasonGiven(_Body):
    """Why it is done; kept in the history."""

    reason: Reason


class Stage(enum.StrEnum):
    """How a request for an account stands, in one word."""

    PENDING = "pending"
    WAITING = "waiting"
    STARTING = "starting"
    ACTIVE = "active"
    FROZEN = "frozen"
    ENDING = "ending"
    ENDED = "ended"
    DENIED = "denied"
    CANCELLED = "cancelled"
    LAPSED = "lapsed"


_OVER = {
    Status.PENDING: Stage.PENDING,
    Status.REVOKED: Stage.ENDED,
    Status.DENIED: Stage.DENIED,
    Status.CANCELLED: Stage.CANCELLED,
    Status.LAPSED: Stage.LAPSED,
}


class Expected(Schema):
    """Between which moments an account is expected, when everybody keeps theirs to the end."""

    earliest_at: Seconds
    latest_at: Seconds


class PlaceInLine(Schema):
    """Where the request stands in the line of its pool."""

    before: int = Field(description="So many are before it.")
    lapses_at: Seconds = Field(description="Then the place is given up, and the request ends.")
    expected: Expected | None = Field(description="`null`: not known.")

    @classmethod
    def of(cls, place: states.PlaceInLine) -> PlaceInLine:
        expected = place.expected and Expected(earliest_at=to_epoch(place.expected[0]), latest_at=to_epoch(place.expected[1]))
        return cls(before=place.before, lapses_at=to_epoch(place.lapses_at), expected=expected)


class Spend(Schema):
    """What the account has cost while it was lent, as far as AWS has told."""

    amount_cents: int = Field(description="In hundredths of `unit`.")
    unit: str = Field(description="The currency of the account's bill.", examples=["USD"])
    as_of: Seconds = Field(description="The figure counts what was spent until then.")


class RequestState(Facts):
    """A request for an account, and the lease that it holds. `null` stands for what does not apply at its stage."""

    request_id: str
    stage: Stage = Field(
        description="`pending`: somebody has to approve; `waiting`: it has a place in the line; `starting`: the access is being made; "
        "`frozen`: the access is off, the account stays theirs; `ending`: the access is being taken away."
    )
    person: str
    pool: str
    permission_set: str
    reason: str
    ticket_id: str | None
    rule: str = Field(description="The rule by which it was decided.")
    asked_at: Seconds
    asked_through: str | None = Field(description="The program that asked for the person, as `client:` and the id of its token.")
    duration_seconds: int
    lease_id: str | None
    account_id: str | None
    started_at: Seconds | None = Field(description="When the access was proved to be there: the time runs from then.")
    ends_at: Seconds | None = Field(description="When it ends; of what waits, `place` tells when that lapses.")
    place: PlaceInLine | None
    spend: Spend | None
    problem: str | None = Field(description="Why it is not further, where something failed.")

    @classmethod
    def of(
        cls, found: AccessRequest, *, place: states.PlaceInLine | None = None, lease: Lease | None = None, now: datetime
    ) -> RequestState:
        is_granted = found.granted_at is not None
        return cls.told(
            found,
            stage=_stage_of(found, place, lease, now),
            person=found.subject_id,
            pool=str(found.target["pool"]),
            ticket_id=found.ticket_id or None,
            rule=found.rule_name,
            asked_at=to_epoch(found.requested_at),
            asked_through=found.asked_through or None,
            lease_id=None if lease is None else lease.lease_id,
            account_id=found.account_id or None if lease is None else lease.account_id,
            started_at=epoch_of(found.granted_at),
            ends_at=to_epoch(found.expires_at) if is_granted else None,
            place=None if place is None else PlaceInLine.of(place),
            spend=None if lease is None else spend_of(lease),
            problem=found.work_error or None,
        )


class LeasePage(_Page):
    """One page of a list. It may hold fewer than asked for, or none, while more follow."""

    items: list[RequestState]


class AccountFacts(Facts):
    """An account of the pool. `null` stands for what does not apply in its state."""

    account_id: str
    state: AccountState
    pool: str
    name: str | None
    size: str | None
    tags: dict[str, str]
    fence: int = Field(description="Grows with every hand-over of this account.")
    lease_id: str | None = Field(description="Its lease; while it is to be cleaned, the last one.")
    person: str | None = Field(description="Who holds it; while it is to be cleaned, who held it last.")
    added_at: Seconds
    since: Seconds = Field(description="When it came into this state.")
    due_at: Seconds | None = Field(description="When cleaning looks at it next.")
    failed_cleanings: int = Field(description="Failed tries to clean it, in a row.")
    is_being_cleaned: bool
    problem: str | None = Field(description="Why it is out of use, or why cleaning failed last.")
    cleaned_at: Seconds | None
    certificate: dict[str, Any] | None = Field(description="What its last cleaning found, removed, left, and did not look at.")
    is_retiring: bool = Field(description="It leaves the pool when it is given back.")

    @classmethod
    def of(cls, account: Account) -> AccountFacts:
        return cls.told(
            account,
            name=account.name or None,
            size=account.size or None,
            tags={name: str(value) for name, value in account.tags.items()},
            lease_id=account.lease_id or None,
            person=account.user or None,
            failed_cleanings=account.attempts,
            problem=account.reason or account.error or None,
            certificate=dict(account.certificate) or None,
        )


class AccountPage(_Page):
    """One page of a list."""

    items: list[AccountFacts]


class HeldLease(Facts):
    """A lease of the pool, for those who care for it."""

    lease_id: str
    state: State
    wanted: State | None = Field(description="The state that was ordered and is not reached yet.")
    freeze_reason: str | None
    account_id: str
    person: str
    pool: str
    permission_set: str
    fence: int
    request_ids: list[str] = Field(description="The requests that hold it, which `/v1/leases/{request_id}` tells more of.")
    taken_at: Seconds
    started_at: Seconds | None
    ends_at: Seconds | None
    spend: Spend | None
    problem: str | None = Field(description="Why what was ordered failed last.")

    @classmethod
    def of(cls, lease: Lease) -> HeldLease:
        return cls.told(
            lease,
            freeze_reason=lease.freeze_reason or None,
            person=lease.user,
            request_ids=sorted(lease.claims),
            spend=spend_of(lease),
            problem=lease.error or None,
        )


class HeldLeasePage(_Page):
    """One page of a list."""

    items: list[HeldLease]


def _stage_of(found: AccessRequest, place: states.PlaceInLine | None, lease: Lease | None, now: datetime) -> Stage:
    if found.is_undecided_past_deadline(now):
        return Stage.LAPSED
    if found.status is not Status.ACTIVE:
        return _OVER[found.status]
    if found.work is Work.REVOKE or found.is_over(now):
        return Stage.ENDING
    if found.work is Work.GRANT:
        return Stage.STARTING if place is None else Stage.WAITING
    return Stage.FROZEN if lease is not None and lease.state is State.FROZEN else Stage.ACTIVE


class Ordered(Schema):
    """A job does it soon; the accounts tell how far it is."""

    ordered: bool = True


def spend_of(lease: Lease) -> Spend | None:
    """``None`` before AWS has told anything: that is not the same as nothing spent."""
    return None if lease.spent_as_of is None else Spend(amount_cents=lease.spent, unit=lease.spent_unit, as_of=to_epoch(lease.spent_as_of))
