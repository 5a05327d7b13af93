"""Whatever goes wrong under ``/v1/`` is told in one shape, and the domain's errors become statuses and codes here alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.request import UnreadablePostError
from ninja.errors import AuthenticationError, HttpError, ValidationError

from accessportal.identity.database import AWAY
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import Conflict, InvalidRequest, NotAllowed, NotFound, PortalError, Unavailable
from accessportal.kernel.texts import cut
from accessportal.sandboxes.states import NoneFree
from accessportal.tokens.states import RateLimited, TokenRefused

log = structlog.get_logger(__name__)

_NOTHING_UNDER_WAY_SECONDS = 60
_UNAVAILABLE_SECONDS = 2
# Codes of the domain that clients are told by name; every other code of a class of errors has the name of the class.
_CODES = {
    "sandbox_not_found": "SANDBOX_NOT_FOUND",
    "approval_not_found": "RECORD_NOT_FOUND",
    "relationship_not_found": "RECORD_NOT_FOUND",
    "request_not_found": "LEASE_NOT_FOUND",
    "lease_not_found": "LEASE_NOT_FOUND",
    "account_not_found": "ACCOUNT_NOT_FOUND",
    "cursor_forged": "INVALID_CURSOR",
    "header_missing": "MISSING_HEADER",
    "UnauthorizedScopeAccess": "UNAUTHORIZED_SCOPE_ACCESS",
    "NOT_SANDBOX_OWNER": "NOT_SANDBOX_OWNER",
    "ALLOCATION_EXPIRED": "ALLOCATION_EXPIRED",
    "TRACK_NOT_ALLOWED": "TRACK_NOT_ALLOWED",
    "IDEMPOTENCY_MISMATCH": "IDEMPOTENCY_MISMATCH",
    "submission_reused": "IDEMPOTENCY_MISMATCH",
    "REQUEST_REFUSED": "REQUEST_REFUSED",
    "TOO_MANY_HELD": "TOO_MANY_HELD",
    "exists": "ALREADY_GRANTED",
    "scope_deleting": "SCOPE_DELETING",
}
_INPUTS = {"track": "X-Track-ID", "key": "Idempotency-Key", "name_prefix": "X-Sandbox-Name-Prefix", "duration": "duration_seconds"}
_CHALLENGE = 'Bearer realm="sandboxes"'
# What pydantic names the alternatives of a body by.
_UNION_TAGS = frozenset({"approval", "relationship", "chain"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client is told. ``field`` names the input at fault; ``retry_after`` is in whole seconds, in body and header."""

    status: int
    code: str
    message: str
    field: str = ""
    retry_after: int | None = None

    def body(self, request: HttpRequest) -> dict[str, Any]:
        told: dict[str, Any] = {"code": self.code, "message": self.message, "request_id": request_id_of(request)}
        if self.field:
            told["field"] = self.field
        if self.retry_after is not None:
            told["retry_after"] = self.retry_after
        return {"error": told}


_NO_SUCH = {
    "sandbox_id": Answer(404, "SANDBOX_NOT_FOUND", "No sandbox can have this id."),
    "request_id": Answer(404, "LEASE_NOT_FOUND", "No request for an account can have this id."),
    "lease_id": Answer(404, "LEASE_NOT_FOUND", "No lease can have this id."),
    "account_id": Answer(404, "ACCOUNT_NOT_FOUND", "No account can have this id: it has twelve digits."),
}


class ErrorResponse(JsonResponse):
    """Tells the middleware that this answer has the one shape already."""

    def __init__(self, request: HttpRequest, answer: Answer) -> None:
        super().__init__(answer.body(request), status=answer.status)
        if answer.status == 401:
            self.headers["WWW-Authenticate"] = _CHALLENGE
        if answer.retry_after is not None:
            self.headers["Retry-After"] = str(answer.retry_after)


def request_id_of(request: HttpRequest) -> str:
    """The number of this request, which the middleware took over or made."""
    return str(request.META["HTTP_X_REQUEST_ID"])


def to_response(request: HttpRequest, error: Exception | type[Exception]) -> HttpResponse:
    """What a client is told about ``error``. Only what is our fault is logged with its trace; no trace is ever sent."""
    assert isinstance(error, Exception)
    answer = told_of(error) if isinstance(error, PortalError) else _protocol(error)
    if answer is None:
        log.error("api.failed", path=request.path, exc_info=error)
        answer = of_status(500)
    elif answer.status == 503:
        log.error("api.unavailable", path=request.path, exc_info=error)
    elif answer.status in {401, 403}:
        log.info("api.refused", code=answer.code, path=request.path)
    return ErrorResponse(request, answer)


