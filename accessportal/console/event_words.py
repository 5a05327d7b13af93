"""Events as an auditor reads them in a list: who did what to whom, by names, with the way to what it is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse

from accessportal.audit.actions import ACTIONS
from accessportal.audit.states import AuditEvent
from accessportal.directory.queries import Book
from accessportal.web.events import Line, line_of
from accessportal.web.names import Names
from accessportal.web.presenting import holder

# What the first part of an entity's name stands for, and the route of its page ("" where it has none).
_THINGS = {
    "request": ("Request", "request"),
    "assignment": ("Assignment", "admin:console_assignments_detail"),
    "rule": ("Rule", "admin:console_rules_detail"),
    "person": ("Person", "person"),
    "group": ("Group", "group"),
    "token": ("API token", "admin:console_tokens_detail"),
    "sandbox": ("Sandbox", "admin:console_sandboxes_detail"),
    "account": ("Account of the pool", "admin:console_account-pool_detail"),
    "lease": ("Lease", "admin:console_leases_detail"),
    "scope": ("Scope", "admin:console_scopes_detail"),
    "line": ("Waiting line", ""),
    "retention": ("Audit log", ""),
    "sign_in": ("Sign-in", ""),
    "stand_in": ("Stand-in", ""),
}
# What is named after the portal's own parts, where the part of the action's name does not say it.
_CALLED = {"user": "Person", "rules": "Rules", "authz_scope": "Scope", "approval": "Scoped approval", "account": "Account of the pool"}


@dataclass(frozen=True, slots=True)
class Told:
    """``by`` and ``about`` are names; ``url`` leads to what it is about, ``whose`` tells whose it is where that is somebody else."""

    line: Line
    by: str
    thing: str
    about: str
    url: str
    whose: str


def tell_all(events: Iterable[AuditEvent], book: Book) -> list[Told]:
    """Each with its names, which are read together."""
    events = list(events)
    words = (word for event in events for word in (event.actor, holder(event.subject), event.entity.removeprefix("person#")))
    book.people(word for word in words if "@" in word)
    names = Names(book)
    return [_told(event, names) for event in events]


def _told(event: AuditEvent, names: Names) -> Told:
    prefix, _, key = event.entity.partition("#")
    thing, url_name = _THINGS.get(prefix, (prefix.replace("_", " ").capitalize(), ""))
    by = event.actor.partition(":")[2].replace("_", " ") if event.actor.startswith("system:") else names(event.actor)
    is_same = event.subject in (key, event.actor)
    return Told(
        line_of(event),
        f"the portal ({by})" if event.actor.startswith("system:") else by,
        thing,
        names(key) if prefix == "person" else key,
        _page_of(url_name, key),
        "" if is_same or not event.subject else names(event.subject),
    )


def _page_of(url_name: str, key: str) -> str:
    """Empty for what has none: somebody who was erased is named by a pseudonym, and anybody may write a name that none can have."""
    try:
        return reverse(url_name, args=[key]) if url_name and key else ""
    except NoReverseMatch:
        return ""


def action_choices() -> tuple[tuple[str, str], ...]:
    """All actions by what they are about: ``request.`` stands for every one of a request."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, spec in ACTIONS.items():
        about = name.partition(".")[0]
        found.setdefault(about, []).append((name, f"{_word(about)}: {spec.title}"))
    return tuple(one for about, named in found.items() for one in ((f"{about}.", f"{_word(about)}: anything"), *named))


def _word(about: str) -> str:
    return _CALLED.get(about) or (_THINGS[about][0] if about in _THINGS else about.replace("_", " ").capitalize())
