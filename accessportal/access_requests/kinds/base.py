"""What a kind of access must do for the workflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from accessportal.access_requests.states import AccessRequest
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.rules.states import Question
from accessportal.store.transactions import Guard


@dataclass(frozen=True, slots=True)
class Resolved:
    """A target with its facts, read now. ``stored`` is what the request keeps; ``evidence`` are the facts it stood on.

    ``title`` names it on pages. ``session_seconds``: how long an open session may outlive the access.
    """

    stored: Mapping[str, Any]
    account_id: str
    permission_set: str
    title: str
    session_seconds: int
    evidence: Mapping[str, Any]
    question: Question


class Kind(Protocol):
    """One kind of access. Stateless."""

    name: str

    def resolve(
        self,
        *,
        target: Mapping[str, str],
        subject: str,
        subject_groups: frozenset[str] | None,
        duration_seconds: int | None,
        ticket_id: str | None,
    ) -> Resolved:
        """Validate ``target`` against what exists and gather the facts that a rule may ask for.

        :raises InvalidRequest: naming the part of the target that is wrong, and the remedy.
        """
        ...

    def grant(self, *, request: AccessRequest, guards: Sequence[Guard], actor: Actor, clock: Clock) -> Proof | Waiting:
        """Make it so, idempotently, only while ``guards`` hold; the proof that it is so, or what is waited for."""
        ...

    def revoke(self, *, request: AccessRequest, actor: Actor, clock: Clock) -> Proof | Waiting:
        """Undo it, idempotently; the proof that this request no longer gives access, or what is waited for."""
        ...

    def same_target(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Whether two stored targets are the same thing."""
        ...
