"""Loading rules: look at what a file would change, then put it in force."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from accessportal.directory import queries as directory
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import Conflict
from accessportal.rules import planning, policy, store
from accessportal.rules.loading import read_rules
from accessportal.rules.states import EVERYBODY, RulePlan, RuleSet
from accessportal.rules.terms import Facts, terms_of


def plan_rules(*, text: str | bytes, now: datetime) -> RulePlan:
    """Tell what loading ``text`` (a YAML file, docs/rules.md) would change, and who gains or loses what. Nothing is written."""
    return _plan(store.current_set(), text, now)


def apply_rules(*, text: str | bytes, base_version: int | None = None, actor: Actor, now: datetime) -> RulePlan:
    """Put the rules of ``text`` in force, with their history and events, and tell what that changed; with ``base_version``, the plan's that
    somebody has looked at, only while that set is in force. After a crash, loading the same file again finishes the work."""
    policy.may_apply(actor).require()
    base = store.current_set()
    if base_version is not None and base_version != base.version:
        message = f"The rules were changed since the plan was made (then set {base_version}, now set {base.version}). Look at a new plan."
        raise Conflict(message, code="rules_changed", present=base)
    plan = _plan(base, text, now)
    if plan.is_empty:
        return plan
    return dataclasses.replace(plan, rules=store.put_in_force(base, plan.rules, actor=actor, now=now).rules)


def _plan(base: RuleSet, text: str | bytes, now: datetime) -> RulePlan:
    plan = planning.compare(base, read_rules(text))
    facts = _facts(plan, now)
    return dataclasses.replace(plan, impacts=planning.impacts(plan, facts), warnings=planning.warnings(plan.rules, facts))


def _facts(plan: RulePlan, now: datetime) -> Facts:
    groups, users = planning.names_in(plan.rules)
    book = directory.Book()
    return Facts(
        people={
            who: book.crowd(directory.Named(groups=who.groups, groups_only=who.groups_only, users=who.users), now=now).people
            for who in planning.subjects_in(plan)
            if EVERYBODY not in who.groups
        },
        groups=directory.tree().groups,
        missing_groups=groups - book.groups(groups).keys(),
        missing_users=users - book.people(users).keys(),
        of_kinds={kind: terms_of(kind).look_up() for kind in planning.kinds_in(plan)},
    )
