"""Who had what at a moment, by brute force: every event up to it, read with other eyes than the history's."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent
from accessportal.history.states import Thing, ThingKind
from accessportal.store.keys import split_key

Having = set[tuple[str, str]]
"""Who, and with which right (empty: as a group below)."""
_THERE = ("CREATING", "PRESENT", "DELETING")
_ENDS = ("revoked", "expired", "deleted", "moved")


def every_event() -> list[list[AuditEvent]]:
    return [list(events) for _, events in audit.every_chain(segment=0, segments=1)]


class Moment:
    """What all events up to ``at`` leave. ``rights``: by request, the permission set that it asked for."""

    def __init__(self, chains: list[list[AuditEvent]], at: datetime) -> None:
        self.at = at
        self.having: dict[Thing, Having] = defaultdict(set)
        self.parents: dict[str, str] = {}
        self.off: set[str] = set()
        self._sets = {one[0].entity.partition("#")[2]: one[0].data.get("target", {}).get("permission_set", "") for one in chains}
        for chain in chains:
            before = [event for event in chain if event.at <= at]
            if before:
                word = before[0].entity.partition("#")[0]
                getattr(self, f"_read_{word}", lambda _before, _chain: None)(before, chain)

    def above(self, group_id: str) -> list[str]:
        """The groups above, nearest first."""
        found = [self.parents[group_id]] if self.parents.get(group_id) else []
        return found + self.above(found[0]) if found else []

    def members(self, group_id: str, *, below: bool = False) -> set[str]:
        """Whoever is in it, or (``below``: only) in a group below that is not disabled."""
        if group_id in self.off:
            return set()
        inside = [one for one in self.parents if (one == group_id and not below) or group_id in self.above(one)]
        return {who for one in inside if one not in self.off for who, _ in self.having[Thing(ThingKind.GROUP, one)]}

    def who_had(self, thing: Thing) -> Having:
        """With the people of the groups that had it; of a group, all who are in it, and who has a role above."""
        if thing.kind is ThingKind.GROUP:
            direct = set() if thing.name in self.off else self.having[thing]
            roles = {one for up in self.above(thing.name) if up not in self.off for one in self.having[Thing(ThingKind.GROUP, up)]}
            return direct | roles | {(who, "") for who in self.members(thing.name, below=True)}
        having = set(self.having[thing])
        return having | {(member, right) for who, right in having if who.startswith("/") for member in self.members(who)}

    def _read_assignment(self, events: list[AuditEvent], chain: list[AuditEvent]) -> None:
        _, _, account_id, _ = split_key(events[0].entity.partition("#")[2])
        states = [event.data["state"] for event in events if "state" in event.data]
        if not states or states[-1] not in _THERE:
            return
        following = [event.data["state"] for event in chain[len(events) :] if "state" in event.data]
        if states[-1] == "CREATING" and following[:1] == ["ABSENT"]:
            return
        claims: dict[str, str] = {}
        last: dict[str, str] = {}
        for event in events:
            if "claims" not in event.data:
                continue
            subjects = {**last, **claims, event.data.get("claim", ""): event.subject}
            last, claims = claims, {claim: subjects[claim] for claim in event.data["claims"]}
        for claim, who in (claims or last).items():
            self.having[Thing(ThingKind.ACCOUNT, account_id)].add((who, self._sets[claim]))

    def _read_person(self, events: list[AuditEvent], _chain: list[AuditEvent]) -> None:
        held: dict[tuple[str, str], str] = {}
        is_enabled = True
        for event in events:
            group_id, claim = event.data.get("group_id", ""), event.data.get("claim", "")
            match event.action:
                case "user.created" | "user.enabled":
                    is_enabled = True
                case "user.disabled":
                    is_enabled = False
                case "user.granted" | "user.role_changed":
                    held[group_id, claim] = event.data["role"]
                case "user.revoked":
                    held.pop((group_id, claim), None)
                    if not event.data["effective_role"]:
                        held = {key: role for key, role in held.items() if key[0] != group_id}
                case "user.deleted":
                    held = {}
        who = events[0].entity.partition("#")[2]
        for (group_id, _), role in held.items() if is_enabled else ():
            self.having[Thing(ThingKind.GROUP, group_id)].add((who, role))

    def _read_group(self, events: list[AuditEvent], _chain: list[AuditEvent]) -> None:
        group_id = events[0].entity.partition("#")[2]
        for event in events:
            if "parent_id" in event.data:
                self.parents[group_id] = event.data["parent_id"]
            if event.action == "group.deleted":
                self.parents.pop(group_id)
        states = [event.data["state"] for event in events if "state" in event.data]
        self.off |= {group_id} if states[-1:] == ["disabled"] else set()

    def _read_sandbox(self, events: list[AuditEvent], _chain: list[AuditEvent]) -> None:
        verbs = [event.action.partition(".")[2] for event in events]
        begins = [number for number, verb in enumerate(verbs) if verb in ("taken", "adopted")]
        if begins and not {"cleaned", "removed"} & set(verbs[begins[-1] :]):
            who = events[begins[-1]].data["track"].removeprefix("person:")
            self.having[Thing(ThingKind.SANDBOX, events[0].entity.partition("#")[2])].add((who, ""))

    def _read_lease(self, events: list[AuditEvent], _chain: list[AuditEvent]) -> None:
        told = [event for event in events if event.action in ("lease.taken", "lease.frozen", "lease.unfreeze_asked", "lease.ended")]
        if told[-1].action in ("lease.taken", "lease.unfreeze_asked"):
            right = self._sets[told[0].entity.partition("#")[2]]
            self.having[Thing(ThingKind.LEASE, told[-1].data["account"])].add((told[-1].subject, right))

    def _read_approval(self, events: list[AuditEvent], _chain: list[AuditEvent]) -> None:
        _, scope, names = events[0].entity.split("#", 2)
        who, resource, action = split_key(names)
        self._read_record(events[-1], Thing(ThingKind.APPROVAL, resource, scope), who, action)

    def _read_relationship(self, events: list[AuditEvent], _chain: list[AuditEvent]) -> None:
        _, scope, names = events[0].entity.split("#", 2)
        who, relation, name = split_key(names)
        self._read_record(events[-1], Thing(ThingKind.RELATIONSHIP, name, scope), who, relation)

    def _read_record(self, last: AuditEvent, thing: Thing, who: str, right: str) -> None:
        until: Any = last.data.get("expires_at")
        if last.action.partition(".")[2] not in _ENDS and (until is None or until > self.at.timestamp()):
            self.having[thing].add((who, right))
