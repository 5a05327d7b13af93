"""A command made of a function: its flags, what it is given, how it ends."""

from __future__ import annotations

import io
import json
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import pytest
from django.core.management import CommandError, call_command

from accessportal.commands.base import Outcome, PortalCommand, command, first
from accessportal.commands.flags import Flag, read_duration, read_whole_number
from accessportal.kernel.actors import Actor, system
from accessportal.kernel.clock import Clock
from accessportal.kernel.pages import Page


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@command("wall --coats 2", at_most_one_of=("coats", "until_dry"))
def paint(
    place: Annotated[str, Flag("what to paint", "PLACE")],
    *,
    colour: Colour = Colour.RED,
    coats: Annotated[int | None, Flag("how often", "N", read_whole_number)] = None,
    until_dry: Annotated[int, Flag("how long", "D", read_duration)] = 60,
    helper: list[str] | None = None,
    quick: bool = False,
    really: Annotated[str, Flag(name="--yes")] = "no",
    actor: Actor = system("nobody"),  # noqa: B008
    clock: Clock,
    now: datetime,
    this: PortalCommand,
) -> Outcome:
    """Paint something. Prints
    what was painted."""
    assert now <= clock.now()
    seen = {"place": place, "colour": colour, "coats": coats, "until_dry": until_dry, "helper": helper, "quick": quick}
    return Outcome(seen | {"really": really, "by": actor.name, "json": this.as_json}, "The paint ran out." if coats == 9 else "")


def run(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command(paint(), *arguments, "--json", stdout=out, skip_checks=True)
    told: dict[str, Any] = json.loads(out.getvalue())
    return told


def test_what_is_not_given_is_as_the_function_says() -> None:
    assert run("wall") == {
        "place": "wall",
        "colour": "red",
        "coats": None,
        "until_dry": 60,
        "helper": None,
        "quick": False,
        "really": "no",
        "by": "system:nobody",
        "json": True,
    }


def test_each_flag_is_read_by_its_type() -> None:
    told = run("wall", "--colour", "Blue", "--until-dry", "1h", "--helper", "a", "--helper", "b", "--quick", "--yes", "x")

    assert (told["colour"], told["until_dry"], told["helper"], told["quick"], told["really"]) == ("blue", 3600, ["a", "b"], True, "x")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("wall", "--coats", "many"), 2, "--coats: “many” is not a whole number"),
        (("wall", "--coats", "1", "--until-dry", "1h"), 1, "not allowed with"),
        (("wall", "--colour", "green"), 1, "invalid choice"),
        ((), 1, "PLACE"),
        (("wall", "--coats", "9"), 1, "The paint ran out."),
    ],
    ids=str,
)
def test_what_can_not_be_is_said(arguments: tuple[str, ...], code: int, says: str) -> None:
    with pytest.raises(CommandError, match=says) as told:
        run(*arguments)
    # Called from a terminal, argparse itself exits with 2.
    assert told.value.returncode == code


def test_the_help_is_the_docstring_with_an_example() -> None:
    told = paint().create_parser("manage.py", "paint").format_help()

    assert "Paint something. Prints what was painted." in told
    assert told.rstrip().endswith("python manage.py paint wall --coats 2")


@pytest.mark.parametrize(("limit", "found", "more"), [(0, 6, False), (2, 4, True), (3, 6, False), (9, 6, False)])
def test_a_list_is_cut_and_says_so(limit: int, found: int, more: bool) -> None:
    def fetch(cursor: str | None) -> Page[int]:
        return Page((1, 2), "next") if cursor is None else Page((3,))

    some, has_more = first(limit, fetch, fetch)

    assert (len(some), has_more) == (found, more)
