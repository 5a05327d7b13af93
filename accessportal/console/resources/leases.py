"""The leases of the pool of AWS accounts, and freezing them by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Row, Section, filled
from accessportal.console.resources.account_pool import MOVED_ON, POOL_NAME, fitting, is_operator
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.decisions import Decision
from accessportal.kernel.pages import Page
from accessportal.leases import operations, queries
from accessportal.leases.states import SHARDS, Lease, LeaseState
from accessportal.web.deeds import Data, Deed, Told
from accessportal.web.events import latest_of
from accessportal.web.exporting import exported
from accessportal.web.forms import ReasonForm

WORDS = {
    LeaseState.STARTING: ("Starting", "wait"),
    LeaseState.ACTIVE: ("Active", "live"),
    LeaseState.FROZEN: ("Frozen", "stop"),
}


def _may_freeze(lease: Lease, actor: Actor, _now: datetime) -> Decision:
    fits = lease.state is not LeaseState.STARTING and (lease.wanted or lease.state) is not LeaseState.FROZEN
    return fitting("It is frozen already, or has not started.", actor, is_fit=fits)


def _may_unfreeze(lease: Lease, actor: Actor, _now: datetime) -> Decision:
    fits = lease.state is not LeaseState.STARTING and (lease.wanted or lease.state) is not LeaseState.ACTIVE
    return fitting("It is not frozen.", actor, is_fit=fits)


def _freeze(lease: Lease, data: Data, actor: Actor, now: datetime) -> Told:
    operations.freeze(lease_id=lease.lease_id, reason=data["reason"], actor=actor, now=now)
    return Told(f"The access of {lease.user} to {lease.account_id} goes off. This page shows when that is proved.")


def _unfreeze(lease: Lease, _data: Data, actor: Actor, now: datetime) -> Told:
    operations.unfreeze(lease_id=lease.lease_id, actor=actor, now=now)
    return Told(f"The access of {lease.user} to {lease.account_id} goes on again. This page shows when that is proved.")


def _lease_state(lease: Lease) -> str:
    return f"{lease.state}, {lease.wanted}, {lease.fence}"


FREEZE: Deed[Lease] = Deed(
    name="freeze",
    label="Freeze",
    question=lambda lease: f"Freeze the lease of {lease.user}?",
    explain=lambda lease: f"The access of {lease.user} to {lease.account_id} goes off. Account and lease stay, and its time runs on.",
    may=_may_freeze,
    run=_freeze,
    form=partial(ReasonForm, is_required=True, label="Reason (the holder reads it)"),
    is_for=is_operator,
    stale_codes=frozenset({MOVED_ON}),
    stands_on=_lease_state,
    is_destructive=True,
    is_bulk=True,
)
UNFREEZE: Deed[Lease] = Deed(
    name="unfreeze",
    label="Unfreeze",
    question=lambda lease: f"Unfreeze the lease of {lease.user}?",
    explain=lambda lease: (
        f"The access of {lease.user} to {lease.account_id} goes on again, until its end. Why it is off: {lease.freeze_reason}"
    ),
    may=_may_unfreeze,
    run=_unfreeze,
    is_for=is_operator,
    stale_codes=frozenset({MOVED_ON}),
    stands_on=_lease_state,
    is_bulk=True,
)


class Leases(Resource):
    name = "leases"
    singular = "lease"
    plural = "Leases"
    icon = "key-square"
    about = "Who has which account of the pool until when, what it has cost, and whether the access is on."
    headline_template = "console/leases/lease_headline.html"
    columns = (
        Column("Holder", "console/leases/cell_user.html", "col-who"),
        Column("Account", "console/leases/cell_account.html", "col-what"),
        Column("State", "console/leases/cell_lease_state.html", "col-state"),
        Column("Spent", "console/leases/cell_spend.html", "col-context"),
    )
    file_columns = exported(
        "lease_id",
        "user",
        "account_id",
        "pool",
        "permission_set",
        "state",
        "fence",
        "duration_seconds",
        "taken_at",
        "started_at",
        "ends_at",
        "freeze_reason",
        ("spent", lambda lease: lease.spent / 100 if lease.spent_as_of else None),
        "spent_unit",
        "spent_as_of",
        "claims",
    )
    patterns = (
        Pattern(
            name="all",
            label="All",
            fetch=lambda ask: filled(partial(queries.list_leases, pool=ask.parameter), ask, most_reads=2 * SHARDS),
            parameter=POOL_NAME,
            bulk=("freeze", "unfreeze"),
            empty_title="No account is lent",
            empty_hint="A lease stands here from the moment at which its account is taken until it has ended.",
        ),
        Pattern(
            name="person",
            label="Of a person",
            fetch=lambda ask: Page(queries.leases_of(user=fold_email(ask.parameter))),
            parameter=Parameter("The person, by e-mail address", "alice@example.com", finds="people"),
            bulk=("freeze", "unfreeze"),
            empty_title="This person has no account",
            empty_hint="What they had is told by their requests, and by the history of each account.",
        ),
    )
    sections = (
        Section("The lease", "console/leases/lease_facts.html"),
        Section("What happened", "web/latest_events.html"),
        Section("Spent", "console/leases/spend.html", is_aside=True),
        Section("Requests", "console/leases/claims.html", is_aside=True),
    )
    deeds = (FREEZE, UNFREEZE)

    def read(self, key: str, actor: Actor, now: datetime) -> Lease:
        return queries.get_lease(lease_id=key)

    def title(self, record: Lease) -> str:
        return f"{record.user} on {record.account_id}"

    def rows(self, items: Sequence[Lease], ask: Ask) -> list[Row]:
        return [Row(one.lease_id, one, WORDS[one.state]) for one in items]

    def details(self, record: Lease, ask: Ask) -> dict[str, Any]:
        return {"word": WORDS[record.state], **latest_of(record)}
