"""Pure rules of the directory: what an address and a group path look like, what counts, and who may change it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from accessportal.directory.states import Group, Membership, State
from accessportal.kernel.actors import Actor, fold_email
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.errors import InvalidRequest

# ASCII alone: folding maps some foreign letters onto ASCII ones (the Kelvin sign becomes "k"), so that two addresses
# would be one person.
_EMAIL = re.compile(
    r"(?=.{3,254}\Z)(?=[^@]{1,64}@)"
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+"
)
_GROUP_ID = re.compile(r"(?:/[a-z0-9_-][a-z0-9._-]*)+")
_MAX_GROUP_ID = 256
_MAX_NAME = 200
_MAX_DESCRIPTION = 1000


def is_email(text: str) -> bool:
    return _EMAIL.fullmatch(text) is not None


def is_group_id(text: str) -> bool:
    return len(text) <= _MAX_GROUP_ID and _GROUP_ID.fullmatch(text) is not None


def clean_email(text: str) -> str:
    """The address as typed, without space around it.

    :raises InvalidRequest: on field ``email``.
    """
    email = text.strip()
    if not is_email(email):
        raise InvalidRequest(
            f"“{_shown(text)}” is not an e-mail address that can be used here: write it like alice@example.com, in ASCII letters.",
            code="email_invalid",
            field="email",
        )
    return email


def clean_group_id(text: str) -> str:
    """The path, unchanged.

    :raises InvalidRequest: on field ``group_id``.
    """
    if not is_group_id(text):
        raise InvalidRequest(
            f"“{_shown(text)}” is not a group path: write it like /engineering/payments, at most {_MAX_GROUP_ID} lower-case letters, "
            "digits and - _ . (a part does not start with a dot, the path does not end with a slash).",
            code="group_id_invalid",
            field="group_id",
        )
    return text


def clean_name(text: str) -> str:
    """The name without space around it, of 1 to 200 printable characters.

    :raises InvalidRequest: on field ``name``.
    """
    name = text.strip()
    if not name or len(name) > _MAX_NAME or not name.isprintable():
        raise InvalidRequest(f"A name has 1 to {_MAX_NAME} printable characters on one line.", code="name_invalid", field="name")
    return name


def clean_description(text: str) -> str:
    """The description without space around it, of at most 1,000 characters; it may be empty.

    :raises InvalidRequest: on field ``description``.
    """
    description = text.strip()
    # A lone surrogate can't be stored as UTF-8.
    if len(description) > _MAX_DESCRIPTION or any("\ud800" <= char <= "\udfff" for char in description):
        raise InvalidRequest(f"A description has at most {_MAX_DESCRIPTION} characters.", code="description_invalid", field="description")
    return description


def key_of(email: str) -> str | None:
    """The folded form of ``email``, or ``None`` for what can't be anybody's address (and is not worth a read)."""
    return fold_email(email) if is_email(email.strip()) else None


def parent_of(group_id: str) -> str | None:
    """The group right above, or ``None`` for a top one."""
    return group_id.rpartition("/")[0] or None


def with_ancestors(group_id: str) -> tuple[str, ...]:
    """The group and every group above it, top first: ``/a/b`` gives ``/a`` and ``/a/b``."""
    parts = group_id.split("/")[1:]
    return tuple("/" + "/".join(parts[: count + 1]) for count in range(len(parts)))


def is_below(group_id: str, ancestor: str) -> bool:
    """Whether ``group_id`` is strictly below ``ancestor``; ``/engineering`` is not below ``/eng``."""
    return group_id.startswith(ancestor + "/")


def counted_groups(memberships: Iterable[Membership], *, groups: Mapping[str, Group], now: datetime) -> frozenset[str]:
    """The groups that these memberships put a person into, ancestors included.

    ``groups`` are those that exist. A membership counts only while its own group exists and is enabled; of the groups
    above, each counts for itself, so a missing one in between takes nothing from the others.
    """
    enabled = {group_id for group_id, group in groups.items() if group.state is State.ENABLED}
    return frozenset(
        above
        for membership in memberships
        if membership.group_id in enabled and membership.role_at(now)
        for above in with_ancestors(membership.group_id)
        if above in enabled
    )


def may_manage(actor: Actor) -> Decision:
    """Whether ``actor`` may change people, groups and memberships."""
    if actor.is_system or actor.is_operator:
        return allow("operators and the portal itself keep the directory")
    return refuse("Only operators may change people, groups and memberships. Ask an operator.", code="directory_operators_only")


def _shown(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "…"
