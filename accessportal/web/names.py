"""Names of people and groups for a page."""

from __future__ import annotations

from accessportal.directory import queries as directory


class Names:
    """Turns an address, a group path or a part of the system into what people call it; asks once for each, for one page."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def __call__(self, identifier: str) -> str:
        if not identifier or identifier.startswith("/"):
            return identifier
        if identifier.startswith("system:"):
            return "the portal"
        if identifier not in self._known:
            person = directory.find_person(email=identifier)
            self._known[identifier] = person.name if person and person.name else identifier
        return self._known[identifier]
