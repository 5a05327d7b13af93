"""The root always has an admin who stays: who counts as one, and the refusal to take the last away.

Under races the condition of the write itself refuses (``store.people``).
"""

from __future__ import annotations

from collections.abc import Sequence

from accessportal.directory.operations.finding import membership_in
from accessportal.directory.states import PERMANENT, ROOT, GroupRole, Membership, Person
from accessportal.directory.store.reading import get_group
from accessportal.kernel.errors import Conflict


def is_standing_admin(person: Person, memberships: Sequence[Membership]) -> bool:
    """Whether the person is one of those of whom the root must always have one: enabled, with a permanent admin claim on it."""
    on_root = membership_in(memberships, ROOT)
    claim = on_root.claim(PERMANENT) if on_root else None
    return person.is_enabled and claim is not None and claim.role is GroupRole.ADMIN


def require_another_root_admin(person: Person) -> None:
    """:raises Conflict: when the root would be left without an admin."""
    root = get_group(ROOT)
    if root is not None and root.standing_admins <= {person.key}:
        raise Conflict(
            f"{person.email} is the last admin of {ROOT}. Make somebody else admin of {ROOT} first.", code="last_root_admin", present=root
        )
