"""The API put together: its operations, and how their errors are told."""

from django.http import Http404
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from accessportal.api.accounts import router as accounts
from accessportal.api.admin import router as admin
from accessportal.api.authz import router as authz
from accessportal.api.errors import to_response
from accessportal.api.history import router as history
from accessportal.api.leases import router as leases
from accessportal.api.lending import router as lending
from accessportal.api.query_names import know_names
from accessportal.api.runs import router as runs

_DESCRIPTION = """Takes and gives back sandboxes of the pool; asks for AWS accounts in people's names; grants, takes back and answers
questions about approvals and relationships; tells who had access to what. Every request needs a bearer token; errors have one shape,
with a `code` for programs. Parameters and parts of a body that an operation does not know are refused. A request that got no answer may
be sent again unchanged: with the same key it does nothing twice."""

# Its own addresses for the document are off: ours have the policy of the page and need no rendering at each request.
api = NinjaAPI(
    title="Access Portal API",
    version="1",
    description=_DESCRIPTION,
    openapi_url=None,
    docs_url=None,
    urls_namespace="api",
)
api.add_router("", know_names(lending))
api.add_router("admin/", know_names(admin))
api.add_router("admin/", know_names(runs))
api.add_router("authz/", know_names(authz))
api.add_router("leases", know_names(leases))
api.add_router("admin/", know_names(accounts))
api.add_router("history/", know_names(history))
# The framework has handlers of its own for these; what is more special than they are is not handled by it.
for kind in (Exception, Http404, HttpError, ValidationError):
    api.add_exception_handler(kind, to_response)
