"""The OpenAPI document: what the framework writes from the code, and what it can't know added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ninja import NinjaAPI

from accessportal.api.middleware import PREFIX
from accessportal.api.schemas import ErrorBody

# Any operation may answer these, whatever it does.
_ALWAYS = (400, 401, 403, 429, 500, 503)
_REASONS = {
    200: "Done; for a repetition the same body as the first time.",
    201: "Lent, or granted, anew.",
    202: "Ordered: poll `Location`.",
    400: "`MISSING_HEADER`, `INVALID_REQUEST`, `INVALID_CURSOR`: the request breaks a rule; `field` says where.",
    401: "`INVALID_TOKEN`, `TOKEN_REVOKED`, `TOKEN_EXPIRED`, `TOKEN_ORPHANED`.",
    403: "`INSUFFICIENT_SCOPE`, `TRACK_NOT_ALLOWED`, `NOT_SANDBOX_OWNER`, `ALLOCATION_EXPIRED`, `UNAUTHORIZED_SCOPE_ACCESS`,"
    " `REQUEST_REFUSED`.",
    404: "`SANDBOX_NOT_FOUND`, `RECORD_NOT_FOUND`, `LEASE_NOT_FOUND`, `ACCOUNT_NOT_FOUND`, `NOT_FOUND`.",
    409: "`NO_SANDBOXES_AVAILABLE` (with `retry_after`), `TOO_MANY_HELD`, `IDEMPOTENCY_MISMATCH`, `ALREADY_GRANTED`,"
    " `SCOPE_DELETING`, `CONFLICT`.",
    413: "`REQUEST_TOO_LARGE`.",
    429: "`RATE_LIMITED`.",
    500: "`INTERNAL_ERROR`: a fault of the portal's.",
    503: "`UNAVAILABLE`: try again.",
}
_NUMBER = {"description": "The number of this request.", "required": True, "schema": {"type": "string", "minLength": 1, "maxLength": 128}}
_WAIT = {"description": "Seconds to wait before trying again.", "schema": {"type": "integer", "minimum": 1}}
_HEADERS: dict[int, dict[str, Any]] = {
    201: {"Location": {"description": "Where to look at the sandbox.", "schema": {"type": "string"}}},
    202: {"Location": {"description": "Where to poll.", "required": True, "schema": {"type": "string"}}},
    401: {"WWW-Authenticate": {"description": "`Bearer`.", "required": True, "schema": {"type": "string"}}},
    409: {"Retry-After": _WAIT},
    429: {"Retry-After": _WAIT | {"required": True}},
    503: {"Retry-After": _WAIT | {"required": True}},
}
_OWN_NUMBER = {
    "in": "header",
    "name": "X-Request-ID",
    "required": False,
    "description": "A number of your own for this request: 1 to 128 of A-Z a-z 0-9 . _ - (anything else is replaced).",
    "schema": {"type": "string"},
}


def errors(*statuses: int) -> dict[int, type[ErrorBody]]:
    """The errors of an operation: ``statuses``, and those that any operation may answer."""
    return dict.fromkeys((*_ALWAYS, *statuses), ErrorBody)


def document(api: NinjaAPI) -> dict[str, Any]:
    """The whole document, with the headers, reasons and optional parts that code alone does not tell."""
    found: dict[str, Any] = api.get_openapi_schema(path_prefix=PREFIX)
    # None named: the server that the document came from.
    del found["servers"]
    for operation in _operations(found):
        operation.setdefault("parameters", []).append(_OWN_NUMBER)
        for parameter in operation["parameters"]:
            if not parameter["required"] and parameter["name"] != "limit":
                # An empty text or zero stands for "not given", in the code alone.
                parameter["schema"].pop("default", None)
        for status, answer in operation["responses"].items():
            answer["description"] = _REASONS[status]
            answer["headers"] = {"X-Request-ID": _NUMBER} | _HEADERS.get(status, {})
    return found


def _operations(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in found["paths"].values():
        yield from methods.values()
