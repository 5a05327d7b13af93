"""The kinds of access, one folder each: target (what is asked for), terms (its rules), grant (making it so, and undoing it)."""

from __future__ import annotations

from accessportal.access_requests.kind import register
from accessportal.access_requests.kinds.account_lease import ACCOUNT_LEASE
from accessportal.access_requests.kinds.approval import APPROVAL
from accessportal.access_requests.kinds.aws_account import AWS_ACCOUNT
from accessportal.access_requests.kinds.group import GROUP
from accessportal.access_requests.kinds.relationship import RELATIONSHIP
from accessportal.access_requests.kinds.sandbox import SANDBOX


def register_all() -> None:
    """Make the kinds known to the workflow and to the rules. Once per process, before anything is asked."""
    for kind in (AWS_ACCOUNT, GROUP, SANDBOX, ACCOUNT_LEASE, APPROVAL, RELATIONSHIP):
        register(kind)
