"""What is lent, and the lines in front of it, as their events tell them: sandboxes, accounts, leases."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from accessportal.audit.states import AuditEvent
from accessportal.evidence.replay.telling import EXISTS, GONE, NOTHING, UNTOLD, Facts, Kind, OneOf, data, joined, of, parted, sets
from accessportal.leases.states import AccountState, LeaseState, Verdict
from accessportal.sandboxes.states import KEY_SEPARATOR
from accessportal.waiting.states import LineWithPlaces


def _sent_key(event: AuditEvent) -> Any:
    key = data("key", "")(event)
    return key.rpartition(KEY_SEPARATOR)[2]


def _end(event: AuditEvent) -> int | None:
    """Another program's allocation may have none."""
    return event.data.get("expires_at") or None


# Of one that had left the pool, too: another program may have made its row anew.
_LENT = sets("fence", "status", "track", sent_key=_sent_key, expires_at=_end, **{EXISTS: True})
_MOVED = sets("fence", "status", "track", expires_at=_end, **{EXISTS: True})
_TAKEN_IN = sets("fence", "status", "track", **{EXISTS: True})
_UNHELD = sets("fence", "status", track="", sent_key="", expires_at=None, **{EXISTS: True})

SANDBOX = Kind(
    acts={
        "sandbox.added": sets("fence", "status", "name", "external_id", track="", sent_key="", expires_at=None, **{EXISTS: True}),
        "sandbox.taken": _LENT,
        "sandbox.adopted": _LENT,
        "sandbox.revived": _LENT,
        "sandbox.prolonged": _MOVED,
        "sandbox.shortened": _MOVED,
        "sandbox.released": _TAKEN_IN,
        "sandbox.expired": _TAKEN_IN,
        "sandbox.fence_raised": _TAKEN_IN,
        "sandbox.cleaned": _UNHELD,
        "sandbox.stale": _UNHELD,
        "sandbox.seen_again": _UNHELD,
        "sandbox.quarantined": _UNHELD,
        "sandbox.restored": _UNHELD,
        "sandbox.clean_failed": NOTHING,
        "sandbox.removed": GONE,
    },
    facts=of("fence", "status", "track", "sent_key", "expires_at", "name", "external_id"),
)

SANDBOX_POOL = Kind(acts={"sandbox.run_ordered": NOTHING, "sandbox.sync_stopped": NOTHING}, facts=lambda _head: {})


def _account(event: AuditEvent, _before: Facts) -> Facts:
    """Each event tells the state; who is at rest is nobody's."""
    told: Facts = {name: event.data[name] for name in ("fence", "state") if name in event.data}
    if told.get("state") in {AccountState.AVAILABLE, AccountState.FAILED}:
        return {**told, "lease_id": "", "user": ""}
    return told


def _account_lent(event: AuditEvent, before: Facts) -> Facts:
    return {**_account(event, before), "lease_id": event.data["lease"], "user": event.data["user"]}


def _account_back(event: AuditEvent, before: Facts) -> Facts:
    """Who had it may take it back for a while, unless it was frozen."""
    told = _account(event, before)
    if "user" in told:
        return told
    return {**told, "lease_id": OneOf((event.data["lease"], "")), "user": OneOf((event.data["user"], ""))}


ACCOUNT = Kind(
    acts={
        "account.added": sets("fence", "state", "pool", name=data("name", ""), lease_id="", user="", **{EXISTS: True}),
        "account.leased": _account_lent,
        "account.taken_back": _account_lent,
        "account.given_back": _account_back,
        "account.cleaned": _account,
        "account.set_aside": _account,
        "account.quarantined": _account,
        "account.restored": _account,
        "account.retiring": _account,
        "account.cleaning_begun": _account,
        "account.clean_failed": _account,
        "account.clean_refused": _account,
        "account.result_dropped": _account,
        "account.fence_raised": _account,
        "account.retired": GONE,
    },
    facts=of("fence", "state", "pool", "name", "lease_id", "user"),
    # What was in no pool and was not cleaned has events, too.
    is_itemized=False,
)


def _leased(event: AuditEvent) -> Facts:
    return {name: event.data.get(name, UNTOLD) for name in ("account", "fence", "state")}


def _lease_started(event: AuditEvent, _before: Facts) -> Facts:
    """It is for the one claim."""
    return {**_leased(event), "claims": [event.data["claim"]], "ends_at": event.data.get("ends_at"), "wanted": None, EXISTS: True}


def _lease_moved(claimed: Callable[[Any, str], Any], event: AuditEvent, before: Facts) -> Facts:
    claims = claimed(before.get("claims", UNTOLD), event.data["claim"])
    return {**_leased(event), "claims": claims, "ends_at": event.data.get("ends_at")}


LEASE = Kind(
    acts={
        "lease.taken": lambda event, before: {**_lease_started(event, before), "user": event.subject, "reached": Verdict.NOTHING.value},
        "lease.started": _lease_started,
        "lease.prolonged": partial(_lease_moved, joined),
        "lease.shortened": partial(_lease_moved, parted),
        "lease.freeze_asked": sets("account", "fence", "state", wanted=LeaseState.FROZEN.value),
        "lease.unfreeze_asked": sets("account", "fence", "state", wanted=LeaseState.ACTIVE.value),
        "lease.frozen": sets("account", "fence", "state", wanted=None),
        "lease.unfrozen": sets("account", "fence", "state", wanted=None),
        "lease.freeze_delayed": sets("account", "fence", "state"),
        "lease.fence_raised": sets("account", "fence", "state"),
        "lease.budget_reached": sets("account", "fence", "state", reached=data("verdict")),
        "lease.ended": GONE,
    },
    facts=of(
        "fence",
        "state",
        "user",
        "ends_at",
        "wanted",
        "reached",
        account=lambda lease: lease.account_id,
        claims=lambda lease: sorted(lease.claims),
    ),
)

_PLACE = "place "


def _joined(event: AuditEvent, _before: Facts) -> Facts:
    place = event.data["place"]
    return {"waiting": event.data["waiting"], "next_number": place + 1, f"{_PLACE}{place}": event.subject}


def _left(event: AuditEvent, _before: Facts) -> Facts:
    return {"waiting": event.data["waiting"], f"{_PLACE}{event.data['place']}": None}


def _facts_of_line(one: LineWithPlaces) -> dict[str, Any]:
    places = {f"{_PLACE}{place.number}": place.claim for place in one.places}
    return {"waiting": one.line.waiting, "next_number": one.line.next_number, **places}


LINE = Kind(acts={"line.joined": _joined, "line.left": _left, "line.served": _left}, facts=_facts_of_line, many=_PLACE)
