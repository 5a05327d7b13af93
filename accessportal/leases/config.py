"""What an installation sets for the pool of accounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from accessportal.kernel.setting import Setting


def anything_goes(_account_id: str) -> str:
    """No account is looked at."""
    return ""


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """``undo_seconds``: so long the last holder may take back what they gave back, and cleaning waits (0: not at all). ``flaw_of`` says
    why an account may not go out; empty when it may. ``cleaner_arn``: the state machine that cleans, empty for none. ``units``: which pool
    the accounts of an organizational unit are in, by its id; none else is ever cleaned. ``never``: the accounts that are in no pool and are
    never cleaned. ``most_attempts``: so many cleanings may fail in a row. ``reads_costs``: whether Cost Explorer is asked at all."""

    undo_seconds: int = 120
    flaw_of: Callable[[str], str] = anything_goes
    cleaner_arn: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    never: frozenset[str] = frozenset()
    most_attempts: int = 5
    reads_costs: bool = False
    billing_view_arn: str = ""

    def units_of(self, pool: str) -> frozenset[str]:
        """The organizational units of a pool."""
        return frozenset(unit for unit, label in self.units.items() if label == pool)


_settings = Setting(LeaseSettings())
configure, current = _settings.configure, _settings.current
