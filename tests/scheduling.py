"""Which process runs what when pytest-xdist spreads the tests (its own groups, ``xdist_group``, do nothing with pytest 9.2)."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

# Both use one past of the demo, which takes a minute to make.
_MUST_STAY_TOGETHER = ("tests/browser/test_journey.py", "tests/browser/test_tour.py")


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Every test goes wherever there is room; those of some modules stay in one process, because what these share is costly.

    What stays together comes first, so that it does not make a long tail.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "together" if nodeid.partition("::")[0] in _MUST_STAY_TOGETHER else nodeid


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those with a browser take longest, then those marked as slow: begun last, they would be waited for alone. Otherwise the order stays
    by chance."""
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("browser", "slow")])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    return Scheduling(config, log)
