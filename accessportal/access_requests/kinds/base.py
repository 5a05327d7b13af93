"""What a kind of access must do for the workflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from accessportal.access_requests.states import AccessRequest, Described, Subject
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.rules.states import Question, Rule
from accessportal.store.transactions import Guard


@dataclass(frozen=True, slots=True)
class Resolved:
    """A target with its facts, read now. ``stored`` is what the request keeps; ``evidence`` are the facts it stood on.

    ``scope`` names in the audit log what the access touches. ``session_seconds``: how long an open session may outlive it.
    ``longest_seconds``: more than this is not to be had, whatever the rules say. ``facts`` are for the preview, by name.
    ``account_id`` and ``permission_set`` are the seed's own attributes.
    """

    stored: Mapping[str, Any]
    scope: str
    evidence: Mapping[str, Any]
    facts: Mapping[str, str]
    question: Question
    account_id: str = ""
    permission_set: str = ""
    session_seconds: int = 0
    longest_seconds: int | None = None


class Kind(Protocol):
    """One kind of access. Stateless."""

    name: str

    def resolve(
        self,
        *,
        target: Mapping[str, str],
        subject: Subject,
        duration_seconds: int | None,
        ticket_id: str | None,
        now: datetime,
    ) -> Resolved:
        """Validate ``target`` against what exists and gather the facts that a rule may ask for.

        :raises InvalidRequest: naming the part of the target that is wrong, and the remedy.
        """
        ...

    def require_free(self, *, resolved: Resolved, subject: Subject, rule: Rule, now: datetime) -> None:
        """What ``rule``, which admits the request, leaves to counts of now: how many somebody has, and whether others wait.

        :raises NotAllowed: saying what would have to change.
        """
        ...

    def asked(self, request: AccessRequest) -> dict[str, str]:
        """What :meth:`resolve` takes as ``target`` to ask for the same thing as ``request`` again, or to go on with it."""
        ...

    def describe(self, request: AccessRequest) -> Described:
        """The request in words, from the facts that it keeps; no look-up."""
        ...

    def group_of(self, stored: Mapping[str, Any]) -> str:
        """The group whose admins decide where a rule leaves it to them; empty for a kind that is not about groups."""
        ...

    def made_anew(self, request: AccessRequest, *, now: datetime) -> Waiting | None:
        """Why the access is not to be given any more: somebody or something else has the names that it was asked for under."""
        ...

    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        """Make it so, idempotently, only while ``guards`` hold; the proof that it is so, or what is waited for."""
        ...

    def revoke(self, *, request: AccessRequest, actor: Actor, clock: Clock) -> Proof | Waiting:
        """Undo it, idempotently; the proof that this request no longer gives access, or what is waited for."""
        ...

    def ends_together(self, one: AccessRequest, other: AccessRequest) -> bool:
        """Whether ending ``one`` by hand ends ``other`` too, an open request of the same subject: what they hold can't be given
        back in part."""
        ...

    def gives(self, request: AccessRequest, stored: Mapping[str, Any]) -> bool:
        """Whether ``request``, while it is active, gives its subject just what the target ``stored`` asks for."""
        ...

    def same_target(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Whether two stored targets are the same thing."""
        ...


def text_of(evidence: Mapping[str, Any], name: str, otherwise: str) -> str:
    """A text among the facts that a request keeps; requests of earlier versions lack some."""
    return str(evidence.get(name) or otherwise)
