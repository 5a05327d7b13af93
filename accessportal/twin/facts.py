"""What the front has to know of the rest of AWS: read from moto's own state, without calls."""

from __future__ import annotations

from typing import Protocol

from moto.core import DEFAULT_ACCOUNT_ID
from moto.identitystore.models import IdentityStoreData, identitystore_backends
from moto.organizations.models import OrganizationsBackend, organizations_backends
from moto.ssoadmin.models import Instance, SSOAdminBackend, ssoadmin_backends


class Facts(Protocol):
    """What exists."""

    def has_instance(self, instance_arn: str) -> bool: ...

    def has_permission_set(self, instance_arn: str, permission_set_arn: str) -> bool: ...

    def has_account(self, account_id: str) -> bool:
        """A member of the organization, closed or not."""
        ...

    def is_open(self, account_id: str) -> bool:
        """A member that is not closed, nor about to be."""
        ...

    def is_management_account(self, account_id: str) -> bool: ...

    def has_principal(self, instance_arn: str, principal_type: str, principal_id: str) -> bool: ...

    def groups_of(self, instance_arn: str, user_id: str) -> frozenset[str]:
        """Ids of the Identity Store groups that the user is in."""
        ...


class MotoFacts:
    """Facts from the moto of this process. The caller holds the lock in front of moto."""

    def has_instance(self, instance_arn: str) -> bool:
        return self._instance(instance_arn) is not None

    def has_permission_set(self, instance_arn: str, permission_set_arn: str) -> bool:
        found = self._instance(instance_arn)
        return found is not None and any(one.permission_set_arn == permission_set_arn for one in found[0].permission_sets)

    def has_account(self, account_id: str) -> bool:
        return any(account.id == account_id for account in self._organization().accounts)

    def is_open(self, account_id: str) -> bool:
        return any(account.id == account_id and account.status == "ACTIVE" for account in self._organization().accounts)

    def is_management_account(self, account_id: str) -> bool:
        return account_id == DEFAULT_ACCOUNT_ID

    def has_principal(self, instance_arn: str, principal_type: str, principal_id: str) -> bool:
        store = self._identity_store(instance_arn)
        if store is None:
            return False
        return principal_id in (store.users if principal_type == "USER" else store.groups)

    def groups_of(self, instance_arn: str, user_id: str) -> frozenset[str]:
        store = self._identity_store(instance_arn)
        if store is None:
            return frozenset()
        return frozenset(one["GroupId"] for one in store.group_memberships.values() if one["MemberId"].get("UserId") == user_id)

    def _organization(self) -> OrganizationsBackend:
        return organizations_backends[DEFAULT_ACCOUNT_ID]["aws"]

    def _instance(self, instance_arn: str) -> tuple[SSOAdminBackend, Instance] | None:
        for backend in ssoadmin_backends[DEFAULT_ACCOUNT_ID].values():
            for instance in backend.instances:
                if instance.instance_arn == instance_arn:
                    return backend, instance
        return None

    def _identity_store(self, instance_arn: str) -> IdentityStoreData | None:
        found = self._instance(instance_arn)
        if found is None:
            return None
        for backend in identitystore_backends[DEFAULT_ACCOUNT_ID].values():
            if found[1].identity_store_id in backend.identity_stores:
                return backend.identity_stores[found[1].identity_store_id]
        return None
