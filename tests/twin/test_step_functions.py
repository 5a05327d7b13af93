"""Executions: one for a name, ended by the clock, with the failures that are set; translated by our module."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from moto.core import DEFAULT_ACCOUNT_ID

from accessportal.aws.errors import Gone, Refused, Throttled, Transient
from accessportal.aws.step_functions import describe_execution, require_standard, start_execution
from accessportal.twin.server import TwinServer
from accessportal.twin.settings import TwinSettings
from tests.fixtures_twin import REGION, Twin, refuse, when
from tests.twin.test_server import client, running

GIVEN = json.dumps({"account_id": "111122223333", "fence": 4})


def make_machine(plain: Any, *, kind: str = "STANDARD", name: str = "cleaner") -> str:
    definition = json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}})
    role = f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/cleaner"
    arn = plain.create_state_machine(name=name, definition=definition, roleArn=role, type=kind)["stateMachineArn"]
    assert isinstance(arn, str)
    return arn


@pytest.fixture
def plain(twin: Twin) -> Any:
    return boto3.client("stepfunctions", region_name=REGION, config=Config(retries={"total_max_attempts": 1, "mode": "standard"}))


@pytest.fixture
def machine(plain: Any) -> str:
    return make_machine(plain)


def test_one_name_is_one_execution_that_ends_by_the_clock(twin: Twin, machine: str) -> None:
    with pytest.raises(Gone):
        describe_execution(machine, "first")
    start_execution(machine, name="first", given=GIVEN)
    start_execution(machine, name="first", given=GIVEN)
    running = describe_execution(machine, "first")
    assert (running.status, running.is_under_way, running.started_at, running.stopped_at) == ("RUNNING", True, twin.clock.now(), None)
    twin.clock.advance(5)
    start_execution(machine, name="first", given=GIVEN)
    ended = describe_execution(machine, "first")
    assert (ended.has_succeeded, ended.is_under_way, ended.input, ended.stopped_at) == (True, False, GIVEN, twin.clock.now())
    left: list[str] = []
    assert json.loads(ended.output) == {
        "account_id": "111122223333",
        "found": 12,
        "removed": 12,
        "left": left,
        "not_looked_at": ["AWS::Support::Case"],
    }
    assert [one.name for one in twin.front.cleaner.executions()] == ["first"]


def test_failures_are_counted_by_account(twin: Twin, machine: str) -> None:
    twin.settings.change({"cleaner_failures": {"111122223333": 1}, "cleaner_left": 2})
    for name in ("one", "two"):
        start_execution(machine, name=name, given=GIVEN)
        twin.clock.advance(5)
    failed, ended = (describe_execution(machine, name) for name in ("one", "two"))
    assert (failed.status, failed.has_succeeded, failed.cause) == ("FAILED", False, "Cleaner.Failed: The cleaner ended with code 1")
    assert json.loads(ended.output)["left"] == ["arn:aws:s3:::left-1", "arn:aws:s3:::left-2"]


def test_trouble_is_translated(twin: Twin, machine: str) -> None:
    twin.settings.change({"cleaner_throttle": 1})
    with pytest.raises(Throttled):
        start_execution(machine, name="first", given=GIVEN)
    twin.settings.change({"cleaner_throttle": 0, "cleaner_server_error": 1})
    with pytest.raises(Transient):
        start_execution(machine, name="first", given=GIVEN)
    twin.settings.change({"cleaner_server_error": 0, "cleaner_outage": True})
    with pytest.raises(Transient):
        start_execution(machine, name="first", given=GIVEN)
    twin.settings.change({"cleaner_outage": False})
    assert twin.front.cleaner.executions() == ()
    twin.settings.change({"cleaner_lose_answer": 1})
    with pytest.raises(Transient):
        start_execution(machine, name="first", given=GIVEN)
    twin.settings.change({"cleaner_lose_answer": 0})
    assert describe_execution(machine, "first").is_under_way
    with pytest.raises(Refused, match="StateMachineDoesNotExist"):
        start_execution(f"{machine}-other", name="first", given=GIVEN)
    with when("StartExecution", refuse("ExecutionLimitExceeded")), pytest.raises(Throttled):
        start_execution(machine, name="second", given=GIVEN)


def test_an_express_machine_is_refused(plain: Any, machine: str) -> None:
    require_standard(machine)
    express = make_machine(plain, kind="EXPRESS", name="quick")
    with pytest.raises(Refused, match="which may run twice under one name"):
        require_standard(express)


def test_executions_are_kept_over_a_restart(tmp_path: Path) -> None:
    journal = tmp_path / "twin.journal"
    settings = TwinSettings(calls_per_second=0, cleaner_seconds=0)

    def status(server: TwinServer, arn: str) -> str:
        found: str = client("stepfunctions", server).describe_execution(executionArn=arn)["status"]
        return found

    with running(journal, settings) as server:
        machine = make_machine(client("stepfunctions", server))
        started = client("stepfunctions", server).start_execution(stateMachineArn=machine, name="first", input=GIVEN)["executionArn"]
        assert status(server, started) == "SUCCEEDED"
    with running(journal, settings) as server:
        assert status(server, started) == "SUCCEEDED"
