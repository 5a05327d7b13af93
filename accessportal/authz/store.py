"""The only user of the items of approvals, relationships and scopes. Every change is one transaction with its audit event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from pynamodb.expressions.condition import Condition

from accessportal.audit import operations as audit
from accessportal.audit import queries as audit_log
from accessportal.audit.states import Draft
from accessportal.authz.models import (
    LISTED,
    ApprovalItem,
    KeyItem,
    RecordItem,
    RelationshipItem,
    ScopeItem,
    gate_key,
    gates_of,
    is_gate,
    key_within,
    place_of,
    places_within,
    root_of,
    shard_of,
)
from accessportal.authz.policy.ends import is_over
from accessportal.authz.states import (
    DIRECT,
    KEPT,
    Approval,
    Names,
    NoSuchRecord,
    Relationship,
    Scope,
    ScopeFacts,
    ScopeState,
    end_of_holders,
)
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.counts import Count
from accessportal.kernel.pages import Page, Unreadable
from accessportal.store.keys import join_key
from accessportal.store.listing import Listing
from accessportal.store.reading import count_items, count_once, get_item, read_items, scan_records
from accessportal.store.records import Records
from accessportal.store.transactions import Change, ConditionFailed, Guard, Overtaken, Step, Upsert

R = TypeVar("R", Approval, Relationship)
B = TypeVar("B", bound=Approval | Relationship)
_KEY_KEPT = timedelta(days=1)
_ENDS = "ends"


class ScopeClosed(Exception):
    """The scope is being deleted, or was never opened."""


def _key(record: Approval | Relationship) -> tuple[str, str]:
    return key_of(record.scope, record.names)


def key_of(scope: Scope, names: Names) -> tuple[str, str]:
    """Hash and range key of a record."""
    return key_within(scope, names[0]), join_key(*names[1:])


def _indexed(record: Approval | Relationship) -> dict[str, Any]:
    shard = shard_of(*record.names)
    return {
        "key": record.key,
        "target": key_within(record.scope, *record.target),
        "shard": f"{root_of(record.scope)}#{shard}",
        "place": place_of(record.scope, *record.names),
        "ends": None if record.expires_at is None else f"{_ENDS}#{shard}",
        "purge_at": None if record.expires_at is None else to_epoch(record.expires_at + KEPT),
    }


def _going_on(record: B) -> B:
    """The new record with where the chain of one that was there before ends; the same where there was none."""
    last = next(iter(audit_log.history(record.entity, cursor=None, limit=1, newest_first=True).items), None)
    return record if last is None else replace(record, version=last.sequence, audit_head=last.hash)


class _Keyed(Records[Any, B]):
    """Records whose key is made of their names: an item that somebody put under another's says nothing of either."""

    def record(self, item: Any) -> B:
        """:raises ValueError: also for an end that is not the latest of those until which it is owed."""
        record = super().record(item)
        if key_of(record.scope, record.names) != (item.pk, item.sk):
            raise ValueError("its names are not those of its key")
        if not record.held_until:
            # Another program's, that says nothing of holders.
            return replace(record, held_until={DIRECT: 0 if record.expires_at is None else to_epoch(record.expires_at)})
        if end_of_holders(record.held_until) != record.expires_at:
            raise ValueError("expires_at is not the latest end in held_until")
        return record


