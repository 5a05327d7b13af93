"""What is asked for: an account and a permission set, both by the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from accessportal.access_requests.kind import Resolved, Target, named, text_of
from accessportal.access_requests.kinds.aws_account.terms import facts_of
from accessportal.access_requests.states import AccessRequest, Subject
from accessportal.catalog import queries as catalog
from accessportal.catalog.states import Account, PermissionSet, Principal
from accessportal.directory.queries import Book
from accessportal.kernel.errors import InvalidRequest


class AccountTarget(Target):
    """Given as ``{"account": id or name, "permission_set": name}``."""

    parts = ("account_id", "permission_set", "permission_set_arn", "principal_type", "principal_id")

    def resolve(
        self, *, target: Mapping[str, str], subject: Subject, duration_seconds: int | None, ticket_id: str | None, book: Book, now: datetime
    ) -> Resolved:
        account = named(
            target,
            "account",
            lambda wanted: catalog.find_account(account=wanted),
            missing="An account is needed: choose one by name or 12-digit id.",
            remedy="Search by name, or give its 12-digit id.",
        )
        _require_open(account)
        permission_set = permission_set_in(target)
        principal = principal_of(subject.subject_id)
        return Resolved(
            stored={
                "account_id": account.account_id,
                "account_name": account.name,
                "permission_set": permission_set.name,
                "permission_set_arn": permission_set.arn,
                "principal_type": principal.principal_type.value,
                "principal_id": principal.principal_id,
            },
            scope=f"account/{account.account_id}",
            account_id=account.account_id,
            permission_set=permission_set.name,
            session_seconds=permission_set.session_seconds,
            evidence={
                "account_name": account.name,
                "ou_path": account.ou_path,
                "tags": None if account.tags is None else dict(account.tags),
                "session_seconds": permission_set.session_seconds,
            },
            facts={
                "account_id": account.account_id,
                "account_name": account.name,
                "ou_path": account.ou_path,
                "tags": _tag_words(account.tags or {}),
            },
            question=subject.question(facts_of(account, permission_set.name), duration_seconds=duration_seconds, ticket_id=ticket_id),
        )

    def asked(self, request: AccessRequest) -> dict[str, str]:
        return {"account": request.target["account_id"], "permission_set": request.target["permission_set"]}

    def title(self, request: AccessRequest) -> str:
        return f"{text_of(request.evidence, 'account_name', request.account_id)} · {request.permission_set}"

    def facts(self, request: AccessRequest) -> tuple[tuple[str, str], ...]:
        return (
            ("Account", text_of(request.evidence, "account_name", request.account_id)),
            ("Permission set", request.permission_set),
            ("Where", text_of(request.evidence, "ou_path")),
            ("Tags", _tag_words(request.evidence.get("tags") or {})),
        )

    def same_target(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        return all(one[name] == other[name] for name in self.parts if name != "permission_set")


def permission_set_in(target: Mapping[str, str]) -> PermissionSet:
    """The one that is asked for. InvalidRequest for none, and for one that there is not."""
    return named(
        target,
        "permission_set",
        lambda wanted: catalog.find_permission_set(name=wanted),
        missing="A permission set is needed: choose one from the list.",
        remedy="Choose one from the list.",
    )


def _require_open(account: Account) -> None:
    if account.is_management:
        text = f"{account.name} is the management account; IAM Identity Center gives no delegated access to it. Choose another account."
        raise InvalidRequest(text, code="account_is_management", field="account")
    if account.status != "ACTIVE":
        text = f"The account {account.name} is {account.status.lower()} and takes no new access."
        raise InvalidRequest(text, code="account_not_active", field="account")


def principal_of(subject: str) -> Principal:
    """:raises InvalidRequest: when IAM Identity Center does not know the person or group."""
    is_group = subject.startswith("/")
    principal = catalog.find_group_principal(group_id=subject) if is_group else catalog.find_user_principal(email=subject)
    if principal is None:
        what = f"the group {subject}" if is_group else f"a user with the e-mail address {subject}"
        text = f"IAM Identity Center does not know {what}. It must be provisioned there first; then try again after the next catalog sync."
        raise InvalidRequest(text, code="principal_unknown", field="subject")
    return principal


def _tag_words(tags: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(tags.items()))
