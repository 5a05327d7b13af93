"""Records out of items and back, by annotation: judged, in the resolution of their attributes, and written as what differs."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pynamodb.attributes import BooleanAttribute, ListAttribute, MapAttribute, NumberAttribute, UnicodeAttribute, UnicodeSetAttribute

from accessportal.kernel.clock import Precise
from accessportal.kernel.errors import PortalError, Unavailable
from accessportal.store import transactions
from accessportal.store.base import PortalModel
from accessportal.store.records import Records
from accessportal.store.transactions import Overtaken, until_written

NOW = datetime(2026, 11, 29, 1, 30, 0, 123987, tzinfo=UTC)
NOW_MILLISECONDS = NOW.replace(microsecond=123000)
NOW_SECONDS = NOW.replace(microsecond=0)


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Place:
    street: str
    number: int


@dataclass(frozen=True, slots=True)
class Stamp:
    by: str
    at: Precise
    note: str = ""
    of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    letter_id: str
    place: Place
    colour: Colour
    sent_at: datetime
    version: int = 0
    due_at: Precise | None = None
    note: str = ""
    is_late: bool = False
    tags: frozenset[str] = frozenset()
    stamps: tuple[Stamp, ...] = ()
    seal: Stamp | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


class LetterItem(PortalModel):
    base_table_name = "Letters"

    class Meta:
        table_name = "Letters"

    letter_id = UnicodeAttribute(hash_key=True)
    street = UnicodeAttribute()
    number = NumberAttribute()
    colour = UnicodeAttribute()
    sent_at = NumberAttribute()
    version = NumberAttribute()
    due_at = NumberAttribute(null=True)
    note = UnicodeAttribute(null=True)
    is_late = BooleanAttribute(null=True)
    tags = UnicodeSetAttribute(null=True)
    stamps: Any = ListAttribute(null=True)
    seal: Any = MapAttribute(null=True)
    facts: Any = MapAttribute(null=True)
    by_colour = UnicodeAttribute(null=True)


LETTERS = Records(
    LetterItem,
    Letter,
    also=lambda letter: {"by_colour": letter.colour.value if letter.is_late else None},
    unchanged=("version", "colour"),
    together=(("due_at", "note"),),
)
LETTER = Letter(letter_id="1", place=Place("Main", 5), colour=Colour.RED, sent_at=NOW, version=3)


def raw(letter: Letter) -> dict[str, Any]:
    """The item as DynamoDB would hold it."""
    stored: dict[str, Any] = LETTERS.insertion(letter).item.serialize(null_check=False)
    return stored


def read(stored: dict[str, Any]) -> Letter:
    return LETTERS.record(LetterItem.from_raw_data(stored))


def written(before: Letter, after: Letter) -> dict[str, str]:
    """The attributes that a change writes, each with the word of its action."""
    return {str(action.values[0]): type(action).__name__ for action in LETTERS.change(before, after).actions}


def test_what_says_nothing_is_no_attribute_and_is_read_as_its_default() -> None:
    stored = raw(LETTER)

    assert stored == {
        "letter_id": {"S": "1"},
        "street": {"S": "Main"},
        "number": {"N": "5"},
        "colour": {"S": "red"},
        "sent_at": {"N": str(int(NOW.timestamp()))},
        "version": {"N": "3"},
    }
    assert read(stored) == replace(LETTER, sent_at=NOW_SECONDS) == LETTERS.kept(LETTER)


def test_everything_comes_back_as_it_was_written() -> None:
    stamp = Stamp("bob", NOW, of=("x", "y"))
    whole = replace(
        LETTER,
        due_at=NOW,
        note="n",
        is_late=True,
        tags=frozenset({"b", "a"}),
        stamps=(stamp, stamp),
        seal=stamp,
        facts={"of": [1, {"a": "b"}]},
    )

    stored = raw(whole)

    assert stored["seal"]["M"].keys() == {"by", "at", "of"}
    assert stored["by_colour"] == {"S": "red"}
    kept = replace(stamp, at=NOW_MILLISECONDS)
    assert read(stored) == LETTERS.kept(whole)
    assert read(stored) == replace(whole, sent_at=NOW_SECONDS, due_at=NOW_MILLISECONDS, stamps=(kept, kept), seal=kept)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("colour", {"S": "green"}),
        ("number", {"N": "1.5"}),
        ("number", {"N": "-1"}),
        ("version", {"N": "100000000000000000"}),
        ("sent_at", {"N": "-1"}),
        ("due_at", {"N": "100000000000000000"}),
        ("stamps", {"L": [{"S": "x"}]}),
        ("stamps", {"L": [{"M": {"by": {"S": "bob"}}}]}),
        ("seal", {"M": {"by": {"N": "1"}, "at": {"N": "1"}}}),
        ("seal", {"M": {"by": {"S": "b"}, "at": {"N": "1"}, "of": {"L": [{"N": "1"}]}}}),
        ("seal", {"M": {"by": {"S": "b"}, "at": {"N": "1"}, "of": {"S": "text"}}}),
    ],
)
def test_what_an_annotation_does_not_allow_is_named(name: str, value: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=name):
        read({**raw(LETTER), name: value})


def test_a_change_writes_what_differs_if_the_item_is_as_it_was_read() -> None:
    change = LETTERS.change(LETTER, replace(LETTER, colour=Colour.BLUE, sent_at=NOW_SECONDS, version=4))

    assert (change.hash_key, change.range_key) == ("1", None)
    assert {str(action.values[0]) for action in change.actions} == {"colour", "version"}
    assert str(change.condition) == "(version = {'N': '3'} AND colour = {'S': 'red'})"


def test_what_is_also_written_without_a_version_is_written_with_what_it_belongs_to() -> None:
    assert written(LETTER, replace(LETTER, is_late=True)) == {"is_late": "SetAction", "by_colour": "SetAction"}
    assert written(LETTER, replace(LETTER, due_at=NOW)) == {"due_at": "SetAction", "note": "RemoveAction"}


def test_an_annotation_that_no_item_can_hold_fails_at_import() -> None:
    @dataclass(frozen=True)
    class Strange:
        letter_id: str
        note: complex

    Strange.__annotations__["note"] = complex
    with pytest.raises(TypeError, match="complex"):
        Records(LetterItem, Strange)


def test_whoever_is_overtaken_decides_anew_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "_MOST_DECISIONS", 3)
    left = [Overtaken(), Overtaken()]
    contended: PortalError = Unavailable("Too many.", code="letters_contended")

    def attempt() -> str:
        if left:
            raise left.pop()
        return "written"

    assert until_written(attempt, contended=contended) == "written"
    left += [Overtaken(), Overtaken(), Overtaken()]
    with pytest.raises(Unavailable, match="Too many"):
        until_written(attempt, contended=contended)
