"""What the project installs is what was looked at, to the last byte."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LISTS = sorted(ROOT.glob("requirements*.txt"))


def test_nothing_is_installed_without_its_hash() -> None:
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if re.search(r"pip (install|sync)", line)]

    assert len(installs) == 3
    assert all("--require-hashes" in line for line in installs)


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in LISTS])
def test_every_requirement_has_a_version_and_hashes(path: Path) -> None:
    entries = re.findall(r"^(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", path.read_text(), flags=re.MULTILINE)
    named = [line for line in path.read_text().splitlines() if re.match(r"[A-Za-z0-9]", line)]

    assert [name for name, _ in entries] == [line.split()[0] for line in named]
    assert all("==" in name for name, _ in entries)
