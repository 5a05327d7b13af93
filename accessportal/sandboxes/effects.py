"""What is done at the provider: read its whole list, and have one sandbox deleted and look what became of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import Unavailable
from accessportal.sandboxes import policy
from accessportal.sandboxes.states import Sandbox
from accessportal.upstream.errors import ODD_ENTRY, Changed, Gone, Refused, UpstreamError
from accessportal.upstream.provider import Provider, UpstreamSandbox


class Fate(enum.Enum):
    """What the provider shows of a sandbox whose deletion was sent."""

    GONE = "gone"
    READY = "ready"
    NOT_YET = "not yet"


class Sending(enum.Enum):
    """What came of a deletion that was to be sent. ``UNKNOWN_THERE``: the provider says that it has none, which proves little."""

    NOT_SENT = "not sent"
    DONE = "done"
    UNKNOWN_THERE = "unknown there"


@dataclass(frozen=True, slots=True)
class Look:
    """``generation`` is the provider's word for the life that it shows, empty where there is none."""

    fate: Fate
    generation: str = ""


def read_list(provider: Provider) -> dict[str, UpstreamSandbox]:
    """Read the provider's whole list, by external id; half a list is never used (``provider_unavailable``, ``provider_malformed``). An
    entry that comes twice counts once, if both say the same of it."""
    found: dict[str, UpstreamSandbox] = {}
    try:
        for page in provider.list_sandboxes():
            for one in page:
                if found.setdefault(one.external_id, one).name != one.name:
                    raise Refused("malformed", f"{one.external_id} is listed with two names")
    except Refused as error:
        words = f"The provider answers, but its list can't be used: {error} An incomplete list is not used at all."
        raise Unavailable(words, code="provider_malformed") from error
    except UpstreamError as error:
        raise Unavailable(f"The provider's list could not be read whole: {error}", code="provider_unavailable") from error
    return found


def listed(provider: Provider) -> frozenset[str]:
    """Read the external ids of the provider's list, as far as its entries make sense."""
    found: set[str] = set()
    try:
        for page in provider.list_sandboxes():
            found.update(one.external_id for one in page)
    except Refused as error:
        if error.code != ODD_ENTRY:
            raise
    return frozenset(found)


def look(provider: Provider, sandbox: Sandbox) -> Look:
    """Ask what became of it: ready counts only for another life than the one whose deletion was sent, where lives are told apart."""
    found = provider.get_sandbox(sandbox.external_id)
    if found is None:
        return Look(Fate.GONE)
    is_former = bool(sandbox.delete_generation) and found.generation == sandbox.delete_generation
    return Look(Fate.READY if found.is_ready and not is_former else Fate.NOT_YET, found.generation)


def send_deletion(provider: Provider, sandbox: Sandbox, *, generation: str, clock: Clock) -> Sending:
    """Send the deletion, unless the hold has less left than a call may take: a late call could delete what is lent to somebody else by
    then. After an ``UpstreamError`` it may have happened."""
    if not policy.may_send(sandbox, clock.now()):
        return Sending.NOT_SENT
    try:
        provider.delete_sandbox(sandbox.external_id, generation=generation)
    except (Gone, Changed):
        # Deleted already, by an earlier try whose answer was lost, or by somebody else: unless the life that was to end is still shown.
        found = provider.get_sandbox(sandbox.external_id)
        if found is None:
            return Sending.UNKNOWN_THERE
        if found.generation == generation:
            raise
    return Sending.DONE


def trouble(provider: Provider) -> str:
    """Say why the provider as a whole can't be worked with now; empty when it can. An entry of its list that makes no sense is no trouble:
    other sandboxes must not wait for it."""
    try:
        next(iter(provider.list_sandboxes()), None)
    except Refused as error:
        return "" if error.code == ODD_ENTRY else f"The provider answers, but not with what can be used: {error}"
    except UpstreamError as error:
        return f"The provider does not answer: {error}"
    return ""


def is_surely_unready(provider: Provider, sandbox: Sandbox) -> bool:
    """Ask whether the provider shows this one as not ready: the second sight after its list."""
    found = provider.get_sandbox(sandbox.external_id)
    return found is not None and not found.is_ready