@dataclass(frozen=True)
class Ledger(Generic[R]):
    """The table of one of the two kinds of records, with its lists."""

    kind: type[R]
    model: type[RecordItem]
    records: Records[Any, R]

    @property
    def word(self) -> str:
        """With it the names of its events begin."""
        return self.kind.word

    @property
    def fields(self) -> Names:
        return self.kind.fields

    def get_many(self, wanted: Iterable[tuple[Scope, Names]], *, past: Callable[[Unreadable], object]) -> dict[tuple[str, str], R]:
        """Those that exist, by :func:`key_of`, strongly read, 100 to a request; ``past`` is told of what can't be read."""
        return self.records.get_many([key_of(scope, names) for scope, names in wanted], past=past)

    def get(self, scope: Scope, names: Names) -> R | None:
        """Strongly read.

        :raises Unavailable: when the store did not answer, or the item can't be read.
        """
        return self.records.get(*key_of(scope, names))

    def get_live(self, scope: Scope, names: Names, now: datetime) -> R:
        """The record that counts, strongly read.

        :raises NoSuchRecord: when there is none, or it is over.
        """
        found = self.get(scope, names)
        if found is None or is_over(found.expires_at, now):
            raise NoSuchRecord(self.word)
        return found

    def page_of_holder(self, scope: Scope, holder: str, *, below: str = "", cursor: str | None, limit: int) -> Page[R]:
        """What an identity or a subject has in a scope, strongly read; ``below``: the beginning of the range key."""
        where = self.model.sk.startswith(below) if below else None
        held = Listing(f"{self.word}.of_holder", self.model, self.records.record, consistent=True)
        return held(key_within(scope, holder), cursor=cursor, limit=limit, where=where, bound=below)

    def page_of_target(self, scope: Scope, target: Sequence[str], *, cursor: str | None, limit: int) -> Page[R]:
        """Who has what is asked for on a resource, or stands in relation to an object."""
        found = Listing(f"{self.word}.of_target", self.model, self.records.record, self.model.target_index)
        return found(key_within(scope, *target), cursor=cursor, limit=limit)

    def page_of_shard(self, scope: Scope, shard: int, *, is_wide: bool, cursor: str | None, limit: int) -> Page[R]:
        """One share of a scope's records, with those below it where ``is_wide``."""
        begin, end = places_within(scope, is_wide=is_wide)
        listed = Listing(f"{self.word}.of_scope", self.model, self.records.record, self.model.scope_index)
        where = self.model.place.between(begin, end)
        return listed(f"{root_of(scope)}#{shard}", cursor=cursor, limit=limit, where=where, bound=begin)

    def every(self, *, past: Callable[[Unreadable], object]) -> Iterator[R]:
        """The whole table, strongly read, with what is over; ``past`` is told of what can't be read. For checks, not for pages."""
        return scan_records(self.model, self.records.record, past=past)

    def count_shard(self, scope: Scope, shard: int, *, is_wide: bool, now: datetime) -> int:
        """How many of one share are not over."""
        where, only = self.model.place.between(*places_within(scope, is_wide=is_wide)), self._is_live(now)
        return count_items(self.model, f"{root_of(scope)}#{shard}", self.model.scope_index, where=where, only=only)

    def count_shard_once(self, scope: Scope, shard: int, *, is_wide: bool, now: datetime) -> Count:
        """The same as far as one request reaches."""
        where, only = self.model.place.between(*places_within(scope, is_wide=is_wide)), self._is_live(now)
        return count_once(self.model, f"{root_of(scope)}#{shard}", self.model.scope_index, where=where, only=only)

    def _is_live(self, now: datetime) -> Condition:
        is_live: Condition = self.model.expires_at.does_not_exist() | (self.model.expires_at > to_epoch(now))
        return is_live

    def page_ending(self, shard: int, *, until: datetime, cursor: str | None, limit: int) -> Page[R]:
        """One share of what ends until then, the nearest first."""
        ending = Listing(f"{self.word}.ending", self.model, self.records.record, self.model.end_index)
        where = self.model.expires_at <= to_epoch(until)
        return ending(f"{_ENDS}#{shard}", cursor=cursor, limit=limit, where=where, bound=to_epoch(until))

    def _draft(self, record: R, verb: str, data: dict[str, Any]) -> Draft:
        told = {name: value for name, value in data.items() if value is not None}
        if isinstance(record, Relationship):
            told["relation_type"] = record.relation_type.value
        return Draft(f"{self.word}.{verb}", record.names[0], {"key": record.key, **told}, scope=record.scope)

    def insert(self, record: R, *, data: dict[str, Any], further: Sequence[Step] = (), actor: Actor, now: datetime) -> R:
        """A new record in an open scope, and its event, which goes on with the chain of one that was there before.

        :raises Overtaken: when there is one.
        :raises ScopeClosed: unless the scope is open.
        :raises ConditionFailed: when one of ``further`` does not hold.
        """
        try:
            return self._insert(record, data, further, actor, now)
        except Overtaken:
            again = _going_on(record)
            if again is record or self.get(record.scope, record.names) is not None:
                raise
            return self._insert(again, data, further, actor, now)

    def _insert(self, record: R, data: dict[str, Any], further: Sequence[Step], actor: Actor, now: datetime) -> R:
        gate = Guard(ScopeItem, gate_key(record.scope, *record.names), ScopeItem.state == ScopeState.OPEN.value)
        draft = self._draft(record, "granted", data)
        try:
            return audit.insert(self.records, record, draft=draft, actor=actor, now=now, further=[gate, *further])
        except ConditionFailed as error:
            if error.step is gate:
                raise ScopeClosed from error
            raise

    def change(
        self, before: R, after: R, verb: str, *, data: dict[str, Any], further: Sequence[Step] = (), actor: Actor, now: datetime
    ) -> R:
        """:raises Overtaken: when somebody else changed it first.

        :raises ConditionFailed: when one of ``further`` does not hold.
        """
        draft = self._draft(after, verb, data)
        return audit.change(self.records, before, after, draft=draft, actor=actor, now=now, further=further)

    def remove(self, record: R, verb: str, *, data: dict[str, Any], further: Sequence[Step] = (), actor: Actor, now: datetime) -> None:
        """:raises Overtaken: when somebody else changed it first.

        :raises ConditionFailed: when one of ``further`` does not hold.
        """
        audit.remove(self.records, record, draft=self._draft(record, verb, data), actor=actor, now=now, further=further)

    def move(self, record: R, to: Scope, *, actor: Actor, now: datetime) -> None:
        """Let the record leave its scope and arrive in another open one, at once.

        :raises Overtaken: when somebody else changed it first.
        :raises ScopeClosed: unless the other scope is open.
        :raises ConditionFailed: when there is one of these names.
        """
        moved = _going_on(replace(record, scope=to, version=0, audit_head=""))
        gate = Guard(ScopeItem, gate_key(to, *record.names), ScopeItem.state == ScopeState.OPEN.value)
        expires_at = None if record.expires_at is None else to_epoch(record.expires_at)
        made, event = audit.told(moved, self._draft(moved, "granted", {"expires_at": expires_at}), actor=actor, now=now)
        draft = self._draft(record, "moved", {"moved_to": str(to)})
        try:
            audit.remove(self.records, record, draft=draft, actor=actor, now=now, further=[gate, self.records.insertion(made), event])
        except ConditionFailed as error:
            if error.step is gate:
                raise ScopeClosed from error
            raise

    def remove_with_scope(self, record: R, *, actor: Actor, now: datetime) -> None:
        """Delete and count it, only while its scope is being deleted: who comes late must not touch what was granted after that.

        :raises Overtaken: when somebody else changed it first.
        :raises ConditionFailed: when its scope is not being deleted any more.
        """
        is_deleting = ScopeItem.state == ScopeState.DELETING.value
        counted = Change(ScopeItem, gate_key(record.scope, *record.names), [ScopeItem.removed.add(1)], is_deleting)
        draft = self._draft(record, "deleted", {})
        audit.remove(self.records, record, draft=draft, actor=actor, now=now, further=[counted])


