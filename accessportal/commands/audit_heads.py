"""Everything that has a chain in the audit log, with where its chain must end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from accessportal.access_requests import queries as requests
from accessportal.access_requests.states import AccessRequest, Status
from accessportal.assignments import queries as assignments
from accessportal.assignments.states import Assignment, AssignmentState
from accessportal.audit import queries as audit
from accessportal.audit.states import AuditEvent, ChainBreak
from accessportal.clients import queries as clients
from accessportal.clients.states import ApiToken
from accessportal.directory import queries as directory
from accessportal.directory.states import Group, Person
from accessportal.kernel import pages
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.errors import NotFound, Unavailable
from accessportal.kernel.pages import Page, every
from accessportal.rules import queries as rules
from accessportal.rules.states import RuleHead
from accessportal.sandboxes import queries as sandboxes
from accessportal.sandboxes.states import Sandbox, Unreadable
from accessportal.sandboxes.states import Status as SandboxStatus
from accessportal.store.restores import Restore, every_restore

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


def every_head(past: Callable[[pages.Unreadable], object]) -> Iterator[Head]:
    """The head of every request, assignment, rule, person, group, sandbox and API token, each list paged to its end.
    ``past`` is told of what can't be read."""
    for status in Status:
        yield from (_of_request(one) for one in every(partial(_requests, status), past=past))
    for state in AssignmentState:
        yield from (_of_assignment(one) for one in every(partial(_assignments, state), past=past))
    yield from (_of_person(one) for one in every(lambda cursor: directory.list_people(cursor=cursor, limit=_PAGE), past=past))
    yield from (_of_group(one) for one in every(lambda cursor: directory.list_groups(cursor=cursor, limit=_PAGE), past=past))
    yield from _of_rule_set()
    yield from map(_of_rule, rules.list_rule_heads())
    for pool_status in SandboxStatus:
        yield from (_of_sandbox(one) for one in every(partial(_sandboxes, pool_status)) if isinstance(one, Sandbox) and one.version)
    yield from _of_pool()
    yield from map(_of_restore, every_restore())
    yield from (_of_token(one) for one in every(lambda cursor: clients.list_tokens(cursor=cursor, limit=_PAGE), past=past))


def breaks_of(head: Head) -> list[ChainBreak]:
    """The breaks of one chain. An item that changed between the two reads is looked at once more, as it is now."""
    breaks = _check(head)
    if not breaks:
        return []
    now = head.again()
    if now is None or now.version == head.version:
        return breaks
    return _check(now)


def breaks_of_gone(entity: str, events: Sequence[AuditEvent], *, began: datetime) -> list[ChainBreak]:
    """The breaks of a chain whose item is gone; that of a person or group must tell that it went.

    One that was written to after ``began`` may have got its item only then.
    """
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


def _requests(status: Status, cursor: str | None) -> Page[AccessRequest]:
    return requests.list_by_status(status=status, actor=_ACTOR, now=SystemClock().now(), cursor=cursor, limit=_PAGE)


def _assignments(state: AssignmentState, cursor: str | None) -> Page[Assignment]:
    return assignments.list_by_state(state=state, cursor=cursor, limit=_PAGE)


def _of_request(request: AccessRequest) -> Head:
    def again() -> Head | None:
        try:
            return _of_request(requests.get(request_id=request.request_id, actor=_ACTOR, now=SystemClock().now()))
        except NotFound:
            return None

    return Head(request.entity, request.version, request.audit_head, again)


def _of_assignment(assignment: Assignment) -> Head:
    def again() -> Head | None:
        found = assignments.get(assignment_id=assignment.assignment_id)
        return None if found is None else _of_assignment(found)

    return Head(f"assignment#{assignment.assignment_id}", assignment.version, assignment.audit_head, again)


def _of_person(person: Person) -> Head:
    def again() -> Head | None:
        found = directory.find_person(email=person.key)
        return None if found is None else _of_person(found)

    return Head(person.entity, person.version, person.audit_head, again)


def _of_group(group: Group) -> Head:
    def again() -> Head | None:
        found = directory.find_group(group_id=group.group_id)
        return None if found is None else _of_group(found)

    return Head(group.entity, group.version, group.audit_head, again)


def _of_rule(rule: RuleHead) -> Head:
    def again() -> Head | None:
        found = rules.rule_head(name=rule.name)
        return None if found is None else _of_rule(found)

    return Head(f"rule#{rule.name}", rule.version, rule.audit_head, again)


def _sandboxes(status: SandboxStatus, cursor: str | None) -> Page[Sandbox | Unreadable]:
    return sandboxes.list_by_status(status=status, cursor=cursor, limit=_PAGE)


def _of_sandbox(sandbox: Sandbox) -> Head:
    def again() -> Head | None:
        try:
            return _of_sandbox(sandboxes.get(sandbox_id=sandbox.sandbox_id))
        except NotFound:
            return None

    return Head(sandbox.entity, sandbox.version, sandbox.audit_head, again)


def _of_pool() -> Iterator[Head]:
    entity, version, audit_head = sandboxes.pool_head()
    if version:
        yield Head(entity, version, audit_head, again=lambda: next(_of_pool(), None))


def _of_restore(restore: Restore) -> Head:
    def again() -> Head | None:
        return next((_of_restore(one) for one in every_restore() if one.epoch == restore.epoch), None)

    return Head(restore.entity, restore.version, restore.audit_head, again)


def _of_token(token: ApiToken) -> Head:
    return Head(token.entity, token.version, token.audit_head, again=lambda: _of_token(clients.find_token(token_id=token.token_id)))


def _of_rule_set() -> Iterator[Head]:
    found = rules.rule_set_head()
    if found is not None:
        yield Head(_RULE_SET, found.version, found.audit_head, again=lambda: next(_of_rule_set(), None))
