"""Reading one request, and what an actor may do to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from accessportal.access_requests import policy, store
from accessportal.access_requests.config import current
from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.policy import Standing
from accessportal.access_requests.queries.approvers import ApproverBook
from accessportal.access_requests.queries.lists import list_open
from accessportal.access_requests.states import AccessRequest, Described, PlaceInLine, Status, Work
from accessportal.kernel.actors import Actor
from accessportal.kernel.decisions import Decision
from accessportal.kernel.errors import NotFound, PortalError
from accessportal.kernel.pages import Unreadable


def may_take_back(request: AccessRequest, actor: Actor, standing: Standing, now: datetime) -> Decision:
    """Whether the actor may undo that they gave it back, and the very thing is still to be had."""
    decision = policy.may_take_back(request, actor, standing, now, undo_seconds=current().undo_seconds)
    return kind_named(request.kind).grant.may_take_back(request, now=now) if decision.allowed else decision


_LATEST = 50

_Check = Callable[[AccessRequest, Actor, Standing, datetime], Decision]
_CHECKS: Mapping[str, _Check] = {
    "approve": policy.may_approve,
    "deny": policy.may_decide,
    "ask_back": policy.may_ask_back,
    "answer": policy.may_answer,
    "comment": policy.may_remark,
    "cancel": lambda request, actor, standing, now: policy.may_cancel(request, standing),
    "end": lambda request, actor, standing, now: policy.may_end(request, actor, standing),
    "extend": lambda request, actor, standing, now: policy.may_extend(request, standing, now),
    "take_back": may_take_back,
    "retry": lambda request, actor, standing, now: policy.may_retry(request, actor),
}


def get(*, request_id: str, actor: Actor, now: datetime, book: ApproverBook | None = None) -> AccessRequest:
    """Return the request, strongly read. NotFound when it does not exist or is invisible to the actor: the two look alike. One ``book``
    serves a whole page."""
    request = store.get(request_id)
    if request is None:
        raise NotFound("There is no such request.", code="request_not_found")
    _require_seen(request, actor, book or ApproverBook(now=now))
    return request


def get_many(*, request_ids: Sequence[str], actor: Actor, book: ApproverBook) -> dict[str, AccessRequest | PortalError]:
    """As :func:`get` for each, in their order, all read at once: the request, or why it is not to be had."""
    unreadable: list[Unreadable] = []
    found = store.get_many(request_ids, past=unreadable.append)
    book.expect_standings(found.values(), actor)
    told: dict[str, AccessRequest | PortalError] = {one.key: one.error() for one in unreadable}
    for request in found.values():
        try:
            _require_seen(request, actor, book)
        except PortalError as error:
            told[request.request_id] = error
        else:
            told[request.request_id] = request
    missing = NotFound("There is no such request.", code="request_not_found")
    return {one: told.get(one, missing) for one in request_ids}


def _require_seen(request: AccessRequest, actor: Actor, book: ApproverBook) -> None:
    """:raises NotFound: when it is invisible to the actor."""
    if actor.reads_everything or request.requested_by == actor.name or request.subject_id == actor.name:
        return
    decision = policy.may_see(request, actor, book.standing(request, actor))
    if not decision.allowed:
        raise NotFound(decision.reason, code=decision.code)


def can(*, verb: str, request: AccessRequest, actor: Actor, now: datetime, book: ApproverBook | None = None) -> Decision:
    """Whether ``actor`` may do ``verb`` (``approve``, ``deny``, ``ask_back``, ``answer``, ``comment``, ``cancel``, ``end``, ``extend``,
    ``take_back``, ``retry``), and why not."""
    return _CHECKS[verb](request, actor, (book or ApproverBook(now=now)).standing(request, actor), now)


def verbs_for(*, request: AccessRequest, actor: Actor, now: datetime, book: ApproverBook | None = None) -> frozenset[str]:
    """Every verb that ``actor`` may do to ``request`` now. One ``book`` serves a whole page."""
    standing = (book or ApproverBook(now=now)).standing(request, actor)
    return frozenset(verb for verb, check in _CHECKS.items() if check(request, actor, standing, now).allowed)


@dataclass(frozen=True, slots=True)
class Ends:
    """What becomes of the subject's other requests when somebody ends one: ``together`` end with it, ``kept`` still give the same (the one
    that ends last first), and ``waiting`` are extensions that nobody has decided and that are cancelled."""

    together: tuple[AccessRequest, ...]
    kept: tuple[AccessRequest, ...]
    waiting: tuple[AccessRequest, ...]


def what_ends_beside(*, request: AccessRequest) -> Ends:
    """As the kind of the request says; not what can't be read, which the sweep reports."""
    kind, beside = kind_named(request.kind), _open_beside(request)
    together = kind.grant.ended_with(request, _held(beside))
    staying = [one for one in _held(beside) if one not in together]
    kept = [one for one in staying if one.is_granted and kind.target.same_target(one.target, request.target)]
    closed = {one.request_id: one for over in (request, *together) for one in _cut_off(over, beside, staying, is_early=True)}
    return Ends(tuple(together), tuple(sorted(kept, key=lambda one: one.expires_at, reverse=True)), tuple(closed.values()))


