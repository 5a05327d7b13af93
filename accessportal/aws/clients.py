"""boto3 clients, one per service and process. They find AWS by the standard variables alone (``AWS_ENDPOINT_URL`` too)."""

from __future__ import annotations

import threading
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


def assignment_client() -> SSOAdminClient:
    """For assignment calls: no retries of its own."""
    return _client("sso-admin", _ONE_ATTEMPT)  # type: ignore[no-any-return]


def sso_admin_client() -> SSOAdminClient:
    """For reading permission sets in the background."""
    return _client("sso-admin", _PATIENT)  # type: ignore[no-any-return]


def organizations_client() -> OrganizationsClient:
    return _client("organizations", _PATIENT)  # type: ignore[no-any-return]


def principal_client() -> IdentityStoreClient:
    """For looking up the principal of one assignment under way: no retries of its own."""
    return _client("identitystore", _ONE_ATTEMPT)  # type: ignore[no-any-return]


def identity_store_client() -> IdentityStoreClient:
    """For reading all users and groups in the background."""
    return _client("identitystore", _PATIENT)  # type: ignore[no-any-return]


def sns_client() -> SNSClient:
    """For publishing: no retries of its own."""
    return _client("sns", _ONE_ATTEMPT)  # type: ignore[no-any-return]


def cognito_client() -> CognitoIdentityProviderClient:
    """For the changes of a user pool and what is read with them: no retries of its own."""
    return _client("cognito-idp", _ONE_ATTEMPT)  # type: ignore[no-any-return]


def patient_cognito_client() -> CognitoIdentityProviderClient:
    """For reading a user pool whole, in the background."""
    return _client("cognito-idp", _PATIENT)  # type: ignore[no-any-return]


def account_client() -> OrganizationsClient:
    """For a look at one account, which somebody waits for: no retries of its own."""
    return _client("organizations", _ONE_ATTEMPT)  # type: ignore[no-any-return]


def step_functions_client() -> Any:
    """For starting executions and looking at them: no retries of its own."""
    return _client("stepfunctions", _ONE_ATTEMPT)


def cost_explorer_client() -> Any:
    """For reading costs: each call costs money, and so would retries of its own."""
    return _client("ce", _ONE_ATTEMPT)


def kms_client() -> Any:
    """For signing in the background."""
    return _client("kms", _PATIENT)


def forget_clients() -> None:
    """Drop every client, so that the next one reads the environment anew (tests, after a change of the endpoint)."""
    with _lock:
        _clients.clear()


def _client(service: str, config: Config) -> Any:
    key = f"{service}:{id(config)}"
    with _lock:
        if key not in _clients:
            # Making a client is not thread-safe in boto3's default session; using one is.
            _clients[key] = client = boto3.session.Session().client(service, config=config)  # type: ignore[call-overload]
            if client.meta.service_model.resolved_protocol == "json":
                client.meta.events.register("before-parse.*", refuse_garbled)
        return _clients[key]
