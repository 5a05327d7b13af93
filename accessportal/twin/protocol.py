"""The words of AWS's JSON protocol: answers, errors, and the check of a request against AWS's own service model."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import botocore.session
from botocore.model import ServiceModel, Shape

TARGET_PREFIX = "SWBExternalService."
_TYPES: dict[str, type] = {"string": str, "integer": int, "structure": dict, "list": list}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class TwinError(Exception):
    """What AWS answers instead: ``code`` is AWS's name of the error, ``status`` the HTTP status."""

    code: str
    message: str
    status: int = 400

    def answer(self) -> Answer:
        return json_answer({"__type": self.code, "message": self.message, "Message": self.message}, status=self.status)


class LostAnswerError(Exception):
    """The call took effect; the client must get no answer."""


def json_answer(value: dict[str, Any], *, status: int = 200) -> Answer:
    return Answer(status, {"Content-Type": "application/x-amz-json-1.1"}, json.dumps(value).encode())


def parse(operation: str, body: bytes) -> dict[str, Any]:
    """The request's parameters, checked: required, type, length, pattern and choice as the service model has them."""
    try:
        payload = json.loads(body or b"{}")
    except ValueError as error:
        raise TwinError("SerializationException", "The body is not JSON") from error
    if not isinstance(payload, dict):
        raise TwinError("SerializationException", "The body is not an object")
    shape = _model().operation_model(operation).input_shape
    if shape is None:
        return payload
    for name in shape.required_members:
        if payload.get(name) is None:
            raise _invalid(name, "Member must not be null")
    for name, value in payload.items():
        if name in shape.members and value is not None:
            _check(name, value, shape.members[name])
    return payload


def _check(name: str, value: Any, shape: Shape) -> None:
    if not isinstance(value, _TYPES.get(shape.type_name, object)):
        raise _invalid(name, f"Member must be a {shape.type_name}")
    limits = shape.metadata
    size = len(value) if isinstance(value, str) else value
    if isinstance(size, int) and not limits.get("min", size) <= size <= limits.get("max", size):
        raise _invalid(name, f"Member must have a length or value from {limits.get('min')} to {limits.get('max')}")
    if "pattern" in limits and not re.fullmatch(str(limits["pattern"]), str(value)):
        raise _invalid(name, f"Member must satisfy regular expression pattern: {limits['pattern']}")
    if "enum" in limits and value not in limits["enum"]:
        raise _invalid(name, f"Member must satisfy enum value set: {limits['enum']}")


def _invalid(name: str, rule: str) -> TwinError:
    member = name[:1].lower() + name[1:]
    return TwinError("ValidationException", f"1 validation error detected: Value at '{member}' failed to satisfy constraint: {rule}")


@functools.cache
def _model() -> ServiceModel:
    return botocore.session.get_session().get_service_model("sso-admin")