APPROVALS: Ledger[Approval] = Ledger(Approval, ApprovalItem, _Keyed(ApprovalItem, Approval, key=_key, also=_indexed))
RELATIONSHIPS: Ledger[Relationship] = Ledger(
    Relationship, RelationshipItem, _Keyed(RelationshipItem, Relationship, key=_key, also=_indexed)
)
LEDGERS: tuple[Ledger[Any], ...] = (APPROVALS, RELATIONSHIPS)


def _listed(facts: ScopeFacts) -> dict[str, Any]:
    return {
        "list": None if facts.state is ScopeState.DELETED else LISTED,
        "deleting": LISTED if facts.state is ScopeState.DELETING else None,
    }


_scopes = Records(ScopeItem, ScopeFacts, also=_listed)
get_scope = _scopes.get
every_scope = partial(scan_records, ScopeItem, lambda item: None if is_gate(item.scope) else _scopes.record(item))
"""The whole table, for checks: also those that are deleted."""
get_scopes = _scopes.get_many
page_of_scopes = partial(Listing("authz.scopes", ScopeItem, _scopes.record, ScopeItem.list_index), LISTED)
page_of_deleting = partial(Listing("authz.deleting", ScopeItem, _scopes.record, ScopeItem.deleting_index), LISTED)


def keep_scope(before: ScopeFacts, after: ScopeFacts, verb: str, *, data: dict[str, Any], actor: Actor, now: datetime) -> ScopeFacts:
    """Write the facts of a scope, new (version 0) or changed, and with a change of its state all its gates.

    :raises Overtaken: when somebody else changed it first.
    """
    told = {name: value for name, value in data.items() if value is not None}
    draft = Draft(f"authz_scope.{verb}", after.scope, told, scope=after.scope)
    is_turned = before.version == 0 or before.state is not after.state
    gates = [_gate(key, after.state) for key in gates_of(after.scope)] if is_turned else []
    if before.version == 0:
        return audit.insert(_scopes, after, draft=draft, actor=actor, now=now, further=gates)
    return audit.change(_scopes, before, after, draft=draft, actor=actor, now=now, further=gates)


def _gate(key: str, state: ScopeState) -> Upsert:
    mark = ScopeItem.state
    return Upsert(ScopeItem, key, [mark.set(state.value), ScopeItem.removed.set(0)], mark.exists() | mark.does_not_exist())


def count_removed(scope: Scope) -> int:
    """How many records the deletion of the scope that is under way has removed; strongly read."""
    return sum(read_items(ScopeItem, lambda gate: int(gate.removed or 0), gates_of(scope)).values())


def request_of_key(name: str, *, now: datetime) -> str | None:
    """The hash of the request that a program's key stands for, strongly read; none when its day is over."""
    found = get_item(KeyItem, name)
    return None if found is None or found.purge_at <= to_epoch(now) else found.request_hash


def key_step(name: str, request_hash: str, *, now: datetime) -> Upsert:
    """The step that lets the key stand for the request, unless it stands for one already."""
    is_free = KeyItem.name.does_not_exist() | (KeyItem.purge_at <= to_epoch(now))
    kept_until = to_epoch(now + _KEY_KEPT)
    return Upsert(KeyItem, name, [KeyItem.request_hash.set(request_hash), KeyItem.purge_at.set(kept_until)], is_free)
