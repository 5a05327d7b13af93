"""boto3 clients, one per service and process. They find AWS by the standard variables alone (``AWS_ENDPOINT_URL`` too)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from accessportal.kernel.answers import refuse_garbled

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient
    from mypy_boto3_identitystore import IdentityStoreClient
    from mypy_boto3_organizations import OrganizationsClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sso_admin import SSOAdminClient

# One attempt: whoever calls decides about trying again, because it knows the pace and what the attempt may have done.
_ONE_ATTEMPT = Config(retries={"total_max_attempts": 1, "mode": "standard"}, connect_timeout=3, read_timeout=10, max_pool_connections=100)
# Reads of a background job: botocore's adaptive mode slows down by itself when the service throttles.
_PATIENT = Config(retries={"total_max_attempts": 10, "mode": "adaptive"}, connect_timeout=3, read_timeout=20, max_pool_connections=10)

_lock = threading.Lock()
_clients: dict[str, Any] = {}


def _client(service: str, config: Config) -> Any:
    key = f"{service}:{id(config)}"
    with _lock:
        if key not in _clients:
            # Making a client is not thread-safe in boto3's default session; using one is.
            _clients[key] = client = boto3.session.Session().client(service, config=config)  # type: ignore[call-overload]
            if client.meta.service_model.resolved_protocol == "json":
                client.meta.events.register("before-parse.*", refuse_garbled)
        return _clients[key]


assignment_client: Callable[[], SSOAdminClient] = partial(_client, "sso-admin", _ONE_ATTEMPT)
"""For assignment calls: no retries of its own."""
sso_admin_client: Callable[[], SSOAdminClient] = partial(_client, "sso-admin", _PATIENT)
"""For reading permission sets in the background."""
organizations_client: Callable[[], OrganizationsClient] = partial(_client, "organizations", _PATIENT)
principal_client: Callable[[], IdentityStoreClient] = partial(_client, "identitystore", _ONE_ATTEMPT)
"""For looking up the principal of one assignment under way: no retries of its own."""
identity_store_client: Callable[[], IdentityStoreClient] = partial(_client, "identitystore", _PATIENT)
"""For reading all users and groups in the background."""
sns_client: Callable[[], SNSClient] = partial(_client, "sns", _ONE_ATTEMPT)
"""For publishing: no retries of its own."""
cognito_client: Callable[[], CognitoIdentityProviderClient] = partial(_client, "cognito-idp", _ONE_ATTEMPT)
"""For the changes of a user pool and what is read with them: no retries of its own."""
patient_cognito_client: Callable[[], CognitoIdentityProviderClient] = partial(_client, "cognito-idp", _PATIENT)
"""For reading a user pool whole, in the background."""
account_client: Callable[[], OrganizationsClient] = partial(_client, "organizations", _ONE_ATTEMPT)
"""For a look at one account, which somebody waits for: no retries of its own."""
step_functions_client: Callable[[], Any] = partial(_client, "stepfunctions", _ONE_ATTEMPT)
"""For starting executions and looking at them: no retries of its own."""
cost_explorer_client: Callable[[], Any] = partial(_client, "ce", _ONE_ATTEMPT)
"""For reading costs: each call costs money, and so would retries of its own."""
kms_client: Callable[[], Any] = partial(_client, "kms", _PATIENT)
"""For signing in the background."""


def forget_clients() -> None:
    """Drop every client, so that the next one reads the environment anew (tests, after a change of the endpoint)."""
    with _lock:
        _clients.clear()
