"""The way of a call to DynamoDB through botocore, without what only a network needs: a usual answer of ``tests/quick_dynamodb.py`` is
handed over as it is. Every other answer goes botocore's whole way, and so does every fault: it is tried again, or raised, as ever."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any

from botocore.awsrequest import AWSPreparedRequest
from botocore.client import BaseClient
from botocore.endpoint import Endpoint
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.models import botocore_stubber

from tests.quick_dynamodb import Straight

_Endpoint: Any = Endpoint
_Client: Any = BaseClient
_Stubber: Any = BotocoreStubber
_send = _Endpoint._send_request
_answer = _Stubber.__call__
_resolve = _Client._resolve_endpoint_ruleset
_given = threading.local()


def quicken_botocore() -> None:
    """For the rest of this process."""
    _Endpoint._send_request, _Stubber.__call__, _Client._resolve_endpoint_ruleset = _send_request, _hand_over, _resolved


def _send_request(self: Any, request_dict: dict[str, Any], operation_model: Any) -> Any:
    if not botocore_stubber.enabled or operation_model.service_model.service_name != "dynamodb":
        return _send(self, request_dict, operation_model)
    method, url, headers, body = (request_dict[name] for name in ("method", "url", "headers", "body"))
    try:
        answer: Any = botocore_stubber.process_request(AWSPreparedRequest(method, url, headers, body, stream_output=False))
    except Exception as error:
        answer = error
    if isinstance(answer, tuple) and type(answer[2]) is Straight:
        metadata = {"RequestId": "", "HTTPStatusCode": 200, "HTTPHeaders": {}, "RetryAttempts": 0}
        return SimpleNamespace(status_code=200, headers={}), json.loads(answer[2]) | {"ResponseMetadata": metadata}
    _given.answers = [answer]
    try:
        return _send(self, request_dict, operation_model)
    finally:
        _given.answers = []


def _hand_over(self: Any, event_name: str, request: Any, **more: Any) -> Any:
    """The answer that is there already, for the first try."""
    answers = getattr(_given, "answers", None)
    if not answers:
        return _answer(self, event_name, request, **more)
    answer = answers.pop()
    if isinstance(answer, Exception):
        raise answer
    given = SimpleNamespace(enabled=True, process_request=lambda _request: answer)
    return _answer(given, event_name, request, **more)


def _resolved(self: Any, operation_model: Any, params: Any, request_context: dict[str, Any], **more: Any) -> Any:
    """A client's address for an operation of DynamoDB is the same at each call."""
    if self._service_model.service_name != "dynamodb" or more:
        return _resolve(self, operation_model, params, request_context, **more)
    kept = self.__dict__.setdefault("_kept_addresses", {})
    if operation_model.name not in kept:
        before = dict(request_context)
        found = _resolve(self, operation_model, params, request_context)
        kept[operation_model.name] = found, {name: value for name, value in request_context.items() if before.get(name) is not value}
    (url, headers, properties), context = kept[operation_model.name]
    request_context.update(context)
    return url, dict(headers), properties
