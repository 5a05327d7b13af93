"""Reading the catalog: what the cloud had when it was last read whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from django.db.models import Case, IntegerField, Model, Q, QuerySet, Value, When

from accessportal.catalog import policy, store
from accessportal.catalog.models import AccountRow, PermissionSetRow, PrincipalRow
from accessportal.catalog.states import Account, Freshness, PermissionSet, Principal, PrincipalType
from accessportal.catalog.store import database_errors
from accessportal.kernel.errors import Conflict, NotFound
from accessportal.kernel.pages import Page
from accessportal.store.cursors import read_cursor, sign_cursor

M = TypeVar("M", bound=Model)
_ACCOUNT_ID = re.compile(r"\d{12}", re.ASCII)


@database_errors()
def find_account(*, account: str) -> Account | None:
    """Find the account with this id or else this name, in any case, whatever its status. :raises Conflict: naming the ids, when several
    carry the name."""
    wanted = account.strip().replace("\0", "")
    row = AccountRow.objects.filter(account_id=wanted).first() if _ACCOUNT_ID.fullmatch(wanted) else None
    if row is not None:
        return store.account(row)
    named = list(AccountRow.objects.filter(name_key=policy.key_of(wanted)).order_by("account_id")[:10]) if wanted else []
    if len(named) > 1:
        ids = " and ".join(one.account_id for one in named)
        raise Conflict(f"Several accounts are named {named[0].name}: {ids}. Give the id.", code="account_ambiguous")
    return store.account(named[0]) if named else None


def get_account(*, account: str) -> Account:
    """Get the account as :func:`find_account` does. :raises NotFound: when there is none."""
    found = find_account(account=account)
    if found is None:
        raise NotFound("There is no account with this id or name.", code="account_not_found")
    return found


@database_errors()
def accounts_by_id(ids: Iterable[str]) -> dict[str, Account]:
    """Those of these accounts that the catalog has, whatever their status, in one query."""
    wanted = sorted(ids)
    return {row.account_id: store.account(row) for row in AccountRow.objects.filter(account_id__in=wanted)} if wanted else {}


@database_errors()
def search_accounts(*, text: str, limit: int = 20) -> tuple[Account, ...]:
    """Search active accounts whose id, name, place or tag values hold every word of ``text``, best match first: exact id, exact name,
    beginning, all words, one word, places, tags. Without text: by name."""
    words = policy.words_of(text)
    phrase = " ".join(words)
    rows = AccountRow.objects.filter(_holds_all("search_text", words), status=policy.ACTIVE)
    best_first = [
        Q(account_id=phrase),
        Q(name_key=phrase),
        Q(name_key__startswith=phrase),
        _holds_all("name_key", words),
        _holds_any("name_key", words),
        _holds_any("ou_key", words),
    ]
    return tuple(store.account(row) for row in _ranked(rows, best_first if words else [])[:limit])


@database_errors()
def list_accounts(*, search: str = "", cursor: str | None = None, limit: int = 50) -> Page[Account]:
    """Accounts of every status in order of name, those that hold every word of ``search``."""
    words = policy.words_of(search)
    rows = AccountRow.objects.filter(_holds_all("search_text", words))
    return _page(rows, "account_id", pattern=f"catalog.accounts:{' '.join(words)}", cursor=cursor, limit=limit).map(store.account)


@database_errors()
def find_permission_set(*, name: str) -> PermissionSet | None:
    """The permission set with exactly this name."""
    row = PermissionSetRow.objects.filter(name=name.strip().replace("\0", "")).order_by("arn").first()
    return store.permission_set(row) if row else None


@database_errors()
def find_permission_set_by_arn(*, arn: str) -> PermissionSet | None:
    row = PermissionSetRow.objects.filter(arn=arn).first()
    return store.permission_set(row) if row else None


@database_errors()
def search_permission_sets(*, text: str = "", limit: int = 500) -> tuple[PermissionSet, ...]:
    """Permission sets whose name or description holds every word of ``text``; best match first, without text by name."""
    words = policy.words_of(text)
    phrase = " ".join(words)
    rows = PermissionSetRow.objects.filter(_holds_all("search_text", words))
    best_first = [Q(name_key=phrase), Q(name_key__startswith=phrase), _holds_all("name_key", words)]
    return tuple(store.permission_set(row) for row in _ranked(rows, best_first if words else [])[:limit])


@database_errors()
def list_permission_sets(*, search: str = "", cursor: str | None = None, limit: int = 50) -> Page[PermissionSet]:
    """Permission sets in order of name, those that hold every word of ``search``."""
    words = policy.words_of(search)
    rows = PermissionSetRow.objects.filter(_holds_all("search_text", words))
    return _page(rows, "arn", pattern=f"catalog.permission_sets:{' '.join(words)}", cursor=cursor, limit=limit).map(store.permission_set)


def find_user_principal(*, email: str) -> Principal | None:
    """Find the Identity Store's user with this address, in any spelling of its letters. :raises Conflict: when several carry it: access
    must not go to the wrong one."""
    return _find_principal(PrincipalType.USER, email)


def find_group_principal(*, group_id: str) -> Principal | None:
    """Find the Identity Store's group whose display name is exactly this group path. :raises Conflict: when several carry it."""
    return _find_principal(PrincipalType.GROUP, group_id)


