"""Every item that has a chain in the audit log: where the chain must end, and the facts that its events tell."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from accessportal.access_requests import queries as requests
from accessportal.access_requests.thread import Threaded
from accessportal.assignments import queries as assignments
from accessportal.audit.states import ChainBreak, Chained
from accessportal.authz import queries as authz
from accessportal.directory import queries as directory
from accessportal.directory.states import Group, PersonHolding
from accessportal.evidence.replay import ABOVE, KINDS
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import NoAnswer, NotFound, Unavailable
from accessportal.kernel.pages import Unreadable, UnreadableItem
from accessportal.leases import queries as leases
from accessportal.rules import queries as rules
from accessportal.sandboxes import queries as sandboxes
from accessportal.sandboxes.states import Sandbox, entity_of
from accessportal.store.restores import every_restore, find_restore
from accessportal.tokens import queries as tokens
from accessportal.waiting import queries as waiting
from accessportal.waiting.states import LINES

_ACTOR = system("verify_audit")
_RULE_SET = "ruleset#current"
_LOOKS = 4
Past = Callable[[Unreadable], object]
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Item:
    """``version`` and ``audit_head`` as the item says, and its ``facts`` (``None``: another program has changed it since). ``again`` reads
    it anew (``None``: it is gone)."""

    entity: str
    version: int
    audit_head: str
    facts: dict[str, Any] | None
    again: Callable[[], Item | None]


@dataclass(frozen=True, slots=True)
class _Head:
    """Of what has a chain and no facts."""

    entity: str
    version: int
    audit_head: str


def every_item(past: Past) -> Iterator[Item]:
    """Every request with its thread, stand-in, assignment, person with memberships, group, rule, sandbox, account, lease, line, restore,
    token, approval, relationship and scope, each table read whole: what no list shows is there, too. ``past`` is told of what can't be
    read."""
    for threaded in requests.every_threaded(now=SystemClock().now(), past=past):
        yield _item(threaded, partial(_request, threaded.request.request_id))
    for one in requests.every_stand_in(past=past):
        yield _item(one, partial(requests.find_stand_in, stand_in=one.stand_in, stand_in_id=one.stand_in_id, actor=_ACTOR))
    for held in assignments.every_assignment(past=past):
        yield _item(held, partial(assignments.get, held.assignment_id))
    for known in directory.every_record(past=past):
        yield _item(known, _again_in_directory(known))
    for versions in rules.every_versions(past=past):
        yield _item(versions, partial(rules.find_versions, versions.entity))
    for sandbox in sandboxes.every_sandbox(past=past):
        # Other programs bring some into the pool; those have no chain until the portal has written them.
        if sandbox.version:
            yield _item(sandbox, partial(sandboxes.find, sandbox_id=sandbox.sandbox_id))
    pool = _read_past(_pool, past)
    if pool is not None and pool.version:
        yield _item(pool, _pool)
    for row in leases.every_row(past=past):
        yield _item(row, partial(leases.find_row, row))
    for name in LINES:
        line = _read_past(partial(waiting.get_with_places, name, past=past), past)
        if line is not None and (line.version or line.places):
            yield _item(line, partial(waiting.get_with_places, name, past=past))
    for restore in every_restore(past=past):
        yield _item(restore, partial(find_restore, restore.epoch))
    for stored in tokens.every_token(past=past):
        yield _item(stored, partial(tokens.find_stored, stored.token.token_id))
    for ledger in authz.LEDGERS:
        for record in ledger.every(past=past):
            yield _item(record, partial(ledger.get, record.scope, record.names))
    for scope in authz.every_scope(past=past):
        yield _item(scope, partial(authz.get_scope, scope.scope))


def break_of(one: Unreadable) -> ChainBreak:
    """What can't be read was changed by somebody else."""
    return ChainBreak(one.key, 0, str(one))


def _read_past(read: Callable[[], R], past: Past) -> R | None:
    try:
        return read()
    except UnreadableItem as error:
        past(error.item)
        return None


def breaks_of_places(items: MutableMapping[str, Item]) -> list[ChainBreak]:
    """Where a group is said to stand below others than its parent does: what is inherited follows from there."""
    groups = [item for item in items.values() if item.facts is not None and ABOVE in item.facts]
    return [one for one in map(partial(_misplaced, items), groups) if one is not None]


def _misplaced(items: MutableMapping[str, Item], group: Item) -> ChainBreak | None:
    for _ in range(_LOOKS):
        assert group.facts is not None
        above, parent = group.facts[ABOVE], items.get(f"group#{group.facts['parent_id']}")
        if not above or (parent is not None and parent.facts is not None and above == [*parent.facts[ABOVE], above[-1]]):
            return None
        # Groups above are moved with what is below them.
        try:
            fresh = [one.again() for one in (parent, group) if one is not None]
        except UnreadableItem as error:
            return break_of(error.item)
        items = ChainMap({item.entity: item for item in fresh if item is not None}, items)
        if fresh[-1] is None:
            return None
        group = fresh[-1]
    return ChainBreak(group.entity, group.version, f"it stands below {' and '.join(above)}, and its parent does not")


def breaks_of_pool(past: Past) -> list[ChainBreak]:
    """Where the free list of sandboxes, or an idempotency key, says otherwise than its row."""
    found = sandboxes.problems_beside_rows(past=past)
    return [ChainBreak(entity_of(one.sandbox_id), 0, one.words) for one in found]


def breaks_of_rules() -> list[ChainBreak]:
    """Whether the rules in force can be read as their load wrote them."""
    try:
        rules.current_set()
    except NoAnswer:
        raise
    except Unavailable as error:
        return [ChainBreak(_RULE_SET, 0, error.message)]
    return []


def _item(record: Chained, read: Callable[[], Chained | None]) -> Item:
    """``read`` reads the record anew."""

    def again() -> Item | None:
        try:
            found = read()
        except NotFound:
            return None
        return None if found is None else _item(found, read)

    return Item(record.entity, record.version, record.audit_head, _facts_of(record), again)


def _facts_of(record: Chained) -> dict[str, Any] | None:
    if isinstance(record, Sandbox) and not sandboxes.is_as_left(record):
        return None
    return KINDS[record.entity.partition("#")[0]].facts(record)


def _again_in_directory(one: PersonHolding | Group) -> Callable[[], PersonHolding | Group | None]:
    return partial(directory.find_group, group_id=one.group_id) if isinstance(one, Group) else partial(directory.find_holding, one.key)


def _request(request_id: str) -> Threaded:
    now = SystemClock().now()
    return requests.threaded(request=requests.get(request_id=request_id, actor=_ACTOR, now=now), now=now)


def _pool() -> _Head:
    return _Head(*sandboxes.pool_head())
