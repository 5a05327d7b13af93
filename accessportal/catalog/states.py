"""Records of the catalog: what exists in the cloud, as last read (a rebuildable read model)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


class PrincipalType(enum.StrEnum):
    USER = "USER"
    GROUP = "GROUP"


@dataclass(frozen=True, slots=True)
class Account:
    """``ou_path`` is ``/`` for the root, else ``/Workloads/Prod/Payments``. ``tags`` is ``None`` when they could not be
    read: unreadable is never "no tags" (design, data model)."""

    account_id: str
    name: str
    email: str
    status: str
    ou_path: str
    tags: Mapping[str, str] | None
    is_management: bool


@dataclass(frozen=True, slots=True)
class PermissionSet:
    """``session_seconds``: how long an open console session may outlive the grant."""

    arn: str
    name: str
    description: str
    session_seconds: int


@dataclass(frozen=True, slots=True)
class Principal:
    """A user or group of the Identity Store. ``label`` is the user's e-mail address or the group's display name."""

    principal_type: PrincipalType
    principal_id: str
    label: str


@dataclass(frozen=True, slots=True)
class Freshness:
    """When the catalog last became complete, what that run counted, of which Identity Center instance, and the error of a later run that
    failed."""

    synced_at: datetime | None
    accounts: int
    permission_sets: int
    principals: int
    last_error: str
    instance_arn: str
    identity_store_id: str
