"""Rows in and out of the catalog, and the exchange of the former catalog for a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db import InterfaceError, InternalError, OperationalError, transaction
from django.db.models import QuerySet

from accessportal.catalog.models import AccountRow, CatalogRow, PermissionSetRow, PrincipalRow, SyncRun
from accessportal.catalog.policy import fold, key_of, search_text
from accessportal.catalog.states import Account, Freshness, PermissionSet, Principal, PrincipalType
from accessportal.kernel.actors import fold_email
from accessportal.kernel.errors import Unavailable

R = TypeVar("R", bound=CatalogRow)

_BATCH = 500
_KEPT_RUNS = 200


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that one sync has read."""

    instance_arn: str
    identity_store_id: str
    accounts: Sequence[Account]
    permission_sets: Sequence[PermissionSet]
    principals: Sequence[Principal]


@contextmanager
def database_errors() -> Iterator[None]:
    """Turn a database that does not answer, or takes no writes, into :class:`Unavailable`."""
    try:
        yield
    except (OperationalError, InterfaceError, InternalError) as error:
        raise Unavailable("The catalog's database did not answer. Try again.", code="catalog_unavailable") from error


@database_errors()
def start_run(now: datetime) -> int:
    return SyncRun.objects.create(started_at=now).pk


@database_errors()
def fail_run(run_id: int, *, error: str, at: datetime) -> None:
    SyncRun.objects.filter(pk=run_id).update(error=error, finished_at=at)


@database_errors()
def forget_users(is_gone: Callable[[str], bool]) -> None:
    """Until the next sync finds them in AWS."""
    users = PrincipalRow.objects.filter(principal_type=PrincipalType.USER.value).iterator()
    PrincipalRow.objects.filter(pk__in=[row.pk for row in users if is_gone(row.label)]).delete()


@database_errors()
def replace_all(run_id: int, reading: Reading, *, at: datetime) -> None:
    """Make ``reading`` the catalog, whole or not at all, and the run complete."""
    with transaction.atomic():
        _replace(AccountRow, run_id, [_account_row(one, run_id) for one in reading.accounts])
        _replace(PermissionSetRow, run_id, [_permission_set_row(one, run_id) for one in reading.permission_sets])
        _replace(PrincipalRow, run_id, [_principal_row(one, run_id) for one in reading.principals])
        SyncRun.objects.filter(pk=run_id).update(
            finished_at=at,
            accounts=len(reading.accounts),
            permission_sets=len(reading.permission_sets),
            principals=len(reading.principals),
            instance_arn=reading.instance_arn,
            identity_store_id=reading.identity_store_id,
        )
        SyncRun.objects.filter(pk__lte=run_id - _KEPT_RUNS).delete()


@database_errors()
def compared(reading: Reading) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    """For each kind of thing, in words: the ids that the catalog knows, and those of ``reading``."""
    known_people = {kind: _ids(PrincipalRow.objects.filter(principal_type=kind.value)) for kind in PrincipalType}
    found_people = {kind: frozenset(one.principal_id for one in reading.principals if one.principal_type is kind) for kind in PrincipalType}
    return [
        ("accounts", _ids(AccountRow.objects.all()), frozenset(one.account_id for one in reading.accounts)),
        ("permission sets", _ids(PermissionSetRow.objects.all()), frozenset(one.arn for one in reading.permission_sets)),
        ("users", known_people[PrincipalType.USER], found_people[PrincipalType.USER]),
        ("groups", known_people[PrincipalType.GROUP], found_people[PrincipalType.GROUP]),
    ]


def _ids(rows: QuerySet[R]) -> frozenset[str]:
    return frozenset(rows.values_list("pk", flat=True))


@database_errors()
def freshness() -> Freshness:
    complete = SyncRun.objects.filter(finished_at__isnull=False, error="").order_by("-pk").first()
    failed = SyncRun.objects.exclude(error="").order_by("-pk").first()
    is_later = failed is not None and (complete is None or failed.pk > complete.pk)
    return Freshness(
        synced_at=complete.finished_at if complete else None,
        accounts=complete.accounts if complete else 0,
        permission_sets=complete.permission_sets if complete else 0,
        principals=complete.principals if complete else 0,
        last_error=failed.error if failed and is_later else "",
        instance_arn=complete.instance_arn if complete else "",
        identity_store_id=complete.identity_store_id if complete else "",
    )


def account(row: AccountRow) -> Account:
    return Account(
        account_id=row.account_id,
        name=row.name,
        email=row.email,
        status=row.status,
        ou_path=row.ou_path,
        tags=row.tags,
        is_management=row.is_management,
    )


def permission_set(row: PermissionSetRow) -> PermissionSet:
    return PermissionSet(arn=row.arn, name=row.name, description=row.description, session_seconds=row.session_seconds)


def principal(row: PrincipalRow) -> Principal:
    return Principal(principal_type=PrincipalType(row.principal_type), principal_id=row.principal_id, label=row.label)


def principal_key(principal_type: PrincipalType, label: str) -> str:
    """What a principal is found by: people by folded address, groups by exact display name (which is the group's path)."""
    return fold_email(label) if principal_type is PrincipalType.USER else label


def _replace(model: type[CatalogRow], run_id: int, rows: Sequence[CatalogRow]) -> None:
    key = model._meta.pk.name
    columns = [field.name for field in model._meta.concrete_fields if not field.primary_key]
    # In key order, so that two syncs at once lock the rows in the same order.
    ordered = sorted(rows, key=lambda row: str(row.pk))
    manager = model._default_manager
    manager.bulk_create(ordered, batch_size=_BATCH, update_conflicts=True, unique_fields=[key], update_fields=columns)
    manager.exclude(seen_in=run_id).delete()


def _account_row(one: Account, run_id: int) -> AccountRow:
    return AccountRow(
        seen_in_id=run_id,
        account_id=one.account_id,
        name=one.name,
        name_key=key_of(one.name),
        email=one.email,
        status=one.status,
        ou_path=one.ou_path,
        ou_key=fold(one.ou_path),
        tags=None if one.tags is None else dict(one.tags),
        is_management=one.is_management,
        search_text=search_text(one.account_id, one.name, one.ou_path, tags=one.tags),
    )


def _permission_set_row(one: PermissionSet, run_id: int) -> PermissionSetRow:
    return PermissionSetRow(
        seen_in_id=run_id,
        arn=one.arn,
        name=one.name,
        name_key=key_of(one.name),
        description=one.description,
        session_seconds=one.session_seconds,
        search_text=search_text(one.name, one.description),
    )


def _principal_row(one: Principal, run_id: int) -> PrincipalRow:
    return PrincipalRow(
        seen_in_id=run_id,
        principal_id=one.principal_id,
        principal_type=one.principal_type.value,
        label=one.label,
        label_key=principal_key(one.principal_type, one.label),
    )
