"""Kind ``group``: membership in a group of the directory, with a role and an end, held by a claim."""

from accessportal.access_requests.kind import Kind
from accessportal.access_requests.kinds.group.fields import FIELDS
from accessportal.access_requests.kinds.group.grant import MembershipGrant
from accessportal.access_requests.kinds.group.target import MembershipTarget
from accessportal.access_requests.kinds.group.terms import MembershipTerms

GROUP = Kind(MembershipTarget(), MembershipTerms, MembershipGrant(), FIELDS)
