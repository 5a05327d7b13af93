"""Account leases for programs: asked for in people's names, looked at, given back."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.responses import Status as Answered

from accessportal.access_requests import operations, queries
from accessportal.access_requests.kinds.lending import chain_of
from accessportal.access_requests.states import AccessRequest, Program, Status
from accessportal.api.auth import BearerToken, Client, client_of
from accessportal.api.documenting import errors
from accessportal.api.lease_schemas import (
    LeaseKey,
    LeasePage,
    LeaseRequest,
    LeaseRequestId,
    PersonName,
    RequestState,
)
from accessportal.api.schemas import PageCursor, PageLimit
from accessportal.kernel.actors import fold_email, person
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import Conflict, NotAllowed, NotFound
from accessportal.leases import queries as pool
from accessportal.tokens.states import Scope

KIND = "account_lease"
router = Router(auth=BearerToken(Scope.LEASES_ASK), tags=["Account leases"])


@router.post("", response={202: RequestState, **errors(404, 409, 413)}, operation_id="request_lease", summary="Ask for an account")
def request_lease(request: HttpRequest, response: HttpResponse, body: LeaseRequest, key: LeaseKey) -> Answered[RequestState]:
    """Asked for in the name of `person`, who gets what the rules let them have and nothing else; whoever has to approve does so as for
    any request. 202: poll `Location`. The same `Idempotency-Key` again for that person: the same request, as it stands by then.

    With `continues` what is held is asked for longer, by a decision of its own, from which its time runs: the rules say whether. 404: this
    token asked for no such request. `INVALID_REQUEST`: it is not held (any more) by `person`, or is another account than is asked for.

    `REQUEST_REFUSED`: no rule lets them have it, or they have as much as they may. `IDEMPOTENCY_MISMATCH`: the key stands for another
    request.
    """
    client, now = client_of(request), SystemClock().now()
    going_on = {"continues": chain_of(_find(body.continues, client, now))} if body.continues else {}
    try:
        asked = operations.submit(
            kind=KIND,
            subject_id=None,
            target=body.target | going_on,
            duration_seconds=body.duration_seconds,
            reason=body.reason,
            ticket_id=body.ticket_id,
            submission_id=hashlib.sha256(key.encode()).hexdigest(),
            program=Program(client.actor, client.token.name),
            actor=person(body.person),
            now=now,
        )
    except NotAllowed as error:
        raise NotAllowed(error.message, code="REQUEST_REFUSED") from error
    response.headers["Location"] = f"/v1/leases/{asked.request_id}"
    return Answered(202, _state(asked, now))


@router.get("", response={200: LeasePage, **errors()}, operation_id="list_leases", summary="List what a person was asked for")
def list_leases(request: HttpRequest, person: PersonName, limit: PageLimit = 50, cursor: PageCursor = "") -> LeasePage:
    """Newest first, those that are over among them: what this token asked for; for a token of scope `leases:admin` everything. A cursor
    is good for the list that it came from alone (`INVALID_CURSOR`)."""
    client, now, who = client_of(request), SystemClock().now(), fold_email(person)
    if client.is_admin:
        page = queries.list_by_subject(subject_id=who, actor=client.actor, now=now, cursor=cursor or None, limit=limit)
    else:
        page = queries.list_asked_through(subject_id=who, program=client.actor, cursor=cursor or None, limit=limit)
    mine = [one for one in page.items if one.kind == KIND]
    held = pool.find_leases(lease_ids=filter(None, map(_lease_id, mine)))
    places = queries.places_in_line(requests=mine, now=now)
    states = (RequestState.of(one, place=places.get(one.request_id), lease=held.get(_lease_id(one)), now=now) for one in mine)
    return LeasePage.of(page, states)


@router.get(
    "/{request_id}", response={200: RequestState, **errors(404)}, operation_id="get_lease", summary="Look at a request for an account"
)
def get_lease(request: HttpRequest, request_id: LeaseRequestId) -> RequestState:
    """What this token asked for; for a token of scope `leases:admin` everything. While it waits, `place` tells how many are before it and
    when its turn is expected."""
    now = SystemClock().now()
    return _state(_find(request_id, client_of(request), now), now)


@router.post("/{request_id}/give-back", response={200: RequestState, **errors(404)}, operation_id="give_back_lease", summary="Give back")
def give_back_lease(request: HttpRequest, request_id: LeaseRequestId) -> RequestState:
    """The access ends, and the account is cleaned before anybody else gets it; what is not granted yet is withdrawn, and leaves the line.
    Repeated, nothing more happens. No body is read."""
    client, now = client_of(request), SystemClock().now()
    if _find(request_id, client, now).status is Status.PENDING:
        with suppress(Conflict):
            operations.cancel(request_id=request_id, actor=client.actor, now=now)
    if _find(request_id, client, now).status is Status.ACTIVE:
        # Also what was approved meanwhile; whoever was faster has ended it.
        with suppress(Conflict):
            operations.end(request_id=request_id, actor=client.actor, now=now)
    return _state(_find(request_id, client, now), now)


def _find(request_id: str, client: Client, now: datetime) -> AccessRequest:
    found = queries.get(request_id=request_id, actor=client.actor, now=now)
    if found.kind != KIND:
        raise NotFound("There is no such request.", code="request_not_found")
    return found


def _state(found: AccessRequest, now: datetime) -> RequestState:
    """With its place in the line, or its lease: nothing is read of what is over."""
    place, lease_id = queries.place_in_line(request=found, now=now), _lease_id(found)
    return RequestState.of(found, place=place, lease=pool.find_lease(lease_id=lease_id) if lease_id else None, now=now)


def _lease_id(found: AccessRequest) -> str:
    """Empty for what holds none, or none any more."""
    return chain_of(found) if found.status is Status.ACTIVE else ""
