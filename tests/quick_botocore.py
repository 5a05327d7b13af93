"""The way of a call to DynamoDB through botocore, without what only a network needs: a usual answer of ``tests/quick_dynamodb.py`` is
handed over as it is. Every other answer goes botocore's whole way, and so does every fault: it is tried again, or raised, as ever."""

from __future__ import annotations

import itertools
import json
import threading
from types import SimpleNamespace
from typing import Any

import botocore.endpoint
import pynamodb.connection.base
from botocore.awsrequest import AWSPreparedRequest
from botocore.client import BaseClient
from botocore.endpoint import Endpoint
from botocore.validate import ParamValidationDecorator
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.models import botocore_stubber

from tests.quick_dynamodb import Straight

_Endpoint: Any = Endpoint
_Client: Any = BaseClient
_Stubber: Any = BotocoreStubber
_send = _Endpoint._send_request
_answer = _Stubber.__call__
_call = _Client._make_api_call
_given = threading.local()


def quicken_botocore() -> None:
    """For the rest of this process."""
    _Client._make_api_call, _Endpoint._send_request, _Stubber.__call__ = _make_api_call, _send_request, _hand_over
    # Each call is named twice; nobody looks at it here.
    numbers = itertools.count()
    for module in (botocore.endpoint, pynamodb.connection.base):
        vars(module)["uuid"] = SimpleNamespace(uuid4=lambda: next(numbers))


def _make_api_call(self: Any, operation_name: str, api_params: dict[str, Any]) -> Any:
    """PynamoDB's calls of one operation differ in what they ask for alone; it has botocore check nothing."""
    sent = vars(self._endpoint).get("sent", {}).get(operation_name)
    if sent is None or isinstance(self._serializer, ParamValidationDecorator):
        return _call(self, operation_name, api_params)
    try:
        body = json.dumps(api_params).encode()
    except TypeError:
        # Bytes have a text of their own.
        return _call(self, operation_name, api_params)
    context = {name: value for name, value in sent["context"].items() if name != "retries"}
    request_dict = sent | {"headers": dict(sent["headers"]), "body": body, "context": context}
    http, parsed = self._make_request(self._service_model.operation_model(operation_name), request_dict, context)
    if http.status_code < _FIRST_BAD_STATUS:
        return parsed
    raise self.exceptions.from_code(parsed.get("Error", {}).get("Code"))(parsed, operation_name)


_FIRST_BAD_STATUS = 300


def _send_request(self: Any, request_dict: dict[str, Any], operation_model: Any) -> Any:
    if not botocore_stubber.enabled or operation_model.service_model.service_name != "dynamodb":
        return _send(self, request_dict, operation_model)
    vars(self).setdefault("sent", {}).setdefault(operation_model.name, request_dict)
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
