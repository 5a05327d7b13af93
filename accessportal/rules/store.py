"""The only user of the AccessRules item class.

What is in force is what the current rule set names, by name and version. Versions never change, so a reader sees one set
or the next, whole, however far a load has come (docs/subsystems/rules.md).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from pynamodb.expressions.update import Action

from accessportal.audit.operations import Prepared, prepare_event
from accessportal.audit.states import Draft
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import from_epoch, to_epoch
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.kernel.pages import Unreadable, UnreadableItem
from accessportal.rules.loading import hash_of
from accessportal.rules.models import CURRENT, OWN_ATTRIBUTES, SET_ENTITY, SET_KEY, RuleItem, rule_entity
from accessportal.rules.states import Approval, Effect, EndsWith, People, Rule, RuleHead, RuleSet, RuleVersions, Ticket
from accessportal.rules.terms import kinds, terms_of
from accessportal.store.listing import Listing
from accessportal.store.newer_versions import NewerItem
from accessportal.store.reading import BROKEN, get_item, read_items, scan_records
from accessportal.store.transactions import Change, ConditionFailed, Guard, Insert, Step, Upsert, transact

# Three items a changed rule and three for the set; DynamoDB takes 100 in a transaction.
CHANGES_PER_WRITE = 32
_cached: RuleSet | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class _Staged:
    """A new version of a rule that is to be written; ``head`` is the current copy that it follows."""

    rule: Rule
    action: str
    head: RuleItem | None


def current_set() -> RuleSet:
    """Read the rules in force: one small strong read, and the rules themselves only when the set has changed. Unavailable when they can't
    be read whole."""
    global _cached
    pointer = get_item(RuleItem, SET_KEY, CURRENT)
    if pointer is None:
        return RuleSet(version=0, rules=())
    cached = _cached
    if cached is None or cached.audit_head != pointer.audit_head:
        _cached = cached = _read_set(pointer)
    return cached


def rule_history(*, name: str) -> tuple[Rule, ...]:
    """Read every version of a rule that was ever written, newest first, the one that removed it included. After a load of more than 32
    changed rules was broken off, the newest may not be in force yet."""
    versions = Listing("rules.history", RuleItem, _record, newest_first=True, consistent=True)
    # A rule's partition holds its versions and the current copy alone; the copy is not a version.
    return tuple(versions.every(name, where=RuleItem.version > CURRENT))


def rule_set_head() -> RuleHead | None:
    """Where the chain of the rule sets must end, ``None`` before the first load; strongly read, also when the rules can't be."""
    pointer = get_item(RuleItem, SET_KEY, CURRENT)
    return None if pointer is None else RuleHead(int(pointer.current_version or 0), pointer.audit_head or "")


def every_versions(*, past: Callable[[Unreadable], object]) -> Iterator[RuleVersions]:
    """Of every rule that there ever was, and of the sets, strongly read. The whole table: for checks by command alone."""
    for name, items in itertools.groupby(scan_records(RuleItem, lambda item: item, past=past), key=lambda item: item.rule_name):
        yield _versions(name, items)


def find_versions(entity: str) -> RuleVersions | None:
    """Of one rule, or of the sets, strongly read."""
    name = SET_KEY if entity == SET_ENTITY else entity.partition("#")[2]
    items = list(Listing("rules.versions", RuleItem, lambda item: item, consistent=True).every(name))
    return _versions(name, items) if items else None


def _versions(name: str, items: Iterable[RuleItem]) -> RuleVersions:
    told = {int(item.version): item for item in items}
    head = told.pop(CURRENT, None)
    return RuleVersions(
        entity=SET_ENTITY if name == SET_KEY else rule_entity(name),
        version=0 if head is None else int(head.current_version or 0),
        audit_head="" if head is None else head.audit_head or "",
        versions={number: _words_of(item) for number, item in sorted(told.items())},
        of_each={number: _numbers_in(item) for number, item in told.items() if item.entries is not None},
        is_removed=head is not None and bool(head.removed),
    )


def _numbers_in(item: RuleItem) -> tuple[int, ...]:
    """Which version of each rule is in a set; none where that can't be read."""
    try:
        return tuple(int(one["version"]) for one in item.entries)
    except BROKEN:
        return ()


