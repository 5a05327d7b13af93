"""Kind ``approval``: a person may do an action on a resource within a scope until an end, held by a claim."""

from accessportal.access_requests.kind import Kind
from accessportal.access_requests.kinds.approval.fields import FIELDS
from accessportal.access_requests.kinds.approval.target import ApprovalTarget
from accessportal.access_requests.kinds.approval.terms import ApprovalTerms
from accessportal.access_requests.kinds.records import RecordGrant

APPROVAL = Kind(ApprovalTarget(), ApprovalTerms, RecordGrant(ApprovalTarget()), FIELDS)
