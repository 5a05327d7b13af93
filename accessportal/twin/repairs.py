"""Small faults of moto that would teach clients wrong things, put right once per process."""

from __future__ import annotations

from moto.moto_api._internal import mock_random
from moto.organizations.utils import PAGINATION_MODEL
from moto.ssoadmin.models import PermissionSet


def repair_moto() -> None:
    """Permission sets get ARNs of AWS's shape; accounts made in the same instant are paged apart. Repeating it changes nothing."""
    PermissionSet.generate_id = staticmethod(_permission_set_arn)  # type: ignore[method-assign]
    # moto's page token names an account by its time of joining, which two accounts may share.
    PAGINATION_MODEL["list_accounts"]["unique_attribute"] = "Id"


def _permission_set_arn(instance_arn: str) -> str:
    """moto makes ``…:instance/ssoins-1/ps-2``; AWS has ``…:permissionSet/ssoins-1/ps-2`` and refuses the former."""
    suffix = mock_random.get_random_string(length=16).lower()
    return f"{instance_arn.replace(':instance/', ':permissionSet/')}/ps-{suffix}"
