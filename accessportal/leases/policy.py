"""Pure decisions about accounts and leases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.moments import is_recent
from accessportal.kernel.texts import clean_text
from accessportal.leases.states import Account, AccountState

_ACCOUNT_ID = re.compile(r"[0-9]{12}")
_WORD = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_LONGEST_NAME = 100
_MOST_TAGS = 50


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
    if not _WORD.fullmatch(word):
        message = f"{field} is 1 to 40 small letters, digits and dashes, for instance “default”; the first is no dash."
        raise InvalidRequest(message, code=f"{field}_invalid", field=field)
    return word


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
