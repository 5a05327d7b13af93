"""Catalogs made without AWS, for the queries; the sync has the twin."""

from __future__ import annotations

from datetime import UTC, datetime

from accessportal.catalog import store
from accessportal.catalog.states import Account, PermissionSet, Principal, PrincipalType

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def account(number: int, name: str, *, ou_path: str = "/", tags: dict[str, str] | None = None, status: str = "ACTIVE") -> Account:
    return Account(
        account_id=f"{number:012}",
        name=name,
        email=f"{number}@example.com",
        status=status,
        ou_path=ou_path,
        tags=tags,
        is_management=False,
    )


def permission_set(name: str, description: str = "") -> PermissionSet:
    return PermissionSet(f"arn:aws:sso:::permissionSet/ssoins-1/{name}", name, description, 3600)


def user(principal_id: str, email: str) -> Principal:
    return Principal(PrincipalType.USER, principal_id, email)


def group(principal_id: str, name: str) -> Principal:
    return Principal(PrincipalType.GROUP, principal_id, name)


def fill(
    *, accounts: list[Account] | None = None, sets: list[PermissionSet] | None = None, principals: list[Principal] | None = None
) -> None:
    reading = store.Reading("arn:aws:sso:::instance/ssoins-1", "d-1", accounts or [], sets or [], principals or [])
    store.replace_all(store.start_run(NOW), reading, at=NOW)
