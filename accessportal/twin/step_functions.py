"""Step Functions in the twin: executions of moto's that end by themselves, as the settings say. No machine is run.

``https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html``: the name and input of an execution that runs
mean that one; a name that was used before is ``ExecutionAlreadyExists``. moto does the same while it knows which ones run.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.stepfunctions.models import Execution, stepfunctions_backends

from accessportal.kernel.clock import Clock
from accessportal.twin.chances import Chances
from accessportal.twin.protocol import Answer, LostAnswerError, TwinError
from accessportal.twin.settings import TwinSettings

TARGET_PREFIX = "AWSStepFunctions."
_RUNNING = "RUNNING"


class StepFunctionsTwin(Chances):
    """Stands before moto's Step Functions, under the caller's lock. ``output_of`` makes the output of one that succeeds, from its input; a
    test may put another in its place, and look at ``executions``."""

    def __init__(self, clock: Clock, settings: TwinSettings) -> None:
        super().__init__(settings)
        self._clock = clock
        self.output_of: Callable[[dict[str, Any]], str] = self._certificate

    def answer(self, operation: str, _body: bytes, forward: Callable[[], Answer]) -> Answer:
        """Answer one call as moto does, or make the trouble that the settings ask for. Raises ``LostAnswerError`` when the client is to get
        no answer: after the call took effect, or (an outage) without."""
        if self.settings.cleaner_outage:
            raise LostAnswerError(operation)
        if self._happens(self.settings.cleaner_throttle):
            return TwinError("ThrottlingException", "Rate exceeded").answer()
        if self._happens(self.settings.cleaner_server_error):
            return TwinError("InternalFailure", "Something went wrong", status=500).answer()
        self._settle()
        answer = forward()
        if self._happens(self.settings.cleaner_lose_answer):
            raise LostAnswerError(operation)
        return answer

    def executions(self) -> tuple[Execution, ...]:
        """All that were ever started, in order, with their ends as far as they have come."""
        self._settle()
        return tuple(_all())

    def _settle(self) -> None:
        """What should have ended by now has. There is no timer: it is worked out at each call."""
        now = self._clock.now()
        for execution in _all():
            ends_at = execution.start_date.replace(tzinfo=dt.UTC) + dt.timedelta(seconds=self.settings.cleaner_seconds)
            if execution.status == _RUNNING and ends_at <= now:
                self._end(execution)
                execution.stop_date = ends_at.replace(tzinfo=execution.start_date.tzinfo)

    def _end(self, execution: Execution) -> None:
        given: dict[str, Any] = json.loads(execution.execution_input)
        account_id = str(given.get("account_id", ""))
        left = self.settings.cleaner_failures.get(account_id, 0)
        if left or self._happens(self.settings.cleaner_fail):
            if left:
                self.settings.cleaner_failures[account_id] = left - 1
            execution.status, execution.error, execution.cause = "FAILED", "Cleaner.Failed", "The cleaner ended with code 1"
            return
        execution.status, execution.output = "SUCCEEDED", self.output_of(given)

    def _certificate(self, given: dict[str, Any]) -> str:
        found, left = self.settings.cleaner_found, min(self.settings.cleaner_left, self.settings.cleaner_found)
        body = {
            "account_id": given.get("account_id"),
            "found": found,
            "removed": found - left,
            "left": [f"arn:aws:s3:::left-{number}" for number in range(1, left + 1)],
            "not_looked_at": ["AWS::Support::Case"],
        }
        return json.dumps(body)


def _all() -> Iterator[Execution]:
    for backend in stepfunctions_backends[DEFAULT_ACCOUNT_ID].values():
        for machine in backend.state_machines:
            yield from machine.executions
