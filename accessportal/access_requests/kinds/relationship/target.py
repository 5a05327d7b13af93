"""What is asked for: a relation to an object within a scope, of a type."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from accessportal.access_requests.kinds.records import RecordTarget
from accessportal.access_requests.kinds.relationship.terms import RelationshipAsked, RelationshipTerms
from accessportal.authz.queries import RELATIONSHIPS
from accessportal.authz.states import Relationship, RelationType, Scope
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.texts import cut


class RelationshipTarget(RecordTarget[Relationship]):
    """Given as ``{"scope": like tenant:acme-corp, "relation": name, "object": name, "relation_type": one of six, or empty: role}``."""

    parts = ("scope", "relation", "object", "relation_type")
    ledger = RELATIONSHIPS
    terms = RelationshipTerms

    def read(self, target: Mapping[str, str]) -> dict[str, str]:
        return {**super().read(target), "relation_type": _type(target.get("relation_type", "").strip())}

    def record(self, target: Mapping[str, Any], *, subject_id: str, by: str, at: datetime, metadata: Mapping[str, str]) -> Relationship:
        kind = RelationType(target["relation_type"])
        return Relationship(Scope(target["scope"]), subject_id, target["relation"], target["object"], kind, by, at, metadata=metadata)

    def asked_for(self, stored: Mapping[str, str]) -> RelationshipAsked:
        return RelationshipAsked(stored["scope"], stored["object"], stored["relation"], stored["relation_type"])


def _type(text: str) -> str:
    if text and text not in tuple(RelationType):
        message = f"“{cut(text)}” is no type of relation: choose one of {', '.join(RelationType)}."
        raise InvalidRequest(message, code="relation_type_unknown", field="relation_type")
    return text or RelationType.ROLE.value
