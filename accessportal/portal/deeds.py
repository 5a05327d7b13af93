"""What can be done in the directory from a page: one table of deeds, each with its question, its form and its one operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from accessportal.directory.states import Changed
from accessportal.kernel.actors import Actor
from accessportal.portal.directory_forms import DeedForm

S = TypeVar("S")
Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """``doing`` is true from the change on; ``done`` only when Cognito has followed. ``entity`` is whom Cognito follows.

    ``about``: the group, where only a person's place in it changed; empty where the entity as a whole did.
    """

    entity: str
    doing: str
    done: str
    url: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Deed(Generic[S]):
    """``right`` is the verb of ``directory.queries.may``. ``explain`` says what it will do to this group or person.

    ``fits``: whether it makes sense in the present state. ``is_page``: too much for a sheet. ``starts_with`` fills the form.
    """

    name: str
    right: str
    label: str
    question: Callable[[S, Data], str]
    explain: Callable[[S, Data], str]
    button: str
    form: type[DeedForm]
    run: Callable[[S, Data, Actor, datetime], Changed[Any]]
    told: Callable[[S, Data, Changed[Any]], Told]
    fits: Callable[[S], bool] = lambda _subject: True
    starts_with: Callable[[S, Data], dict[str, Any]] = lambda _subject, given: dict(given)
    is_destructive: bool = False
    is_page: bool = False
