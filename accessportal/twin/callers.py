"""Which account may make which call: the organization's management account, or one that it made a delegated administrator.

Sources: the service models of Organizations and IAM Identity Center (a test holds the table against their words), and
https://docs.aws.amazon.com/singlesignon/latest/userguide/delegated-admin.html: a delegated administrator does all but manage
permission sets that are provisioned in the management account, and access to that account.
"""

from __future__ import annotations

from accessportal.twin.protocol import TARGET_PREFIX, TwinError

MANAGEMENT = "management"
DELEGATED = "delegated"
CALLERS = (MANAGEMENT, DELEGATED)

_MANAGEMENT_ONLY = {
    TARGET_PREFIX: frozenset({"DeleteInstance", "ListAccountAssignmentsForPrincipal"}),
    "AWSOrganizationsV20161128.": frozenset(
        {
            "CancelHandshake",
            "CloseAccount",
            "CreateAccount",
            "CreateGovCloudAccount",
            "CreateOrganization",
            "CreateOrganizationalUnit",
            "DeleteOrganization",
            "DeleteOrganizationalUnit",
            "DeleteResourcePolicy",
            "DeregisterDelegatedAdministrator",
            "DisableAWSServiceAccess",
            "EnableAWSServiceAccess",
            "EnableAllFeatures",
            "InviteAccountToOrganization",
            "InviteOrganizationToTransferResponsibility",
            "ListInboundResponsibilityTransfers",
            "ListOutboundResponsibilityTransfers",
            "MoveAccount",
            "PutResourcePolicy",
            "RegisterDelegatedAdministrator",
            "RemoveAccountFromOrganization",
            "TerminateResponsibilityTransfer",
            "UpdateOrganizationalUnit",
            "UpdateResponsibilityTransfer",
        }
    ),
    "AWSIdentityStore.": frozenset[str](),
}


def may_call(caller: str, target: str) -> bool:
    """``target``: the ``X-Amz-Target`` of the call. Calls to other services are anybody's here."""
    prefix, _, operation = target.rpartition(".")
    return caller == MANAGEMENT or operation not in _MANAGEMENT_ONLY.get(f"{prefix}.", frozenset())


def denied(operation: str) -> TwinError:
    return TwinError("AccessDeniedException", f"This account is not authorized to perform {operation}")
