"""The kinds of access. A kind knows how to validate a target, describe it, make it so, and undo it; nothing else differs."""

from __future__ import annotations

from accessportal.access_requests.kinds.aws_account import AwsAccount
from accessportal.access_requests.kinds.base import Kind
from accessportal.access_requests.kinds.group import GroupMembership
from accessportal.access_requests.kinds.sandbox import PoolSandbox
from accessportal.kernel.errors import InvalidRequest

KINDS: dict[str, Kind] = {kind.name: kind for kind in (AwsAccount(), GroupMembership(), PoolSandbox())}


def kind_named(name: str) -> Kind:
    """:raises InvalidRequest: for a kind that the portal does not have."""
    kind = KINDS.get(name)
    if kind is None:
        raise InvalidRequest(
            f"There is no kind of access “{name[:40]}”; choose one of {', '.join(KINDS)}.", code="kind_unknown", field="kind"
        )
    return kind
