"""The audit timeline: what happened, by day, by actor and by entity."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from accessportal.audit import queries
from accessportal.audit.states import AuditEvent
from accessportal.console.event_words import action_choices, tell_all
from accessportal.console.resource import Ask, Column, Parameter, Pattern, Resource, Row, filled
from accessportal.kernel.actors import fold_email
from accessportal.store.reading import Sift
from accessportal.web.exporting import exported
from accessportal.web.narrowing import read_day

_QUIET = frozenset({"user.signed_in", "user.signed_out"})
_ACTION = Parameter("What happened", required=False, name="action", choices=(("", "Anything"), *action_choices()))
_ACTOR = Parameter("By whom", "alice@example.com", required=False, name="actor", finds="people")
_SIGN_INS = Parameter("with sign-ins", input_type="checkbox", required=False, name="sign_ins")


def _is_wanted(ask: Ask, event: AuditEvent) -> bool:
    action, actor = ask.more.get("action", ""), _actor(ask.more.get("actor", ""))
    if actor and event.actor != actor:
        return False
    if not action:
        return event.action not in _QUIET or bool(ask.more.get("sign_ins"))
    return event.action.startswith(action) if action.endswith(".") else event.action == action


def _actor(text: str) -> str:
    return fold_email(text) if "@" in text else text


def day_of(ask: Ask) -> date:
    """The UTC day asked for; today without one. :raises InvalidRequest: when it is not a day."""
    return read_day(ask.parameter, field="q") if ask.parameter else ask.now.date()


class Events(Resource):
    name = "audit"
    singular = "event"
    plural = "Events"
    icon = "scroll-text"
    about = "Everything that was changed, by whom and when, in chains that show tampering."
    has_page = False
    notice_template = "console/audit/around.html"
    columns = (
        Column("When", "console/cells/event_when.html", "col-when"),
        Column("What happened", "console/cells/event_what.html", "col-what"),
        Column("To what", "console/cells/event_about.html", "col-context"),
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
            # Each read is one of each of the four shards.
            fetch=lambda ask: filled(partial(queries.list_day, day_of(ask)), ask, most_reads=2, keep=partial(_is_wanted, ask)),
            parameter=Parameter("Day (UTC)", "2026-03-02", "date", required=False),
            more=(_ACTION, _ACTOR, _SIGN_INS),
            empty_title="Nothing happened on this day",
            empty_hint="Days run from midnight to midnight UTC; look at the day before.",
        ),
        Pattern(
            name="actor",
            label="By actor",
            fetch=lambda ask: queries.by_actor(_actor(ask.parameter), sift=Sift(partial(filter, partial(_is_wanted, ask))), **ask.part),
            parameter=Parameter("Actor", "alice@example.com", finds="people"),
            more=(_ACTION, _SIGN_INS),
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
        return [Row("", told.line.event, told) for told in tell_all(items, ask.book.directory)]

    def notice(self, pattern: Pattern, ask: Ask) -> dict[str, Any]:
        """What is left out; the neighbouring days, for the list by day; the check of the chain, for the list by entity."""
        if pattern.name == "entity" and ask.parameter:
            return {"chain_url": f"{reverse('admin:console_chain')}?{urlencode({'entity': ask.parameter})}"}
        leaves_out = bool(pattern.more) and not (ask.more.get("sign_ins") or ask.more.get("action"))
        if pattern.name != "day":
            return {"leaves_out": leaves_out}
        day = day_of(ask)
        return {
            "leaves_out": leaves_out,
            "day": day,
            "day_value": day.isoformat(),
            "given": urlencode({name: value for name, value in ask.more.items() if value}),
            "day_before": day - timedelta(days=1) if day > date.min else day,
            "day_after": day + timedelta(days=1) if day < ask.now.date() else None,
        }
