"""The twin inside a test's own process: no server, no socket, and the test's clock decides when jobs end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ConnectionClosedError
from moto.core.base_backend import BackendDict
from moto.core.common_types import TYPE_RESPONSE
from moto.core.model_instances import reset_model_data
from moto.core.models import botocore_stubber

from accessportal.kernel.clock import Clock
from accessportal.twin.facts import MotoFacts
from accessportal.twin.identity_center import IdentityCenterTwin
from accessportal.twin.moto_calls import DYNAMODB_PREFIX, StraightDynamoDB
from accessportal.twin.protocol import Answer, LostAnswerError
from accessportal.twin.repairs import repair_moto
from accessportal.twin.settings import TwinSettings


@contextmanager
def twin_in_process(*, clock: Clock, settings: TwinSettings) -> Iterator[IdentityCenterTwin]:
    """Send every boto3 and PynamoDB call of this process to moto, with the front before it, from moto's one ``before-send`` handler, which
    every botocore session carries. moto's ``mock_aws`` would also stand in for ``requests``, which takes 20 ms each time."""
    repair_moto()
    front = IdentityCenterTwin(clock=clock, settings=settings, facts=MotoFacts())
    moto_answer = botocore_stubber.process_request

    def process_request(request: AWSPreparedRequest) -> Any:
        target = _target(request)

        def forward() -> Any:
            found: Any = _DynamoDB().answer(request, target) if target.startswith(DYNAMODB_PREFIX) else moto_answer(request)
            return None if found is None else Answer(*found)

        try:
            # What S3 is sent is a file, and no JSON that the front would look at.
            return front.answer_any(target, _body(request) if target else b"", forward)
        except LostAnswerError as lost:
            raise ConnectionClosedError(endpoint_url=request.url) from lost

    BackendDict.reset()
    botocore_stubber.process_request = process_request  # type: ignore[method-assign]
    botocore_stubber.enabled = True
    try:
        yield front
    finally:
        botocore_stubber.enabled = False
        del botocore_stubber.process_request
        BackendDict.reset()
        reset_model_data()


class _DynamoDB(StraightDynamoDB):
    def answer(self, request: AWSPreparedRequest, target: str) -> TYPE_RESPONSE:
        return self.answer_straight(target, _body(request), region=self.region_regex.search(request.url)["region"])  # type: ignore[index]


def _target(request: AWSPreparedRequest) -> str:
    """The ``X-Amz-Target`` header of the JSON protocols, or empty."""
    target: str | bytes = request.headers.get("X-Amz-Target", "")
    return target.decode() if isinstance(target, bytes) else target


def _body(request: AWSPreparedRequest) -> bytes:
    body: Any = request.body or b""
    return body.encode() if isinstance(body, str) else bytes(body)
