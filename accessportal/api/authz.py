"""Approvals and relationships for programs: granting and taking back, lists, and checks, all within the home scope of a token."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, ParamSpec, TypeGuard, TypeVar

from django.http import HttpRequest
from ninja import Router, Schema
from ninja.responses import Status

from accessportal.api import authz_schemas as bodies
from accessportal.api.auth import BearerToken, client_of, count_request
from accessportal.api.documenting import errors
from accessportal.api.errors import told_of
from accessportal.authz import operations, queries
from accessportal.authz.operations import RequestKey
from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, Answer, Asked, Caller, Ledger, read_scope
from accessportal.kernel.clock import SystemClock, from_epoch
from accessportal.kernel.errors import PortalError, Unavailable
from accessportal.kernel.lasting import Right
from accessportal.kernel.pages import Page, UnreadableItem
from accessportal.tokens.states import Scope

P = ParamSpec("P")
T = TypeVar("T")
router = Router(auth=BearerToken(Scope.AUTHZ_CHECK), tags=["Approvals and relationships"])
_writes = BearerToken(Scope.AUTHZ_WRITE)
Plain = bodies.ApprovalCheck | bodies.RelationshipCheck
"""A question about one record. With ``in_set`` it is about several."""


@router.post(
    "grant",
    auth=_writes,
    response={201: bodies.GrantedRecord, 200: bodies.GrantedRecord, **errors(409, 413)},
    operation_id="grant_record",
    summary="Grant",
)
def grant(request: HttpRequest, body: bodies.Grant, key: bodies.AuthzKey = "") -> Status[bodies.GrantedRecord]:
    """It counts from now on, until the end of `ttl_seconds`, of what the scope's policy allows, or of this token: 201. The same
    `Idempotency-Key` again: 200 with the record as it stands.

    `ALREADY_GRANTED`: it counts already; say with `if_exists` what becomes of it.
    """
    wanted, caller, now = body.root, _caller(request), SystemClock().now()
    granted = operations.grant(
        wanted.ledger,
        wanted.record(by=caller.actor.name, at=now),
        ttl_seconds=wanted.ttl_seconds,
        if_exists=wanted.if_exists,
        key=_key(key, "grant", wanted),
        caller=caller,
        now=now,
    )
    return Status(200 if granted.is_repeat else 201, bodies.GrantedRecord.of(granted))


@router.post(
    "extend",
    auth=_writes,
    response={200: bodies.GrantedRecord, **errors(404, 409, 413)},
    operation_id="extend_record",
    summary="Move the end",
)
def extend(request: HttpRequest, body: bodies.Extension, key: bodies.AuthzKey = "") -> bodies.GrantedRecord:
    """The record ends `ttl_seconds` from now, or as the scope's policy says; that may be sooner than before. The longest time counts from
    the first grant. The same `Idempotency-Key` again moves nothing."""
    wanted = body.root
    granted = operations.extend(
        wanted.ledger,
        read_scope(wanted.scope),
        wanted.names,
        ttl_seconds=wanted.ttl_seconds,
        key=_key(key, "extend", wanted),
        caller=_caller(request),
        now=SystemClock().now(),
    )
    return bodies.GrantedRecord.of(granted)


@router.post(
    "revoke", auth=_writes, response={200: bodies.Revoked, **errors(404, 409, 413)}, operation_id="revoke_record", summary="Take back"
)
def revoke(request: HttpRequest, body: bodies.RecordName, key: bodies.AuthzKey = "") -> bodies.Revoked:
    """It counts no longer, for whomever it was there. The same `Idempotency-Key` again has the same answer."""
    named = body.root
    operations.revoke(
        named.ledger,
        read_scope(named.scope),
        named.names,
        key=_key(key, "revoke", named),
        caller=_caller(request),
        now=SystemClock().now(),
    )
    return bodies.Revoked()


@router.post("get", response={200: bodies.RecordState, **errors(404, 413)}, operation_id="get_record", summary="Look at a record")
def get(request: HttpRequest, body: bodies.RecordName) -> bodies.ApprovalRecord | bodies.RelationshipRecord:
    """`RECORD_NOT_FOUND`: there is none that counts now."""
    named = body.root
    found = queries.get_record(named.ledger, read_scope(named.scope), named.names, caller=_caller(request), now=SystemClock().now())
    return bodies.state_of(found)


@router.post("list", response={200: bodies.RecordPage, **errors(413)}, operation_id="list_records", summary="List what counts")
def list_records(request: HttpRequest, body: bodies.ListOf) -> bodies.RecordPage:
    """All of a scope, what somebody has in it, or who may (`resource` and `action`) or stands in a relation (`object`); with `is_wide` in
    the scopes below, too. Whatever else is given narrows the pages. A cursor is good for the list that it came from alone."""
    asked, caller, now = body.root, _caller(request), SystemClock().now()
    page = _page(asked, caller, now)
    ends_by = None if asked.ends_by is None else from_epoch(asked.ends_by)
    fits = [
        record
        for record in page.items
        if all(wanted in (None, name) for wanted, name in zip(asked.names, record.names, strict=True))
        and (ends_by is None or (record.expires_at is not None and record.expires_at <= ends_by))
    ]
    return bodies.RecordPage(items=[bodies.state_of(record) for record in fits], next_cursor=page.next_cursor)


@router.post("count", response={200: bodies.Counted, **errors(413)}, operation_id="count_records", summary="Count what counts")
def count(request: HttpRequest, body: bodies.Count) -> bodies.Counted:
    """How many records of a scope count now."""
    ledger: Ledger[Any] = APPROVALS if body.kind == "approval" else RELATIONSHIPS
    caller, now = _caller(request), SystemClock().now()
    return bodies.Counted(count=queries.count_in_scope(ledger, read_scope(body.scope), is_wide=body.is_wide, caller=caller, now=now))


@router.post("check", response={200: bodies.Verdict, **errors(413)}, operation_id="check_record", summary="Ask about a record")
def check(request: HttpRequest, body: bodies.Check) -> bodies.Verdict:
    """Whether this very record counts now, or with `in_set` any that lies below a path. A no is an answer like a yes: 200."""
    return bodies.Verdict.of(_answer(body.root, _caller(request)))


@router.post("chain", response={200: bodies.Verdict, **errors(413)}, operation_id="check_chain", summary="Ask for a chain of relationships")
def chain(request: HttpRequest, body: bodies.Chain) -> bodies.Verdict:
    """Whether links of one relation lead from the subject to the object: one of any type, or several of `trust` or `membership`. `by` is
    the shortest way."""
    return bodies.Verdict.of(_answer(body, _caller(request)))


@router.post("batch", response={200: bodies.Verdicts, **errors(413)}, operation_id="check_batch", summary="Ask up to 100 questions")
def batch(request: HttpRequest, body: bodies.Batch) -> bodies.Verdicts:
    """Each question has an answer of its own, or the error that it would have got alone. When the store can't be read there is no answer at
    all: 503. Each `chain`, and each question with `in_set`, counts as one more request of the token's."""
    caller, clock = _caller(request), SystemClock()
    for one in body.checks:
        if not _is_plain(one):
            count_request(client_of(request).token, now=clock.now())
    plain = iter(queries.check_many([_or_error(_asked, one) for one in body.checks if _is_plain(one)], caller=caller, clock=clock))
    found = [next(plain) if _is_plain(one) else _or_error(_answer, one, caller) for one in body.checks]
    return bodies.Verdicts(answers=[_verdict_or_refusal(one) for one in found])


