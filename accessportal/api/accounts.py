"""Care of the pool of AWS accounts by programs of scope ``leases:admin``: accounts, leases, and cleaning."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from ninja.responses import Status

from accessportal.api.auth import BearerToken, client_of
from accessportal.api.documenting import errors
from accessportal.api.lease_schemas import (
    AccountFacts,
    AccountId,
    AccountPage,
    HeldLease,
    HeldLeasePage,
    LeaseId,
    Ordered,
    PoolName,
    ReasonGiven,
)
from accessportal.api.schemas import PageCursor, PageLimit
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.ports import after_commit
from accessportal.leases import operations, queries
from accessportal.leases.states import AccountState
from accessportal.tokens.states import Scope

router = Router(auth=BearerToken(Scope.LEASES_ADMIN), tags=["Pool of accounts"])


@router.get("accounts", response={200: AccountPage, **errors()}, operation_id="list_accounts", summary="List accounts")
def list_accounts(
    request: HttpRequest,
    pool: PoolName = "",
    state: Annotated[AccountState | None, Query(description="Only those in this state.")] = None,
    limit: PageLimit = 50,
    cursor: PageCursor = "",
) -> AccountPage:
    """Of one pool, or all. A page may hold fewer than `limit`, or none, while more follow. A cursor is good for the list that it came
    from alone (`INVALID_CURSOR`)."""
    page = queries.list_accounts(pool=pool, state=state, cursor=cursor or None, limit=limit)
    return AccountPage.of(page, map(AccountFacts.of, page.items))


@router.get("accounts/{account_id}", response={200: AccountFacts, **errors(404)}, operation_id="get_account", summary="Look at an account")
def get_account(request: HttpRequest, account_id: AccountId) -> AccountFacts:
    """How it stands, with the certificate of its last cleaning."""
    return AccountFacts.of(queries.get_account(account_id=account_id))


@router.post(
    "accounts/{account_id}/restore",
    response={200: AccountFacts, **errors(404, 409)},
    operation_id="restore_account",
    summary="Bring an account back into use",
)
def restore_account(request: HttpRequest, account_id: AccountId) -> AccountFacts:
    """One that is out of use is cleaned once more and then free; one that is lent stays in the pool. `CONFLICT`: there is nothing to
    restore. No body is read."""
    return AccountFacts.of(operations.restore(account_id=account_id, actor=client_of(request).actor, now=SystemClock().now()))


@router.post(
    "accounts/{account_id}/retire",
    response={200: AccountFacts, **errors(404, 409, 413)},
    operation_id="retire_account",
    summary="Take an account out of the pool",
)
def retire_account(request: HttpRequest, account_id: AccountId, body: ReasonGiven) -> AccountFacts:
    """At once when nobody has it, else when it is given back (`is_retiring`)."""
    told = operations.retire(account_id=account_id, reason=body.reason, actor=client_of(request).actor, now=SystemClock().now())
    return AccountFacts.of(told)


@router.post(
    "accounts/{account_id}/quarantine",
    response={200: AccountFacts, **errors(404, 409, 413)},
    operation_id="quarantine_account",
    summary="Keep an account out of use",
)
def quarantine_account(request: HttpRequest, account_id: AccountId, body: ReasonGiven) -> AccountFacts:
    """Nobody gets it until it is restored. Who has it keeps it until they give it back; freeze or end their lease if that is too late."""
    told = operations.quarantine(account_id=account_id, reason=body.reason, actor=client_of(request).actor, now=SystemClock().now())
    return AccountFacts.of(told)


@router.post("accounts-cleaning", response={202: Ordered, **errors(409)}, operation_id="order_cleaning", summary="Clean what is due")
def order_cleaning(request: HttpRequest, response: HttpResponse) -> Status[Ordered]:
    """A job does soon what it does every minute: what was given back and is due is cleaned; the accounts tell how far it is. `CONFLICT`: no
    cleaner is set. No body is read."""
    operations.require_cleaner()
    after_commit("clean_accounts")
    response.headers["Location"] = f"/v1/admin/accounts?state={AccountState.DIRTY.value}"
    return Status(202, Ordered())


@router.get("leases", response={200: HeldLeasePage, **errors()}, operation_id="list_held_leases", summary="List what is lent")
def list_held_leases(request: HttpRequest, pool: PoolName = "", limit: PageLimit = 50, cursor: PageCursor = "") -> HeldLeasePage:
    """Every lease of one pool, or of all, that has not ended. Pages and cursors as those of the accounts."""
    page = queries.list_leases(pool=pool, cursor=cursor or None, limit=limit)
    return HeldLeasePage.of(page, map(HeldLease.of, page.items))


@router.post(
    "leases/{lease_id}/freeze", response={200: HeldLease, **errors(404, 409, 413)}, operation_id="freeze_lease", summary="Freeze a lease"
)
def freeze_lease(request: HttpRequest, lease_id: LeaseId, body: ReasonGiven) -> HeldLease:
    """The access goes off, and the account stays with its person: ordered, and done by a job (`wanted` until then)."""
    return HeldLease.of(operations.freeze(lease_id=lease_id, reason=body.reason, actor=client_of(request).actor, now=SystemClock().now()))


@router.post(
    "leases/{lease_id}/unfreeze", response={200: HeldLease, **errors(404, 409)}, operation_id="unfreeze_lease", summary="Unfreeze a lease"
)
def unfreeze_lease(request: HttpRequest, lease_id: LeaseId) -> HeldLease:
    """The access comes back, until the end of the lease. No body is read."""
    return HeldLease.of(operations.unfreeze(lease_id=lease_id, actor=client_of(request).actor, now=SystemClock().now()))
