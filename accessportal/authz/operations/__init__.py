"""Writes of approvals, relationships and their scopes; each is told in the audit log."""

from accessportal.authz.config import AuthzSettings, configure
from accessportal.authz.operations.granting import Granted, IfExists, extend, grant, revoke
from accessportal.authz.operations.holding import check_holdable, hold, holders_of, let_go
from accessportal.authz.operations.moving import move_records
from accessportal.authz.operations.repeating import RequestKey
from accessportal.authz.operations.scopes import begin_deletion, set_policy
from accessportal.authz.operations.tidying import carry_out_deletions, sweep

__all__ = [
    "AuthzSettings",
    "Granted",
    "IfExists",
    "RequestKey",
    "begin_deletion",
    "carry_out_deletions",
    "check_holdable",
    "configure",
    "extend",
    "grant",
    "hold",
    "holders_of",
    "let_go",
    "move_records",
    "revoke",
    "set_policy",
    "sweep",
]
