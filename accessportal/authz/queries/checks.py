"""Checks: may somebody, here and now? What is over says nothing, whether or not its item still lies there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import structlog

from accessportal.authz.config import current
from accessportal.authz.operations.granting import refresh
from accessportal.authz.policy.checks import MOST_LINKS, Answer, Why, answer_by, answer_by_any, check_pattern, find_chain, matches
from accessportal.authz.policy.ends import REFRESH_EVERY, is_over
from accessportal.authz.policy.names import check_names
from accessportal.authz.policy.rights import Caller
from accessportal.authz.states import Approval, Names, Relationship, Scope
from accessportal.authz.store import APPROVALS, LEDGERS, RELATIONSHIPS, Ledger, key_of
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import InvalidRequest, PortalError, Unavailable
from accessportal.kernel.moments import is_recent
from accessportal.kernel.pages import Unreadable, every
from accessportal.store.keys import join_key
from accessportal.store.reading import side_by_side
from accessportal.store.transactions import Overtaken

log = structlog.get_logger(__name__)
R = TypeVar("R", Approval, Relationship)
MOST_AT_ONCE = 100
MOST_IN_SET = 10_000
_PAGE = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """One check of a batch."""

    ledger: Ledger[Any]
    scope: Scope
    names: Names

    @property
    def record(self) -> tuple[str, str, str]:
        """What tells the record apart from those of both tables."""
        return self.ledger.word, *key_of(self.scope, self.names)


def check(ledger: Ledger[R], scope: Scope, names: Names, *, caller: Caller, clock: Clock) -> Answer:
    """Whether this very record counts now: one strong read.

    :raises UnauthorizedScopeAccess: unless the caller reaches the scope.
    :raises Unavailable: when the store did not answer; that is neither a yes nor a no.
    """
    caller.require(scope, writes=False)
    found = ledger.get(scope, check_names(names, ledger.fields))
    return _used(ledger, answer_by(found, now=clock.now()), caller, clock)


def check_many(asked: Sequence[Asked | PortalError], *, caller: Caller, clock: Clock) -> list[Answer | PortalError]:
    """As :func:`check` for at most 100 at once, each with its answer or the error that it alone meets; one strong read of each table.

    An error among those asked is its own answer.
    """
    if len(asked) > MOST_AT_ONCE:
        raise InvalidRequest(f"{len(asked)} checks at once; {MOST_AT_ONCE} is the most.", code="too_many_checks", field="checks")
    judged = [one if isinstance(one, PortalError) else _judged(one, caller) for one in asked]
    wanted = [one for one in judged if isinstance(one, Asked)]
    broken: dict[tuple[str, str], Unreadable] = {}
    found = {ledger.word: _found(ledger, [one for one in wanted if one.ledger.word == ledger.word], broken) for ledger in LEDGERS}
    answers: dict[tuple[str, str, str], Answer | PortalError] = {}
    for one in wanted:
        # Asked twice, it is used once: the second would find that the first has moved its end.
        if one.record not in answers:
            answers[one.record] = _answer(one, found[one.ledger.word], broken, caller, clock)
    return [one if isinstance(one, PortalError) else answers[one.record] for one in judged]


def _judged(one: Asked, caller: Caller) -> Asked | PortalError:
    try:
        caller.require(one.scope, writes=False)
        check_names(one.names, one.ledger.fields)
    except PortalError as error:
        return error
    return one


def _found(
    ledger: Ledger[Any], wanted: Sequence[Asked], broken: dict[tuple[str, str], Unreadable]
) -> Mapping[tuple[str, str], Any] | PortalError:
    keys = [key_of(one.scope, one.names) for one in wanted]

    def past(unreadable: Unreadable) -> None:
        # Two keys may read alike in one text: then neither is a no.
        broken.update({key: unreadable for key in keys if ", ".join(key) == unreadable.key})

    try:
        return ledger.get_many([(one.scope, one.names) for one in wanted], past=past)
    except Unavailable as error:
        return error


def _answer(
    one: Asked,
    found: Mapping[tuple[str, str], Any] | PortalError,
    broken: Mapping[tuple[str, str], Unreadable],
    caller: Caller,
    clock: Clock,
) -> Answer | PortalError:
    key = key_of(one.scope, one.names)
    if isinstance(found, PortalError):
        return found
    if key in broken:
        return broken[key].error()
    return _used(one.ledger, answer_by(found.get(key), now=clock.now()), caller, clock)


def check_chain(scope: Scope, names: Names, *, depth: int | None = None, caller: Caller, clock: Clock) -> Answer:
    """Whether links of trust or membership lead from the subject to the object, all in one scope; one round of reads a level."""
    caller.require(scope, writes=False)
    most = current().chain_depth
    if depth is not None and not 1 <= depth <= most:
        raise InvalidRequest(f"The depth is 1 to {most}.", code="depth_out_of_range", field="depth")
    subject, relation, target = check_names(names, RELATIONSHIPS.fields)
    links_of = partial(_links_of, scope, relation, target)
    while True:
        found = find_chain(subject, relation, target, links_of=links_of, now=clock.now(), depth=depth or most)
        # What ended while the rest was read carries nothing; another way may.
        if not any(is_over(one.expires_at, clock.now()) for one in found.by):
            return _used(RELATIONSHIPS, found, caller, clock)


def check_set(ledger: Ledger[R], scope: Scope, names: Names, *, caller: Caller, clock: Clock) -> Answer:
    """As :func:`check`, where the second name of an approval or the third of a relationship may end with ``/*``; every match
    is looked at, but of more than ``MOST_IN_SET`` records below it the first so many."""
    caller.require(scope, writes=False)
    names = check_names(names, ledger.fields)
    number = 1 if ledger.word == APPROVALS.word else 2
    pattern = check_pattern(names[number], field=ledger.fields[number])
    if not pattern.endswith("/*"):
        return check(ledger, scope, names, caller=caller, clock=clock)
    below = join_key(*names[1:number], pattern[:-1])
    held = _held(ledger, scope, names[0], below, most=MOST_IN_SET)
    fits = [
        record
        for record in held
        if matches(pattern, record.names[number]) and all(record.names[i] == names[i] for i in range(3) if i != number)
    ]
    answer = answer_by_any(fits, now=clock.now())
    if not answer.is_allowed and len(held) > MOST_IN_SET:
        return Answer(Why.TOO_WIDE)
    return _used(ledger, answer, caller, clock)


def _used(ledger: Ledger[Any], answer: Answer, caller: Caller, clock: Clock) -> Answer:
    """The answer after a program has used it: the ends of its records may have moved. That this fails changes no answer."""
    if not caller.actor.is_program or not any(record.refreshes for record in answer.by):
        return answer
    return replace(answer, by=tuple(_refreshed(ledger, record, caller, clock) for record in answer.by))


def _refreshed(ledger: Ledger[Any], record: Any, caller: Caller, clock: Clock) -> Any:
    if not record.refreshes or (record.refreshed_at is not None and is_recent(record.refreshed_at, now=clock.now(), within=REFRESH_EVERY)):
        return record
    try:
        return refresh(ledger, record, caller=caller, now=clock.now())
    except (Overtaken, PortalError) as error:
        log.warning("authz.not_refreshed", record=record.entity, error=str(error))
        return record


def _links_of(scope: Scope, relation: str, target: str, subjects: Sequence[str]) -> Mapping[str, Sequence[Relationship]]:
    return dict(zip(subjects, side_by_side([partial(_links, scope, relation, target, one) for one in subjects]), strict=True))


def _links(scope: Scope, relation: str, target: str, subject: str) -> list[Relationship]:
    links = _held(RELATIONSHIPS, scope, subject, join_key(relation) + "#", most=MOST_LINKS)
    direct = RELATIONSHIPS.get(scope, (subject, relation, target)) if len(links) > MOST_LINKS else None
    return links if direct is None else [*links, direct]


def _held(ledger: Ledger[R], scope: Scope, holder: str, below: str, *, most: int) -> list[R]:
    """``most`` of them, and one more where there are more."""
    pages = every(lambda cursor: ledger.page_of_holder(scope, holder, below=below, cursor=cursor, limit=_PAGE))
    return list(islice(pages, most + 1))
