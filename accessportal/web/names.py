"""Names of people and groups for a page."""

from __future__ import annotations

from accessportal.directory.queries import Book
from accessportal.kernel.actors import part_of_the_portal
from accessportal.web.presenting import holder


class Names:
    """Turns an address, a group path or a part of the system into what people call it; ``book`` is the page's."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def __call__(self, identifier: str) -> str:
        identifier = holder(identifier)
        if not identifier or identifier.startswith("/"):
            return identifier
        if (part := part_of_the_portal(identifier)) != identifier:
            return part
        person = next(iter(self._book.people([identifier]).values()), None)
        return person.name if person and person.name else identifier

    def of_decider(self, who: str, *, in_place_of: str) -> str:
        """Who decided, and in whose place, if not by themselves."""
        return f"{self(who)} in place of {self(in_place_of)}" if in_place_of else self(who)
