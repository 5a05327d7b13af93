"""The audit timeline: what happened, by day, by actor and by entity."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from accessportal.audit import queries
from accessportal.audit.states import AuditEvent
from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Row, read_day
from accessportal.kernel.actors import fold_email
from accessportal.kernel.pages import Page
from accessportal.web.events import line_of
from accessportal.web.exporting import exported


def _by_actor(ask: Ask) -> Page[AuditEvent]:
    name = ask.parameter if ask.parameter.startswith("system:") else fold_email(ask.parameter)
    return queries.by_actor(name, **ask.part)


def day_of(ask: Ask) -> date:
    """The UTC day asked for; today without one. :raises InvalidRequest: when it is not a day."""
    return read_day(ask.parameter, field="q") if ask.parameter else ask.now.date()


class Events(Resource):
    name = "audit"
    singular = "event"
    plural = "Events"
    icon = "scroll-text"
    about = "Everything that was changed, by whom and when, in chains that show tampering."
    notice_template = "console/audit/around.html"
    columns = (
        Column("When", "console/cells/event_when.html", "col-when"),
        Column("What", "console/cells/event_what.html", "col-what"),
        Column("About", "console/cells/event_about.html", "col-context"),
    )
    file_columns = exported(
        "at",
        "entity",
        "sequence",
        "event_id",
        "action",
        "actor",
        "subject",
        "scope",
        "data",
        "prev_hash",
        "hash",
        "key_id",
        "flaw",
    )
    patterns = (
        Pattern(
            name="day",
            label="By day",
            fetch=lambda ask: queries.list_day(day=day_of(ask), **ask.part),
            parameter=Parameter("Day (UTC)", "2026-03-02", "date", required=False),
            empty_title="Nothing happened on this day",
            empty_hint="Days run from midnight to midnight UTC; look at the day before.",
        ),
        Pattern(
            name="actor",
            label="By actor",
            fetch=_by_actor,
            parameter=Parameter("Actor", "alice@example.com or system:tick"),
            empty_title="This actor has changed nothing",
            empty_hint="People are named by their e-mail address, parts of the portal like system:tick.",
        ),
        Pattern(
            name="entity",
            label="By entity",
            fetch=lambda ask: queries.history(ask.parameter, **ask.part),
            parameter=Parameter("Entity", "request#7f1c…"),
            empty_title="There are no events for this entity",
            empty_hint="Entities are named like request#<id>, rule#<name> or person#<address>; the history button of a page leads here.",
        ),
    )

    def rows(self, items: Sequence[AuditEvent], ask: Ask) -> list[Row]:
        return [Row("", event, line_of(event)) for event in items]

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        """The neighbouring days, for the list by day; the check of the chain, for the list by entity."""
        if pattern.name == "entity" and ask.parameter:
            return {"chain_url": f"{reverse('admin:console_chain')}?{urlencode({'entity': ask.parameter})}"}
        if pattern.name != "day":
            return {}
        day = day_of(ask)
        return {
            "day": day,
            "day_value": day.isoformat(),
            "day_before": day - timedelta(days=1) if day > date.min else day,
            "day_after": day + timedelta(days=1) if day < ask.now.date() else None,
        }
