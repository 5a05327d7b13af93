"""Rules about leases of AWS accounts: out of which pools, of which sizes and tags, with which permission sets, and at what cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from accessportal.access_requests.kinds.aws_account.terms import check_permission_set
from accessportal.leases.policy import is_word
from accessportal.rules.states import Rule
from accessportal.rules.terms import Asked, Facts, Finding, Part, Terms, judge_offer, listed
from accessportal.rules.yaml_nodes import Place

_MOST_PER_PERSON = 100
_MOST_USD = 1_000_000
_WARN_PERCENT = 80


class Extend(StrEnum):
    """Whether what is held may be had for longer."""

    NEVER = "never"
    WHILE_NOBODY_WAITS = "while_nobody_waits"
    ALWAYS = "always"


class AtLimit(StrEnum):
    """What becomes of a lease whose account has cost as much as its budget."""

    WARN = "warn"
    FREEZE = "freeze"
    END = "end"


@dataclass(frozen=True, slots=True)
class LeaseAsked(Asked):
    """An empty size, and a tag that is not named, is any."""

    kind = "account_lease"
    pool: str = ""
    size: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    permission_set: str = ""

    def words(self) -> str:
        return f"{self.permission_set} on {self.account()}"

    def account(self) -> str:
        """``an account of engineers, size small, with env=dev``."""
        size = f", size {self.size}" if self.size else ""
        return f"an account of {self.pool}{size}{f', with {tag_words(self.tags)}' if self.tags else ''}"


@dataclass(frozen=True, slots=True)
class LeaseTargets:
    """Of the ``pools`` those accounts that have one of the ``sizes`` (none: any) and an accepted value for every key of ``tags``."""

    pools: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LeaseTerms(Terms):
    """``most_per_person``: how many accounts one person holds at a time. ``budget_usd`` 0: none."""

    kind = "account_lease"
    targets_class = LeaseTargets
    offer_key = "permission_sets"
    limit_keys = ("most_per_person", "extend", "budget")
    inputs = ("permission_set", "pool")
    at = "on accounts of"
    elsewhere = "on other accounts"
    stand_ins = "the operators"
    targets: LeaseTargets = field(default_factory=LeaseTargets)
    permission_sets: tuple[str, ...] = ()
    most_per_person: int = 0
    extending: str = Extend.WHILE_NOBODY_WAITS
    budget_usd: int = 0
    budget_warn_percent: int = _WARN_PERCENT
    budget_at_limit: str = AtLimit.WARN

    @classmethod
    def read(cls, section: Place, *, is_deny: bool) -> Self:
        budget = section["budget"].section(required=("usd",), optional=("warn_percent", "at_limit"))
        most = section["most_per_person"].whole_number(smallest=1, largest=_MOST_PER_PERSON) or 1
        return cls(
            targets=_read_targets(section["targets"]),
            permission_sets=section["permission_sets"].texts(check_permission_set),
            most_per_person=0 if is_deny else most,
            extending=section["extend"].choice(tuple(Extend)) or Extend.WHILE_NOBODY_WAITS.value,
            budget_usd=budget["usd"].whole_number(smallest=1, largest=_MOST_USD) or 0,
            budget_warn_percent=budget["warn_percent"].whole_number(smallest=1, largest=100) or _WARN_PERCENT,
            budget_at_limit=budget["at_limit"].choice(tuple(AtLimit)) or AtLimit.WARN.value,
        )

    def judge(self, asked: LeaseAsked, *, is_deny: bool) -> Iterator[Finding]:
        if not (self._could_be(asked) if is_deny else self._is_among(asked)):
            yield Finding(Part.TARGET, f"{asked.account()} is not among those of {self.place()}", f"Ask for one of {self.place()}.")
        yield from judge_offer(asked.permission_set, self.permission_sets, is_deny=is_deny)

    def _is_among(self, asked: LeaseAsked) -> bool:
        """Whether every account that would do is meant."""
        where = self.targets
        has_size = not where.sizes or asked.size in where.sizes
        return asked.pool in where.pools and has_size and all(asked.tags.get(key) in values for key, values in where.tags.items())

    def _could_be(self, asked: LeaseAsked) -> bool:
        """Whether some account that is meant would do: who asks for more than what is refused could be given just that."""
        where = self.targets
        has_size = not where.sizes or not asked.size or asked.size in where.sizes
        has_tags = all(key not in asked.tags or asked.tags[key] in values for key, values in where.tags.items())
        return asked.pool in where.pools and has_size and has_tags

    def offered(self) -> str:
        return listed(self.permission_sets, "and") or "every permission set"

    def place(self) -> str:
        """``pool engineers of size small with tag env dev``."""
        where = self.targets
        size = f" of size {listed(where.sizes)}" if where.sizes else ""
        tags = listed([f"{key} {listed(values)}" for key, values in where.tags.items()], "and")
        return f"{'pool' if len(where.pools) == 1 else 'pools'} {listed(where.pools, 'and')}{size}{f' with tag {tags}' if tags else ''}"

    def lines(self) -> dict[str, str]:
        where = self.targets
        parts = [", ".join(where.pools), *([f"size {' or '.join(where.sizes)}"] if where.sizes else [])]
        parts += [f"{key} is {' or '.join(values)}" for key, values in sorted(where.tags.items())]
        lines = {"Pools": "; ".join(parts), "Permission sets": ", ".join(self.permission_sets) or "every one"}
        if not self.most_per_person:
            return lines
        return lines | {
            "At a time": f"{self.most_per_person} per person",
            "Extending": _EXTENDING[self.extending],
            "Budget": self._budget(),
        }

    def limits(self) -> list[str]:
        limits = [f"{self.most_per_person} at a time"]
        limits += [] if self.extending == Extend.ALWAYS else [f"extending {_EXTENDING[self.extending]}"]
        return limits + ([f"budget {self._budget()}"] if self.budget_usd else [])

    def _budget(self) -> str:
        if not self.budget_usd:
            return "none"
        then = "" if self.budget_at_limit == AtLimit.WARN else f", {self.budget_at_limit} at the limit"
        return f"{self.budget_usd} USD, warning at {self.budget_warn_percent} %{then}"

    def kept(self) -> dict[str, Any]:
        return {
            "most_per_person": self.most_per_person,
            "extending": self.extending,
            "budget_usd": self.budget_usd,
            "budget_warn_percent": self.budget_warn_percent,
            "budget_at_limit": self.budget_at_limit,
        }

    def places(self, facts: Facts) -> dict[str, str]:
        """What is in the pools changes by the hour: the pools are what can be told."""
        return {pool: pool for pool in self.targets.pools}

    def further_places(self, before: Self, facts: Facts) -> str:
        wider, now = before.targets, self.targets
        is_within = set(now.pools) <= set(wider.pools) and (not wider.sizes or (bool(now.sizes) and set(now.sizes) <= set(wider.sizes)))
        has_tags = all(key in now.tags and set(now.tags[key]) <= set(values) for key, values in wider.tags.items())
        return "" if is_within and has_tags else self.place()

    def limits_moved(self, before: Self) -> Iterable[tuple[int, str]]:
        yield self.most_per_person - before.most_per_person, f"{self.most_per_person} at a time instead of {before.most_per_person}"
        ranks = list(Extend)
        yield ranks.index(Extend(self.extending)) - ranks.index(Extend(before.extending)), f"extending is {_EXTENDING[self.extending]}"
        if self._budget() != before._budget():
            easier = 1 if (self.budget_usd or _MOST_USD + 1) > (before.budget_usd or _MOST_USD + 1) else -1
            yield easier, f"the budget is {self._budget()} instead of {before._budget()}"


_EXTENDING: Mapping[str, str] = {
    Extend.NEVER: "not possible",
    Extend.WHILE_NOBODY_WAITS: "possible while nobody waits",
    Extend.ALWAYS: "possible",
}


def terms_of(rule: Rule) -> LeaseTerms:
    assert isinstance(rule.terms, LeaseTerms), "a rule decides on its own kind alone"
    return rule.terms


def tag_words(tags: Mapping[str, str]) -> str:
    """``env=dev, team=web``: how tags are asked for, and kept."""
    return ", ".join(f"{key}={value}" for key, value in sorted(tags.items()))


def _read_targets(place: Place) -> LeaseTargets:
    section = place.section(required=("pools",), optional=("sizes", "tags"))
    if section["pools"].is_empty_list:
        section["pools"].report("A rule without a pool would be about no account.", "Name pools, as their accounts were added to them.")
    tags = {}
    for key, accepted in section["tags"].entries().items():
        tags[key] = accepted.texts()
        if accepted.is_empty_list:
            accepted.report("A tag without accepted values matches nothing.", "Name values, or remove the tag.")
    return LeaseTargets(section["pools"].texts(_check_label), section["sizes"].texts(_check_label), tags)


def _check_label(value: str) -> str:
    return "" if is_word(value) else "is no pool or size: write 1 to 40 small letters, digits and dashes, like default."
