"""What the pool of accounts does and asks outside: the cleaner, and where an account is in the organization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from accessportal.aws import organizations, step_functions
from accessportal.aws.errors import Gone, OutsideError, Refused
from accessportal.aws.step_functions import Execution
from accessportal.leases.config import current
from accessportal.leases.states import Whereabouts


class Cleaner(Protocol):
    """Whatever cleans accounts. A run has a name that is used once."""

    def check(self) -> None:
        """:raises OutsideError: when it can't be worked with."""
        ...

    def start(self, run: str, given: str) -> None:
        """The run of this name was started, now or before."""
        ...

    def look(self, run: str) -> Execution | None:
        """How the run stands; ``None``: none of this name was ever started."""
        ...


@dataclass(frozen=True, slots=True)
class StepFunctionsCleaner:
    """A state machine that runs the company's own cleaner (docs/account-cleaning.md)."""

    machine_arn: str

    def check(self) -> None:
        step_functions.require_standard(self.machine_arn)

    def start(self, run: str, given: str) -> None:
        step_functions.start_execution(self.machine_arn, name=run, given=given)

    def look(self, run: str) -> Execution | None:
        try:
            return step_functions.describe_execution(self.machine_arn, run)
        except Gone:
            return None


def cleaner() -> Cleaner | None:
    """The one that is set; ``None``: none is, and nothing is called."""
    return StepFunctionsCleaner(current().cleaner_arn) if current().cleaner_arn else None


def whereabouts(account_id: str) -> Whereabouts:
    """Read where the account is now.

    :raises OutsideError: when AWS does not say.
    """
    management = organizations.read_management_account()
    try:
        above = organizations.read_ancestors(account_id)
    except (Gone, Refused) as error:
        if isinstance(error, Refused) and error.code != organizations.PARENTS_UNCLEAR:
            raise
        above = ()
    return Whereabouts(above, is_management=account_id == management)


def flaw_of(account_id: str) -> str:
    """Why an account may not go out now, by one cheap look; empty when it may, and when AWS does not say: then granting access tells."""
    try:
        is_active = organizations.is_active(account_id)
    except OutsideError:
        return ""
    return "" if is_active else "AWS Organizations does not list it as an active account."
