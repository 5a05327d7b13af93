"""Claiming and releasing assignments, and comparing them with what is really there."""

from accessportal.assignments.config import Limits, configure
from accessportal.assignments.operations.comparing import compare
from accessportal.assignments.operations.holding import hold, release
from accessportal.assignments.operations.reconciling import go_on, is_still_so, repair
from accessportal.assignments.operations.restoring import raise_fences

__all__ = ["Limits", "compare", "configure", "go_on", "hold", "is_still_so", "raise_fences", "release", "repair"]
