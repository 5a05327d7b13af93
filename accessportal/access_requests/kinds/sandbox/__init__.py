"""Kind ``sandbox``: one of the pool's sandboxes for a person, held by a claim under the key of the first request.

Asking for longer is a further request that continues the first: a second claim under the same key.
"""

from accessportal.access_requests.kind import Kind
from accessportal.access_requests.kinds.sandbox.fields import FIELDS
from accessportal.access_requests.kinds.sandbox.grant import SandboxGrant
from accessportal.access_requests.kinds.sandbox.target import SandboxTarget
from accessportal.access_requests.kinds.sandbox.terms import SandboxTerms

SANDBOX = Kind(SandboxTarget(), SandboxTerms, SandboxGrant(), FIELDS)
