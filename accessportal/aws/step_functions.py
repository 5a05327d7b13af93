"""Executions of one state machine of AWS Step Functions: each call is sent once. Errors are those of :mod:`accessportal.aws.errors`.

A name is that of one execution for good (of a standard machine, for 90 days after its end): whoever starts it again, also from another
process and much later, meets the first one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from accessportal.aws.clients import step_functions_client
from accessportal.aws.errors import Refused, sorted_call

_UNDER_WAY = frozenset({"RUNNING", "PENDING_REDRIVE"})
_SUCCEEDED = "SUCCEEDED"


@dataclass(frozen=True, slots=True)
class Execution:
    """``input`` and ``output`` are the texts as they were given; ``cause`` says in words why it did not succeed. ``stopped_at``: ``None``
    while it is under way."""

    name: str
    status: str
    input: str
    started_at: datetime
    stopped_at: datetime | None = None
    output: str = ""
    cause: str = ""

    @property
    def is_under_way(self) -> bool:
        return self.status in _UNDER_WAY

    @property
    def has_succeeded(self) -> bool:
        return self.status == _SUCCEEDED


def require_standard(machine_arn: str) -> None:
    """Refuse an express machine: it starts again at every call, whatever the name, and tells nothing afterwards."""
    kind = sorted_call(step_functions_client().describe_state_machine, stateMachineArn=machine_arn)["type"]
    if kind != "STANDARD":
        text = f"The state machine {machine_arn} is of the type {kind}, which may run twice under one name. Make it a STANDARD one."
        raise Refused("StateMachineNotStandard", text)


def start_execution(machine_arn: str, *, name: str, given: str) -> None:
    """The execution of this name was started, now or before; whether with ``given`` as its input, :func:`describe_execution` tells."""
    try:
        sorted_call(step_functions_client().start_execution, stateMachineArn=machine_arn, name=name, input=given)
    except Refused as error:
        if error.code != "ExecutionAlreadyExists":
            raise


def describe_execution(machine_arn: str, name: str) -> Execution:
    """:raises Gone: when none of this name was ever started."""
    arn = f"{machine_arn.replace(':stateMachine:', ':execution:')}:{name}"
    found = sorted_call(step_functions_client().describe_execution, executionArn=arn)
    stopped_at = found.get("stopDate")
    return Execution(
        name=name,
        status=found["status"],
        input=found.get("input", ""),
        started_at=found["startDate"].astimezone(UTC),
        stopped_at=None if stopped_at is None else stopped_at.astimezone(UTC),
        output=found.get("output", ""),
        cause=": ".join(filter(None, [found.get("error"), found.get("cause")])),
    )
