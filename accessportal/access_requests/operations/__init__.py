"""Writes of the workflow: one function per verb. Each loads, re-checks, decides, writes once, and returns the new record."""

from accessportal.access_requests.config import WorkflowSettings, configure, lifted_limits
from accessportal.access_requests.operations.asking import cancel, extend, submit
from accessportal.access_requests.operations.budgets import mind_budgets
from accessportal.access_requests.operations.commenting import comment
from accessportal.access_requests.operations.deciding import approve, deny, lapse
from accessportal.access_requests.operations.departing import compare_subjects, end_departed
from accessportal.access_requests.operations.ending import end, expire
from accessportal.access_requests.operations.freezing import freeze_leases
from accessportal.access_requests.operations.reconciling import compare_assignments, last_report, reconcile_assignments
from accessportal.access_requests.operations.restoring import end_lost
from accessportal.access_requests.operations.standing_in import end_stand_in, name_stand_in
from accessportal.access_requests.operations.sweeping import LOOKAHEAD_SECONDS, tick, watch_ends
from accessportal.access_requests.operations.taking_back import take_back
from accessportal.access_requests.operations.working import carry_out, carry_out_served, retry

__all__ = [
    "LOOKAHEAD_SECONDS",
    "WorkflowSettings",
    "approve",
    "cancel",
    "carry_out",
    "carry_out_served",
    "comment",
    "compare_assignments",
    "compare_subjects",
    "configure",
    "deny",
    "end",
    "end_departed",
    "end_lost",
    "end_stand_in",
    "expire",
    "extend",
    "freeze_leases",
    "lapse",
    "last_report",
    "lifted_limits",
    "mind_budgets",
    "name_stand_in",
    "reconcile_assignments",
    "retry",
    "submit",
    "take_back",
    "tick",
    "watch_ends",
]
