"""What can be done to a request with one question first, and the words for it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime

from accessportal.access_requests import operations, queries
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import SystemClock


class Reason(enum.Enum):
    """Whether a reason is asked for."""

    NONE = enum.auto()
    MAY = enum.auto()
    MUST = enum.auto()


@dataclass(frozen=True, slots=True)
class Verb:
    """``question`` is asked once and ``button`` answers it; ``keep`` is the way out. ``done`` is said afterwards."""

    name: str
    label: str
    question: str
    explanation: str
    button: str
    keep: str
    is_destructive: bool
    reason: Reason
    reason_help: str
    operation: Callable[..., AccessRequest]
    done: Callable[[AccessRequest], str]

    def run(self, *, access_request: AccessRequest, reason: str, actor: Actor, now: datetime) -> AccessRequest:
        """The one call into the domain."""
        words = {} if self.reason is Reason.NONE else {"reason": reason}
        return self.operation(request_id=access_request.request_id, **words, actor=actor, now=now)


SHOWS_ITSELF = "This page shows when the access is there."
"""Said of what may be done already when it is read."""


def _told_approval(after: AccessRequest) -> str:
    if after.status is Status.PENDING:
        tally = queries.tally_of(request=after, now=SystemClock().now())
        return f"Your approval counts: {tally.given} of {tally.quorum}."
    return f"Approved. {SHOWS_ITSELF}"


VERBS = {
    verb.name: verb
    for verb in (
        Verb(
            name="approve",
            label="Approve",
            question="Approve this request?",
            explanation="The access is created as soon as enough people have approved, and ends by itself.",
            button="Approve",
            keep="Not now",
            is_destructive=False,
            reason=Reason.MAY,
            reason_help="The person who asked reads it.",
            operation=operations.approve,
            done=_told_approval,
        ),
        Verb(
            name="deny",
            label="Deny…",
            question="Deny this request?",
            explanation="Nothing is granted. The person can ask again.",
            button="Deny",
            keep="Not now",
            is_destructive=True,
            reason=Reason.MUST,
            reason_help="The person who asked reads it: say what would have to change.",
            operation=operations.deny,
            done=lambda _after: "Denied. The person who asked sees your reason.",
        ),
        Verb(
            name="retry",
            label="Try again now",
            question="Try again now?",
            explanation="What is still to be done for it is tried at once instead of at its next time.",
            button="Try again now",
            keep="Not now",
            is_destructive=False,
            reason=Reason.NONE,
            reason_help="",
            operation=operations.retry,
            done=lambda _after: "It is due again now. This page shows what comes of it.",
        ),
        Verb(
            name="cancel",
            label="Cancel",
            question="Cancel this request?",
            explanation="It is withdrawn and nobody needs to decide it any more. You can ask again at any time.",
            button="Cancel request",
            keep="Keep it",
            is_destructive=True,
            reason=Reason.NONE,
            reason_help="",
            operation=operations.cancel,
            done=lambda _after: "Cancelled.",
        ),
        Verb(
            name="end",
            label="End now",
            question="End this access now?",
            explanation="It is taken back at once. To have it again, a new request is needed.",
            button="End now",
            keep="Keep it",
            is_destructive=True,
            reason=Reason.MAY,
            reason_help="",
            operation=operations.end,
            done=lambda _after: "Its end is now. It shows as ended when that is proved.",
        ),
    )
}


_GIVE_BACK = replace(
    VERBS["end"],
    label="Give back",
    question="Give this sandbox back now?",
    explanation="It is cleaned, and everything in it is gone for good. To have one again, a new request is needed.",
    button="Give back",
    done=lambda _after: "Its end is now. It shows as ended when the sandbox is proved to be yours no longer.",
)
_STOP_WAITING = replace(
    VERBS["end"],
    label="Stop waiting",
    question="Stop waiting for a sandbox?",
    explanation="The request is over, and gets no sandbox. You can ask again at any time.",
    button="Stop waiting",
    keep="Go on waiting",
    done=lambda _after: "You wait no longer. It shows as ended when that is proved.",
)


def verb_of(name: str, *, request: AccessRequest) -> Verb:
    """The verb of that name (one of ``VERBS``) in the words for this request."""
    if name == "end" and request.kind == "sandbox":
        return _GIVE_BACK if request.granted_at else _STOP_WAITING
    return VERBS[name]


def allowed(names: Collection[str], *, request: AccessRequest) -> list[Verb]:
    """The verbs with these names, in the order in which a page shows them."""
    return [verb_of(name, request=request) for name in VERBS if name in names]
