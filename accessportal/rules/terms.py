"""What a kind of access brings to the rules: its keys of the file, its judge, its words. Rules know this and no kind by name."""

from __future__ import annotations

import dataclasses
import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from accessportal.directory.states import Group, Person

if TYPE_CHECKING:
    from accessportal.rules.states import People
    from accessportal.rules.yaml_nodes import Place

_SHOWN = 5


class Part(enum.Enum):
    """The part of a question that a rule can fail on."""

    SUBJECT = enum.auto()
    TARGET = enum.auto()
    UNREADABLE = enum.auto()
    OFFER = enum.auto()
    TOO_SHORT = enum.auto()
    TOO_LONG = enum.auto()
    TICKET_MISSING = enum.auto()
    TICKET_WRONG = enum.auto()


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why a rule does not fit, what would change that (empty: nothing that the asker could do), and the refusal's ``code`` where
    a fact that the rule depends on could not be read."""

    part: Part
    reason: str
    remedy: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What exists now, for plans: the enabled ``people`` of every ``subjects`` that changes, all ``groups`` by id, what the directory does
    not know (``missing_*``), and what each kind has looked up."""

    people: Mapping[People, tuple[Person, ...]] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    missing_groups: frozenset[str] = frozenset()
    missing_users: frozenset[str] = frozenset()
    of_kinds: Mapping[str, Any] = field(default_factory=dict)

    def with_above(self, group_id: str) -> frozenset[str]:
        """The group, and every group above it that there is now."""
        group = self.groups.get(group_id)
        return frozenset((group_id, *(group.ancestors if group else ())))


class Asked(ABC):
    """What is asked for, of one kind, with the facts that rules judge: a frozen dataclass."""

    __slots__ = ()
    kind: ClassVar[str]

    @abstractmethod
    def words(self) -> str:
        """Like ``ReadOnlyAccess on payments-prod``."""

    def unreadable(self) -> Finding | None:
        """The fact that every rule of the kind needs and that could not be read."""
        return None


class Terms(ABC):
    """What a rule of one kind says beside what all say: a frozen dataclass of the kind's own keys, ``targets`` (one, too) among them; its
    class is the grammar. ``offer_key`` lists what is offered, ``limit_keys`` are an allow's, ``inputs`` a form's for offer and target;
    ``stand_ins`` approve where nobody is named."""

    __slots__ = ()
    kind: ClassVar[str]
    targets: Any
    targets_class: ClassVar[type]
    offer_key: ClassVar[str] = ""
    limit_keys: ClassVar[tuple[str, ...]] = ()
    inputs: ClassVar[tuple[str, str]]
    at: ClassVar[str] = "on"
    thing: ClassVar[str] = ""
    elsewhere: ClassVar[str] = "elsewhere"
    stand_ins: ClassVar[str] = ""
    asks_admins: ClassVar[bool] = False
    """Whether the stand-ins are the admins of the group that is asked for."""

    @classmethod
    @abstractmethod
    def read(cls, section: Place, *, is_deny: bool) -> Self:
        """From a rule of the file; every mistake is noted there."""

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> Self:
        """From what :meth:`stored` made."""
        own = _as_tuples(stored)
        make: Callable[..., Self] = cls
        return make(targets=cls.targets_class(**own.pop("targets")), **own)

    def stored(self) -> dict[str, Any]:
        """The kind's own keys with their values, for the store and for the rule's hash."""
        return _as_lists(dataclasses.asdict(self))  # type: ignore[call-overload, no-any-return]  # every kind's is a dataclass

    @abstractmethod
    def judge(self, asked: Any, *, is_deny: bool) -> Iterator[Finding]:
        """Every reason why the rule does not fit what is ``asked`` for, which is of the same kind."""

    @property
    def offers(self) -> tuple[str, ...]:
        """What is offered, by name; empty covers all, or there is no part to choose."""
        return getattr(self, self.offer_key) if self.offer_key else ()

    @abstractmethod
    def offered(self) -> str:
        """What is offered, in words: ``ReadOnlyAccess and PowerUserAccess``, ``every role``."""

    @abstractmethod
    def place(self) -> str:
        """Where, in words: ``/Workloads/Prod and below``."""

    @abstractmethod
    def lines(self) -> dict[str, str]:
        """The properties worth reading, by label, whole."""

    def limits(self) -> list[str]:
        """The kind's own limits in words."""
        return []

    def kept(self) -> dict[str, Any]:
        """What a request by this rule keeps of it as evidence."""
        return {}

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the targets name."""
        return ()

    def admins_by(self, nearest_first: Sequence[str]) -> str:
        """By which of these groups the admins of the first decide, where the rule leaves it to admins; empty for none."""
        return ""

    @classmethod
    def look_up(cls) -> Any:
        """What exists now, for the plans of rules of this kind."""
        return None

    @abstractmethod
    def places(self, facts: Facts) -> dict[str, str]:
        """What the targets mean today: what tells them apart, and their names in sentences."""

    def place_counted(self, facts: Facts) -> str:
        """:meth:`place`, with how many that are today where they can be counted."""
        return f"{self.place()} ({count(len(self.places(facts)), self.thing)})" if self.thing else self.place()

    def further_places(self, before: Self, facts: Facts) -> str:
        """What these terms mean beyond ``before``, in words; empty for nothing."""
        known = before.places(facts)
        added = [name for key, name in self.places(facts).items() if key not in known]
        counted = f" ({count(len(added), self.thing)})" if self.thing else ""
        return f"{listed(added, 'and')}{counted}" if added else ""

    def unknown(self, facts: Facts, rule_name: str) -> Iterator[str]:
        """A sentence for every name in the targets and offers that means nothing now; groups are looked after elsewhere."""
        return iter(())

    def limits_moved(self, before: Self) -> Iterable[tuple[int, str]]:
        """By how much each of the kind's own limits became easier (below 0: stricter), in words."""
        return ()


_REGISTERED: dict[str, type[Terms]] = {}


def register_terms(terms: type[Terms]) -> None:
    """Let there be rules of this kind."""
    _REGISTERED[terms.kind] = terms


def kinds() -> tuple[str, ...]:
    """The kinds of access that a rule can be about."""
    return tuple(_REGISTERED)


def terms_of(kind: str) -> type[Terms]:
    """:raises KeyError: for a kind that this version does not know."""
    return _REGISTERED[kind]


def judge_offer(wanted: str, offers: Sequence[str], *, is_deny: bool) -> Iterator[Finding]:
    """Only a deny may leave the list out: it then covers everything."""
    if wanted in offers or (is_deny and not offers):
        return
    yield Finding(Part.OFFER, f"{wanted} is not {listed(offers)}", f"Ask for {listed(offers)}.")


def listed(items: Sequence[str], word: str = "or") -> str:
    """``a``, ``a or b``, ``a, b or c``; of many the first five and how many more."""
    if len(items) > _SHOWN:
        return ", ".join(items[:_SHOWN]) + f" {word} {len(items) - _SHOWN} more"
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + f" {word} {items[-1]}"


def count(number: int, thing: str) -> str:
    """``1 account``, ``2 accounts``, ``2 people``."""
    if number == 1:
        return f"1 {thing}"
    return f"{number} people" if thing == "person" else f"{number} {thing}s"


def _as_lists(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _as_lists(part) for key, part in value.items()}
    return list(map(_as_lists, value)) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _as_tuples(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _as_tuples(part) for key, part in value.items()}
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