def _words_of(item: RuleItem) -> str:
    """What an event tells of this version, by its words. Those of a newer version of the portal are not known here."""
    try:
        return " ".join(entry["name"] for entry in item.entries or ()) if item.rule_name == SET_KEY else hash_of(_record(item))
    except NewerItem:
        return item.hash or ""
    except BROKEN:
        return "can't be read"


def put_in_force(base: RuleSet, rules: Sequence[Rule], *, actor: Actor, now: datetime) -> RuleSet:
    """Put ``rules`` in force in place of ``base``, or refuse with Conflict when another set is by now. Up to ``CHANGES_PER_WRITE`` changed
    rules go in one transaction with the set; more are written before it, and the same call after a crash goes on where it stopped."""
    if base.newer:
        names = ", ".join(f"{one.key} ({one.why})" for one in base.newer)
        message = f"A newer version of the portal has made rules in force: {names}. Load rules with that version."
        raise Conflict(message, code="rules_newer", present=base)
    kept = {rule.name for rule in rules}
    heads = _heads([*kept, *(rule.name for rule in base.rules)])
    staged = [*_new_versions(rules, heads), *_removals([rule for rule in base.rules if rule.name not in kept], heads)]
    written = {one.rule.name: one.rule.version for one in staged}
    numbered = tuple(
        dataclasses.replace(rule, version=written.get(rule.name) or int(heads[rule.name].current_version or 0)) for rule in rules
    )
    event, final = _set_steps(base, numbered, staged, actor=actor, now=now)
    try:
        while len(staged) > CHANGES_PER_WRITE:
            batch, staged = staged[:CHANGES_PER_WRITE], staged[CHANGES_PER_WRITE:]
            transact([*_still_in_force(base), *_rule_steps(batch, actor=actor, now=now)])
        transact([*final, *_rule_steps(staged, actor=actor, now=now)])
    except ConditionFailed as error:
        pointer = get_item(RuleItem, SET_KEY, CURRENT)
        # The answer to our own write may have been lost and the write repeated: then the head is ours.
        if pointer is None or pointer.audit_head != event.head:
            message = "Somebody else is loading rules, or has just done so. Look at a new plan, then load again."
            raise Conflict(message, code="rules_changed", present=current_set()) from error
    return current_set()


def _read_set(pointer: RuleItem) -> RuleSet:
    manifest = get_item(RuleItem, SET_KEY, int(pointer.current_version or 0))
    if manifest is None:
        raise _incomplete("its list of rules is missing")
    listed = list(manifest.entries or [])
    try:
        newer = [entry for entry in listed if "kind" in entry and entry["kind"] not in kinds()]
        entries = [entry for entry in listed if entry not in newer]
        wanted = [(entry["name"], int(entry["version"])) for entry in entries]
    except BROKEN as error:
        raise _incomplete("its list of rules was changed") from error
    found = _read_items(wanted)
    rules = []
    for position, entry in enumerate(entries):
        item = found.get((entry["name"], int(entry["version"])))
        rule = None if item is None else _unchanged(item, entry["hash"])
        if rule is None:
            raise _incomplete(f"version {entry['version']} of rule {entry['name']} is missing or was changed")
        rules.append(dataclasses.replace(rule, position=position))
    return RuleSet(
        version=int(manifest.version),
        rules=tuple(rules),
        audit_head=pointer.audit_head or "",
        applied_at=from_epoch(manifest.applied_at),
        applied_by=manifest.applied_by,
        newer=tuple(Unreadable(RuleItem.base_table_name, entry["name"], _not_known(entry["kind"]), is_newer=True) for entry in newer),
    )


def _not_known(kind: str) -> str:
    return f"its kind {kind[:40]!r} is not known here"


def _newer(what: str) -> Unavailable:
    return Unavailable(f"The {what} in force was made by a newer version of the portal. Update this process.", code="rules_newer")


def _unchanged(item: RuleItem, hash_in_set: str) -> Rule | None:
    """The rule, if it is the one that was put in force. Its hash is recomputed: the one beside it says nothing of it to somebody
    who can write the item."""
    try:
        rule = _record(item)
        return rule if rule.hash == hash_in_set == hash_of(rule) else None
    except BROKEN:
        return None


