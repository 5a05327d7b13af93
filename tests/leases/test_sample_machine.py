"""The sample machine of the documentation: whole, and walked through with rows of the table, in the order that Step Functions would."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from accessportal.leases import policy
from accessportal.leases.states import AccountState
from tests.docs.test_docs import ROOT
from tests.leases.conftest import Cleaning
from tests.leases.reading import table

MACHINE: dict[str, Any] = json.loads((ROOT / "docs" / "account-cleaning.machine.json").read_text())
STATES: dict[str, Any] = MACHINE["States"]


def at(path: str, data: Any) -> Any:
    """What a reference path (``$.row.Item``) leads to; ``None``: nothing."""
    for name in path.split(".")[1:]:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def holds(rule: dict[str, Any], data: Any) -> bool:
    if "And" in rule:
        return all(holds(one, data) for one in rule["And"])
    if "Or" in rule:
        return any(holds(one, data) for one in rule["Or"])
    wanted = at(rule["StringEqualsPath"], data) if "StringEqualsPath" in rule else rule["StringEquals"]
    return bool(at(rule["Variable"], data) == wanted)


def walk(given: dict[str, Any], report: dict[str, Any]) -> tuple[list[str], Any]:
    """The states that it goes through, and its output (or the name of its error); the cleaner answers ``report``."""
    data, name, gone = dict(given), MACHINE["StartAt"], list[str]()
    while True:
        state = STATES[name]
        gone.append(name)
        match state["Type"]:
            case "Fail":
                return gone, state["Error"]
            case "Choice":
                name = next((one["Next"] for one in state["Choices"] if holds(one, data)), state["Default"])
                continue
            case "Pass":
                data = {key.removesuffix(".$"): at(path, data) for key, path in state["Parameters"].items()}
            case _:
                answer = row_of(state["Parameters"], data) if "getItem" in state["Resource"] else report
                data[state["ResultPath"].removeprefix("$.")] = answer
        if state.get("End"):
            return gone, data
        name = state["Next"]


def row_of(parameters: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """The row as Step Functions reads it: the typed JSON of DynamoDB, strongly."""
    assert parameters["ConsistentRead"]
    assert parameters["TableName"] == table().name
    text = parameters["Key"]["pk"]["S.$"]
    found = re.fullmatch(r"States\.Format\('(.*)\{\}', (\$[.\w]+)\)", text)
    assert found is not None
    pk = found[1] + at(found[2], data)
    item = table().get_item(Key={"pk": pk}, ConsistentRead=True).get("Item", {})
    return {"Item": {name: {"S": value} for name, value in item.items() if isinstance(value, str)}}


def test_every_state_is_reached_and_leads_on() -> None:
    next_ones = {MACHINE["StartAt"]}
    for state in STATES.values():
        next_ones |= {state[name] for name in ("Next", "Default") if name in state}
        next_ones |= {choice["Next"] for choice in state.get("Choices", ())}
        assert state["Type"] in {"Choice", "Fail"} or state.get("End") or "Next" in state
    assert next_ones == set(STATES)
    assert MACHINE["TimeoutSeconds"] <= 12 * 3600


def test_it_cleans_by_its_own_run_alone_and_tells_what_the_portal_takes(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    cleaning.run()
    (execution,) = cleaning.twin.front.cleaner.executions()
    given = json.loads(execution.execution_input)
    nothing: list[str] = []
    report = {"found": 214, "removed": 214, "left": nothing, "not_looked_at": ["AWS::Support::Case"]}
    gone, output = walk(given, report)
    assert gone == ["ReadRow", "IsToBeCleaned", "Clean", "Tell"]
    certificate, trouble = policy.read_certificate(json.dumps(output), account_id=one)
    assert (certificate["found"], certificate["removed"], certificate["not_looked_at"], trouble) == (214, 214, 1, "")
    refused = (["ReadRow", "IsToBeCleaned", "NotToBeCleaned"], "NotToBeCleaned")
    assert walk(given | {"run": f"{one}-0-2"}, report) == refused
    assert walk(given | {"account_id": "999999999999"}, report) == refused
    cleaning.clock.advance(60)
    cleaning.run()
    assert walk(given, report) == refused
    cleaning.accounts.started()
    assert cleaning.state_of(one) is AccountState.LEASED
    assert walk(given, report) == refused


@pytest.mark.parametrize("name", ["Input", "Output"])
def test_the_page_shows_what_is_sent_and_taken(name: str) -> None:
    page = (ROOT / "docs" / "account-cleaning.md").read_text()
    found = re.search(rf"## {name}\n.*?```json\n(.*?)```", page, re.DOTALL)
    assert found is not None
    shown = json.loads(found[1])
    if name == "Input":
        assert set(shown) == {"account_id", "fence", "pool", "run"}
        assert shown["run"] == f"{shown['account_id']}-{shown['fence']}-1"
    else:
        assert policy.read_certificate(found[1], account_id=shown["account_id"])[1] == ""
