"""The tree of groups: where one may stand, which count upward, which roles reach downward. Always asked with the clock passed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from accessportal.directory.states import ROOT, EffectiveRole, Group, GroupRole, Membership, lasts
from accessportal.kernel.errors import Conflict, InvalidRequest
from accessportal.kernel.texts import cut

MAX_ANCESTORS = 20


def path_ancestors(group_id: str) -> tuple[str, ...]:
    """Return the groups above as the path has them, root first: where a group stands whose item does not say (other programs'), and a guess
    for others."""
    if group_id == ROOT:
        return ()
    parts = group_id.split("/")[1:-1]
    return (ROOT, *("/" + "/".join(parts[: count + 1]) for count in range(len(parts))))


def is_at_or_below(group: Group, group_id: str) -> bool:
    return group.group_id == group_id or group_id in group.ancestors


def require_parent(parent: Group | None, parent_id: str, *, field: str) -> Group:
    """:raises InvalidRequest: when the group that is to be above another is gone or disabled."""
    if parent is None or not parent.is_enabled:
        text = f"The group {cut(parent_id)} does not exist or is disabled. Create or enable it first."
        raise InvalidRequest(text, code="parent_missing", field=field)
    return parent


def require_place(group: Group, parent: Group) -> None:
    """:raises InvalidRequest: when the move would make a cycle. :raises Conflict: when the group stands there already."""
    if is_at_or_below(parent, group.group_id):
        text = f"{parent.group_id} is {group.group_id} itself or below it. Choose a place outside of it."
        raise InvalidRequest(text, code="group_cycle", field="parent_id")
    if group.parent_id == parent.group_id:
        raise Conflict(f"{group.group_id} is right below {parent.group_id} already.", code="group_not_moved", present=group)


def require_depth(groups: Iterable[Group], *, field: str) -> None:
    """:raises InvalidRequest: when one of them stands too deep."""
    deepest = max(groups, key=lambda one: len(one.ancestors))
    if len(deepest.ancestors) > MAX_ANCESTORS:
        above = f"{deepest.group_id} would have {len(deepest.ancestors)} groups above it, of at most {MAX_ANCESTORS}."
        raise InvalidRequest(f"{above} Choose a place further up.", code="group_too_deep", field=field)


def counted_groups(memberships: Iterable[Membership], *, groups: Mapping[str, Group], now: datetime) -> dict[str, datetime | None]:
    """Return the groups, those above included, that these memberships put a person into at ``now``, each with its end. A membership counts
    while a claim does and its own group is enabled; of the groups above each counts for itself."""
    enabled = {group_id for group_id, group in groups.items() if group.is_enabled}
    found: dict[str, datetime | None] = {}
    for membership in memberships:
        ends = [claim.ends_at for claim in membership.claims if claim.counts_at(now)]
        if membership.group_id not in enabled or not ends:
            continue
        end = max(ends, key=lasts)
        for above in {membership.group_id, *groups[membership.group_id].ancestors} & enabled:
            found[above] = max(end, found.get(above, end), key=lasts)
    return found


def role_at(memberships: Iterable[Membership], *, groups: Mapping[str, Group], group: Group, now: datetime) -> GroupRole | None:
    """Return the highest role on ``group`` at ``now``, given in it or above it. A disabled group's own memberships give nothing; what comes
    from above still reaches it, so that it can be enabled again."""
    right = right_at(memberships, groups=groups, group=group, now=now)
    return right.role if right is not None else None


def right_at(memberships: Iterable[Membership], *, groups: Mapping[str, Group], group: Group, now: datetime) -> EffectiveRole | None:
    """As :func:`role_at`, with its end: of several memberships that give this role, the one that lasts longest."""
    roles = effective_roles((one for one in memberships if is_at_or_below(group, one.group_id)), groups=groups, now=now)
    return max(roles, key=lambda one: (one.role.rank, lasts(one.ends_at)), default=None)


def effective_roles(memberships: Iterable[Membership], *, groups: Mapping[str, Group], now: datetime) -> tuple[EffectiveRole, ...]:
    """What each membership gives at ``now``, in order of path: on a group, the highest of those at or above it counts."""
    roles = (_effective(membership, now) for membership in memberships if is_live(membership, groups))
    return tuple(sorted((role for role in roles if role is not None), key=lambda role: role.group_id))


def _effective(membership: Membership, now: datetime) -> EffectiveRole | None:
    claim = membership.strongest_at(now)
    return None if claim is None else EffectiveRole(membership.group_id, claim.role, claim.ends_at, claim.claim_id)


def is_live(membership: Membership, groups: Mapping[str, Group]) -> bool:
    """Whether the membership's own group exists and is enabled."""
    group = groups.get(membership.group_id)
    return group is not None and group.is_enabled


def fitting(groups: Iterable[Group], text: str, *, limit: int) -> tuple[Group, ...]:
    """At most ``limit`` groups whose name or id contains ``text``, the closest first; with no text the first of the tree."""
    wanted = text.strip().casefold()
    found = [(_closeness(group, wanted), group.group_id, group) for group in groups if _fits(group, wanted)]
    return tuple(group for _, _, group in sorted(found, key=lambda one: one[:2])[:limit])


def _fits(group: Group, wanted: str) -> bool:
    return wanted in group.name.casefold() or wanted in group.group_id


def _closeness(group: Group, wanted: str) -> tuple[int, int]:
    name, last = group.name.casefold(), group.group_id.rpartition("/")[2].casefold()
    if wanted in (name, last, group.group_id):
        place = 0
    elif name.startswith(wanted) or last.startswith(wanted):
        place = 1
    else:
        place = 2
    return place, len(group.ancestors)
