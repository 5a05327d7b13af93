"""Pure decisions about accounts and leases."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.moments import is_recent
from accessportal.kernel.texts import clean_text
from accessportal.leases.states import Account, AccountState, Budget, Lease, Verdict, Whereabouts

_ACCOUNT_ID = re.compile(r"[0-9]{12}")
_WORD = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_LONGEST_NAME = 100
_MOST_TAGS = 50
_FIRST_GAP = timedelta(minutes=5)
LONGEST_GAP = timedelta(hours=1)
"""Nothing that is due is put off for longer."""
_MOST_NAMES = 50
_LONGEST_TEXT = 200
_FIGURES_WITHIN = timedelta(days=2)


def may_operate(actor: Actor) -> Decision:
    """Whether ``actor`` may change the pool and other people's leases."""
    if actor.is_operator or actor.is_system:
        return allow("operators look after the pool")
    return refuse("Only operators may change the pool of accounts. Ask an operator.", code="operators_only")


def check_account_id(account_id: str, *, field: str = "account_id") -> str:
    """:raises InvalidRequest: for what is no AWS account id."""
    if not _ACCOUNT_ID.fullmatch(account_id):
        raise InvalidRequest("Give the account id: twelve digits, without blanks or dashes.", code="account_id_invalid", field=field)
    return account_id


def check_word(word: str, *, field: str) -> str:
    """A label of a pool or a size.

    :raises InvalidRequest: for one that can't be one.
    """
    if not is_word(word):
        message = f"{field} is 1 to 40 small letters, digits and dashes, for instance “default”; the first is no dash."
        raise InvalidRequest(message, code=f"{field}_invalid", field=field)
    return word


def is_word(word: str) -> bool:
    """Whether it can be the label of a pool or a size."""
    return _WORD.fullmatch(word) is not None


def check_name(name: str) -> str:
    """The name of an account in one spelling; may be empty."""
    return clean_text(name, field="name", name="The name", longest=_LONGEST_NAME)


def check_tags(tags: Mapping[str, str]) -> Mapping[str, str]:
    """:raises InvalidRequest: for more than AWS allows, and for what can't be shown."""
    if len(tags) > _MOST_TAGS:
        raise InvalidRequest(f"An account has {_MOST_TAGS} tags at most. Leave some out.", code="tags_too_many", field="tags")
    return {
        clean_text(name, field="tags", name="A tag's name", longest=128): clean_text(value, field="tags", name="A tag", longest=256)
        for name, value in tags.items()
    }


def fits(account: Account, *, pool: str, size: str, tags: Mapping[str, Any]) -> bool:
    """Whether the account is what somebody asks for; an empty ``size`` is any."""
    return account.pool == pool and size in ("", account.size) and tags.items() <= account.tags.items()


def is_revivable(account: Account, *, lease_id: str, user: str, undo_seconds: int, now: datetime) -> bool:
    """Whether its last holder may take it back: it was given back a moment ago, and nobody has begun to clean it."""
    is_theirs = account.state is AccountState.DIRTY and (account.lease_id, account.user) == (lease_id, user)
    is_untouched = not account.run and not account.attempts and not account.is_retiring
    return is_theirs and is_untouched and is_recent(account.since, now=now, within=timedelta(seconds=undo_seconds))


def may_clean(
    account: Account, *, lease: Lease | None, fence: int | None, never: Collection[str], undo_seconds: int, now: datetime
) -> Decision:
    """Whether the account, as it was just read with its last ``lease``, is one that may be cleaned; with ``fence``: at this hand-over."""
    if account.account_id in never:
        return refuse("It is on the list of accounts that are never cleaned (PORTAL_LEASES_NEVER).", code="never_cleaned")
    if lease is not None or account.state is AccountState.LEASED:
        return refuse("Somebody has this account.", code="account_leased")
    if not account.state.is_cleaned_next:
        return refuse(f"It is {account.state}: there is nothing to clean. Restore it first.", code="nothing_to_clean")
    if fence not in {None, account.fence}:
        return refuse(f"Hand-over {fence} was meant, and it is at hand-over {account.fence} now.", code="account_moved_on")
    is_fresh = account.state is AccountState.DIRTY and bool(account.lease_id) and not account.run and not account.attempts
    if is_fresh and is_recent(account.since, now=now, within=timedelta(seconds=undo_seconds)):
        return refuse("Its last holder may still take it back, for a moment.", code="may_be_taken_back")
    return allow("it is to be cleaned")


