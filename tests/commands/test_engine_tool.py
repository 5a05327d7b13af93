"""``tools/dynamodb_local.py``: it never passes by skipping."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).resolve().parent.parent.parent / "tools" / "dynamodb_local.py"


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool on a machine without programs."""
    spec = importlib.util.spec_from_file_location("dynamodb_local", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ENGINE", tmp_path / "engine")
    monkeypatch.setenv("PATH", str(tmp_path))
    return module


def test_without_npm_it_fails_and_says_what_to_install(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main([sys.executable, "-c", ""]) == 3
    assert "apt-get install npm" in capsys.readouterr().err


def test_without_java_it_fails_and_says_what_to_install(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "engine" / f"{tool.PACKAGE}-{tool.VERSION}"
    folder.mkdir(parents=True)
    (folder / "DynamoDBLocal.jar").touch()

    assert tool.main([sys.executable, "-c", ""]) == 3
    assert "openjdk-17" in capsys.readouterr().err


def test_without_a_command_it_explains_itself(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main([]) == 2
    assert "AWS_ENDPOINT_URL_DYNAMODB" in capsys.readouterr().err
