"""Which groups and people a rule reaches. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accessportal.rules.matching import includes
from accessportal.rules.states import Effect, People, Reach, Reaching, Rule


def reaches(rule: Rule, *, group_id: str, groups_above: Sequence[str]) -> Iterator[Reach]:
    """Everything that ``rule`` makes of the people in a group. ``groups_above`` are those above it, root first."""
    nearest_first = (group_id, *reversed(groups_above))
    named = _named(rule.subjects, nearest_first)
    if named:
        yield Reach(rule.name, Reaching.SERVED if rule.effect is Effect.ALLOW else Reaching.REFUSED, named)
    if not rule.approval.required:
        return
    named = _named(rule.approval.approvers, nearest_first)
    if named:
        yield Reach(rule.name, Reaching.APPROVES, named)
    if rule.asks_admins:
        named = rule.terms.admins_by(nearest_first)
        if named:
            yield Reach(rule.name, Reaching.ADMINS_APPROVE, named)


def reaches_person(rule: Rule, *, subject: str, groups: frozenset[str], direct: frozenset[str]) -> Iterator[Reach]:
    """What ``rule`` makes of somebody who is in ``groups``, and ``direct``ly in some of them; admins by their role are not told."""
    if includes(rule.subjects, subject=subject, groups=groups, direct=direct):
        yield Reach(rule.name, Reaching.SERVED if rule.effect is Effect.ALLOW else Reaching.REFUSED, subject)
    if rule.approval.required and includes(rule.approval.approvers, subject=subject, groups=groups, direct=direct):
        yield Reach(rule.name, Reaching.APPROVES, subject)


def _named(who: People, nearest_first: Sequence[str]) -> str:
    """By which name the people in the first of the groups are among ``who``; empty for none."""
    if nearest_first[0] in who.groups_only:
        return nearest_first[0]
    return next((one for one in nearest_first if one in who.groups), "")
