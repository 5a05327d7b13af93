"""``tools/postgres.py``: it never passes by skipping."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).resolve().parent.parent.parent / "tools" / "postgres.py"


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool on a machine without PostgreSQL."""
    spec = importlib.util.spec_from_file_location("postgres", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "DEBIAN", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    return module


def test_without_postgresql_it_fails_and_says_what_to_install(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main([sys.executable, "-c", ""]) == 3
    assert "apt-get install postgresql" in capsys.readouterr().err


def test_a_server_that_can_not_start_is_told_in_its_own_words(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "15" / "bin" / "initdb"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho could not create a directory\nexit 1\n")
    for path in (tmp_path, program.parent.parent, program.parent, program):
        path.chmod(0o755)
    # Root's temporary folders are closed to others: the program runs as whoever runs the test.
    monkeypatch.setattr(tool, "_user", lambda: None)

    assert tool.main([sys.executable, "-c", ""]) == 3
    error = capfd.readouterr().err
    assert "could not create a directory" in error
    assert "initdb failed with exit code 1" in error


def test_without_a_command_it_explains_itself(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main([]) == 2
    assert "PORTAL_DATABASE_URL" in capsys.readouterr().err