@database_errors()
def find_principal(*, principal_id: str) -> Principal | None:
    row = PrincipalRow.objects.filter(principal_id=principal_id).first()
    return store.principal(row) if row else None


def freshness() -> Freshness:
    """How old the catalog is, what it holds, and the error of a later sync that failed."""
    return store.freshness()


@database_errors()
def _find_principal(principal_type: PrincipalType, label: str) -> Principal | None:
    key = store.principal_key(principal_type, label.replace("\0", ""))
    rows = list(PrincipalRow.objects.filter(principal_type=principal_type.value, label_key=key)[:2]) if key else []
    if len(rows) > 1:
        ids = " and ".join(sorted(row.principal_id for row in rows))
        raise Conflict(
            f"Several {principal_type.value.lower()}s of the Identity Store are called {label}: {ids}. An administrator must rename one.",
            code="principal_ambiguous",
        )
    return store.principal(rows[0]) if rows else None


def _holds_all(column: str, words: tuple[str, ...]) -> Q:
    return Q(*(Q((f"{column}__contains", word)) for word in words))


def _holds_any(column: str, words: tuple[str, ...]) -> Q:
    return Q(*(Q((f"{column}__contains", word)) for word in words), _connector=Q.OR)


def _ranked(rows: QuerySet[M], best_first: Sequence[Q]) -> QuerySet[M]:
    """``rows`` in the order of the first condition that each meets, then by name, then by key."""
    if not best_first:
        return rows.order_by("name_key", "pk")
    place = Case(
        *(When(condition, then=Value(position)) for position, condition in enumerate(best_first)),
        default=Value(len(best_first)),
        output_field=IntegerField(),
    )
    return rows.order_by(place, "name_key", "pk")


def _page(rows: QuerySet[M], key: str, *, pattern: str, cursor: str | None, limit: int) -> Page[M]:
    """One page in order of ``name_key`` and ``key``, continued after the last row, not by counting rows."""
    start: dict[str, Any] | None = read_cursor(pattern, cursor)
    if start is not None:
        rows = rows.filter(Q(name_key__gt=start["name_key"]) | Q(("name_key", start["name_key"]), (f"{key}__gt", start[key])))
    found = list(rows.order_by("name_key", key)[: limit + 1])
    last = found[limit - 1] if len(found) > limit else None
    after = {"name_key": getattr(last, "name_key"), key: getattr(last, key)} if last else None  # noqa: B009
    return Page(items=tuple(found[:limit]), next_cursor=sign_cursor(pattern, after))