@router.post("policy", response={200: bodies.PolicyState, **errors(413)}, operation_id="get_policy", summary="Look at a scope's limits")
def policy(request: HttpRequest, body: bodies.PolicyOf) -> bodies.PolicyState:
    """The policy that counts for new grants in the scope. Operators set it, in the portal."""
    return bodies.PolicyState.of(queries.governing_policy(read_scope(body.scope), caller=_caller(request)))


def _caller(request: HttpRequest) -> Caller:
    client = client_of(request)
    token = client.token
    may_write = token.scope is Scope.AUTHZ_WRITE
    return Caller(client.actor, read_scope(token.home_scope), may_write=may_write, right=Right("let in", token.expires_at))


def _key(text: str, verb: str, body: Schema) -> RequestKey | None:
    return RequestKey(text, f"{verb} {body.model_dump_json()}") if text else None


def _page(asked: bodies.ApprovalList | bodies.RelationshipList, caller: Caller, now: datetime) -> Page[Any]:
    """By the index that fits best; the rest of what is asked for is looked for on the page."""
    ledger, scope = asked.ledger, read_scope(asked.scope)
    options: dict[str, Any] = {"cursor": asked.cursor or None, "limit": asked.limit, "caller": caller, "now": now}
    holder, target = asked.names[0], [getattr(asked, name) for name in ledger.kind.target_fields]
    if holder is not None and not asked.is_wide:
        return queries.list_of_holder(ledger, scope, holder, **options)
    if None not in target and not asked.is_wide:
        return queries.list_of_target(ledger, scope, target, **options)
    return queries.list_in_scope(ledger, scope, is_wide=asked.is_wide, **options)


def _answer(question: Plain | bodies.Chain, caller: Caller) -> Answer:
    scope, clock = read_scope(question.scope), SystemClock()
    if isinstance(question, bodies.Chain):
        return queries.check_chain(scope, question.names, depth=question.depth, caller=caller, clock=clock)
    ask = queries.check_set if question.in_set else queries.check
    return ask(question.ledger, scope, question.names, caller=caller, clock=clock)


def _is_plain(question: bodies.ApprovalCheck | bodies.RelationshipCheck | bodies.Chain) -> TypeGuard[Plain]:
    """Whether it is one of those that are read together."""
    return not (isinstance(question, bodies.Chain) or question.in_set)


def _asked(question: Plain) -> Asked:
    return Asked(question.ledger, read_scope(question.scope), question.names)


def _or_error(ask: Callable[P, T], *given: P.args, **named: P.kwargs) -> T | PortalError:
    try:
        return ask(*given, **named)
    except PortalError as error:
        return error


def _verdict_or_refusal(found: Answer | PortalError) -> bodies.BatchVerdict:
    if isinstance(found, Answer):
        return bodies.BatchVerdict(answer=bodies.Verdict.of(found))
    told = told_of(found)
    # One broken record is its own question's affair; a store that does not answer is everybody's.
    if told is None or (isinstance(found, Unavailable) and not isinstance(found, UnreadableItem)):
        raise found
    return bodies.BatchVerdict(error=bodies.Refused(code=told.code, message=told.message, field=told.field))
