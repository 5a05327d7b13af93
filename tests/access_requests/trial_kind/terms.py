"""Rules about doors: on which floors, by day or by night, with an escort or without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from accessportal.rules.terms import Asked, Facts, Finding, Part, Terms, judge_offer, listed
from accessportal.rules.yaml_nodes import Place

DOORS: Mapping[str, str] = {"lab-1": "ground", "lab-2": "ground", "vault": "cellar"}
"""The floor of each door."""


@dataclass(frozen=True, slots=True)
class DoorAsked(Asked):
    kind = "door"
    door: str = ""
    floor: str = ""
    hours: str = ""

    def words(self) -> str:
        return f"{self.door} by {self.hours}"


@dataclass(frozen=True, slots=True)
class DoorTargets:
    floors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DoorTerms(Terms):
    kind = "door"
    targets_class = DoorTargets
    offer_key = "hours"
    limit_keys = ("escort",)
    inputs = ("hours", "door")
    at = "through doors of"
    thing = "door"
    elsewhere = "on other floors"
    targets: DoorTargets = field(default_factory=DoorTargets)
    hours: tuple[str, ...] = ()
    escort: bool = False

    @classmethod
    def read(cls, section: Place, *, is_deny: bool) -> Self:
        targets = section["targets"].section(required=("floors",))
        return cls(DoorTargets(targets["floors"].texts()), section["hours"].texts(_check_hours), section["escort"].flag() is True)

    def judge(self, asked: DoorAsked, *, is_deny: bool) -> Iterator[Finding]:
        if asked.floor not in self.targets.floors:
            yield Finding(Part.TARGET, f"{asked.door} is not on {self.place()}", f"Choose a door on {self.place()}.")
        yield from judge_offer(asked.hours, self.hours, is_deny=is_deny)

    def offered(self) -> str:
        return listed(self.hours, "and") or "all hours"

    def place(self) -> str:
        return listed(self.targets.floors, "and")

    def lines(self) -> dict[str, str]:
        return {"Where": ", ".join(self.targets.floors), "Hours": ", ".join(self.hours), "Escort": "needed" if self.escort else ""}

    def limits(self) -> list[str]:
        return ["with an escort"] if self.escort else []

    def kept(self) -> dict[str, Any]:
        return {"escort": self.escort}

    def places(self, facts: Facts) -> dict[str, str]:
        return {door: door for door, floor in DOORS.items() if floor in self.targets.floors}


def _check_hours(value: str) -> str:
    return "" if value in {"day", "night"} else "is neither day nor night."
