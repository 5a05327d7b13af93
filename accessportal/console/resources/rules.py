"""The rules: who may ask for what, in the order in which they are tried, with every version they had."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from accessportal.access_requests.states import Search
from accessportal.console.holding import held_and_asked
from accessportal.console.resource import Ask, Column, Pattern, Resource, Row, Section
from accessportal.console.rule_versions import versions_of
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import NotFound
from accessportal.kernel.pages import Page
from accessportal.rules import queries
from accessportal.rules.states import Rule
from accessportal.web.exporting import exported


def _in_order(ask: Ask) -> Page[Rule]:
    # All rules are one query of the table and are tried as one list; there are never pages of them.
    current = queries.current_set()
    return Page(items=current.rules, unreadable=current.newer)


class Rules(Resource):
    name = "rules"
    singular = "rule"
    plural = "Rules"
    icon = "scale"
    about = "Who may ask for what, in which order the rules are tried, and how they changed."
    notice_template = "console/rules/order.html"
    columns = (
        Column("Rule", "console/cells/rule_name.html", "col-who"),
        Column("Who", "console/cells/rule_subjects.html", "col-people"),
        Column("What and where", "console/cells/rule_targets.html", "col-what"),
        Column("On what terms", "console/cells/rule_terms.html", "col-context"),
    )
    file_columns = exported(
        "position",
        "name",
        "version",
        "effect",
        "kind",
        "description",
        ("subjects", "subjects.names"),
        ("terms", lambda rule: rule.terms.lines()),
        "min_duration_seconds",
        "default_duration_seconds",
        "max_duration_seconds",
        "max_total_seconds",
        ("approval_required", "approval.required"),
        ("approval_quorum", "approval.quorum"),
        ("approvers", "approval.approvers.names"),
        ("ticket_required", "ticket.required"),
        ("ticket_pattern", "ticket.pattern"),
        "applied_at",
        "applied_by",
    )
    patterns = (
        Pattern(
            name="current",
            label="Rules",
            fetch=_in_order,
            empty_title="There are no rules, so nobody can ask for anything",
            empty_hint="Write them as YAML and apply them with: manage.py load_rules FILE",
        ),
    )
    sections = (
        Section("Who holds by it", "console/held.html"),
        Section("Asked for last", "console/latest.html"),
        Section("Versions", "console/rules/versions.html"),
        Section("As it is now", "console/rules/facts.html", is_aside=True),
    )

    def read(self, key: str, actor: Actor, now: datetime) -> tuple[Rule, ...]:
        """Every version, the newest first: a rule that was removed still has its history."""
        history = queries.rule_history(name=key)
        if not history:
            raise NotFound("There is no such rule, and there never was.", code="rule_unknown")
        return tuple(sorted(history, key=lambda rule: rule.version, reverse=True))

    def title(self, record: tuple[Rule, ...]) -> str:
        return record[0].name

    def entity(self, record: tuple[Rule, ...]) -> str:
        return f"rule#{record[0].name}"

    def head(self, record: tuple[Rule, ...]) -> None:
        """A version of a rule does not say where its chain ends."""

    def rows(self, items: Sequence[Rule], ask: Ask) -> list[Row]:
        return [Row(rule.name, rule) for rule in items]

    def details(self, record: tuple[Rule, ...], ask: Ask) -> dict[str, Any]:
        name = record[0].name
        return {
            **held_and_asked(Search(rule_name=name), ask),
            "all_url": f"{reverse('admin:console_requests')}?{urlencode({'pattern': 'all', 'rule': name})}",
            "rule": record[0],
            "current": queries.find_rule(name=name),
            "versions": versions_of(record),
        }
