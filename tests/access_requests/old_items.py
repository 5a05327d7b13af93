"""ActiveRequests as version 0.3 left it: its indexes, and one request of each sort."""

from __future__ import annotations

from typing import Any

_INDEXES = {
    "ExpirationIndex": ("status", "expires_at"),
    "SubjectIndex": ("subject_id", "requested_at"),
    "AccountIndex": ("account_id", "requested_at"),
    "OpenIndex": ("open_subject", "expires_at"),
    "WorkIndex": ("work", "work_due_at"),
}
_NUMBERS = {"expires_at", "requested_at", "work_due_at"}
_NAMES = sorted({name for pair in _INDEXES.values() for name in pair} | {"request_id"})


def _keys(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": key} for name, key in zip(names, ("HASH", "RANGE"), strict=False)]


OLD_TABLE: dict[str, Any] = {
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "N" if name in _NUMBERS else "S"} for name in _NAMES],
    "KeySchema": _keys("request_id"),
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {"IndexName": name, "KeySchema": _keys(*pair), "Projection": {"ProjectionType": "ALL"}} for name, pair in _INDEXES.items()
    ],
}
_COMMON: dict[str, Any] = {
    "kind": {"S": "aws_account"},
    "subject_id": {"S": "/engineering/payments"},
    "requested_by": {"S": "alice@example.com"},
    "target": {
        "M": {
            "account_id": {"S": "123456789012"},
            "account_name": {"S": "payments-prod"},
            "permission_set": {"S": "ReadOnlyAccess"},
            "permission_set_arn": {"S": "arn:aws:sso:::permissionSet/ssoins-1/ps-1"},
            "principal_type": {"S": "GROUP"},
            "principal_id": {"S": "g-1"},
        }
    },
    "account_id": {"S": "123456789012"},
    "permission_set": {"S": "ReadOnlyAccess"},
    "reason": {"S": "Incident 4711"},
    "ticket_id": {"S": "CHG-1"},
    "duration_seconds": {"N": "3600"},
    "submission_id": {"S": "form"},
    "rule_name": {"S": "prod-readonly"},
    "rule_hash": {"S": "0"},
    "approval_required": {"BOOL": True},
    "approval": {
        "M": {"required": {"BOOL": True}, "quorum": {"N": "1"}, "groups": {"L": [{"S": "/security"}]}, "users": {"L": []}},
    },
    "evidence": {"M": {"account_name": {"S": "payments-prod"}}},
    "scope": {"S": "account/123456789012"},
    "expires_at": {"N": "1790000000"},
    "version": {"N": "2"},
    "audit_head": {"S": "0"},
}
OLD_ITEMS: tuple[dict[str, Any], ...] = (
    {
        **_COMMON,
        "request_id": {"S": "denied"},
        "status": {"S": "DENIED"},
        "requested_at": {"N": "1780000000"},
        "purge_at": {"N": "1788000000"},
    },
    {
        **_COMMON,
        "request_id": {"S": "open"},
        "status": {"S": "PENDING"},
        "requested_at": {"N": "1780000001"},
        "open_subject": {"S": "/engineering/payments"},
    },
)