def may_clean_there(account: Account, where: Whereabouts, *, units: Collection[str]) -> Decision:
    """Whether an account that is there in the organization may be cleaned; ``units`` are those of its pool."""
    if where.is_management:
        return refuse("It is the organization's management account.", code="management_account")
    if not where.above:
        return refuse("It is not in the organization.", code="outside_organization")
    if not set(units) & set(where.above):
        return refuse(f"It is not below an organizational unit of the pool {account.pool}.", code="outside_units")
    return allow("it is below the pool's organizational units")


def retry_gap(failures: int) -> timedelta:
    """How long to wait after failure number ``failures`` (from 1)."""
    return LONGEST_GAP if failures > 8 else min(LONGEST_GAP, _FIRST_GAP * 2 ** (failures - 1))


def read_certificate(output: str, *, account_id: str) -> tuple[dict[str, Any], str]:
    """What a cleaner tells of its work, as it is kept, and why the account is not clean all the same; empty when it is.

    :raises ValueError: for what is not as docs/account-cleaning.md has it.
    """
    told = json.loads(output or "null")
    if not isinstance(told, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - what it holds is wrong, not who calls
    if told.get("account_id") != account_id:
        raise ValueError(f"it tells of the account {str(told.get('account_id'))[:_LONGEST_TEXT]!r}")
    found, removed = (_count(told, name) for name in ("found", "removed"))
    left, unseen = (_names(told, name) for name in ("left", "not_looked_at"))
    certificate = {
        "found": found,
        "removed": removed,
        "left": len(left),
        "not_looked_at": len(unseen),
        "left_names": left[:_MOST_NAMES],
        "not_looked_at_names": unseen[:_MOST_NAMES],
    }
    if left:
        return certificate, f"{len(left)} of {found} resources are left, the first is {left[0]}"
    if removed != found:
        return certificate, f"{found} resources were found and {removed} removed, and none is told to be left"
    return certificate, ""


def _count(told: Mapping[str, Any], name: str) -> int:
    value = told.get(name)
    if type(value) is not int or not 0 <= value < 10**10:
        raise ValueError(f"{name} is not a whole number")
    return value


def _names(told: Mapping[str, Any], name: str) -> list[str]:
    value = told.get(name)
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise ValueError(f"{name} is not a list of texts")
    return [one[:_LONGEST_TEXT] for one in value]


def next_verdict(spent: int, budget: Budget, *, reached: Verdict) -> Verdict:
    """What follows now from what a lease has cost, beyond what was ``reached`` before; or nothing. A figure that is corrected
    downwards undoes nothing, and each consequence comes once."""
    limits = {Verdict.END: budget.end, Verdict.FREEZE: budget.freeze, Verdict.WARN: budget.warn}
    now = next((verdict for verdict, limit in limits.items() if limit is not None and spent >= limit), Verdict.NOTHING)
    return now if is_beyond(now, reached) else Verdict.NOTHING


def is_beyond(verdict: Verdict, reached: Verdict) -> bool:
    """Whether it is more severe than what was ``reached``."""
    severity = list(Verdict)
    return severity.index(verdict) > severity.index(reached)


def costs_since(lease: Lease) -> datetime:
    """From when on its costs are those of its person."""
    return lease.costs_since or lease.started_at or lease.taken_at


def is_unknown(lease: Lease, *, now: datetime) -> bool:
    """Whether AWS has told nothing of what the lease costs for so long that somebody must look."""
    return now - (lease.spent_as_of or lease.started_at or lease.taken_at) > _FIGURES_WITHIN
