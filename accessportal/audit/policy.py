"""The chain: pure functions over events."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from accessportal.audit.actions import ACTIONS
from accessportal.audit.config import AuditKeys
from accessportal.audit.states import AuditEvent, ChainBreak, Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.pseudonyms import replaced_in

GENESIS = ""
# So long some processes may have no key of pseudonyms when others have it.
CHANGE_OVER = timedelta(days=1)
_HASHED = ("entity", "sequence", "event_id", "action", "actor", "subject", "scope", "data", "prev_hash")


def check_draft(draft: Draft) -> None:
    """Raise ValueError for an unknown action or a data key outside the allow-list, so that a new field can't leak into the log: a
    mistake of the calling code, never of a person."""
    spec = ACTIONS.get(draft.action)
    if spec is None:
        raise ValueError(f"audit action {draft.action!r} is not registered")
    extra = set(draft.data) - spec.fields
    if extra:
        raise ValueError(f"audit action {draft.action!r} may not carry {sorted(extra)}")


def may_publish(actor: Actor) -> Decision:
    """Whether ``actor`` may send what waits to the topic of events."""
    if actor.is_system or actor.is_operator:
        return allow("operators and the portal itself publish events")
    return refuse("Only operators may publish events. Ask an operator.", code="publishing_operators_only")


def may_restore(actor: Actor) -> Decision:
    """Whether ``actor`` may say that the tables were restored, and that grants may go on after that."""
    if actor.is_operator:
        return allow("operators look after the tables")
    return refuse("Only operators may tell and confirm a restore of the tables. Ask an operator.", code="operators_only")


def event_hash(event: AuditEvent, keys: AuditKeys) -> str:
    """HMAC-SHA-256 (hex) by the event's key over the canonical JSON of what it tells and the hash before it; SHA-256 of one without a
    key. :raises KeyError: for a key that is not in ``keys``."""
    canonical = json.dumps(body_of(event, keys), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    if not event.key_id:
        return hashlib.sha256(canonical).hexdigest()
    return hmac.new(keys.secrets[event.key_id], canonical, hashlib.sha256).hexdigest()


def body_of(event: AuditEvent, keys: AuditKeys) -> dict[str, Any]:
    """What the hash covers: with pseudonyms for people, whether or not those stand in the event already, or as the event is where it
    is from before pseudonyms. :raises KeyError: for pseudonyms of a key that is not in ``keys``."""
    body = {name: getattr(event, name) for name in _HASHED} | {"at": event.at.isoformat(timespec="milliseconds")}
    if event.key_id:
        body["key_id"] = event.key_id
    if not event.pseudonym_id:
        return body
    if keys.pseudonyms is None or keys.pseudonyms.key_id != event.pseudonym_id:
        raise KeyError(event.pseudonym_id)
    body["data"] = without_names(event.action, event.data, keys.pseudonyms.of_name)
    return {**replaced_in(body, keys.pseudonyms.in_text), "pseudonym_id": event.pseudonym_id}


def without_names(action: str, data: Mapping[str, Any], replace: Callable[[str], str]) -> dict[str, Any]:
    """The data of an event with every name of a person replaced."""
    names = ACTIONS[action].names if action in ACTIONS else frozenset()
    return {field: replace(value) if field in names and isinstance(value, str) else value for field, value in data.items()}


def find_breaks(events: Iterable[AuditEvent], keys: AuditKeys) -> Iterator[ChainBreak]:
    """Every place where the events of one entity, in sequence order, do not form the chain they claim to be. Whoever has no key could
    leave it out: after an event with one, there is none without. So it is with pseudonyms, after a day in which they come to all
    processes."""
    expected_sequence, prev_hash, is_keyed = 1, GENESIS, False
    named_until = datetime.max.replace(tzinfo=UTC)
    for event in events:
        if event.sequence != expected_sequence:
            yield ChainBreak(event.entity, expected_sequence, f"event {expected_sequence} is missing; {event.sequence} follows")
        elif event.prev_hash != prev_hash:
            yield ChainBreak(event.entity, event.sequence, "does not continue the event before it")
        if flaw := flaw_of(event, keys):
            yield ChainBreak(event.entity, event.sequence, flaw)
        elif is_keyed and not event.key_id:
            yield ChainBreak(event.entity, event.sequence, "has no key in its hash, and an event before it has one")
        elif not event.pseudonym_id and event.at > named_until:
            yield ChainBreak(event.entity, event.sequence, "has people in its hash, and an event before it has pseudonyms")
        if event.pseudonym_id:
            named_until = min(named_until, event.at + CHANGE_OVER)
        is_keyed = is_keyed or bool(event.key_id and (keys.plain_until is None or event.at > keys.plain_until))
        expected_sequence, prev_hash = event.sequence + 1, event.hash


def check_chain(entity: str, events: Sequence[AuditEvent], keys: AuditKeys, *, version: int, audit_head: str) -> list[ChainBreak]:
    """The breaks of a chain, and whether it ends where the item says."""
    breaks = list(find_breaks(events, keys))
    if not events:
        return [ChainBreak(entity, version, "there is an item, and no event tells of it")]
    if (events[-1].sequence, events[-1].hash) != (version, audit_head):
        words = f"the item is at version {version} but the chain ends at {events[-1].sequence} or with another hash"
        breaks.append(ChainBreak(entity, version, words))
    return breaks


def flaw_of(event: AuditEvent, keys: AuditKeys) -> str:
    """What is wrong with the event by itself; empty when it is as it was written."""
    if event.flaw:
        return event.flaw
    if event.key_id and event.key_id not in keys.secrets:
        return f"has a hash by the key {event.key_id}, which is not in PORTAL_AUDIT_KEYS"
    if not event.key_id and keys.plain_until is not None and event.at > keys.plain_until:
        return "has no key in its hash, and was written after PORTAL_AUDIT_PLAIN_UNTIL"
    if event.pseudonym_id and (keys.pseudonyms is None or keys.pseudonyms.key_id != event.pseudonym_id):
        return "has pseudonyms in its hash that are not by PORTAL_PSEUDONYM_KEY"
    try:
        is_whole = event_hash(event, keys) == event.hash
    except TypeError:
        # What JSON can't hold was never written by the portal.
        is_whole = False
    return "" if is_whole else "was changed after it was written"
