"""What a rules file changes, rule by rule, and who gains or loses what by it, in words. Pure: the facts are handed in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from accessportal.kernel.durations import format_duration
from accessportal.rules import words
from accessportal.rules.loading import content_of
from accessportal.rules.states import EVERYBODY, Effect, FieldChange, Impact, People, Rule, RuleChange, RulePlan, RuleSet
from accessportal.rules.terms import Facts, count, listed

_DURATIONS = {
    "min_duration_seconds": "duration.min",
    "default_duration_seconds": "duration.default",
    "max_duration_seconds": "duration.max",
    "max_total_seconds": "duration.max_total",
}


def compare(base: RuleSet, rules: tuple[Rule, ...]) -> RulePlan:
    """The differences of ``rules`` against the rules in force, without impacts and warnings."""
    old = {rule.name: rule for rule in base.rules}
    new = {rule.name: rule for rule in rules}
    changes = [
        RuleChange(old[rule.name], rule, _field_changes(old[rule.name], rule))
        for rule in rules
        if rule.name in old and old[rule.name].hash != rule.hash
    ]
    return RulePlan(
        base_version=base.version,
        rules=rules,
        added=tuple(rule for rule in rules if rule.name not in old),
        changed=tuple(changes),
        removed=tuple(rule for rule in base.rules if rule.name not in new),
        unchanged=tuple(rule.name for rule in rules if rule.name in old and old[rule.name].hash == rule.hash),
        is_reordered=[name for name in old if name in new] != [name for name in new if name in old],
    )


def impacts(plan: RulePlan, facts: Facts) -> tuple[Impact, ...]:
    """Who gains or loses what, a rule at a time: another rule may still give or refuse the same."""
    found = [_impact(rule.name, None, rule, facts) for rule in plan.added]
    found += [_impact(change.new.name, change.old, change.new, facts) for change in plan.changed]
    found += [_impact(rule.name, rule, None, facts) for rule in plan.removed]
    return tuple(impact for impact in found if impact.gains or impact.loses)


def warnings(rules: Collection[Rule], facts: Facts) -> tuple[str, ...]:
    """A sentence for every name in the file that means nothing now. It may be on purpose, so it stops nothing."""
    found: list[str] = []
    for rule in rules:
        groups = [group for who in (rule.subjects, rule.approval.approvers) for group in (*who.groups, *who.groups_only)]
        users = [*rule.subjects.users, *rule.approval.approvers.users]
        missing = [group for group in (*groups, *rule.terms.groups) if group in facts.missing_groups]
        found += [f"Rule {rule.name}: there is no group {group}." for group in missing]
        found += [f"Rule {rule.name}: there is no person {user}." for user in users if user in facts.missing_users]
        found += rule.terms.unknown(facts, rule.name)
    return tuple(dict.fromkeys(found))


def _field_changes(old: Rule, new: Rule) -> tuple[FieldChange, ...]:
    before, after = _fields(old), _fields(new)
    return tuple(
        FieldChange(key, before.get(key, ""), after.get(key, "")) for key in before | after if before.get(key, "") != after.get(key, "")
    )


def _fields(rule: Rule) -> dict[str, str]:
    """Every key of the file with its value in words; lists sorted, because their order says nothing."""
    return dict(_flat(content_of(rule), ""))


def _flat(values: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if key in _DURATIONS:
            yield _DURATIONS[key], format_duration(value) if value else ""
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", _told(value)


def _told(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(sorted(value)) if isinstance(value, list | tuple) else str(value or "")


def _impact(name: str, old: Rule | None, new: Rule | None, facts: Facts) -> Impact:
    if old is not None and new is not None and (old.effect, old.kind) == (new.effect, new.kind):
        more, less = _spread(old, new, facts), _spread(new, old, facts)
        if new.effect is Effect.DENY:
            return Impact(name, gains=_say(less, "no longer refused", new), loses=_say(more, "refused", new))
        looser, stricter = _limits_moved(old, new, facts)
        return Impact(name, gains=(*_say(more, "gain", new), *looser), loses=(*_say(less, "lose", old), *stricter))
    gains: list[str] = []
    loses: list[str] = []
    for rule, is_new in ((old, False), (new, True)):
        if rule is None:
            continue
        whole = [(_who(rule.subjects, facts), rule.terms.offered(), rule.terms.place_counted(facts))]
        if rule.effect is Effect.ALLOW:
            (gains if is_new else loses).extend(_say(whole, "gain" if is_new else "lose", rule))
        else:
            (loses if is_new else gains).extend(_say(whole, "refused" if is_new else "no longer refused", rule))
    return Impact(name, tuple(gains), tuple(loses))


_Triple = tuple["_Who", str, str]
"""Who, which permission sets or roles, where: one sentence."""


@dataclass(frozen=True, slots=True)
class _Who:
    text: str
    is_one: bool


def _say(triples: Iterable[_Triple], verb: str, rule: Rule) -> tuple[str, ...]:
    sentences = []
    at = rule.terms.at
    for who, what, where in triples:
        if verb in {"gain", "lose"}:
            told = f"{who.text} {verb}{'s' if who.is_one else ''} {what} {at} {where}"
            sentences.append(f"{told} {words.limits(rule)}" if verb == "gain" else told)
        else:
            sentences.append(f"{who.text} {'is' if who.is_one else 'are'} {verb} {what} {at} {where}")
    return tuple(sentences)


def _spread(old: Rule, new: Rule, facts: Facts) -> list[_Triple]:
    """What ``new`` covers beyond ``old``: more people with all of it, and for everybody more on offer, or more places."""
    triples: list[_Triple] = []
    what, where = new.terms.offered(), new.terms.place_counted(facts)
    joined = _newcomers(old.subjects, new.subjects, facts)
    if joined is not None:
        triples.append((joined, what, where))
    added_offers = _offers_beyond(old, new)
    if added_offers:
        triples.append((_who(new.subjects, facts), added_offers, where))
    added_places = new.terms.further_places(old.terms, facts)
    if added_places:
        triples.append((_who(new.subjects, facts), what, added_places))
    return triples


def _offers_beyond(old: Rule, new: Rule) -> str:
    """What ``new`` offers and ``old`` does not, in words; an empty list (of a deny) covers all."""
    before, after = old.terms.offers, new.terms.offers
    if not before:
        return ""
    if not after:
        return f"{new.terms.offered()} but {listed(before, 'and')}"
    return listed([name for name in after if name not in before], "and")


def _limits_moved(old: Rule, new: Rule, facts: Facts) -> tuple[list[str], list[str]]:
    """What became easier and what stricter for those whom the rule serves."""
    who = _who(new.subjects, facts).text
    longer, sooner = new.max_duration_seconds - old.max_duration_seconds, old.min_duration_seconds - new.min_duration_seconds
    fewer = old.approval.quorum - new.approval.quorum
    moves = (
        (longer, f"up to {format_duration(new.max_duration_seconds)} instead of {format_duration(old.max_duration_seconds)}"),
        (sooner, f"from {format_duration(new.min_duration_seconds)} instead of {format_duration(old.min_duration_seconds)}"),
        (fewer, f"{words.approval(new)} instead of {words.approval(old)}"),
        *new.terms.limits_moved(old.terms),
    )
    easier = [f"{who}: {text}" for by, text in moves if by > 0]
    stricter = [f"{who}: {text}" for by, text in moves if by < 0]
    before, after = _approvers(old), _approvers(new)
    came, went = [name for name in after if name not in before], [name for name in before if name not in after]
    easier += [f"{listed(came, 'and')} may approve"] if came else []
    stricter += [f"{listed(went, 'and')} may approve no more"] if went else []
    if new.ticket != old.ticket:
        easier_ticket = old.ticket.required and not new.ticket.required
        form = words.ticket_like(new.ticket.pattern)
        text = f"{who}: {form} is needed" if new.ticket.required else f"{who}: no ticket is needed"
        (easier if easier_ticket else stricter).append(text)
    return easier, stricter


def _approvers(rule: Rule) -> list[str]:
    return [words.approvers(rule)] if rule.asks_admins else [*rule.approval.approvers.names]


def _newcomers(old: People, new: People, facts: Facts) -> _Who | None:
    """The people whom ``new`` includes and ``old`` does not; a new name that stands for nobody yet is told too."""
    if EVERYBODY in old.groups:
        return None
    if EVERYBODY in new.groups:
        return _Who("everybody", is_one=True)
    before = {person.key for person in facts.people.get(old, ())}
    after = [person.key for person in facts.people.get(new, ())]
    came = [key for key in after if key not in before]
    if came:
        return _Who(f"{listed(came, 'and')} ({count(len(came), 'person')})", is_one=len(came) == 1)
    # Whoever joins later will be served all the same.
    old_groups = frozenset(old.groups)
    names = [group for group in new.groups if old_groups.isdisjoint(facts.with_above(group))]
    names += [
        f"{group} alone" for group in new.groups_only if group not in old.groups_only and old_groups.isdisjoint(facts.with_above(group))
    ]
    names += [user for user in new.users if user not in old.users and user not in after]
    return _Who(f"{listed(names, 'and')} (nobody new now)", is_one=len(names) == 1) if names else None


def _who(who: People, facts: Facts) -> _Who:
    if EVERYBODY in who.groups:
        return _Who("everybody", is_one=True)
    number = len(facts.people.get(who, ()))
    names = who.names
    if not (who.groups or who.groups_only):
        return _Who(listed(names, "and"), is_one=len(names) == 1)
    return _Who(f"{listed(names, 'and')} ({count(number, 'person')})", is_one=len(names) == 1)


def subjects_in(plan: RulePlan) -> frozenset[People]:
    """Every ``subjects`` whose people :func:`impacts` needs."""
    rules = [*plan.added, *plan.removed, *(change.old for change in plan.changed), *(change.new for change in plan.changed)]
    return frozenset(rule.subjects for rule in rules)


def names_in(rules: Collection[Rule]) -> tuple[frozenset[str], frozenset[str]]:
    """Every group (but ``/``) and every user that the rules name."""
    everyone = [who for rule in rules for who in (rule.subjects, rule.approval.approvers)]
    places = frozenset(group for rule in rules for group in rule.terms.groups)
    groups = (places | frozenset(group for who in everyone for group in (*who.groups, *who.groups_only))) - {EVERYBODY}
    return groups, frozenset(user for who in everyone for user in who.users)


def kinds_in(plan: RulePlan) -> frozenset[str]:
    """The kinds of access that the plan is about."""
    return frozenset(rule.kind for rule in (*plan.rules, *plan.removed, *(change.old for change in plan.changed)))
