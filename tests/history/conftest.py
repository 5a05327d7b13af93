"""The history is made in one part: each part costs a scan."""

from __future__ import annotations

import pytest

from accessportal.history import policy


@pytest.fixture(autouse=True)
def _one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "PARTS", 1)
