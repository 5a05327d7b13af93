"""Rules about approvals: which actions, on which resources, in which scopes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from accessportal.access_requests.kinds.records import RecordAsked, RecordTerms
from accessportal.rules.yaml_nodes import Place


@dataclass(frozen=True, slots=True)
class ApprovalAsked(RecordAsked):
    kind = "approval"
    at = "on"


@dataclass(frozen=True, slots=True)
class ApprovalTargets:
    """Names, or patterns like ``docs/*`` and ``tenant:acme-corp:*``; ``*`` is every one."""

    scopes: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalTerms(RecordTerms):
    kind = "approval"
    targets_class = ApprovalTargets
    elsewhere = "on other resources or in other scopes"
    inputs = ("action", "resource")
    targets: ApprovalTargets = field(default_factory=ApprovalTargets)

    @classmethod
    def read(cls, section: Place, *, is_deny: bool) -> Self:
        return cls(ApprovalTargets(**cls.lists(section["targets"])))
