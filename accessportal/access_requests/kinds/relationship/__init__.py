"""Kind ``relationship``: a person stands in a relation to an object within a scope until an end, held by a claim."""

from accessportal.access_requests.kind import Kind
from accessportal.access_requests.kinds.records import RecordGrant
from accessportal.access_requests.kinds.relationship.fields import FIELDS
from accessportal.access_requests.kinds.relationship.target import RelationshipTarget
from accessportal.access_requests.kinds.relationship.terms import RelationshipTerms

RELATIONSHIP = Kind(RelationshipTarget(), RelationshipTerms, RecordGrant(RelationshipTarget()), FIELDS)
