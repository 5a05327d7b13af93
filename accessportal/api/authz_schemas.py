"""The bodies of ``/v1/authz/``: what is asked about approvals and relationships, and what is answered."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from ninja import Header, Schema
from pydantic import BeforeValidator, ConfigDict, Field, RootModel
from pydantic_core import PydanticCustomError

from accessportal.api.schemas import HEADER_TEXT, UNSEEN, Facts, NextCursor, Seconds
from accessportal.authz.operations import Granted, IfExists
from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, Answer, GoverningPolicy, Ledger, Why, read_scope
from accessportal.authz.states import (
    LONGEST_METADATA,
    LONGEST_NAME,
    LONGEST_PART,
    LONGEST_SCOPE,
    MOST_METADATA,
    MOST_PARTS,
    Approval,
    Relationship,
    RelationType,
)
from accessportal.kernel.clock import epoch_of
from accessportal.kernel.durations import LONGEST_SECONDS

MOST_CHECKS = 100
_PART = rf"[A-Za-z0-9][A-Za-z0-9._\-]{{0,{LONGEST_PART - 1}}}"
_SCOPE = rf"^(global|tenant:{_PART}(:env:{_PART})?|env:{_PART}|custom(:{_PART}){{1,{MOST_PARTS}}})$"
_LETTER = rf"[^\s{UNSEEN}]"
_NAME = rf"^{_LETTER}([^\t\n\r{UNSEEN}]*{_LETTER})?$"

# The room judges these by rules of its own, in words of its own; the document tells them beforehand.
ScopeText = Annotated[
    str,
    Field(
        description="`global`, `tenant:T`, `env:E`, `tenant:T:env:E` or `custom:A:B`.",
        examples=["tenant:acme-corp:env:prod"],
        json_schema_extra={"pattern": _SCOPE, "maxLength": LONGEST_SCOPE},
    ),
]
_NAME_RULE = {"minLength": 1, "maxLength": LONGEST_NAME, "pattern": _NAME}
Name = Annotated[str, Field(json_schema_extra={**_NAME_RULE})]
Filter = Annotated[str | None, Field(None, description="Only those of this name.", json_schema_extra={**_NAME_RULE})]


def _number(value: object) -> object:
    """As JSON Schema has it, 60.0 is a whole number, and neither a text nor true is one."""
    if isinstance(value, bool | str):
        raise PydanticCustomError("int_type", "Input should be a whole number")
    return value


Whole = Annotated[int, BeforeValidator(_number)]
Ttl = Annotated[
    Whole | None,
    Field(
        None,
        description="Seconds from now until the end; as the scope's policy says where none is given.",
        json_schema_extra={"minimum": 1, "maximum": LONGEST_SECONDS},
    ),
]
_SHOWN = {"maxLength": LONGEST_METADATA, "pattern": rf"^[^\t\n\r{UNSEEN}]*$"}
MetadataName = Annotated[str, Field(min_length=1, json_schema_extra={**_SHOWN})]
MetadataValue = Annotated[str, Field(json_schema_extra={**_SHOWN})]
Kind = Literal["approval", "relationship"]
Wide = Annotated[
    bool, Field(default=False, strict=True, description="Also what lies in scopes below: a tenant's environments, a longer path.")
]
AuthzKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        pattern=HEADER_TEXT,
        description="Names this request for a day, so that a repetition writes nothing again.",
    ),
]


class _Body(Schema):
    model_config = ConfigDict(extra="forbid")


class _Named(_Body):
    ledger: ClassVar[Ledger[Any]]

    @property
    def names(self) -> tuple[Any, Any, Any]:
        """Of the record that is meant; in a list those that are given."""
        one, two, three = (getattr(self, name) for name in self.ledger.fields)
        return one, two, three


class ApprovalName(_Named):
    """An approval: may this identity do this action on this resource?"""

    ledger: ClassVar[Ledger[Any]] = APPROVALS
    kind: Literal["approval"]
    scope: ScopeText
    identity: Name
    resource: Name
    action: Name


class _Relation(_Named):
    ledger: ClassVar[Ledger[Any]] = RELATIONSHIPS
    scope: ScopeText
    subject: Name
    relation: Name
    object: Name


class RelationshipName(_Relation):
    """A relationship: does this subject stand in this relation to this object?"""

    kind: Literal["relationship"]


class RecordName(RootModel[Annotated[ApprovalName | RelationshipName, Field(discriminator="kind")]]):
    """Which record is meant."""


class _Granting(_Body):
    ttl_seconds: Ttl
    metadata: dict[MetadataName, MetadataValue] = Field(
        {},
        description="Kept with the record and shown.",
        json_schema_extra={"maxProperties": MOST_METADATA, "additionalProperties": False},
    )
    if_exists: IfExists = Field(
        IfExists.REFUSE,
        description="What becomes of a record that counts already: `refuse` (409), `extend` (its end moves, never to an earlier one; "
        "its metadata stay), or `replace` (it begins anew).",
    )


class ApprovalGrant(ApprovalName, _Granting):
    """Let the approval count from now on."""

    def record(self, *, by: str, at: datetime) -> Approval:
        return Approval(read_scope(self.scope), *self.names, by, at, metadata=self.metadata)


class RelationshipGrant(RelationshipName, _Granting):
    """Let the relationship count from now on."""

    relation_type: RelationType = Field(RelationType.CUSTOM, description="Chains go on over `trust` and `membership` alone.")

    def record(self, *, by: str, at: datetime) -> Relationship:
        return Relationship(read_scope(self.scope), *self.names, self.relation_type, by, at, metadata=self.metadata)


class Grant(RootModel[Annotated[ApprovalGrant | RelationshipGrant, Field(discriminator="kind")]]):
    """What is granted."""


class _Extending(_Body):
    ttl_seconds: Ttl


class ApprovalExtension(ApprovalName, _Extending):
    """Move the end of an approval."""


class RelationshipExtension(RelationshipName, _Extending):
    """Move the end of a relationship."""


class Extension(RootModel[Annotated[ApprovalExtension | RelationshipExtension, Field(discriminator="kind")]]):
    """What is extended."""


class _Checking(_Body):
    in_set: bool = Field(
        default=False,
        strict=True,
        description="`resource` or `object` may end with `/*`, for whatever lies below a path: yes when any record matches.",
    )


class ApprovalCheck(ApprovalName, _Checking):
    """May this identity do this action on this resource, now?"""


class RelationshipCheck(RelationshipName, _Checking):
    """Does this subject stand in this relation to this object itself, now?"""


class Check(RootModel[Annotated[ApprovalCheck | RelationshipCheck, Field(discriminator="kind")]]):
    """One question."""


class Chain(_Relation):
    """Do links of this relation lead from the subject to the object, in this scope alone, now?"""

    depth: Whole | None = Field(None, description="So many links at most.", json_schema_extra={"minimum": 1, "maximum": 8})


class ChainCheck(Chain):
    """The same as one question of a batch."""

    kind: Literal["chain"]


Question = Annotated[ApprovalCheck | RelationshipCheck | ChainCheck, Field(discriminator="kind")]


class Batch(_Body):
    """Up to 100 questions, each with its own answer."""

    checks: list[Question] = Field(max_length=MOST_CHECKS)


class Count(_Body):
    """What is counted."""

    kind: Kind
    scope: ScopeText
    is_wide: Wide


class _Listing(_Named):
    scope: ScopeText
    is_wide: Wide
    ends_by: Whole | None = Field(
        None,
        ge=0,
        le=2**53,
        description="Only what ends by this moment (Unix time).",
        json_schema_extra={"minimum": 0, "maximum": 2**53},
    )
    limit: Whole = Field(50, ge=1, le=200, description="At most so many on a page.")
    cursor: str = Field("", max_length=2000, description="`next_cursor` of the page before, unchanged, with the rest as it was.")


class ApprovalList(_Listing):
    """Approvals of a scope: all, of an identity, or who may do an action on a resource."""

    ledger: ClassVar[Ledger[Any]] = APPROVALS
    kind: Literal["approval"]
    identity: Filter
    resource: Filter
    action: Filter


class RelationshipList(_Listing):
    """Relationships of a scope: all, of a subject, or of an object."""

    ledger: ClassVar[Ledger[Any]] = RELATIONSHIPS
    kind: Literal["relationship"]
    subject: Filter
    relation: Filter
    object: Filter


class ListOf(RootModel[Annotated[ApprovalList | RelationshipList, Field(discriminator="kind")]]):
    """What is listed."""


class PolicyOf(_Body):
    """Whose limits are asked for."""

    scope: ScopeText


class _Counting(Facts):
    expires_at: Seconds | None = Field(description="From this moment it counts no longer; `null`: without an end.")
    ttl_seconds: int | None = Field(description="The time that was granted last.")
    metadata: dict[str, str]
    key: str = Field(description="The names in one text, for people; two records may share one.")


class ApprovalRecord(_Counting):
    """An approval that counts."""

    kind: Literal["approval"] = "approval"
    scope: str
    identity: str
    resource: str
    action: str
    granted_by: str
    granted_at: Seconds


class RelationshipRecord(_Counting):
    """A relationship that counts."""

    kind: Literal["relationship"] = "relationship"
    scope: str
    subject: str
    relation: str
    object: str
    relation_type: RelationType
    created_by: str
    created_at: Seconds


RecordState = Annotated[ApprovalRecord | RelationshipRecord, Field(discriminator="kind")]


def state_of(record: Approval | Relationship) -> ApprovalRecord | RelationshipRecord:
    """The record as it stands."""
    shape = ApprovalRecord if isinstance(record, Approval) else RelationshipRecord
    return shape.told(record, metadata={name: str(text) for name, text in record.metadata.items()})


class GrantedRecord(Schema):
    """The record as it was written."""

    record: RecordState
    warnings: list[str] = Field(description="What the policy would have otherwise, where it only advises, and that the token ends sooner.")

    @classmethod
    def of(cls, granted: Granted[Approval] | Granted[Relationship]) -> GrantedRecord:
        return cls(record=state_of(granted.record), warnings=list(granted.warnings))


class Revoked(Schema):
    """The record counts no longer."""

    revoked: Literal[True] = True


class RecordPage(Schema):
    """One page of a list. It may hold fewer than asked for, or none, while more follow."""

    items: list[RecordState]
    next_cursor: NextCursor


class Counted(Schema):
    """How many count now."""

    count: int


class Verdict(Schema):
    """Yes or no, and why."""

    allowed: bool
    why: Why
    message: str
    until: Seconds | None = Field(description="Until then the answer stays yes if nobody changes it; `null`: no, or without an end.")
    by: list[RecordState] = Field(description="The record that carries it; of a chain all of them, in order.")

    @classmethod
    def of(cls, answer: Answer) -> Verdict:
        return cls(
            allowed=answer.is_allowed,
            why=answer.why,
            message=answer.words,
            until=epoch_of(answer.until),
            by=[state_of(one) for one in answer.by],
        )


class Refused(Schema):
    """One question of a batch that has no answer; the others have theirs."""

    code: str
    message: str
    field: str


class BatchVerdict(Schema):
    """One of both: an answer, or why there is none."""

    answer: Verdict | None = None
    error: Refused | None = None


class Verdicts(Schema):
    """In the order of the questions."""

    answers: list[BatchVerdict]


class PolicyState(Schema):
    """How long records of a scope live."""

    policy_of: str | None = Field(description="The nearest scope up the line with a policy of its own; `null`: the default.")
    default_seconds: int | None = Field(description="`null`: what is granted without a length lives as long as it may.")
    min_seconds: int
    max_seconds: int
    is_enforced: bool = Field(description="False: a length outside is kept, with a warning.")
    refresh_seconds: int | None = Field(description="A check that says yes moves the end so far from now, never past the maximum.")

    @classmethod
    def of(cls, governing: GoverningPolicy) -> PolicyState:
        return cls(policy_of=governing.scope, **asdict(governing.policy))
