"""The chain: pure functions over events."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from accessportal.audit.actions import ACTIONS
from accessportal.audit.config import AuditKeys
from accessportal.audit.states import AuditEvent, ChainBreak, Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision, allow, refuse
from accessportal.kernel.lasting import operators_right, rule_on_effect
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


def may_erase(actor: Actor) -> Decision:
    """Whether ``actor`` may take people out of the tables, which is for good."""
    if actor.is_system or actor.is_operator:
        return rule_on_effect(operators_right(actor)).decision
    return refuse("Only operators may erase people. Ask an operator.", code="operators_only")


def may_remove(actor: Actor) -> Decision:
    """Whether ``actor`` may have old events removed from the tables, which is for good."""
    if actor.is_system or actor.is_operator:
        return rule_on_effect(operators_right(actor)).decision
    return refuse("Only operators may have old events removed. Ask an operator.", code="operators_only")


def event_hash(event: AuditEvent, keys: AuditKeys) -> str:
    """HMAC-SHA-256 (hex) by the event's key over the canonical JSON of what it tells and the hash before it; SHA-256 of one without a
    key. :raises KeyError: for a key that is not in ``keys``."""
    return _digest(body_of(event, keys), event.key_id, keys)


def seal_of(event: AuditEvent, keys: AuditKeys) -> str:
    """Vouch for an event of before pseudonyms, which was found whole, so that people in it can be erased; its hash stays, and all who
    continue it with it."""
    pseudonym_id = keys.pseudonyms.key_id if keys.pseudonyms else ""
    body = body_of(replace(event, seal=f"{pseudonym_id}:"), keys)
    return f"{pseudonym_id}:{keys.signing_id}:{_digest(body, keys.signing_id, keys)}"


def _digest(body: Mapping[str, Any], key_id: str, keys: AuditKeys) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    if not key_id:
        return hashlib.sha256(canonical).hexdigest()
    return hmac.new(keys.secrets[key_id], canonical, hashlib.sha256).hexdigest()


def body_of(event: AuditEvent, keys: AuditKeys) -> dict[str, Any]:
    """What the hash covers, or the seal where there is one: with pseudonyms for people, whether or not those stand in the event already,
    or as the event is where it is from before pseudonyms. :raises KeyError: for pseudonyms of a key that is not in ``keys``."""
    body = {name: getattr(event, name) for name in _HASHED} | {"at": event.at.isoformat(timespec="milliseconds")}
    if event.key_id:
        body["key_id"] = event.key_id
    pseudonym_id = _pseudonyms_of(event)
    if not pseudonym_id:
        return body
    if keys.pseudonyms is None or keys.pseudonyms.key_id != pseudonym_id:
        raise KeyError(pseudonym_id)
    body["data"] = without_names(event.action, event.data, keys.pseudonyms.of_name)
    return {**replaced_in(body, keys.pseudonyms.in_text), **({"sealed": event.hash} if event.seal else {"pseudonym_id": pseudonym_id})}


def _pseudonyms_of(event: AuditEvent) -> str:
    return event.pseudonym_id or event.seal.partition(":")[0]


def without_names(action: str, data: Mapping[str, Any], pseudonym: Callable[[str], str]) -> dict[str, Any]:
    """The data of an event with every name of a person replaced."""
    names = ACTIONS[action].names if action in ACTIONS else frozenset()
    return {field: pseudonym(value) if field in names and isinstance(value, str) else value for field, value in data.items()}


def check_of(value: Any) -> str:
    """What tells that a value is still the same, however DynamoDB writes its numbers, and nothing else of it."""
    canonical = json.dumps(_kept(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=repr)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _kept(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _kept(one) for name, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_kept(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


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
    if (pseudonym_id := _pseudonyms_of(event)) and (keys.pseudonyms is None or keys.pseudonyms.key_id != pseudonym_id):
        return "has pseudonyms in its hash that are not by PORTAL_PSEUDONYM_KEY"
    try:
        is_whole = _is_sealed(event, keys) if event.seal else event_hash(event, keys) == event.hash
    except TypeError:
        # What JSON can't hold was never written by the portal.
        is_whole = False
    return "" if is_whole else "was changed after it was written"


def _is_sealed(event: AuditEvent, keys: AuditKeys) -> bool:
    """A seal without a key is believed only where there are none: it could be anybody's."""
    _, _, rest = event.seal.partition(":")
    key_id, _, digest = rest.partition(":")
    is_known = key_id in keys.secrets if keys.secrets else not key_id
    return is_known and hmac.compare_digest(_digest(body_of(event, keys), key_id, keys), digest)
