"""Whose an account of the sign-in service is. One item for each account names the one person who comes in with it, and one for
each address keeps which account comes in there, also while nobody has the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accessportal.directory import models
from accessportal.directory.models import DirectoryItem
from accessportal.directory.store.reading import find
from accessportal.store.transactions import Change, Guard, Insert, Remove, Step, Upsert, transact


@dataclass(frozen=True, slots=True)
class Owner:
    """The person (``key``) whose an account is. ``version`` grows with every change of hands, and whenever it is confirmed."""

    key: str
    version: int


def get_owner(identity: str) -> Owner | None:
    """Strongly read."""
    return find(models.account_key(identity), lambda item: Owner(str(item.email), int(item.version)))


def get_kept_identity(key: str) -> str:
    """The account that is kept for an address, whether or not somebody has it now; empty for none. Strongly read."""
    return find(models.address_key(key), lambda item: str(item.identity)) or ""


def bind_steps(identity: str, key: str, *, before: Owner | None) -> list[Step]:
    """The account is ``key``'s from now on, if it is still ``before``'s."""
    pk, sk = models.account_key(identity)
    actions = [DirectoryItem.email.set(key), DirectoryItem.version.set(1 if before is None else before.version + 1)]
    if before is None:
        return [Upsert(DirectoryItem, pk, actions, DirectoryItem.pk.does_not_exist(), sk), keep_step(identity, key)]
    is_as_read = (DirectoryItem.email == before.key) & (DirectoryItem.version == before.version)
    return [Change(DirectoryItem, pk, actions, is_as_read, sk), keep_step(identity, key)]


def still_owns(identity: str, key: str) -> Guard:
    """The account is ``key``'s."""
    pk, sk = models.account_key(identity)
    return Guard(DirectoryItem, pk, DirectoryItem.email == key, sk)


def keep_step(identity: str, key: str) -> Step:
    """The address keeps the account, whatever becomes of the person."""
    pk, sk = models.address_key(key)
    return Upsert(DirectoryItem, pk, [DirectoryItem.identity.set(identity)], models.ALWAYS, sk)


def nobody_has(key: str) -> Guard:
    """No person has the address."""
    pk, sk = models.person_key(key)
    return Guard(DirectoryItem, pk, DirectoryItem.pk.does_not_exist(), sk, may_be_missing=True)


def forget_steps(identity: str, key: str) -> list[Step]:
    """The address keeps no account any more, and the account, where it is ``key``'s, is nobody's."""
    steps: list[Step] = []
    if get_kept_identity(key):
        pk, sk = models.address_key(key)
        steps.append(Remove(DirectoryItem, pk, DirectoryItem.identity.exists(), sk))
    owner = get_owner(identity)
    if owner is not None and owner.key == key:
        pk, sk = models.account_key(identity)
        steps.append(Remove(DirectoryItem, pk, DirectoryItem.version == owner.version, sk))
    return steps


def write_accounts(steps: Sequence[Step], *, events: Sequence[Insert] = ()) -> None:
    """Change accounts alone, of nobody's person. :raises ConditionFailed: when the directory is not as the caller read it."""
    transact([*steps, *events])
