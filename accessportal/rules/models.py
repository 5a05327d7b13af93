"""The AccessRules item (design, data model) and its keys."""

from __future__ import annotations

from typing import Any

from pynamodb.attributes import BooleanAttribute, ListAttribute, MapAttribute, NumberAttribute, UnicodeAttribute

from accessportal.store.base import PortalModel, register

SET_KEY = "#set"
"""The partition of the rule sets. No rule can have this name: rule names hold no ``#``."""
CURRENT = 0
"""The sort key of a current copy; versions count from 1."""
OWN_ATTRIBUTES = ("permission_sets", "roles", "most_per_person", "extend")
"""What some kinds of access say beside ``targets`` in attributes of their own; other kinds say theirs in ``terms``."""


@register
class RuleItem(PortalModel):
    """A version of a rule (sort key 1, 2, …, never changed), its current copy (0), with the newest version's number and audit head, or a
    rule set under ``SET_KEY``: in ``entries`` name, version and hash of its rules, in file order; its current copy says which is in
    force."""

    base_table_name = "AccessRules"

    rule_name = UnicodeAttribute(hash_key=True)
    version = NumberAttribute(range_key=True)
    hash = UnicodeAttribute(null=True)
    applied_at = NumberAttribute()
    applied_by = UnicodeAttribute()
    # a rule
    position = NumberAttribute(null=True)
    kind = UnicodeAttribute(null=True)
    effect = UnicodeAttribute(null=True)
    description = UnicodeAttribute(null=True)
    subjects: Any = MapAttribute(null=True)
    targets: Any = MapAttribute(null=True)
    permission_sets: Any = ListAttribute(null=True)
    roles: Any = ListAttribute(null=True)
    duration: Any = MapAttribute(null=True)
    approval: Any = MapAttribute(null=True)
    ticket: Any = MapAttribute(null=True)
    most_per_person = NumberAttribute(null=True)
    extend = BooleanAttribute(null=True)
    terms: Any = MapAttribute(null=True)
    ends_with = UnicodeAttribute(null=True)
    removed = BooleanAttribute(null=True)
    # a current copy
    current_version = NumberAttribute(null=True)
    audit_head = UnicodeAttribute(null=True)
    # a rule set
    entries: Any = ListAttribute(null=True)


def rule_entity(name: str) -> str:
    """The name of a rule's chain in the audit log."""
    return f"rule#{name}"


SET_ENTITY = "ruleset#current"
"""The chain of the rule sets in the audit log: what was put in force, when, by whom, in which order."""