def _incomplete(what: str) -> Unavailable:
    return Unavailable(
        f"The rules in force can't be read: {what}. Restore these items of the table from a backup.", code="rules_incomplete"
    )


def _read_items(keys: Iterable[tuple[str, int]]) -> dict[tuple[str, int], RuleItem]:
    """The items that exist, strongly read."""
    try:
        return read_items(RuleItem, lambda item: item, keys)
    except UnreadableItem as error:
        one = error.item
        raise (_newer(f"rule {one.key}") if one.is_newer else _incomplete(f"{one.key} was changed ({one.why})")) from error


def _heads(names: Iterable[str]) -> dict[str, RuleItem]:
    return {name: item for (name, _), item in _read_items((name, CURRENT) for name in set(names)).items()}


def _new_versions(rules: Sequence[Rule], heads: dict[str, RuleItem]) -> list[_Staged]:
    """A rule whose newest version says the same already needs none (it may come from a load that stopped half-way)."""
    staged = []
    for rule in rules:
        head = heads.get(rule.name)
        if head is None:
            staged.append(_Staged(dataclasses.replace(rule, version=1), "rule.added", None))
        elif head.removed or head.hash != rule.hash:
            action = "rule.added" if head.removed else "rule.changed"
            staged.append(_Staged(dataclasses.replace(rule, version=int(head.current_version or 0) + 1), action, head))
    return staged


def _removals(rules: Sequence[Rule], heads: dict[str, RuleItem]) -> list[_Staged]:
    staged = []
    for rule in rules:
        head = heads[rule.name]
        if not head.removed:
            last = dataclasses.replace(rule, version=int(head.current_version or 0) + 1, is_removed=True)
            staged.append(_Staged(last, "rule.removed", head))
    return staged


def _rule_steps(staged: Sequence[_Staged], *, actor: Actor, now: datetime) -> list[Step]:
    steps: list[Step] = []
    for one in staged:
        event = prepare_event(
            _rule_draft(one),
            entity=rule_entity(one.rule.name),
            sequence=one.rule.version,
            prev_hash=(one.head.audit_head or "") if one.head else "",
            actor=actor,
            now=now,
        )
        body = {**_body(one.rule), "applied_at": to_epoch(now), "applied_by": actor.name}
        steps.append(Insert(RuleItem(one.rule.name, one.rule.version, **body)))
        newest = {**body, "current_version": one.rule.version, "audit_head": event.head}
        if one.head is None:
            steps.append(Insert(RuleItem(one.rule.name, CURRENT, **newest)))
        else:
            actions = [_set(name, value) for name, value in newest.items()]
            steps.append(Change(RuleItem, one.rule.name, actions, RuleItem.current_version == one.rule.version - 1, CURRENT))
        steps.append(event.step)
    return steps


def _rule_draft(one: _Staged) -> Draft:
    data: dict[str, Any] = {"version": one.rule.version}
    if one.action != "rule.removed":
        data["hash"] = one.rule.hash
    if one.action != "rule.added" and one.head is not None:
        data["old_hash"] = one.head.hash or ""
    return Draft(action=one.action, subject=one.rule.name, data=data)


def _set_steps(
    base: RuleSet, rules: Sequence[Rule], staged: Sequence[_Staged], *, actor: Actor, now: datetime
) -> tuple[Prepared, list[Step]]:
    """The steps that put the set in force, and its event."""
    version = base.version + 1
    names = {kind: [one.rule.name for one in staged if one.action == f"rule.{kind}"] for kind in ("added", "changed", "removed")}
    told = {"version": version, "order": [rule.name for rule in rules], "versions": [rule.version for rule in rules], **names}
    event = prepare_event(
        Draft(action="rules.applied", subject="rules", data=told),
        entity=SET_ENTITY,
        sequence=version,
        prev_hash=base.audit_head,
        actor=actor,
        now=now,
    )
    # The kind tells an older version what it need not understand.
    entries = [{"name": rule.name, "version": rule.version, "hash": rule.hash, "kind": rule.kind} for rule in rules]
    stamp: dict[str, Any] = {"applied_at": to_epoch(now), "applied_by": actor.name}
    pointer = [_set(name, value) for name, value in {**stamp, "current_version": version, "audit_head": event.head}.items()]
    move: Step
    if base.version == 0:
        move = Upsert(RuleItem, SET_KEY, pointer, RuleItem.rule_name.does_not_exist(), CURRENT)
    else:
        move = Change(RuleItem, SET_KEY, pointer, RuleItem.current_version == base.version, CURRENT)
    return event, [move, Insert(RuleItem(SET_KEY, version, entries=entries, **stamp)), event.step]


