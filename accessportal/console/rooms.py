"""The rooms of the admin pages: which place lies in which, and who sees it. The one table of the navigation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from accessportal.console.resource import Right
from accessportal.console.resources import RESOURCES
from accessportal.kernel.actors import Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A page that the navigation leads to; ``about`` says what it is for, on the start page; ``badge`` is a word where something is."""

    label: str
    url_name: str
    icon: str
    about: str
    right: Right = Right.READERS
    badge: Callable[[], str] = lambda: ""


@dataclass(frozen=True, slots=True)
class Shown:
    """A place as somebody sees it on a page; ``badge`` is read by the pages that show it."""

    label: str
    url: str
    icon: str
    about: str
    is_current: bool
    badge: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Room:
    name: str
    places: tuple[Shown, ...]

    @property
    def url(self) -> str:
        return self.places[0].url

    @property
    def is_current(self) -> bool:
        return any(place.is_current for place in self.places)


_WHY = Place(
    label="Why / who can",
    url_name="admin:console_explain",
    icon="message-circle-question-mark",
    about="Why somebody may or may not have something, and who could approve it.",
    right=Right.DECIDERS,
)
_CHECK = Place(
    label="Check a record",
    url_name="admin:console_check_record",
    icon="list-checks",
    about="Whether an approval, a relationship or a chain of them says yes to what a program asks, and which records say so.",
)
# A resource by its name; what is no resource as a place of its own.
_ROOMS: Mapping[str, Sequence[str | Place]] = {
    "Access": ("requests", "assignments", "drift", "rules", "stand-ins", _WHY, "approvals", "relationships", "scopes", _CHECK),
    "Directory": ("people", "groups", "former-people"),
    "Catalog": ("accounts", "permission-sets"),
    "Lending": ("sandboxes", "sandbox-runs", "account-pool", "leases"),
    "Audit": ("audit", "history", "evidence"),
    "Machinery": ("tokens",),
}


def rooms_for(actor: Actor, path: str, framework: Iterable[Mapping[str, Any]]) -> tuple[Room, ...]:
    """What ``actor`` may go to from the page at ``path``. The last room also has the framework's own tables, as the admin site lists its
    apps."""
    found = {name: [place for place in map(_place, members) if place.right.admits(actor)] for name, members in _ROOMS.items()}
    urls = {name: [(place, reverse(place.url_name)) for place in places] for name, places in found.items()}
    urls["Machinery"] += [
        (Place(label=str(model["name"]), url_name="", icon="database", about=f"The framework’s own: {app['name']}."), model["admin_url"])
        for app in framework
        for model in app["models"]
        if model["admin_url"]
    ]
    # Some places lie under the address of another one: only that with the longest address is the current one.
    current = max((url for places in urls.values() for _, url in places if path.startswith(url)), key=len, default="")
    shown = {
        name: tuple(Shown(place.label, url, place.icon, place.about, url == current, place.badge) for place, url in places)
        for name, places in urls.items()
    }
    return tuple(Room(name, places) for name, places in shown.items() if places)


def _place(member: str | Place) -> Place:
    if isinstance(member, Place):
        return member
    at = RESOURCES[member]
    return Place(label=at.plural, url_name=f"admin:console_{at.name}", icon=at.icon, about=at.about, right=at.right, badge=at.badge)
