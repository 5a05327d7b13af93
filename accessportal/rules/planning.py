"""What a rules file changes, rule by rule, and who gains or loses what by it, in words. Pure: the facts are handed in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from accessportal.catalog.states import Account
from accessportal.directory.states import Group, Person
from accessportal.kernel.durations import format_duration
from accessportal.kernel.keys import fold_key
from accessportal.rules import words
from accessportal.rules.matching import has_tags, is_at_or_below, is_in_place
from accessportal.rules.states import (
    AWS_ACCOUNT,
    EVERYBODY,
    GROUP,
    SANDBOX,
    Effect,
    FieldChange,
    Impact,
    People,
    Rule,
    RuleChange,
    RulePlan,
    RuleSet,
    Targets,
)

_PLACES = {AWS_ACCOUNT: "account", GROUP: "group", SANDBOX: "name"}


@dataclass(frozen=True, slots=True)
class Facts:
    """What exists now. ``people`` has the enabled people of every ``subjects`` that changes; ``missing_*`` name what the
    file names and the directory does not know. ``groups`` are all groups by id."""

    accounts: tuple[Account, ...]
    permission_sets: frozenset[str]
    people: Mapping[People, tuple[Person, ...]]
    groups: Mapping[str, Group]
    missing_groups: frozenset[str] = frozenset()
    missing_users: frozenset[str] = frozenset()


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
    if not facts.accounts and any(rule.kind == AWS_ACCOUNT for rule in rules):
        found.append("The catalog has no accounts yet: accounts, OUs and permission sets were not checked.")
    known = {account.account_id for account in facts.accounts} | {fold_key(account.name) for account in facts.accounts}
    for rule in rules:
        groups = [group for who in (rule.subjects, rule.approval.approvers) for group in (*who.groups, *who.groups_only)]
        groups += [*rule.targets.groups, *rule.targets.subtrees]
        users = [*rule.subjects.users, *rule.approval.approvers.users]
        found += [f"Rule {rule.name}: there is no group {group}." for group in groups if group in facts.missing_groups]
        found += [f"Rule {rule.name}: there is no person {user}." for user in users if user in facts.missing_users]
        if not facts.accounts:
            continue
        for top in rule.targets.ous:
            if not any(is_at_or_below(account.ou_path, top) for account in facts.accounts):
                found.append(f"Rule {rule.name}: there is no account in or below {top}.")
        found += [f"Rule {rule.name}: there is no account {name}." for name in rule.targets.accounts if fold_key(name) not in known]
        missing = [name for name in rule.permission_sets if name not in facts.permission_sets]
        found += [f"Rule {rule.name}: there is no permission set {name}." for name in missing]
    return tuple(dict.fromkeys(found))


def _field_changes(old: Rule, new: Rule) -> tuple[FieldChange, ...]:
    before, after = _fields(old), _fields(new)
    return tuple(FieldChange(key, before[key], after[key]) for key in before if before[key] != after[key])


def _fields(rule: Rule) -> dict[str, str]:
    """Every key of the file with its value in words; lists sorted, because their order says nothing."""
    tags = [f"{key}={value}" for key, values in rule.targets.tags.items() for value in values]
    fields = {"description": rule.description, "kind": rule.kind, "effect": rule.effect.value}
    fields |= _people_fields("subjects", rule.subjects)
    fields |= {"targets.ous": _joined(rule.targets.ous), "targets.accounts": _joined(rule.targets.accounts), "targets.tags": _joined(tags)}
    fields |= {"targets.groups": _joined(rule.targets.groups), "targets.subtrees": _joined(rule.targets.subtrees)}
    fields |= {"targets.name_prefixes": _joined(rule.targets.name_prefixes), "targets.pool": rule.targets.pool}
    fields |= {"permission_sets": _joined(rule.permission_sets), "roles": _joined(rule.roles)}
    fields |= {"most_per_person": str(rule.most_per_person or ""), "extend": _flag(rule.extend) if rule.most_per_person else ""}
    approvers = rule.approval.approvers
    return fields | {
        "duration.min": _duration(rule.min_duration_seconds),
        "duration.default": _duration(rule.default_duration_seconds),
        "duration.max": _duration(rule.max_duration_seconds),
        "duration.max_total": _duration(rule.max_total_seconds),
        "ends_with": rule.ends_with or "",
        "approval.required": _flag(rule.approval.required),
        "approval.quorum": str(rule.approval.quorum or ""),
        **_people_fields("approval.approvers", approvers),
        "ticket.required": _flag(rule.ticket.required),
        "ticket.pattern": rule.ticket.pattern,
    }


def _people_fields(key: str, who: People) -> dict[str, str]:
    groups = {f"{key}.groups": _joined(who.groups), f"{key}.groups_only": _joined(who.groups_only)}
    return groups | {f"{key}.users": _joined(who.users)}


def _flag(is_set: bool) -> str:  # noqa: FBT001 - one value in, its word out
    return "true" if is_set else "false"


def _joined(items: Iterable[str]) -> str:
    return ", ".join(sorted(items))


def _duration(seconds: int) -> str:
    return format_duration(seconds) if seconds else ""


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
        whole = [(_who(rule.subjects, facts), words.offers(rule), _where(rule, facts))]
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
    at = words.at(rule.kind)
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
    what, where = words.offers(new), _where(new, facts)
    joined = _newcomers(old.subjects, new.subjects, facts)
    if joined is not None:
        triples.append((joined, what, where))
    added_offers = _offers_beyond(old, new)
    if added_offers:
        triples.append((_who(new.subjects, facts), added_offers, where))
    before = _covered(old, facts)
    added = [name for key, name in _covered(new, facts).items() if key not in before and not _is_named(key, old.targets)]
    if added:
        triples.append((_who(new.subjects, facts), what, _added_places(added, new)))
    return triples


def _is_named(prefix: str, where: Targets) -> bool:
    """Whether every sandbox whose name begins so is meant already."""
    return bool(where.pool) or any(prefix.startswith(wider) for wider in where.name_prefixes)


def _added_places(names: list[str], rule: Rule) -> str:
    shown = words.listed(names, "and")
    return shown if rule.kind == SANDBOX else f"{shown} ({_count(len(names), _PLACES[rule.kind])})"


def _offers_beyond(old: Rule, new: Rule) -> str:
    """The permission sets or roles of ``new`` that ``old`` does not cover, in words; an empty list (of a deny) covers all."""
    before, after = _offers(old), _offers(new)
    # A sandbox is taken whole; an empty list of another kind (of a deny) covers all.
    if not before:
        return ""
    if not after:
        return f"{words.offers(new)} but {words.listed(before, 'and')}"
    return words.listed([name for name in after if name not in before], "and")


def _offers(rule: Rule) -> tuple[str, ...]:
    return rule.roles if rule.kind == GROUP else rule.permission_sets


def _limits_moved(old: Rule, new: Rule, facts: Facts) -> tuple[list[str], list[str]]:
    """What became easier and what stricter for those whom the rule serves."""
    easier: list[str] = []
    stricter: list[str] = []
    who = _who(new.subjects, facts).text
    if new.max_duration_seconds != old.max_duration_seconds:
        text = f"{who}: up to {format_duration(new.max_duration_seconds)} instead of {format_duration(old.max_duration_seconds)}"
        (easier if new.max_duration_seconds > old.max_duration_seconds else stricter).append(text)
    if new.min_duration_seconds != old.min_duration_seconds:
        text = f"{who}: from {format_duration(new.min_duration_seconds)} instead of {format_duration(old.min_duration_seconds)}"
        (easier if new.min_duration_seconds < old.min_duration_seconds else stricter).append(text)
    if new.approval.quorum != old.approval.quorum:
        text = f"{who}: {words.approval(new)} instead of {words.approval(old)}"
        (easier if new.approval.quorum < old.approval.quorum else stricter).append(text)
    came, went = _names_moved(old, new)
    easier += [f"{words.listed(came, 'and')} may approve"] if came else []
    stricter += [f"{words.listed(went, 'and')} may approve no more"] if went else []
    if new.most_per_person != old.most_per_person:
        text = f"{who}: {new.most_per_person} at a time instead of {old.most_per_person}"
        (easier if new.most_per_person > old.most_per_person else stricter).append(text)
    if new.extend != old.extend:
        (easier if new.extend else stricter).append(f"{who}: what is held may {'' if new.extend else 'not '}be extended")
    if new.ticket != old.ticket:
        easier_ticket = old.ticket.required and not new.ticket.required
        form = words.ticket_like(new.ticket.pattern)
        text = f"{who}: {form} is needed" if new.ticket.required else f"{who}: no ticket is needed"
        (easier if easier_ticket else stricter).append(text)
    return easier, stricter


def _names_moved(old: Rule, new: Rule) -> tuple[list[str], list[str]]:
    """Who may approve by ``new`` alone, and who by ``old`` alone."""
    before, after = _approvers(old), _approvers(new)
    return [name for name in after if name not in before], [name for name in before if name not in after]


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
        return _Who(f"{words.listed(came, 'and')} ({_count(len(came), 'person')})", is_one=len(came) == 1)
    # Whoever joins later will be served all the same.
    old_groups = frozenset(old.groups)
    names = [group for group in new.groups if old_groups.isdisjoint(_with_above(group, facts))]
    names += [
        f"{group} alone" for group in new.groups_only if group not in old.groups_only and old_groups.isdisjoint(_with_above(group, facts))
    ]
    names += [user for user in new.users if user not in old.users and user not in after]
    return _Who(f"{words.listed(names, 'and')} (nobody new now)", is_one=len(names) == 1) if names else None


def _with_above(group_id: str, facts: Facts) -> frozenset[str]:
    """The group, and every group above it that there is now."""
    group = facts.groups.get(group_id)
    return frozenset((group_id, *(group.ancestors if group else ())))


def _who(who: People, facts: Facts) -> _Who:
    if EVERYBODY in who.groups:
        return _Who("everybody", is_one=True)
    count = len(facts.people.get(who, ()))
    names = who.names
    if not (who.groups or who.groups_only):
        return _Who(words.listed(names, "and"), is_one=len(names) == 1)
    return _Who(f"{words.listed(names, 'and')} ({_count(count, 'person')})", is_one=len(names) == 1)


def _where(rule: Rule, facts: Facts) -> str:
    where = rule.targets
    if rule.kind == SANDBOX:
        return words.targets(where)
    unknown = sum(1 for account in facts.accounts if where.tags and account.tags is None and _is_in_place(where, account))
    rest = f", and {unknown} whose tags can't be read" if unknown else ""
    return f"{words.targets(where)} ({_count(len(_covered(rule, facts)), _PLACES[rule.kind])}{rest})"


def _covered(rule: Rule, facts: Facts) -> dict[str, str]:
    """The accounts or groups of today that the rule's targets mean: what tells them apart, and their names in sentences."""
    where = rule.targets
    if rule.kind == SANDBOX:
        # What is in the pool changes by the minute: the names that are meant are what can be told.
        return {where.pool: "the whole pool"} if where.pool else {prefix: f"those named {prefix}…" for prefix in where.name_prefixes}
    if rule.kind == GROUP:
        return {
            group_id: group_id
            for group_id in sorted(facts.groups)
            if group_id in where.groups or not _with_above(group_id, facts).isdisjoint(where.subtrees)
        }
    return {
        account.account_id: account.name
        for account in facts.accounts
        if _is_in_place(where, account) and (not where.tags or (account.tags is not None and has_tags(where, account.tags)))
    }


def _is_in_place(where: Targets, account: Account) -> bool:
    return is_in_place(where, account_id=account.account_id, account_name=account.name, ou_path=account.ou_path)


def _count(number: int, thing: str) -> str:
    if number == 1:
        return f"1 {thing}"
    return f"{number} people" if thing == "person" else f"{number} {thing}s"


def subjects_in(plan: RulePlan) -> frozenset[People]:
    """Every ``subjects`` whose people :func:`impacts` needs."""
    rules = [*plan.added, *plan.removed, *(change.old for change in plan.changed), *(change.new for change in plan.changed)]
    return frozenset(rule.subjects for rule in rules)


def names_in(rules: Collection[Rule]) -> tuple[frozenset[str], frozenset[str]]:
    """Every group (but ``/``) and every user that the rules name."""
    everyone = [who for rule in rules for who in (rule.subjects, rule.approval.approvers)]
    places = frozenset(group for rule in rules for group in (*rule.targets.groups, *rule.targets.subtrees))
    groups = (places | frozenset(group for who in everyone for group in (*who.groups, *who.groups_only))) - {EVERYBODY}
    return groups, frozenset(user for who in everyone for user in who.users)
