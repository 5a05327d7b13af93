"""Kind ``aws_account``: a permission set in an AWS account, through an IAM Identity Center assignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from accessportal.access_requests.kinds.base import Resolved, text_of
from accessportal.access_requests.kinds.persons import group_made_anew, made_anew
from accessportal.access_requests.states import AccessRequest, Described, Subject
from accessportal.assignments import operations as assignments
from accessportal.assignments.states import AssignmentKey
from accessportal.catalog import queries as catalog
from accessportal.catalog.states import Account, PermissionSet, Principal, PrincipalType
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.rules.states import Question, Rule
from accessportal.store.transactions import Guard


class AwsAccount:
    """Targets are given as ``{"account": id or name, "permission_set": name}``."""

    name = "aws_account"

    def resolve(
        self,
        *,
        target: Mapping[str, str],
        subject: Subject,
        duration_seconds: int | None,
        ticket_id: str | None,
        now: datetime,
    ) -> Resolved:
        account = _account(target.get("account", ""))
        permission_set = _permission_set(target.get("permission_set", ""))
        principal = _principal(subject.subject_id)
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
            question=Question(
                kind=self.name,
                subject=subject.subject_id,
                subject_groups=subject.groups,
                subject_direct=subject.direct,
                subject_below=subject.below,
                account_id=account.account_id,
                account_name=account.name,
                ou_path=account.ou_path,
                tags=account.tags,
                permission_set=permission_set.name,
                duration_seconds=duration_seconds,
                ticket_id=ticket_id,
            ),
        )

    def require_free(self, *, resolved: Resolved, subject: Subject, rule: Rule, now: datetime) -> None:
        """Whoever a rule admits may hold as many as there are."""

    def asked(self, request: AccessRequest) -> dict[str, str]:
        return {"account": request.target["account_id"], "permission_set": request.target["permission_set"]}

    def describe(self, request: AccessRequest) -> Described:
        evidence = request.evidence
        account_name, ou_path = text_of(evidence, "account_name", request.account_id), text_of(evidence, "ou_path", "")
        tags = dict(evidence.get("tags") or {})
        facts = (
            ("Account", account_name),
            ("Permission set", request.permission_set),
            ("Where", ou_path),
            ("Tags", _tag_words(tags)),
        )
        return Described(
            title=f"{account_name} · {request.permission_set}",
            account_name=account_name,
            ou_path=ou_path,
            tags=tags,
            session_seconds=int(evidence.get("session_seconds") or 0),
            subject_name=text_of(evidence, "subject_name", request.subject_id),
            requested_by_name=text_of(evidence, "requested_by_name", request.requested_by),
            facts=tuple((label, value) for label, value in facts if value),
        )

    def group_of(self, stored: Mapping[str, Any]) -> str:
        return ""

    def made_anew(self, request: AccessRequest, *, now: datetime) -> Waiting | None:
        if request.subject_id.startswith("/"):
            return group_made_anew(request.subject_id, request, now=now)
        return made_anew(request, now=now)

    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        return self.made_anew(request, now=clock.now()) or assignments.hold(
            key=_key(request), claim=request.request_id, guards=guards, subject=request.subject_id, actor=actor, clock=clock
        )

    def revoke(self, *, request: AccessRequest, actor: Actor, clock: Clock) -> Proof | Waiting:
        return assignments.release(key=_key(request), claim=request.request_id, subject=request.subject_id, actor=actor, clock=clock)

    def ends_together(self, one: AccessRequest, other: AccessRequest) -> bool:
        """Another request for the same thing keeps it."""
        return False

    def gives(self, request: AccessRequest, stored: Mapping[str, Any]) -> bool:
        return self.same_target(request.target, stored)

    def same_target(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        names = ("account_id", "permission_set_arn", "principal_type", "principal_id")
        return all(one[name] == other[name] for name in names)


def _key(request: AccessRequest) -> AssignmentKey:
    return AssignmentKey(
        principal_type=PrincipalType(request.target["principal_type"]),
        principal_id=request.target["principal_id"],
        account_id=request.target["account_id"],
        permission_set_arn=request.target["permission_set_arn"],
    )


def _account(text: str) -> Account:
    wanted = text.strip()
    if not wanted:
        raise InvalidRequest("An account is needed: choose one by name or 12-digit id.", code="account_missing", field="account")
    account = catalog.find_account(account=wanted)
    if account is None:
        shown = wanted if len(wanted) <= 60 else wanted[:60] + "…"
        text = f"There is no account “{shown}”. Search by name, or give its 12-digit id."
        raise InvalidRequest(text, code="account_unknown", field="account")
    if account.is_management:
        text = f"{account.name} is the management account; IAM Identity Center gives no delegated access to it. Choose another account."
        raise InvalidRequest(text, code="account_is_management", field="account")
    if account.status != "ACTIVE":
        text = f"The account {account.name} is {account.status.lower()} and takes no new access."
        raise InvalidRequest(text, code="account_not_active", field="account")
    return account


def _permission_set(text: str) -> PermissionSet:
    wanted = text.strip()
    if not wanted:
        raise InvalidRequest("A permission set is needed: choose one from the list.", code="permission_set_missing", field="permission_set")
    permission_set = catalog.find_permission_set(name=wanted)
    if permission_set is None:
        shown = wanted if len(wanted) <= 60 else wanted[:60] + "…"
        text = f"There is no permission set “{shown}”. Choose one from the list."
        raise InvalidRequest(text, code="permission_set_unknown", field="permission_set")
    return permission_set


def _principal(subject: str) -> Principal:
    is_group = subject.startswith("/")
    principal = catalog.find_group_principal(group_id=subject) if is_group else catalog.find_user_principal(email=subject)
    if principal is None:
        what = f"the group {subject}" if is_group else f"a user with the e-mail address {subject}"
        text = f"IAM Identity Center does not know {what}. It must be provisioned there first; then try again after the next catalog sync."
        raise InvalidRequest(text, code="principal_unknown", field="subject")
    return principal


def _tag_words(tags: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(tags.items()))