def _still_in_force(base: RuleSet) -> list[Step]:
    """Stops a load that has lost before it writes more. Nothing guards the very first load: there is no set to look at."""
    return [Guard(RuleItem, SET_KEY, RuleItem.current_version == base.version, CURRENT)] if base.version else []


def _set(name: str, value: Any) -> Action:
    attribute: Any = getattr(RuleItem, name)
    action: Action = attribute.remove() if value is None else attribute.set(value)
    return action


def _body(rule: Rule) -> dict[str, Any]:
    return {
        "hash": rule.hash,
        "position": rule.position,
        "kind": rule.kind,
        "effect": rule.effect.value,
        "description": rule.description or None,
        "subjects": _people_map(rule.subjects),
        "duration": _duration_map(rule),
        "approval": {
            "required": rule.approval.required,
            "quorum": rule.approval.quorum,
            "approvers": _people_map(rule.approval.approvers),
        },
        "ticket": {"required": rule.ticket.required, "pattern": rule.ticket.pattern},
        "ends_with": rule.ends_with.value if rule.ends_with else None,
        "removed": rule.is_removed or None,
        **_terms_attributes(rule),
    }


def _terms_attributes(rule: Rule) -> dict[str, Any]:
    """Each kind's own keys alone: the targets, some in attributes of their own, and the others together."""
    own = rule.terms.stored()
    found = {name: own.pop(name, None) for name in ("targets", *OWN_ATTRIBUTES)}
    return found | {"terms": own or None}


def _duration_map(rule: Rule) -> dict[str, int]:
    found = {"default": rule.default_duration_seconds, "min": rule.min_duration_seconds, "max": rule.max_duration_seconds}
    return found | {"max_total": rule.max_total_seconds} if rule.max_total_seconds else found


def _people_map(who: People) -> dict[str, list[str]]:
    found = {"groups": list(who.groups), "users": list(who.users)}
    return found | {"groups_only": list(who.groups_only)} if who.groups_only else found


def _record(item: RuleItem) -> Rule:
    if item.kind not in kinds():
        raise NewerItem(_not_known(item.kind or ""))
    own = {name: getattr(item, name) for name in OWN_ATTRIBUTES if getattr(item, name) is not None}
    own |= {"targets": item.targets.as_dict(), **(item.terms.as_dict() if item.terms is not None else {})}
    duration, approval, ticket = item.duration.as_dict(), item.approval.as_dict(), item.ticket.as_dict()
    return Rule(
        name=item.rule_name,
        version=int(item.version),
        position=int(item.position or 0),
        hash=item.hash or "",
        effect=Effect(item.effect),
        subjects=_people(item.subjects.as_dict()),
        terms=terms_of(item.kind).restored(own),
        default_duration_seconds=int(duration["default"]),
        min_duration_seconds=int(duration["min"]),
        max_duration_seconds=int(duration["max"]),
        approval=Approval(bool(approval["required"]), int(approval["quorum"]), _people(approval["approvers"])),
        ticket=Ticket(bool(ticket["required"]), str(ticket["pattern"])),
        applied_at=from_epoch(item.applied_at),
        applied_by=item.applied_by,
        description=item.description or "",
        is_removed=bool(item.removed),
        ends_with=EndsWith(item.ends_with) if item.ends_with else None,
        max_total_seconds=int(duration.get("max_total", 0)),
    )


def _people(raw: dict[str, Any]) -> People:
    return People(groups=tuple(raw["groups"]), users=tuple(raw["users"]), groups_only=tuple(raw.get("groups_only", ())))
