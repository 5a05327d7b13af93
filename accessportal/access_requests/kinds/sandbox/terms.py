"""Rules about sandboxes: which of the pool, by their names, and how many. A sandbox is taken whole: there is no part to offer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from accessportal.rules.states import Rule
from accessportal.rules.terms import Asked, Facts, Finding, Part, Terms, listed
from accessportal.rules.yaml_nodes import Place, shown

WHOLE_POOL = "all"
"""As ``pool`` in ``targets``: any sandbox, whatever its name."""
LONGEST_PREFIX = 64
_MOST_PER_PERSON = 100


@dataclass(frozen=True, slots=True)
class SandboxAsked(Asked):
    """An empty prefix is any sandbox."""

    kind = "sandbox"
    name_prefix: str = ""

    def words(self) -> str:
        return f"a sandbox named {self.name_prefix}…" if self.name_prefix else "a sandbox"


@dataclass(frozen=True, slots=True)
class SandboxTargets:
    """``pool`` (``all``, or empty) or ``name_prefixes`` (those whose names begin so)."""

    name_prefixes: tuple[str, ...] = ()
    pool: str = ""


@dataclass(frozen=True, slots=True)
class SandboxTerms(Terms):
    """``most_per_person``: how many sandboxes one person holds at a time. ``extend``: whether what is held may be extended."""

    kind = "sandbox"
    targets_class = SandboxTargets
    limit_keys = ("most_per_person", "extend")
    inputs = ("", "name_prefix")
    at = "from"
    elsewhere = "with other names"
    stand_ins = "the operators"
    targets: SandboxTargets = field(default_factory=SandboxTargets)
    most_per_person: int = 0
    extend: bool = True

    @classmethod
    def read(cls, section: Place, *, is_deny: bool) -> Self:
        most = section["most_per_person"].whole_number(smallest=1, largest=_MOST_PER_PERSON) or 1
        return cls(_read_targets(section["targets"]), 0 if is_deny else most, section["extend"].flag() is not False)

    def judge(self, asked: SandboxAsked, *, is_deny: bool) -> Iterator[Finding]:
        where, prefix = self.targets, asked.name_prefix
        if self._means(prefix):
            return
        # Whoever asks for more than what is refused could be given just that.
        if is_deny and any(named.startswith(prefix) for named in where.name_prefixes):
            return
        wanted = f"a sandbox whose name begins with {prefix}" if prefix else "a sandbox of any name"
        yield Finding(Part.TARGET, f"{wanted} is not among {self.place()}", f"Ask for one of {self.place()}.")

    def _means(self, prefix: str) -> bool:
        """Whether every sandbox whose name begins so is meant."""
        return bool(self.targets.pool) or any(prefix.startswith(wider) for wider in self.targets.name_prefixes)

    def offered(self) -> str:
        return "a sandbox"

    def place(self) -> str:
        named = listed([f"{prefix}…" for prefix in self.targets.name_prefixes], "and")
        return "the whole pool" if self.targets.pool else f"those named {named}"

    def lines(self) -> dict[str, str]:
        lines = {"Where": ", ".join(f"{prefix}…" for prefix in self.targets.name_prefixes) or "the whole pool"}
        if not self.most_per_person:
            return lines
        return lines | {"At a time": f"{self.most_per_person} per person", "Extending": "possible" if self.extend else "not possible"}

    def limits(self) -> list[str]:
        return [f"{self.most_per_person} at a time", *([] if self.extend else ["not to be extended"])]

    def kept(self) -> dict[str, Any]:
        return {"most_per_person": self.most_per_person, "extend": self.extend}

    def places(self, facts: Facts) -> dict[str, str]:
        """What is in the pool changes by the minute: the names that are meant are what can be told."""
        if self.targets.pool:
            return {self.targets.pool: "the whole pool"}
        return {prefix: f"those named {prefix}…" for prefix in self.targets.name_prefixes}

    def further_places(self, before: Self, facts: Facts) -> str:
        known = before.places(facts)
        return listed([name for key, name in self.places(facts).items() if key not in known and not before._means(key)], "and")

    def limits_moved(self, before: Self) -> Iterable[tuple[int, str]]:
        yield self.most_per_person - before.most_per_person, f"{self.most_per_person} at a time instead of {before.most_per_person}"
        yield self.extend - before.extend, f"what is held may {'' if self.extend else 'not '}be extended"


def terms_of(rule: Rule) -> SandboxTerms:
    assert isinstance(rule.terms, SandboxTerms), "a rule decides on its own kind alone"
    return rule.terms


def _read_targets(place: Place) -> SandboxTargets:
    section = place.section(optional=("pool", "name_prefixes"))
    pool, prefixes = section["pool"].text(), section["name_prefixes"].texts(_check_prefix)
    if pool and pool != WHOLE_POOL:
        section["pool"].report(f"“{shown(pool)}” is not possible here.", f"Write {WHOLE_POOL}, or use name_prefixes.")
    if pool and prefixes:
        place.report("The whole pool and some of its names are named at once.", "Keep pool or name_prefixes.")
    elif place.is_given and (not place.has_items or not (section["pool"].is_given or section["name_prefixes"].is_given)):
        message = "A rule without targets would be about no sandbox."
        place.report(message, "Write “pool: all” for any sandbox, or name name_prefixes.")
    return SandboxTargets(prefixes, pool)


def _check_prefix(value: str) -> str:
    if 1 <= len(value) <= LONGEST_PREFIX and value.isprintable():
        return ""
    return f"is not the beginning of a name: write 1 to {LONGEST_PREFIX} printable characters, like lab-."
