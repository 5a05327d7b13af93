"""What the form for a sandbox asks, and what its pages say."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from accessportal.access_requests.kind import Field, Fields
from accessportal.access_requests.kinds.lending import offering
from accessportal.access_requests.kinds.sandbox.terms import SandboxTerms
from accessportal.directory.queries import Book
from accessportal.kernel.actors import Actor
from accessportal.sandboxes import queries as pool
from accessportal.sandboxes.states import Status
from accessportal.upstream import client as upstream


def _offered(actor: Actor, book: Book, now: datetime) -> tuple[tuple[str, str], ...]:
    """How the names begin that some rule offers the actor, in the order of the rules; empty text: any name. Never empty."""
    found = [prefix for terms in offering(SandboxTerms, actor, book, now) for prefix in terms.targets.name_prefixes or ("",)]
    prefixes = tuple(dict.fromkeys(found)) or ("",)
    return tuple((prefix, f"One whose name begins with {prefix}" if prefix else "Any sandbox") for prefix in prefixes)


def _around() -> dict[str, Any]:
    stats = pool.stats()
    return {"pool": stats, "free": stats.counts.get(Status.AVAILABLE, 0) if stats is not None else 0}


FIELDS = Fields(
    name="Sandbox",
    about="One out of the pool for yourself, for minutes to hours. Given back, it is cleaned before anybody else gets it.",
    icon="box",
    heading="Ask for a sandbox",
    target=(
        Field(
            name="name_prefix",
            label="Which",
            choices=_offered,
            wrong="No rule offers you sandboxes with this name. Choose one of the list.",
            about="how its name begins (default: any)",
            metavar="TEXT",
        ),
    ),
    continued=("continues",),
    lengths=("1h", "2h", "4h", "8h"),
    usual="2h",
    is_offered=lambda rules: upstream.is_set(),
    around=_around,
    place="the pool",
    at_once="Approved by rule. It gets a sandbox now, or as soon as one is free.",
    beside="You can give it back at any time.",
    extending="Keep your sandbox longer",
    receipt="Sandbox",
    thing="sandbox",
    queued=("Waiting for a sandbox", "It is approved, and waits in line for a free sandbox. Its time begins when it has one."),
)
