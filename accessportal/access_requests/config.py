"""What an installation sets for the workflow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkflowSettings:
    """``decide_within_seconds``: after that an undecided request lapses. ``purge_after_days``: how long an ended request
    stays in the table. ``operator_group``: who stands in where a rule has too few approvers left."""

    decide_within_seconds: int = 86_400
    purge_after_days: int = 90
    operator_group: str = "/portal/operators"


_settings = WorkflowSettings()


def configure(settings: WorkflowSettings) -> None:
    """Called once at start-up."""
    global _settings
    _settings = settings


def current() -> WorkflowSettings:
    return _settings
