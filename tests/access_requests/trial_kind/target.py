"""What is asked for: a door, and when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from accessportal.access_requests.kind import Resolved, Target, named, require_person, text_of
from accessportal.access_requests.states import AccessRequest, Subject
from accessportal.directory.queries import Book
from tests.access_requests.trial_kind.terms import DOORS, DoorAsked


class DoorTarget(Target):
    """Given as ``{"door": its name, "hours": day or night}``."""

    parts = ("door", "hours")

    def resolve(
        self, *, target: Mapping[str, str], subject: Subject, duration_seconds: int | None, ticket_id: str | None, book: Book, now: datetime
    ) -> Resolved:
        require_person(subject, "A door is opened for a person: ask for yourself.")
        floor = named(target, "door", DOORS.get, missing="A door is needed.", remedy="Look at the plan of the house.")
        door, hours = target["door"].strip(), target.get("hours", "")
        asked = DoorAsked(door, floor, hours)
        return Resolved(
            stored={"door": door, "hours": hours},
            scope=f"door/{door}",
            evidence={"floor": floor},
            facts={"door": door, "floor": floor},
            question=subject.question(asked, duration_seconds=duration_seconds, ticket_id=ticket_id),
        )

    def asked(self, request: AccessRequest) -> dict[str, str]:
        return {name: str(request.target[name]) for name in self.parts}

    def title(self, request: AccessRequest) -> str:
        return f"Door {request.target['door']} · {request.target['hours']}"

    def facts(self, request: AccessRequest) -> tuple[tuple[str, str], ...]:
        return (("Door", request.target["door"]), ("Floor", text_of(request.evidence, "floor")), ("Hours", request.target["hours"]))