def of_status(status: int) -> Answer:
    """The answer where nothing but the status is known: Django or the framework refused before any code of ours ran."""
    match status:
        case 404:
            return Answer(404, "NOT_FOUND", "There is nothing at this address. /v1/docs lists what there is.")
        case 405:
            return Answer(405, "METHOD_NOT_ALLOWED", "This address does not know that method; the Allow header names those it knows.")
        case 413:
            return Answer(413, "REQUEST_TOO_LARGE", "The body is larger than any request needs. Send a smaller one.")
        case _ if status < 500:
            return Answer(status, "INVALID_REQUEST", "The request could not be read. Check its address, headers and body.")
        case 503:
            return Answer(503, "UNAVAILABLE", "The portal can't answer right now. Try again.", retry_after=_UNAVAILABLE_SECONDS)
        case _:
            return Answer(status, "INTERNAL_ERROR", "This is a fault of the portal's. Tell its operators the request_id.")


def told_of(error: PortalError) -> Answer | None:
    """What a client is told about an error of the domain; ``None``: no client can cause it."""
    match error:
        case RateLimited():
            return Answer(429, "RATE_LIMITED", error.message, retry_after=error.retry_after)
        case TokenRefused():
            return Answer(401, error.code.upper(), error.message)
        case NotFound():
            return Answer(404, _CODES.get(error.code, "NOT_FOUND"), error.message)
        case NotAllowed():
            return Answer(403, _CODES.get(error.code, "INSUFFICIENT_SCOPE"), error.message)
        case NoneFree():
            return Answer(409, "NO_SANDBOXES_AVAILABLE", error.message, retry_after=_seconds_to_return(error))
        case Conflict():
            return Answer(409, _CODES.get(error.code, "CONFLICT"), error.message)
        case InvalidRequest():
            return Answer(400, _CODES.get(error.code, "INVALID_REQUEST"), error.message, field=_INPUTS.get(error.field, error.field))
        case Unavailable():
            return of_status(503)
        case _:
            return None


def _seconds_to_return(error: NoneFree) -> int:
    if error.next_return_at is None:
        return _NOTHING_UNDER_WAY_SECONDS
    return max(1, math.ceil((error.next_return_at - SystemClock().now()).total_seconds()))


def _protocol(error: Exception) -> Answer | None:
    """What the framework found wrong before the domain was asked."""
    match error:
        case AuthenticationError():
            words = "A bearer token is needed: send Authorization: Bearer apt_…, with a token that an operator made for you."
            return Answer(401, "INVALID_TOKEN", words)
        case ValidationError():
            return _invalid(error.errors[0])
        case HttpError() if error.status_code == 400:
            return Answer(400, "INVALID_REQUEST", "The body is not JSON. Send one JSON object.", field="body")
        case Http404():
            return of_status(404)
        case RequestDataTooBig():
            return of_status(413)
        case SuspiciousOperation() | UnreadablePostError():
            return of_status(400)
        case _:
            return of_status(503) if isinstance(error, AWAY) else None


def _invalid(fault: Mapping[str, Any]) -> Answer:
    """``fault`` is pydantic's: what is wrong (``type``, ``msg``) and where (``loc``: the source, then the way to the input)."""
    source, *way = (str(part) for part in fault["loc"])
    name = _named(way, fault) if source == "body" else way[-1] if way else source
    if source == "path":
        return _NO_SUCH.get(name) or of_status(404)
    if source == "header" and fault["type"] == "missing":
        return Answer(400, "MISSING_HEADER", f"The header {name} is missing.", field=name)
    if source == "body" and name in ("", "body"):
        return Answer(400, "INVALID_REQUEST", "The body is missing or no JSON object. Send one JSON object.", field="body")
    where = {"header": f"The header {name}", "query": f"The parameter {name}"}.get(source, f"{name} in the body")
    return Answer(400, "INVALID_REQUEST", f"{where} can't be used: {cut(fault['msg'], longest=200)}.", field=name)


def _named(way: Sequence[str], fault: Mapping[str, Any]) -> str:
    """The part of the body at fault: ``checks.3.resource`` of what lies deeper; of a union the part that tells which it is."""
    parts = [part for part in way[1:] if part not in _UNION_TAGS]
    if fault["type"].startswith("union_tag_"):
        parts.append("kind")
    return ".".join(parts[: parts.index("metadata") + 1] if "metadata" in parts else parts)
