"""Rules about relationships: which relations, of which types, to which objects, in which scopes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

from accessportal.access_requests.kinds.records import RecordAsked, RecordTerms
from accessportal.authz.states import RelationType
from accessportal.rules.terms import Finding, Part, listed
from accessportal.rules.yaml_nodes import Place

_TYPES = tuple(one.value for one in RelationType)


@dataclass(frozen=True, slots=True)
class RelationshipAsked(RecordAsked):
    kind = "relationship"
    at = "of"
    relation_type: str = ""


@dataclass(frozen=True, slots=True)
class RelationshipTargets:
    """As of approvals. ``relation_types``: exactly these."""

    scopes: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    relation_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RelationshipTerms(RecordTerms):
    kind = "relationship"
    targets_class = RelationshipTargets
    elsewhere = "of other objects or in other scopes"
    inputs = ("relation", "object")
    at = "of"
    targets: RelationshipTargets = field(default_factory=RelationshipTargets)

    @classmethod
    def read(cls, section: Place, *, is_deny: bool) -> Self:
        place = section["targets"]
        lists = cls.lists(place, optional=("relation_types",))
        types = place["relation_types"]
        if types.is_empty_list:
            types.report("The list is empty.", "Name types, or leave it out.")
        # Trust and membership carry on over others: whoever may have them is told so.
        usual = _TYPES if is_deny else (RelationType.ROLE.value,)
        return cls(RelationshipTargets(**lists, relation_types=types.texts(_check_type) or usual))

    def judge(self, asked: RelationshipAsked, *, is_deny: bool) -> Iterator[Finding]:
        # No super(): a dataclass with slots is another class than the one that the method was made in.
        yield from RecordTerms.judge(self, asked, is_deny=is_deny)
        types = self.targets.relation_types
        if asked.relation_type not in types:
            yield Finding(Part.OFFER, f"the type {asked.relation_type} is not {listed(types)}", f"Ask for the type {listed(types)}.")

    def offered(self) -> str:
        return f"{RecordTerms.offered(self)} ({self._types()})"

    def lines(self) -> dict[str, str]:
        return {**RecordTerms.lines(self), "Types": self._types()}

    def limits_moved(self, before: Self) -> Iterable[tuple[int, str]]:
        yield len(self.targets.relation_types) - len(before.targets.relation_types), f"{self._types()} instead of {before._types()}"

    def _types(self) -> str:
        types = self.targets.relation_types
        return "every type" if len(types) == len(_TYPES) else listed(types, "or")


def _check_type(value: str) -> str:
    return "" if value in _TYPES else f"is no type of relation: write one of {', '.join(_TYPES)}."
