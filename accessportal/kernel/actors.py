"""Who does something."""

from __future__ import annotations

import enum
import string
from dataclasses import dataclass, field
from datetime import datetime

from accessportal.kernel.texts import fold_key


class Role(enum.StrEnum):
    """What a person may do beyond asking for themselves. Read live at every request, never frozen in a session."""

    OPERATOR = "operator"
    AUDITOR = "auditor"


@dataclass(frozen=True, slots=True)
class Actor:
    """A person by folded e-mail address, or a part of the system by name (``system:tick``). ``roles`` are those held when the actor was
    made. ``operator_until``: when being an operator ends; ``None`` for good."""

    name: str
    roles: frozenset[Role] = field(default_factory=frozenset)
    operator_until: datetime | None = None

    @property
    def is_system(self) -> bool:
        return self.name.startswith("system:")

    @property
    def is_program(self) -> bool:
        return self.name.startswith("client:")

    @property
    def is_operator(self) -> bool:
        return Role.OPERATOR in self.roles

    @property
    def is_auditor(self) -> bool:
        return Role.AUDITOR in self.roles

    @property
    def reads_everything(self) -> bool:
        return self.is_system or self.is_operator or self.is_auditor


def person(email: str, *, roles: frozenset[Role] = frozenset(), operator_until: datetime | None = None) -> Actor:
    """The actor for a person; the address is folded to lower case, as in every key (design, data model)."""
    return Actor(name=fold_email(email), roles=roles, operator_until=operator_until)


def system(part: str) -> Actor:
    """The actor for a part of the portal that acts by itself, for example ``system("tick")``."""
    return Actor(name=f"system:{part}")


def client(token_id: str) -> Actor:
    """The actor for a program that calls the API with a token, known by the token's public half."""
    return Actor(name=f"client:{token_id}")


def part_of_the_portal(identifier: str) -> str:
    """In words, where a rule or the portal itself did something; an address stays as it is."""
    if identifier.startswith("rule:"):
        return "the rule alone"
    return "the portal" if identifier.startswith("system:") else identifier


def fold_email(email: str) -> str:
    """The form of an e-mail address that is used in keys and comparisons: never an ASCII one for another that is not."""
    return fold_key(email.strip(string.whitespace))
