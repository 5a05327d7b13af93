"""Who decides in whose place, and taking it back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from accessportal.access_requests import queries
from accessportal.access_requests.stand_in import StandIn
from accessportal.console.resource import Ask, Column, Pattern, Resource, Row, Section
from accessportal.kernel.actors import Actor
from accessportal.web.events import latest_of
from accessportal.web.exporting import exported
from accessportal.web.stand_in_deeds import END_STAND_IN, named


class StandIns(Resource):
    name = "stand-ins"
    singular = "stand-in"
    plural = "Stand-ins"
    icon = "user-check"
    about = "Who decides in whose place, from when and until when, and taking it back."
    columns = (
        Column("Decides", "console/stand_ins/cell_who.html", "col-who"),
        Column("In place of", "console/stand_ins/cell_whose.html", "col-who"),
        Column("Time", "console/stand_ins/cell_time.html", "col-time"),
        Column("State", "console/stand_ins/state.html", "col-state"),
    )
    file_columns = exported("stand_in_id", "stand_in", "approver", "named_at", "starts_at", "ends_at", "note", "ended_by", "ended_at")
    patterns = (
        Pattern(
            name="current",
            label="Now and later",
            fetch=lambda ask: queries.list_stand_ins(ends_after=ask.now, actor=ask.actor, **ask.part),
            row_deeds=("end",),
            empty_title="Nobody stands in for anybody",
            empty_hint="Approvers name who decides in their place on their page Stand-ins.",
        ),
        Pattern(
            name="all",
            label="Past ones, too",
            fetch=lambda ask: queries.list_stand_ins(actor=ask.actor, **ask.part),
            empty_title="Nobody stood in for anybody lately",
            empty_hint="They stay on this list for a while after their end, and in the events for good.",
        ),
    )
    sections = (
        Section("What happened", "web/latest_events.html"),
        Section("Facts", "console/stand_ins/facts.html", is_aside=True),
    )
    headline_template = "console/stand_ins/state.html"
    deeds = (END_STAND_IN,)

    def read(self, key: str, actor: Actor, now: datetime) -> StandIn:
        stand_in_id, _, stand_in = key.partition("/")
        return queries.find_stand_in(stand_in=stand_in, stand_in_id=stand_in_id, actor=actor)

    def title(self, record: StandIn) -> str:
        return f"{record.stand_in} in place of {record.approver}"

    def rows(self, items: Sequence[StandIn], ask: Ask) -> list[Row]:
        rows = []
        for one in named(items, ask.book):
            it = one.record
            deeds = tuple(deed.name for deed in self.deeds if deed.may(it, ask.actor, ask.now).allowed)
            rows.append(Row(f"{it.stand_in_id}/{it.stand_in}", it, one, deeds))
        return rows

    def details(self, record: StandIn, ask: Ask) -> dict[str, Any]:
        return {"row": self.rows([record], ask)[0], **latest_of(record)}