def closed_with(*, request: AccessRequest) -> list[AccessRequest]:
    """What waits for a decision and can't go on with ``request``, which is over or being ended
    (docs/decisions/0091-what-waits-to-go-on.md)."""
    is_early = bool(request.ended_by)
    if not is_early and kind_named(request.kind).grant.is_had_anew:
        return []
    beside = _open_beside(request)
    return _cut_off(request, beside, _held(beside), is_early=is_early)


def _open_beside(request: AccessRequest) -> list[AccessRequest]:
    """The subject's other open requests of its kind, nearest end first. Strongly read: what is approved meanwhile counts as approved."""
    listed = list_open(subject_id=request.subject_id, past=_named_elsewhere)
    found = store.get_many(
        (one.request_id for one in listed if one.kind == request.kind and one.request_id != request.request_id), past=_named_elsewhere
    )
    return sorted((one for one in found.values() if not one.status.is_terminal), key=lambda one: one.expires_at)


def _held(requests: Iterable[AccessRequest]) -> list[AccessRequest]:
    """Those of them that are active and that nobody ends yet."""
    return [one for one in requests if one.status is Status.ACTIVE and one.work is not Work.REVOKE]


def _cut_off(
    request: AccessRequest, beside: Iterable[AccessRequest], staying: Sequence[AccessRequest], *, is_early: bool
) -> list[AccessRequest]:
    """Of what waits ``beside`` it: what extends ``request`` itself where that is ended early, and what extends the same thing where none of
    those that are ``staying`` gives it any more."""
    kind = kind_named(request.kind)

    def is_cut_off(one: AccessRequest) -> bool:
        if is_early and one.extends == request.request_id:
            return True
        goes_on = bool(one.extends) if is_early else not kind.grant.is_had_anew
        gives = kind.target.gives
        return goes_on and gives(request, one.target) and not any(gives(other, one.target) for other in staying)

    return [one for one in beside if one.status is Status.PENDING and is_cut_off(one)]


def asked(*, request: AccessRequest) -> dict[str, str]:
    """The target of the request as it was given, to ask for the same thing again."""
    return kind_named(request.kind).target.asked(request)


def _named_elsewhere(_one: Unreadable) -> None:
    """The lists and the tick name it; one request is not hindered by another that can't be read."""


def extensions_of(*, request: AccessRequest) -> tuple[AccessRequest, ...]:
    """What whoever asked for the request asked for as an extension of it, newest first, as far as it is among the subject's latest
    and can be read: the lists name what can't."""
    latest = store.page_by_subject(request.subject_id, cursor=None, limit=_LATEST).items
    return tuple(one for one in latest if one.extends == request.request_id and one.requested_by == request.requested_by)


def undo_seconds() -> int:
    """How long what was given back can be taken back; 0: not at all."""
    return current().undo_seconds


def place_in_line(*, request: AccessRequest, now: datetime) -> PlaceInLine | None:
    """Where the request stands in the line for what it waits for, strongly read; ``None``: it waits in none (by now)."""
    return places_in_line(requests=[request], now=now).get(request.request_id)


def places_in_line(*, requests: Iterable[AccessRequest], now: datetime) -> dict[str, PlaceInLine]:
    """As :func:`place_in_line`, of those that wait in a line, by id; what several need is read once."""
    waiting: dict[str, list[AccessRequest]] = {}
    for one in requests:
        if one.status is Status.ACTIVE and one.work is Work.GRANT and not one.is_over(now):
            waiting.setdefault(one.kind, []).append(one)
    found: dict[str, PlaceInLine] = {}
    for kind, of_kind in waiting.items():
        found |= kind_named(kind).grant.places_in_line(of_kind, now=now)
    return found


def title_of(*, request: AccessRequest) -> str:
    """As people call it: a sandbox by its name as soon as it has one, also after its end; everything else as described."""
    return kind_named(request.kind).target.title_of(request)


def describe(*, request: AccessRequest) -> Described:
    """The request in words, from the facts that it keeps; no look-up."""
    return kind_named(request.kind).target.describe(request)
