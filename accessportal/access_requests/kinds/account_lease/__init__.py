"""Kind ``account_lease``: a whole AWS account of a pool for a person. The first request's id is that of the lease, and the claims on
lease and assignment are the requests'.

Asking for longer is a further request that continues the first: a second claim on both.
"""

from accessportal.access_requests.kind import Kind
from accessportal.access_requests.kinds.account_lease.fields import FIELDS
from accessportal.access_requests.kinds.account_lease.grant import LeaseGrant
from accessportal.access_requests.kinds.account_lease.target import LeaseTarget
from accessportal.access_requests.kinds.account_lease.terms import LeaseTerms

ACCOUNT_LEASE = Kind(LeaseTarget(), LeaseTerms, LeaseGrant(), FIELDS)
