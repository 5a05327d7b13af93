"""Everything that has a chain in the audit log, with where its chain must end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Protocol

from accessportal.access_requests import queries as requests
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.assignments import queries as assignments
from accessportal.assignments.states import Assignment, AssignmentState
from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent, ChainBreak
from accessportal.authz import queries as authz
from accessportal.directory import queries as directory
from accessportal.kernel import pages
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import NotFound, Unavailable
from accessportal.kernel.pages import Page, every
from accessportal.leases import queries as leases
from accessportal.rules import queries as rules
from accessportal.sandboxes import queries as sandboxes
from accessportal.sandboxes.states import Sandbox, Unreadable
from accessportal.sandboxes.states import Status as SandboxStatus
from accessportal.store.restores import Restore, every_restore
from accessportal.tokens import queries as tokens
from accessportal.waiting import queries as waiting
from accessportal.waiting.states import LINES

_ACTOR = system("verify_audit")
_PAGE = 200
_RULE_SET = "ruleset#current"
_ENDINGS = {"person": "user.deleted", "group": "group.deleted"}


@dataclass(frozen=True, slots=True)
class Head:
    """``version`` and ``audit_head`` as the item says. ``again`` reads them anew (``None``: the item is gone)."""

    entity: str
    version: int
    audit_head: str
    again: Callable[[], Head | None]


class _Recorded(Protocol):
    """A record that says where its chain ends."""

    @property
    def version(self) -> int: ...
    @property
    def audit_head(self) -> str: ...


def every_head(past: Callable[[pages.Unreadable], object]) -> Iterator[Head]:
    """The head of every request, assignment, rule, person, group, sandbox, account, lease, line, restore, API token, approval and
    relationship, and of every scope that is not deleted, each list paged to its end. ``past`` is told of what can't be read."""
    for status in Status:
        for request in every(partial(_requests, status), past=past):
            yield _head(request.entity, request, partial(_request, request.request_id))
    for state in AssignmentState:
        for held in every(partial(_assignments, state), past=past):
            yield _head(f"assignment#{held.assignment_id}", held, partial(assignments.get, assignment_id=held.assignment_id))
    for person in every(lambda cursor: directory.list_people(cursor=cursor, limit=_PAGE), past=past):
        yield _head(person.entity, person, partial(directory.find_person, email=person.key))
    for group in every(lambda cursor: directory.list_groups(cursor=cursor, limit=_PAGE), past=past):
        yield _head(group.entity, group, partial(directory.find_group, group_id=group.group_id))
    rule_set = rules.rule_set_head()
    if rule_set is not None:
        yield _head(_RULE_SET, rule_set, rules.rule_set_head)
    for rule in rules.list_rule_heads():
        yield _head(f"rule#{rule.name}", rule, partial(rules.rule_head, name=rule.name))
    for pool_status in SandboxStatus:
        for sandbox in every(partial(_sandboxes, pool_status)):
            if isinstance(sandbox, Sandbox) and sandbox.version:
                yield _head(sandbox.entity, sandbox, partial(sandboxes.get, sandbox_id=sandbox.sandbox_id))
    yield from _of_pool()
    for row in leases.every_row(past=past):
        yield _head(row.entity, row, partial(leases.find_row, row))
    for line in (waiting.get_line(name) for name in LINES):
        if line.version:
            yield _head(line.entity, line, partial(waiting.get_line, line.line))
    for restore in every_restore():
        yield _head(restore.entity, restore, partial(_restore, restore.epoch))
    for token in every(lambda cursor: tokens.list_tokens(cursor=cursor, limit=_PAGE), past=past):
        yield _head(token.entity, token, partial(tokens.find_token, token_id=token.token_id))
    for ledger in authz.LEDGERS:
        for record in ledger.every(past=past):
            yield _head(record.entity, record, partial(ledger.get, record.scope, record.names))
    caller = authz.caller_of(_ACTOR)
    for scope in every(lambda cursor: authz.list_scopes(cursor=cursor, limit=_PAGE, caller=caller), past=past):
        yield _head(scope.entity, scope, partial(authz.find_scope, scope.scope, caller=caller))


def breaks_of(head: Head, *, began: datetime) -> list[ChainBreak]:
    """The breaks of one chain. An item that was changed or went between the two reads is looked at once more, as it is now."""
    breaks = _check(head)
    if not breaks:
        return []
    now = head.again()
    if now is None:
        events = audit.chain_of(head.entity)
        return breaks_of_gone(head.entity, events, began=began) if events else breaks
    if now.version == head.version:
        return breaks
    return _check(now)


def breaks_of_gone(entity: str, events: Sequence[AuditEvent], *, began: datetime) -> list[ChainBreak]:
    """Find the breaks of a chain whose item is gone; that of a person or group must tell that it went. One that was written to after
    ``began`` may have got its item only then."""
    breaks = list(audit.breaks_in(events))
    newest = events[-1]
    ending = _ENDINGS.get(entity.partition("#")[0], newest.action)
    if newest.action != ending and newest.at < began:
        breaks.append(ChainBreak(entity, newest.sequence, f"the item is gone, but the chain does not end with {ending}"))
    return breaks


def breaks_of_rules() -> list[ChainBreak]:
    """Whether the rules in force still say what their load wrote: their hashes stand in the audit log, their words do not."""
    try:
        rules.current_set()
    except Unavailable as error:
        head = rules.rule_set_head()
        if error.code != "rules_incomplete" or head is None:
            raise
        return [ChainBreak(_RULE_SET, head.version, error.message)]
    return []


def _check(head: Head) -> list[ChainBreak]:
    return audit.check_head(head.entity, version=head.version, audit_head=head.audit_head)


def _head(entity: str, record: _Recorded, read: Callable[[], _Recorded | None]) -> Head:
    """``read`` reads the record anew."""

    def again() -> Head | None:
        try:
            found = read()
        except NotFound:
            return None
        return None if found is None else _head(entity, found, read)

    return Head(entity, record.version, record.audit_head, again)


def _requests(status: Status, cursor: str | None) -> Page[AccessRequest]:
    return requests.list_by_status(status=status, actor=_ACTOR, now=SystemClock().now(), cursor=cursor, limit=_PAGE)


def _request(request_id: str) -> AccessRequest:
    return requests.get(request_id=request_id, actor=_ACTOR, now=SystemClock().now())


def _assignments(state: AssignmentState, cursor: str | None) -> Page[Assignment]:
    return assignments.list_by_state(state=state, cursor=cursor, limit=_PAGE)


def _sandboxes(status: SandboxStatus, cursor: str | None) -> Page[Sandbox | Unreadable]:
    return sandboxes.list_by_status(status=status, cursor=cursor, limit=_PAGE)


def _of_pool() -> Iterator[Head]:
    entity, version, audit_head = sandboxes.pool_head()
    if version:
        yield Head(entity, version, audit_head, again=lambda: next(_of_pool(), None))


def _restore(epoch: int) -> Restore | None:
    return next((one for one in every_restore() if one.epoch == epoch), None)
