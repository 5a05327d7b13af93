"""The tests stand by themselves."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from accessportal.conf import conf
from accessportal.demo.env import published_file
from tests.depth import IS_DEEP


def test_a_portal_that_runs_in_this_folder_is_not_reached() -> None:
    """``.portal/env`` names the running twin; neither our configuration nor the AWS libraries may see it here."""
    assert published_file(os.environ) is None
    assert conf().aws_endpoint_url == ""
    assert "AWS_ENDPOINT_URL" not in os.environ


def test_examples_hang_on_no_module_that_another_test_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loaded_late.py").write_text("NUMBER = 987_654_321")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("loaded_late")

    constants = HypothesisProvider(None)._local_constants

    assert 987_654_321 not in constants.integers
    # The twin's own command (twin/__main__.py), which no test loads.
    assert {4566, "--job-seconds"} <= {*constants.integers, *constants.strings}


def test_examples_are_the_same_in_every_run_and_others_at_night() -> None:
    tried: list[int] = []

    @given(st.integers())
    def plain(number: int) -> None:
        tried.append(number)

    class Machine(RuleBasedStateMachine):
        @rule(number=st.integers())
        def act(self, number: int) -> None:
            tried.append(number)

    def run() -> list[int]:
        tried.clear()
        plain()
        run_state_machine_as_test(Machine, settings=settings(max_examples=3))
        return list(tried)

    assert (run() == run()) is not IS_DEEP
    assert settings().deadline is None, "how long one takes is the machine's"
