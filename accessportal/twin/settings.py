"""How the twin behaves. Every value may be changed while it runs (``POST /twin/settings``), so that tests and demos can turn it up."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from accessportal.twin.callers import CALLERS, MANAGEMENT

_CHANCES = frozenset({"fail_job", "slow_job", "throttle", "conflict", "server_error", "lose_answer"}) | frozenset(
    {"cognito_throttle", "cognito_server_error", "cognito_lose_answer"}
    | {"cleaner_fail", "cleaner_throttle", "cleaner_server_error", "cleaner_lose_answer", "cost_throttle"}
    | {f"sandbox_{name}" for name in ("fail_list", "fail_get", "fail_delete", "lose_answer", "list_share", "list_twice", "recycle")}
)

_WHOLE = ((int,), "whole numbers")
_BY_ACCOUNT = {"role_quotas": _WHOLE, "cleaner_failures": _WHOLE, "costs_per_day": ((int, float), "numbers")}


@dataclass(slots=True)
class TwinSettings:
    """Limits are AWS's own by default (https://docs.aws.amazon.com/singlesignon/latest/userguide/limits.html); chances are 0 to 1.

    ``job_seconds``: how long an assignment job stays ``IN_PROGRESS``. ``calls_per_second``: all sso-admin calls together, 0 is
    no limit. ``open_creations``: creation jobs in progress at once. ``role_quota_per_account``: permission sets that one account
    may hold (IAM's roles per account); ``role_quotas`` sets it for single accounts, by account id. ``page_size``: the most that
    one list page holds. ``caller``: which account all calls come from, ``management`` or ``delegated`` (an administrator).

    Chances, drawn from one random source (``seed``): ``fail_job`` (the job ends ``FAILED``), ``slow_job`` (it takes
    ``slow_job_seconds``), ``throttle``, ``conflict``, ``server_error`` (the call has no effect), ``lose_answer`` (the call takes
    effect, the client gets no answer).

    ``cognito_throttle``, ``cognito_server_error`` and ``cognito_lose_answer`` are the same chances for Cognito's calls, from a
    random source of their own. ``cognito_outage``: Cognito does not answer at all, and nothing takes effect.
    Of the sandbox provider: ``sandbox_latency_seconds`` before every answer, ``sandbox_reset_seconds`` from a deletion until the
    sandbox is ready again. Chances: ``sandbox_fail_list``, ``sandbox_fail_get``, ``sandbox_fail_delete`` (500, no effect),
    ``sandbox_lose_answer`` (of a deletion), ``sandbox_list_twice`` (an entry comes twice), ``sandbox_recycle`` (a deleted one is
    made anew under its id; else it is gone). ``sandbox_list_share``: the share of its sandboxes that the list shows.
    Of the cleaner of accounts, in Step Functions: ``cleaner_seconds`` that an execution takes; ``cleaner_found`` and ``cleaner_left`` of
    its output; ``cleaner_failures``, so many of the next executions for an account id fail; chances ``cleaner_fail`` (the execution),
    ``cleaner_throttle``, ``cleaner_server_error``, ``cleaner_lose_answer``; and ``cleaner_outage``. Of Cost Explorer: ``cost_per_day`` of
    every account, or by account id ``costs_per_day``; the last ``cost_late_days`` have no figure yet; ``cost_throttle``, ``cost_outage``.
    """

    job_seconds: float = 2.0
    calls_per_second: int = 20
    open_creations: int = 10
    role_quota_per_account: int = 1000
    role_quotas: dict[str, int] = field(default_factory=dict)
    page_size: int = 100
    caller: str = MANAGEMENT
    fail_job: float = 0.0
    slow_job: float = 0.0
    slow_job_seconds: float = 30.0
    throttle: float = 0.0
    conflict: float = 0.0
    server_error: float = 0.0
    lose_answer: float = 0.0
    cognito_throttle: float = 0.0
    cognito_server_error: float = 0.0
    cognito_lose_answer: float = 0.0
    cognito_outage: bool = False
    sandbox_latency_seconds: float = 0.0
    sandbox_reset_seconds: float = 0.0
    sandbox_fail_list: float = 0.0
    sandbox_fail_get: float = 0.0
    sandbox_fail_delete: float = 0.0
    sandbox_lose_answer: float = 0.0
    sandbox_list_share: float = 1.0
    sandbox_list_twice: float = 0.0
    sandbox_recycle: float = 1.0
    cleaner_seconds: float = 5.0
    cleaner_found: int = 12
    cleaner_left: int = 0
    cleaner_failures: dict[str, int] = field(default_factory=dict)
    cleaner_fail: float = 0.0
    cleaner_throttle: float = 0.0
    cleaner_server_error: float = 0.0
    cleaner_lose_answer: float = 0.0
    cleaner_outage: bool = False
    cost_per_day: float = 1.25
    costs_per_day: dict[str, float] = field(default_factory=dict)
    cost_late_days: int = 1
    cost_throttle: float = 0.0
    cost_outage: bool = False
    seed: int = 1

    def role_quota(self, account_id: str) -> int:
        """How many permission sets this account may hold."""
        return self.role_quotas.get(account_id, self.role_quota_per_account)

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def change(self, values: dict[str, Any]) -> None:
        """Set every named value, or none: ``ValueError`` names the first that is unknown, of the wrong type or out of range."""
        checked = {name: _checked(name, value) for name, value in values.items()}
        for name, value in checked.items():
            setattr(self, name, value)


def _checked(name: str, value: Any) -> Any:
    defaults = TwinSettings().as_dict()
    if name not in defaults:
        raise ValueError(f"{name}: no such setting; there are {', '.join(sorted(defaults))}")
    if name in _BY_ACCOUNT:
        kinds, words = _BY_ACCOUNT[name]
        if not isinstance(value, dict) or not all(type(one) in kinds and one >= 0 for one in value.values()):
            raise ValueError(f'{name}: must be an object of account ids and {words}, like {{"111122223333": 0}}')
        return dict(value)
    if name == "caller":
        if value not in CALLERS:
            raise ValueError(f"caller: must be one of {', '.join(CALLERS)}, not {value!r}")
        return value
    kind = type(defaults[name])
    if kind is bool:
        if not isinstance(value, bool):
            raise ValueError(f"{name}: must be true or false, not {value!r}")
        return value
    if type(value) not in ((int,) if kind is int else (int, float)) or not _in_range(name, value):
        raise ValueError(f"{name}: must be {_range_words(name, kind)}, not {value!r}")
    return kind(value)


def _in_range(name: str, value: float) -> bool:
    if name in _CHANCES:
        return 0 <= value <= 1
    return 1 <= value <= 100 if name == "page_size" else value >= 0


def _range_words(name: str, kind: type) -> str:
    limits = "from 0 to 1" if name in _CHANCES else "from 1 to 100" if name == "page_size" else "that is 0 or more"
    return f"a {'whole ' if kind is int else ''}number {limits}"
